/*
 * SPDX-License-Identifier: Apache-2.0
 * engine: the rules in three rounds, the strongest evidence first: programs that identify their task
 * by themselves, then drivers, then programs that are a task only if the task or its run is known.
 */
#include "identify/engine.h"

#include <string.h>

#include "base/steps.h"
#include "base/text.h"
#include "identify/engine_pieces.h"
#include "identify/match.h"
#include "identify/script.h"
#include "identify/tool.h"

void
engine_verdict_none(struct engine_verdict *v)
{
	v->role = ENGINE_NONE;
	v->rule = NULL;
	v->engine = NULL;
	v->strength = STRENGTH_NONE;
	v->has_tasks = v->is_overhead = v->counts_attempts = false;
	v->pipeline[0] = v->run_name[0] = v->run_key[0] = v->root[0] = '\0';
	v->task_id[0] = v->task[0] = v->sample[0] = v->work_dir[0] = v->header[0] = '\0';
	v->attempt = (struct opt_i32){ 0 };
	v->source = NULL;
	v->confidence = 0;
}

static void
verdict_fill(struct engine_verdict *v, const struct engine_pieces *p, const struct engine *e,
    const struct engine_rule *rule, enum engine_role role)
{
	int attempt;

	v->role = role;
	v->rule = &rule->location;
	v->engine = e->name;
	v->strength = e->is_weak ? STRENGTH_WEAK : STRENGTH_ENGINE;
	v->has_tasks = rule->has_tasks;
	v->counts_attempts = rule->counts_attempts;
	v->source = rule->source;
	v->confidence = rule->confidence;
	pieces_name(p, rule, ENGINE_FIELD_PIPELINE, v->pipeline, sizeof(v->pipeline));
	pieces_name(p, rule, ENGINE_FIELD_RUN_NAME, v->run_name, sizeof(v->run_name));
	pieces_id(p, rule, ENGINE_FIELD_RUN_KEY, v->run_key, sizeof(v->run_key));
	pieces_path(p, rule, ENGINE_FIELD_ROOT, v->root, sizeof(v->root));
	pieces_name(p, rule, ENGINE_FIELD_SAMPLE, v->sample, sizeof(v->sample));
	if (role == ENGINE_DRIVER)
		return;
	pieces_id(p, rule, ENGINE_FIELD_TASK_ID, v->task_id, sizeof(v->task_id));
	pieces_name(p, rule, ENGINE_FIELD_TASK, v->task, sizeof(v->task));
	pieces_path(p, rule, ENGINE_FIELD_WORK_DIR, v->work_dir, sizeof(v->work_dir));
	pieces_path(p, rule, ENGINE_FIELD_HEADER, v->header, sizeof(v->header));
	if (pieces_number(p, rule, ENGINE_FIELD_ATTEMPT, &attempt))
		v->attempt = (struct opt_i32){ attempt, true };
}

static bool
holds(struct engine_pieces *p, const struct engine_rule *rule)
{
	if (rule->names_bits != 0 && (rule->names_bits & p->names_bits) == 0)
		return false;
	return match(rule->when, p->s) && pieces_gather(p, rule);
}

/* Applies the first task rule that holds, among those that join (or, by `joins`, those that do not). */
static bool
judge_tasks(const struct engine_rules *rules, struct engine_pieces *p, bool joins, struct engine_verdict *ret)
{
	for (const struct engine *e = rules->first; e != NULL; e = e->next) {
		for (const struct engine_rule *rule = e->tasks; rule != NULL; rule = rule->next) {
			if (rule->joins != joins || !holds(p, rule))
				continue;
			verdict_fill(ret, p, e, rule,
			    rule->joins ? ENGINE_JOINS : rule->names ? ENGINE_NAMES : ENGINE_TASK);
			return true;
		}
	}
	return false;
}

static bool
judge_drivers(const struct engine_rules *rules, struct engine_pieces *p, struct engine_verdict *ret)
{
	for (const struct engine *e = rules->first; e != NULL; e = e->next) {
		for (const struct engine_rule *rule = e->drivers; rule != NULL; rule = rule->next) {
			if (holds(p, rule)) {
				verdict_fill(ret, p, e, rule, ENGINE_DRIVER);
				return true;
			}
		}
	}
	return false;
}

static void
judge_overhead(const struct engine_rules *rules, struct engine_pieces *p, const char *engine,
    struct engine_verdict *ret)
{
	for (const struct engine *e = rules->first; e != NULL; e = e->next) {
		if (strcmp(e->name, engine) != 0)
			continue;
		for (const struct engine_rule *rule = e->overhead; rule != NULL; rule = rule->next) {
			if (!holds(p, rule))
				continue;
			ret->is_overhead = true;
			if (ret->role == ENGINE_NONE) {
				ret->rule = &rule->location;
				ret->engine = e->name;
				ret->source = rule->source;
				ret->confidence = rule->confidence;
			}
			return;
		}
	}
}

