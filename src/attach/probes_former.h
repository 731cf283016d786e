/*
 * SPDX-License-Identifier: Apache-2.0
 * probes_former: takes over from the probes of a version whose maps have another layout of the same meaning.
 *
 *	1. our programs are attached, and do nothing: no load has their lease
 *	2. theirs do nothing from now on: their lease is taken away, once
 *	3. each process's entry and the variables are copied, and a pass over all processes notes what happened since 2
 *	4. our programs have the lease; the time from 2 to 4 is the gap
 *	5. the agent reads their ring to its end, and commits; only then are their pins removed
 *
 * An agent that ends in between leaves both layouts, and the next one continues: with 3 if ours has no lease, else
 * with 5. If the next one is of the older version again, it takes over likewise once the spool is at our ring; before
 * that it removes ours and continues with its own, and the gap is since 2.
 */
#ifndef SLUICE_ATTACH_PROBES_FORMER_H
#define SLUICE_ATTACH_PROBES_FORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct former;
struct probes;

/*
 * Finds the one other layout below p's pins whose maps can be copied to those of this object; one with the lease comes
 * before others. Returns 0 and *ret, which is NULL if there is none; or a negative errno.
 */
int former_find(const struct probes *p, const void *object, size_t size, struct former **ret);
/* Pins the types of this object beside p's maps, for another version. Returns 0 or a negative errno. */
int former_keep_types(const struct probes *p, const void *object, size_t size);
void former_free(struct former *f);	/* NULL is fine; the pins stay */

const char *former_layout(const struct former *f);
uint32_t former_processes(const struct former *f);
size_t former_ring_bytes(const struct former *f);
uint32_t former_ring_id(const struct former *f);
int former_ring_fd(const struct former *f);	/* f's */
bool former_has_lease(const struct former *f);	/* one of its loads */

/*
 * Stops its programs and copies their state into p's maps. *ret_since_ns is when they stopped, CLOCK_BOOTTIME. Returns
 * 0, or a negative errno after which no entry is in the map, and no variable has changed.
 */
int former_copy(struct former *f, struct probes *p, uint64_t *ret_since_ns);

/*
 * Returns a record of its ring as this version writes it, valid until the next call; *len is its length. A record that
 * cannot be converted is returned as it is, and the decoder refuses it.
 */
const void *former_record(struct former *f, const void *record, size_t *len);

#endif
