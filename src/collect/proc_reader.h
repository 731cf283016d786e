/*
 * SPDX-License-Identifier: Apache-2.0
 * proc_reader: discovers a process that ran before the probes: its exe, cwd, arguments and cgroups from /proc, and
 * its counters from the iterator.
 */
#ifndef SLUICE_COLLECT_PROC_READER_H
#define SLUICE_COLLECT_PROC_READER_H

#include "model/event.h"

struct proc_reader;		/* opaque: buffers for one process's text */

int proc_reader_new(const char *proc, struct proc_reader **ret);	/* proc: "/proc", copied. 0 or -ENOMEM */
void proc_reader_free(struct proc_reader *f);			/* f may be NULL */

/*
 * Makes an exec event (is_discovered) from a state. Values that may not be read are NULL. Text is valid until the
 * next call. Returns false if the process is gone or exiting, or its pid belongs to another process now.
 */
bool proc_reader_read(struct proc_reader *f, const struct state_event *state, struct exec_event *ret);

/* Returns when a process started, in ticks since boot, as /proc has it; 0: it is gone. */
uint64_t proc_reader_start_ticks(const struct proc_reader *f, uint32_t pid);
/* Converts a start from nanoseconds to ticks; proc_reader_ticks_ns() returns when that tick began. */
uint64_t proc_reader_ticks(uint64_t start_ns);
uint64_t proc_reader_ticks_ns(uint64_t ticks);

/*
 * Reads the first of a process's arguments as its memory has them now, which is its title if it wrote one. Trailing
 * blanks are removed; not NUL-terminated. Returns its length; 0: none. A string that fills the arguments to their
 * last byte is no title: the kernel would continue into the environment, and show one string up to its first NUL.
 */
size_t proc_reader_title(const struct proc_reader *f, uint32_t pid, char *buf, size_t size);

/* Returns a cgroup path of the process that was read last; NULL unknown. */
const char *proc_reader_cgroup(const struct proc_reader *f, bool is_v2);

#endif
