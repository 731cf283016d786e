/*
 * SPDX-License-Identifier: Apache-2.0
 * object: the sections of a BPF object, an ELF file in memory.
 */
#ifndef SLUICE_ATTACH_OBJECT_H
#define SLUICE_ATTACH_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some bytes of the object, which are read from their beginning. */
struct slice {
	const uint8_t *data;
	size_t len;
};

/* Copies the next bytes to `to`, or skips them if that is NULL. Returns false if there are fewer. */
bool slice_take(struct slice *s, void *to, size_t len);
/* Returns false if whole does not have these bytes. */
bool slice_of(struct slice whole, size_t offset, size_t len, struct slice *ret);

/* Finds a section by its name; *ret points into elf. Returns false if there is none. */
bool object_section(struct slice elf, const char *name, struct slice *ret);

#endif
