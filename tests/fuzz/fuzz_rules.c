/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of rules: either it is accepted, and its rules are applied to a program; or there
 * are errors, each of one line without control characters.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine_rules.h"
#include "model/placement_rules.h"
#include "model/tool_rules.h"
#include "rules/rules.h"
#include "identify/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_errors(const struct config_errors *errors)
{
	if (errors->n == 0)
		abort();
	for (size_t i = 0; i < errors->n; i++) {
		const struct config_error *e = &errors->list[i];

		if (e->message[0] == '\0' || (e->line == 0) != (e->column == 0))
			abort();
		for (const char *p = e->message; *p != '\0'; p++) {
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				abort();
		}
		if (i > 0 && (e->line < e[-1].line || (e->line == e[-1].line && e->column < e[-1].column)))
			abort();
	}
}

static void
check_location(const struct rule_location *p)
{
	if (strcmp(p->file, "f") != 0 || p->line == 0 || p->name == NULL || p->name[0] == '\0')
		abort();
}

/* Returns the first rule that holds, by a search through all of them. */
static const struct follow_rule *
first(const struct follow_rule *rules, size_t n, const struct candidate *s)
{
	const struct follow_rule *rule = NULL;

	for (size_t i = 0; i < n && rule == NULL; i++)
		rule = match(rules[i].when, s) ? &rules[i] : NULL;
	return rule;
}

static void
check_follow(const struct ruleset *set)
{
	static const char *const argv[] = { "bwa", "mem", "-t", "2", "ref.fa" };
	static const struct candidate parent = { .exe = "/bin/bash", .comm = "bash" };
	/* A user of the system runs them: of others an exclude rule may hold and be distrusted (sluice-rules(5)). */
	const struct candidate candidates[] = {
		{ .has_uid = true },
		{ .exe = "/usr/bin/bwa", .comm = "bwa", .argv = argv, .argc = 5, .cwd = "/work/a/b", .has_uid = true,
		    .uid = 10, .cgroup = "/a.slice/b.scope", .tool = "bwa mem", .words.subcommand = "mem",
		    .parent = &parent },
		{ .exe = "/a", .comm = "a", .argv = argv, .argc = 1, .cwd = "/", .has_uid = true, .cgroup_v1 = "/", .image = "a",
		    .words = { "a", "a", "a", "a" } },
	};

	for (size_t i = 0; i < set->follow.n_exclude; i++)
		check_location(&set->follow.exclude[i].location);
	for (size_t i = 0; i < set->follow.n_include; i++)
		check_location(&set->follow.include[i].location);
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		const struct follow_rule *rule, *exclude, *include;
		bool is_excluded = follow_excludes(&set->follow, &candidates[i], false, &rule, NULL);

		exclude = first(set->follow.exclude, set->follow.n_exclude, &candidates[i]);
		include = first(set->follow.include, set->follow.n_include, &candidates[i]);
		if (rule != (exclude != NULL ? exclude : include))
			abort();
		if (is_excluded != (exclude != NULL || (set->follow.n_include > 0 && include == NULL)))
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rules_extra extra = { "f", (const char *)data, size };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	int r = rules_load(&o, &set, &errors);

	if (r == 0) {
		if (errors.n != 0 || set->tools == NULL || set->engines == NULL || set->placements == NULL)
			abort();
		check_follow(set);
	} else if (r == -EINVAL && set == NULL) {
		check_errors(&errors);
	} else {
		abort();
	}
	config_errors_done(&errors);
	ruleset_unref(set);
	return 0;
}
