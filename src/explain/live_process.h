/*
 * SPDX-License-Identifier: Apache-2.0
 * live_process: what /proc tells of a running process and of those above it, for the agent's rules.
 *
 * sluice ctl reads it and sends it along: it may see the links of other users' processes where it is
 * run by root, which the agent, once it has given up its privileges, may not. Never the environment.
 */
#ifndef SLUICE_EXPLAIN_LIVE_PROCESS_H
#define SLUICE_EXPLAIN_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/subject.h"

struct arena;
struct json_t;

enum {
	LIVE_PROCESS_DEPTH = 4,		/* it, its parent, and so on */
};

/*
 * {"pid", "exe", "comm", "cwd", "argv", "cgroup", "cgroup_v1", "uid", "parent": the same}; what is not to
 * be had is missing. Arguments are redacted by the shipped patterns, and cut so that all fits into a
 * request. NULL: no such process, a thread of the kernel, or no memory. The caller's reference.
 */
struct json_t *live_process_read(const char *proc, uint32_t pid);

/* As it was sent: its strings are json's, and must live as long. */
struct live_process {
	struct subject subject[LIVE_PROCESS_DEPTH];	/* each the parent of the one before */
	uint32_t pid[LIVE_PROCESS_DEPTH];
	size_t n;
};

/* False: this is none, of that pid, or a has no room. */
bool live_process_parse(const struct json_t *json, uint32_t pid, struct arena *a, struct live_process *ret);

#endif
