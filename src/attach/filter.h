/*
 * SPDX-License-Identifier: Apache-2.0
 * filter: the include and exclude rules in the kernel, one generation at a time.
 *
 * The kernel decides by what it can see at exec: base name, path, cgroup and user of the executable, and
 * descent. It leaves a program out only if the rules surely do; programs that need more (a regular expression
 * over arguments, say) are let through, and correlate/ decides with the same rules. So this filter changes the
 * cost, never which programs are reported.
 *
 * A generation is a slot of a map of maps; a judgement reads the generation once. Building one waits for the
 * kernel (tens of milliseconds), so a thread does it and the loop is never held up. Where the maps are pinned,
 * rules stay in force over a restart of the agent.
 */
#ifndef SLUICE_ATTACH_FILTER_H
#define SLUICE_ATTACH_FILTER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/ruleset.h"

struct probes;

struct filter_stats {
	uint64_t generation;	/* of the ruleset that the kernel has; 0: none yet, all programs are reported */
	uint64_t excluded;	/* programs that the kernel left out since the probes were loaded */
	uint32_t rules;		/* in the kernel */
	uint32_t rules_outside;	/* rules that the kernel cannot judge, or only in part */
	uint64_t build_ns;	/* duration of the last build */
};

/*
 * Begins to load these rules into the kernel; takes a reference until others are in force. A load under way is
 * finished first; of several that wait only the last is loaded, and done is called for the others with
 * -ECANCELED. done (may be NULL) is called on the loop with 0, or with a negative errno and the old rules in
 * force; generation is that of the rules in force. After 0 the caller reads probes_judge_open(), so that running
 * programs are judged again. Returns 0, or a negative errno without calling done.
 */
int probes_set_rules(struct probes *p, struct event_base *base, struct ruleset *rules,
    void (*done)(int error, uint64_t generation, void *arg), void *arg);

/* Loads rules at once: for the start, before probes_discovery_open(), while no loop runs. */
int probes_set_rules_now(struct probes *p, struct ruleset *rules);

/* Adds a cgroup when its path is first seen: rules name cgroups by path, the kernel knows ids. */
void probes_learn_cgroup(struct probes *p, uint64_t id, bool is_v2, const char *path);

/*
 * Returns a file like probes_snapshot_open(), and judges each process by the rules in force. A process that was
 * left out and is reported now is written as EVENT_DISCOVERED, with its totals so far. One that was reported and is
 * left out now stays known: snapshots have it with EVENT_EXCLUDED, and its end is reported.
 */
int probes_judge_open(struct probes *p);

/* Fills in the counters; all are 0 before the first rules. */
void probes_filter_stats(const struct probes *p, struct filter_stats *ret);

#endif
