/*
 * SPDX-License-Identifier: Apache-2.0
 * filter: the include and exclude rules in the kernel, one generation at a time.
 *
 * The kernel decides what it can see at exec: base name, path, cgroup and user of the executable,
 * and descent. It leaves a program out only where the rules surely do; whatever needs more (a
 * regular expression over arguments, say) is let through, and correlate/ decides with the same
 * rules. So this filter changes what it costs, never what is told.
 *
 * A generation is a slot of a map of maps; a judgement reads the generation once. Making one waits
 * for the kernel (tens of milliseconds), so a thread does it; the loop is never held up. Rules that
 * are in force stay so over a restart of the agent where the maps are pinned.
 */
#ifndef SLUICE_ATTACH_FILTER_H
#define SLUICE_ATTACH_FILTER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/ruleset.h"

struct probes;

struct filter_stats {
	uint64_t generation;	/* the ruleset's, of that which the kernel has; 0: none yet, all is told */
	uint64_t swaps;
	uint64_t failures;
	char error[256];	/* of the last, "" none */
	uint64_t excluded;	/* programs that the kernel left out, since the probes were loaded */
	uint32_t rules;		/* in the kernel */
	uint32_t rules_outside;	/* that it cannot judge, or only a part of */
	uint64_t build_ns;	/* of the last */
};

/*
 * Begins to give the kernel these rules; takes a reference until others are in force. One that is
 * under way is finished first, of several that wait only the last counts: done is called for the
 * others with -ECANCELED. done (may be NULL) is called on the loop: 0, or a negative errno with the
 * old rules in force; generation is that of those in force. After 0 the caller reads probes_judge_open(), so
 * that programs that run already are judged anew. 0 or a negative errno (done is not called then).
 */
int probes_set_rules(struct probes *p, struct event_base *base, struct ruleset *rules,
    void (*done)(int error, uint64_t generation, void *arg), void *arg);

/* The same, at once: for the start, before probes_discovery_open(), while no loop runs. */
int probes_set_rules_now(struct probes *p, struct ruleset *rules);

/* A cgroup's path, when it is first heard of: rules name cgroups by path, the kernel knows ids. */
void probes_learn_cgroup(struct probes *p, uint64_t id, bool is_v2, const char *path);

/*
 * As probes_snapshot_open(), and judges each process by the rules in force. One that was left out
 * and is told now comes as EVENT_FOUND, with its totals so far. One that is left out now, but was
 * told, stays what it is: a snapshot has it with EVENT_EXCLUDED, and its end comes.
 */
int probes_judge_open(struct probes *p);

void probes_filter_stats(const struct probes *p, struct filter_stats *ret);

#endif
