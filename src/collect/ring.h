/*
 * SPDX-License-Identifier: Apache-2.0
 * ring: reads a BPF ring buffer, on the loop.
 *
 * The reader maps the pages itself instead of through libbpf, which moves the consumer position after every record:
 * here it moves in ring_release(), so that the next reader still finds records that a dead one had not passed on.
 * Only a window of the data is mapped, which moves along with the position, where libbpf maps all of it twice: mapped
 * pages of a ring count as the process's memory. Records that wrap at the end are copied.
 */
#ifndef SLUICE_COLLECT_RING_H
#define SLUICE_COLLECT_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* Receives a record: data is 8-byte aligned, and valid until the call returns. */
typedef void (*ring_cb)(const void *data, size_t len, void *arg);

/*
 * Maps a ring. map_fd stays the caller's and must outlive it; bytes is its max_entries. Reading begins at the later
 * of the consumer position and after (0: the consumer position). 0 or a negative errno with *ret untouched.
 */
int ring_open(int map_fd, size_t bytes, uint64_t after, struct ring **ret);
void ring_close(struct ring *r);	/* r may be NULL; unreleased records stay in the ring */

/* Calls cb for up to max records. Returns their number; fewer than max: the ring is empty. */
size_t ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max);
/* Returns the position up to which records were read. Positions only grow, also across readers. */
uint64_t ring_position(const struct ring *r);
/* Returns the position at which the kernel side writes next. */
uint64_t ring_end(const struct ring *r);
/* Releases the space of all records that were read to the kernel side; the caller has made them safe. */
void ring_release(struct ring *r);

#endif
