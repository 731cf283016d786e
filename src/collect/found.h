/*
 * SPDX-License-Identifier: Apache-2.0
 * found: what a process that ran before we watched is: its exe, cwd, arguments and cgroups, from
 * /proc, beside the counters that the iterator read of it.
 */
#ifndef SLUICE_COLLECT_FOUND_H
#define SLUICE_COLLECT_FOUND_H

#include "model/event.h"

struct found;		/* opaque: room for one process's text */

int found_new(const char *proc, struct found **ret);	/* proc: "/proc"; copied. 0 or -ENOMEM */
void found_free(struct found *f);			/* NULL is fine */

/*
 * Makes an exec event (is_found) of a state. What we may not read is NULL. Text lives until the next
 * call. False: the process is gone or going, or its pid is another's by now.
 */
bool found_read(struct found *f, const struct state_event *state, struct exec_event *ret);

/* When a process started, in ticks since boot, as /proc tells it; 0: it is gone. */
uint64_t found_start_ticks(const struct found *f, uint32_t pid);
/* The same of a start in nanoseconds, and back: when the tick began. */
uint64_t found_ticks(uint64_t start_ns);
uint64_t found_ticks_ns(uint64_t ticks);

/*
 * The first of a process's arguments as its memory has them now: its title, where it wrote one. Without
 * the blanks behind it, not terminated; its length, 0: nothing. One that fills the arguments to their last
 * byte is none: there the kernel goes on into the environment, and shows one string up to its first NUL.
 */
size_t found_title(const struct found *f, uint32_t pid, char *buf, size_t size);

/* Of the process read last: the paths of its cgroups; NULL unknown. */
const char *found_cgroup(const struct found *f, bool is_v2);

#endif
