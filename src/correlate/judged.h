/*
 * SPDX-License-Identifier: Apache-2.0
 * judged: the last programs that the rules know nothing of: no engine's rule holds for them, none that excludes, and
 * their arguments show no job or container. The next program with the same text, parents and cgroups need not be
 * judged again.
 */
#ifndef SLUICE_CORRELATE_JUDGED_H
#define SLUICE_CORRELATE_JUDGED_H

#include <stdbool.h>
#include <stdint.h>

#define JUDGED 256
#define JUDGED_DEPTH 3			/* a program, its parent, and the parent's parent */

struct correlator;
struct process;
struct text;

/* All that the rules can ask about a program. Without padding: it is compared as bytes. */
struct judged {
	struct {
		struct text *text;	/* in the table a reference; NULL: unknown */
		uint64_t cgroup_v2;
		uint64_t cgroup_v1;
		uint32_t uid;
		uint32_t user_uid;
		uint32_t has_context;
		uint32_t is_exe_of_root;
	} at[JUDGED_DEPTH];
	const char *engine;		/* kept_name(), of the run around it; NULL: none */
	uint32_t strength;		/* of that run's evidence */
	uint32_t is_inside;		/* before the rules were asked */
};

/* Adds the program that p has or had to the key. text: of that program. False: it cannot be in the table. */
bool judged_add(struct judged *key, int depth, const struct process *p, struct text *text);
/* Returns true if the program is in the table. *ret_inside: whether the rules then have its children followed. */
bool judged_find(struct correlator *c, const struct judged *key, bool *ret_inside);
/* Keeps a program of which the rules know nothing. */
void judged_keep(struct correlator *c, const struct judged *key, bool is_inside);
/* Forgets all, after the rules or the paths of cgroups have changed. */
void judged_forget(struct correlator *c);

#endif
