/*
 * SPDX-License-Identifier: Apache-2.0
 * ring: reads a BPF ring buffer, on the loop.
 *
 * The reader maps the pages itself instead of through libbpf, which moves the consumer position
 * after every record: here it moves when the caller says so, so that what a dead reader had not yet
 * passed on is still there for the next one. And the data is mapped once, where libbpf maps it twice
 * for records that wrap: those few are copied, and the process is smaller by the size of the ring.
 */
#ifndef SLUICE_COLLECT_RING_H
#define SLUICE_COLLECT_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* data is 8-byte aligned, and valid until the call returns. */
typedef void (*ring_cb)(const void *data, size_t len, void *arg);

/*
 * map_fd stays the caller's and must outlive the ring; bytes: its max_entries. Reading begins at
 * the later of the consumer position and after (0: where the ring stands). 0 or -errno.
 */
int ring_open(int map_fd, size_t bytes, uint64_t after, struct ring **ret);
void ring_close(struct ring *r);	/* NULL is fine; what was not released is still there */

/* Calls cb for up to max records. Returns how many; fewer than max means that it is empty. */
size_t ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max);
/* Where reading stands: positions only grow, over readers too. */
uint64_t ring_position(const struct ring *r);
/* And where the kernel side writes next. */
uint64_t ring_end(const struct ring *r);
/* Lets the kernel side write over all that was read: the caller has it safe elsewhere. */
void ring_release(struct ring *r);

#endif
