/*
 * SPDX-License-Identifier: Apache-2.0
 * proc_reader: what a process that ran before we watched is: its exe, cwd, arguments and cgroups, from
 * /proc, beside the counters that the iterator read of it.
 */
#ifndef SLUICE_COLLECT_PROC_READER_H
#define SLUICE_COLLECT_PROC_READER_H

#include "model/event.h"

struct proc_reader;		/* opaque: room for one process's text */

int proc_reader_new(const char *proc, struct proc_reader **ret);	/* proc: "/proc"; copied. 0 or -ENOMEM */
void proc_reader_free(struct proc_reader *f);			/* NULL is fine */

/*
 * Makes an exec event (is_discovered) of a state. What we may not read is NULL. Text lives until the next
 * call. False: the process is gone or going, or its pid is another's by now.
 */
bool proc_reader_read(struct proc_reader *f, const struct state_event *state, struct exec_event *ret);

/* When a process started, in ticks since boot, as /proc tells it; 0: it is gone. */
uint64_t proc_reader_start_ticks(const struct proc_reader *f, uint32_t pid);
/* The same of a start in nanoseconds, and back: when the tick began. */
uint64_t proc_reader_ticks(uint64_t start_ns);
uint64_t found_ticks_ns(uint64_t ticks);

/*
 * The first of a process's arguments as its memory has them now: its title, where it wrote one. Without
 * the blanks behind it, not terminated; its length, 0: nothing. One that fills the arguments to their last
 * byte is none: there the kernel goes on into the environment, and shows one string up to its first NUL.
 */
size_t proc_reader_title(const struct proc_reader *f, uint32_t pid, char *buf, size_t size);

/* Of the process read last: the paths of its cgroups; NULL unknown. */
const char *proc_reader_cgroup(const struct proc_reader *f, bool is_v2);

#endif
