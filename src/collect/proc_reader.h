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

/* What /proc has of one process. NULL: unknown, or it may not be read. */
struct proc_texts {
	uint64_t start_ticks;		/* read last: an unchanged start means that all else was of this process */
	const char *cmdline;		/* a NUL after each argument, and one behind cmdline_len bytes */
	size_t cmdline_len;
	const char *exe;
	const char *cwd;
	const char *cgroup[2];		/* of v1's memory hierarchy, and of v2 */
};

/* Reads a process; texts are valid until the next call. Returns false if it is gone or exiting. */
bool proc_reader_texts(struct proc_reader *f, uint32_t pid, struct proc_texts *ret);

/*
 * Makes an exec event (is_discovered) from a state and what was read of its process; NULL: nothing could be. It has
 * pointers into both and into f, until the next call. Returns false if the pid belonged to another process then.
 */
bool proc_reader_event(struct proc_reader *f, const struct state_event *state, const struct proc_texts *texts,
    struct exec_event *ret);

/* Does both. */
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