void
engine_judge(const struct ruleset *rules, const struct candidate *s, const char *engine,
    struct engine_verdict *ret)
{
	const struct engine_rules *all = rules->engines;
	struct engine_pieces pieces;

	engine_verdict_none(ret);
	pieces_init(&pieces, s);
	if (!judge_tasks(all, &pieces, false, ret) && !judge_drivers(all, &pieces, ret))
		judge_tasks(all, &pieces, true, ret);
	if (engine != NULL && ret->role != ENGINE_TASK)
		judge_overhead(all, &pieces, engine, ret);
	if (steps_are_spent())
		engine_verdict_none(ret);	/* pieces of an id may be missing */
}

bool
engine_has_titles(const struct ruleset *rules)
{
	for (const struct engine *e = rules->engines->first; e != NULL; e = e->next) {
		if (e->titles != NULL)
			return true;
	}
	return false;
}

bool
engine_writes_titles(const struct ruleset *rules, const struct candidate *s)
{
	for (const struct engine *e = rules->engines->first; e != NULL; e = e->next) {
		if (e->titles != NULL && match(e->titles, s))
			return true;
	}
	return false;
}

/* Takes the groups `task` and `sample` of a match. */
static void
take_header(const struct pattern *pattern, const struct pattern_part *parts, char task[ENGINE_NAME_SIZE],
    char sample[ENGINE_NAME_SIZE])
{
	const char *name;

	for (size_t i = 0; i < ENGINE_PIECES_MAX && (name = pattern_group(pattern, i)) != NULL; i++) {
		if (parts[i].at == NULL)
			continue;
		if (strcmp(name, "task") == 0)
			pieces_copy(task, ENGINE_NAME_SIZE, parts[i].at, parts[i].len);
		else if (strcmp(name, "sample") == 0)
			pieces_copy(sample, ENGINE_NAME_SIZE, parts[i].at, parts[i].len);
	}
}

bool
engine_read_header(const struct ruleset *rules, const char *engine, const char *text, size_t len,
    char task[ENGINE_NAME_SIZE], char sample[ENGINE_NAME_SIZE])
{
	struct pattern_part parts[ENGINE_PIECES_MAX];

	task[0] = sample[0] = '\0';
	for (const struct engine *e = rules->engines->first; e != NULL; e = e->next) {
		if (strcmp(e->name, engine) != 0)
			continue;
		for (const struct engine_header *h = e->headers; h != NULL; h = h->next) {
			if (!pattern_find(h->pattern, text, len, parts, ENGINE_PIECES_MAX))
				continue;
			take_header(h->pattern, parts, task, sample);
			if (task[0] != '\0')
				return true;
		}
	}
	return false;
}

static bool
is_shell(const struct ruleset *rules, const char *path)
{
	return path != NULL && tool_role(rules, text_base_name(path)) == TOOL_SHELL;
}

/* Returns the text after -c, which may be bundled with other options: bash -euc, bash -euo pipefail -c. */
static const char *
script_text(const struct candidate *s)
{
	bool takes_next = false;

	for (size_t i = 1; i + 1 < s->argc; i++) {
		const char *arg = s->argv[i];

		if (takes_next) {
			takes_next = false;
			continue;
		}
		if (arg[0] != '-' && arg[0] != '+')
			return NULL;		/* a script file; its own options follow */
		if (arg[0] == '-' && arg[1] != '-' && strchr(arg, 'c') != NULL)
			return s->argv[i + 1];
		takes_next = arg[1] != '-' ? strpbrk(arg, "oO") != NULL :
		    strcmp(arg, "--rcfile") == 0 || strcmp(arg, "--init-file") == 0;
	}
	return NULL;
}

bool
engine_keeps_jobs(const struct ruleset *rules, const char *engine)
{
	for (const struct engine *e = rules->engines->first; e != NULL; e = e->next) {
		if (e->keeps_jobs && strcmp(e->name, engine) == 0)
			return true;
	}
	return false;
}

const char *
engine_command(const struct ruleset *rules, const struct candidate *s)
{
	return !s->is_tool && (is_shell(rules, s->tool) || is_shell(rules, s->exe)) ? script_text(s) : NULL;
}

void
engine_default_task(const struct ruleset *rules, const struct candidate *s, char task[ENGINE_NAME_SIZE])
{
	const char *text = engine_command(rules, s);

	if (text != NULL && script_name(rules, text, task, ENGINE_NAME_SIZE))
		return;
	task[0] = '\0';
	if (s->tool != NULL)
		pieces_copy(task, ENGINE_NAME_SIZE, s->tool, strlen(s->tool));
}
