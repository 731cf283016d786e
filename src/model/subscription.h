/*
 * SPDX-License-Identifier: Apache-2.0
 * subscription: how the agent of a host passes the events of one run on to `sluice run`.
 *
 * The connection carries frames in one direction, in this machine's byte order: both ends are on one host, and of one
 * version. When the subscriber closes its sending side it asks for the end: the agent passes on what is still due, then
 * SUBSCRIPTION_SETTLED.
 */
#ifndef SLUICE_MODEL_SUBSCRIPTION_H
#define SLUICE_MODEL_SUBSCRIPTION_H

#include <stdint.h>

enum subscription_kind {
	SUBSCRIPTION_EVENT = 1,	/* a record as the kernel side wrote it (bpf/event.h) */
	SUBSCRIPTION_CGROUP,	/* struct subscription_cgroup, and the path with its NUL */
	SUBSCRIPTION_PASS,	/* empty: a pass over all processes begins; states of those that run follow */
	SUBSCRIPTION_SWEEP,	/* empty: the states that follow are of processes that ended */
	SUBSCRIPTION_PASSED,	/* struct subscription_passed: the pass is complete */
	SUBSCRIPTION_LOST,	/* struct subscription_count: events lost since the last such frame, of whichever run */
	SUBSCRIPTION_WITHHELD,	/* struct subscription_count: programs of the run since the last such frame that are not
				 * the subscriber's user's, whose events are not passed on */
	SUBSCRIPTION_KNOWN,	/* struct subscription_known */
	SUBSCRIPTION_SETTLED,	/* empty, the last: all that ended before the end was asked for was passed on */
};

/* Precedes each frame; size is that of what follows, padded with zeros to a multiple of 8. */
struct subscription_head {
	uint32_t size;
	uint32_t kind;
};

struct subscription_cgroup {
	uint64_t id;
	uint64_t is_v2;		/* 0 or 1 */
};

struct subscription_passed {
	uint64_t processes;	/* of the whole host */
	uint64_t threads;
};

struct subscription_count {
	uint64_t n;
};

/* Since when the fields of an optional signal are filled; see probes_known_since_ns(). */
struct subscription_known {
	uint64_t signal;	/* enum optional_signal */
	uint64_t since_ns;
};

enum {
	SUBSCRIPTION_FRAME_MAX = 64 << 10,	/* bytes after the head, at most */
};

#endif
