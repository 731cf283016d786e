/*
 * SPDX-License-Identifier: Apache-2.0
 * wait_places: which function of the kernel means which kind of wait, by name (wait_places.def).
 */
#ifndef SLUICE_COLLECT_WAIT_PLACES_H
#define SLUICE_COLLECT_WAIT_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "wait.h"

/* Returns the class of a function of the kernel; WAIT_OTHER: it is in no row of the table. */
enum wait_class wait_places_of_name(const char *name, size_t len);

/*
 * Reads a line as on_wait_places prints it (bpf/waits.h), with or without its newline: the hash of a stack and, from
 * where it sleeps on, its functions as "name+0x1f/0x80 [module]", "0x0" behind the last. Writes the most specific class
 * of them. 0, or -EBADMSG with nothing written.
 */
int wait_places_of_line(const char *line, size_t len, uint64_t *ret_hash, enum wait_class *ret_class);

#endif
