/*
 * SPDX-License-Identifier: Apache-2.0
 * ring: reads a BPF ring buffer, on the loop.
 *
 * The reader maps the pages itself instead of through libbpf, which moves the consumer position
 * after every record: here it moves once a drain, after the caller has taken the records, so that
 * what a dead reader had not yet passed on is still there for the next one.
 */
#ifndef SLUICE_COLLECT_RING_H
#define SLUICE_COLLECT_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* data is 8-byte aligned, and valid until the call returns. */
typedef void (*ring_cb)(const void *data, size_t len, void *arg);

/* map_fd stays the caller's and must outlive the ring; bytes: its max_entries. 0 or -errno. */
int ring_open(int map_fd, size_t bytes, struct ring **ret);
void ring_close(struct ring *r);	/* NULL is fine */

/* Calls cb for up to max records. Returns how many; fewer than max means that it is empty. */
size_t ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max);

uint64_t ring_pending_bytes(const struct ring *r);

#endif
