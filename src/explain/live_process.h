/*
 * SPDX-License-Identifier: Apache-2.0
 * live_process: the properties of a running process and its ancestors in /proc, for the agent's rules.
 *
 * `sluice ctl` reads them and sends them to the agent: run by root it may read the links of other users'
 * processes, which the agent without its privileges may not. The environment is never read.
 */
#ifndef SLUICE_EXPLAIN_LIVE_PROCESS_H
#define SLUICE_EXPLAIN_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/candidate.h"

struct arena;
struct json_t;

enum {
	LIVE_PROCESS_DEPTH = 4,		/* processes: the process, its parent, and so on */
};

/*
 * Reads a process below the folder proc: {"pid", "exe", "comm", "cwd", "argv", "cgroup", "cgroup_v1",
 * "uid", "exe_of_root", "parent": the same}; a property that cannot be read is missing. Arguments are redacted by the
 * shipped patterns, and cut so that the object fits into a request. Returns a reference that the caller
 * owns, or NULL: no such process, a kernel thread, or no memory.
 */
struct json_t *live_process_read(const char *proc, uint32_t pid);

/*
 * Returns whether the host's root owns an executable, on a mount where users cannot make up owners: is_exe_of_root() in
 * bpf/judge.h decides likewise.
 */
bool executable_is_of_root(const char *path);

/* A process as it was sent. Its strings belong to the JSON, which must outlive it. */
struct live_process {
	struct candidate candidate[LIVE_PROCESS_DEPTH];	/* each the parent of the one before */
	uint32_t pid[LIVE_PROCESS_DEPTH];
	size_t n;
};

/* Parses what live_process_read() made. Returns false where json is invalid or of another pid, or a is full. */
bool live_process_parse(const struct json_t *json, uint32_t pid, struct arena *a, struct live_process *ret);

#endif
