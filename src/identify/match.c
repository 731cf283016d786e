/*
 * SPDX-License-Identifier: Apache-2.0
 * match: whether a condition holds for a program.
 *
 * The logic has three values: a condition on an unknown property is unknown, and so is a compound of
 * it unless its other parts decide. `not` of an unknown condition does not hold either. Once the account of
 * base/steps.h is spent, all is unknown.
 */
#include "identify/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/glob.h"
#include "base/steps.h"
#include "base/text.h"
#include "model/follow_index.h"
#include "model/user.h"

#define ARGS_PER_STEP 8			/* that are compared in the time of a step */

enum truth {
	NO,
	YES,
	UNKNOWN,
};

/* A candidate, and its arguments joined into one text on first use. */
struct view {
	const struct candidate *s;
	struct bytes command;	/* owned */
	bool has_command;
};

static enum truth judge(const struct condition *c, struct view *v);

static enum truth
truth_of(bool is_true)
{
	return is_true ? YES : NO;
}

static enum truth
is_text(const char *of, const char *text)
{
	return of == NULL ? UNKNOWN : truth_of(strcmp(of, text) == 0);
}

static enum truth
is_base(const char *path, const char *text)
{
	return is_text(path != NULL ? text_base_name(path) : NULL, text);
}

/* "/data/" matches every path below it and, for a folder, /data itself. */
static enum truth
is_path(const char *path, const char *text, bool is_folder)
{
	size_t len = strlen(text), path_len;

	if (path == NULL)
		return UNKNOWN;
	if (len == 0 || text[len - 1] != '/')
		return truth_of(strcmp(path, text) == 0);
	path_len = strlen(path);
	return truth_of((path_len >= len && memcmp(path, text, len) == 0) ||
	    (is_folder && path_len == len - 1 && memcmp(path, text, path_len) == 0));
}

static enum truth
search(const struct pattern *p, const char *in, size_t len)
{
	bool is_found = pattern_find(p, in, len, NULL, 0);

	return steps_are_spent() ? UNKNOWN : truth_of(is_found);
}

static enum truth
is_found(const struct pattern *p, const char *in)
{
	return in == NULL ? UNKNOWN : search(p, in, strlen(in));
}

/* Combines the results for both cgroup hierarchies, one of which may be missing. */
static enum truth
either(enum truth a, enum truth b)
{
	if (a == YES || b == YES)
		return YES;
	return a == NO || b == NO ? NO : UNKNOWN;
}

static enum truth
is_cgroup(const char *path, const char *text)
{
	return path == NULL ? UNKNOWN : truth_of(glob_holds_path(text, path));
}

/* "samtools" also matches "samtools sort". */
static enum truth
is_tool(const char *tool, const char *text)
{
	size_t len = strlen(text);

	if (tool == NULL)
		return UNKNOWN;
	return truth_of(strncmp(tool, text, len) == 0 && (tool[len] == '\0' || tool[len] == ' '));
}

/* Returns the offset of the version that a build appends to a jar's name: 6 for "picard-2.27.5". */
static size_t
version_at(const char *name, size_t len)
{
	for (size_t i = 1; i + 1 < len; i++) {
		size_t digit = i + 1;

		if (name[i] != '-' && name[i] != '_' && !(name[i] == '.' && name[i + 1] == 'v'))
			continue;
		digit += name[i + 1] == 'v' && digit + 1 < len;
		if (name[digit] >= '0' && name[digit] <= '9')
			return i;
	}
	return len;
}

/* Returns the length of name without its suffix `end`, if it has it. */
static size_t
without(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && memcmp(name + len - n, end, n) == 0 ? len - n : len;
}

static enum truth
is_jar(const char *jar, const char *text)
{
	static const char *const added[] = { "-jar-with-dependencies", "-standalone", "-all", "-local" };
	size_t len, text_len;
	const char *name;

	if (jar == NULL)
		return UNKNOWN;
	name = text_base_name(jar);
	if (strcmp(name, text) == 0)
		return YES;
	len = without(name, strlen(name), ".jar");
	text_len = without(text, strlen(text), ".jar");
	if (len == text_len && memcmp(name, text, len) == 0)
		return YES;
	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++)
		len = without(name, len, added[i]);
	len = version_at(name, len);
	return truth_of(len == text_len && memcmp(name, text, len) == 0);
}

static enum truth
judge_argv(const struct condition *c, const struct candidate *s)
{
	if (s->argv == NULL)
		return UNKNOWN;
	if (c->kind == CONDITION_FIRST_ARG)
		return truth_of(s->argc > 1 && strcmp(s->argv[1], c->text) == 0);
	for (size_t i = 1; i < s->argc; i++) {
		const char *arg = s->argv[i];

		if (c->kind == CONDITION_ARGV ? strcmp(arg, c->text) == 0 :
		    c->kind == CONDITION_ARGV_CONTAINS ? strstr(arg, c->text) != NULL :
		    pattern_find(c->pattern, arg, strlen(arg), NULL, 0))
			return YES;
		if (!steps_take((i % ARGS_PER_STEP == 0) + strlen(arg) / STEPS_BYTES))
			return UNKNOWN;
	}
	return steps_are_spent() ? UNKNOWN : NO;
}

static enum truth
judge_command(const struct condition *c, struct view *v)
{
	const struct candidate *s = v->s;

	if (s->argv == NULL)
		return UNKNOWN;
	for (size_t i = 0; i < s->argc && !v->has_command; i++) {
		if ((i > 0 && bytes_append(&v->command, " ", 1) < 0) ||
		    bytes_append(&v->command, s->argv[i], strlen(s->argv[i])) < 0) {
			v->command.len = 0;
			return UNKNOWN;	/* no memory */
		}
	}
	v->has_command = true;
	return search(c->pattern, v->command.len > 0 ? (const char *)v->command.data : "", v->command.len);
}

/* The joined arguments of the parent are not kept: they are needed once or twice. */
static enum truth
judge_parent(const struct condition *c, const struct candidate *s)
{
	struct view parent = { .s = s->parent };
	enum truth t;

	if (s->parent == NULL)
		return UNKNOWN;
	t = judge(c->first, &parent);
	bytes_done(&parent.command);
	return t;
}

/* Returns `decides` as soon as a child has that value; else UNKNOWN if any child was, else the opposite. */
static enum truth
judge_children(const struct condition *c, struct view *v, enum truth decides)
{
	enum truth all = decides == NO ? YES : NO;

	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		enum truth t = judge(child, v);

		if (t == decides)
			return t;
		if (t == UNKNOWN)
			all = UNKNOWN;
	}
	return all;
}

static enum truth
negate(enum truth t)
{
	return t == UNKNOWN ? UNKNOWN : truth_of(t == NO);
}

static enum truth
judge(const struct condition *c, struct view *v)
{
	const struct candidate *s = v->s;

	if (!steps_take(1))
		return UNKNOWN;
	switch (c->kind) {
	case CONDITION_ALL:
		return judge_children(c, v, NO);
	case CONDITION_ANY:
		return judge_children(c, v, YES);
	case CONDITION_NOT:
		return negate(judge(c->first, v));
	case CONDITION_PARENT:
		return judge_parent(c, s);
	case CONDITION_EXE:
		return is_base(s->exe, c->text);
	case CONDITION_PATH:
		return is_path(s->exe, c->text, false);
	case CONDITION_COMM:
		return is_text(s->comm, c->text);
	case CONDITION_TOOL:
		return is_tool(s->tool, c->text);
	case CONDITION_ARGV:
	case CONDITION_ARGV_CONTAINS:
	case CONDITION_ARGV_MATCHES:
	case CONDITION_FIRST_ARG:
		return judge_argv(c, s);
	case CONDITION_COMMAND_MATCHES:
		return judge_command(c, v);
	case CONDITION_SUBCOMMAND:
		return is_text(s->words.subcommand, c->text);
	case CONDITION_SCRIPT:
		return is_base(s->words.script, c->text);
	case CONDITION_JAR:
		return is_jar(s->words.jar, c->text);
	case CONDITION_CLASS:
		return is_text(s->words.class, c->text);
	case CONDITION_CWD:
		return is_path(s->cwd, c->text, true);
	case CONDITION_CWD_MATCHES:
		return is_found(c->pattern, s->cwd);
	case CONDITION_CGROUP:
		return either(is_cgroup(s->cgroup, c->text), is_cgroup(s->cgroup_v1, c->text));
	case CONDITION_CGROUP_MATCHES:
		return either(is_found(c->pattern, s->cgroup), is_found(c->pattern, s->cgroup_v1));
	case CONDITION_UID:
		return s->has_uid ? truth_of(s->uid >= c->low && s->uid <= c->high) : UNKNOWN;
	case CONDITION_IMAGE:
		return s->image != NULL ? truth_of(glob_holds(c->text, strlen(c->text), s->image,
		    strlen(s->image))) : UNKNOWN;
	case CONDITION_KINDS:
		break;
	}
	return NO;
}

bool
match(const struct condition *c, const struct candidate *s)
{
	struct view v = { .s = s };
	bool holds = c == NULL || judge(c, &v) == YES;

	bytes_done(&v.command);
	return holds;
}

/* A search for the first of many rules that holds. */
struct search {
	const struct follow_rule *rules;
	const struct follow_index *index;
	struct view *v;
	size_t found;		/* lowest index so far of a rule that holds; the number of rules: none */
};

static bool
is_trusted(enum follow_trust by, const struct candidate *s)
{
	return by == TRUST_ANY || (s->has_uid && user_is_of_system(s->uid, s->user_uid)) ||
	    (by == TRUST_EXE && s->is_exe_of_root);
}

static bool
holds(const struct search *f, size_t i)
{
	if (!is_trusted(f->rules[i].trust, f->v->s))
		return false;
	return f->rules[i].when == NULL || judge(f->rules[i].when, f->v) == YES;
}

/* The numbers ascend: after one that holds, no later one can be the first. */
static void
ask(struct search *f, struct follow_numbers numbers)
{
	for (size_t i = 0; i < numbers.n && numbers.list[i] < f->found; i++) {
		if (holds(f, numbers.list[i]))
			f->found = numbers.list[i];
	}
}

static void
ask_by_name(struct search *f, enum condition_kind kind, const char *name)
{
	if (name != NULL)
		ask(f, follow_index_find(f->index, kind, name));
}

static void
ask_by_path(struct search *f, enum condition_kind kind, const char *path)
{
	struct follow_walk w = { 0 };
	struct follow_numbers numbers;

	while (path != NULL && follow_index_walk(f->index, kind, path, &w, &numbers))
		ask(f, numbers);
}

static const struct follow_rule *
first_that_holds(const struct follow_rule *rules, size_t n, const struct follow_index *index, struct view *v)
{
	struct search f = { rules, index, v, n };
	const struct candidate *s = v->s;

	if (index == NULL) {
		for (size_t i = 0; i < n && f.found == n; i++) {
			if (holds(&f, i))
				f.found = i;
		}
		return f.found < n ? &rules[f.found] : NULL;
	}
	ask_by_name(&f, CONDITION_EXE, s->exe != NULL ? text_base_name(s->exe) : NULL);
	ask_by_name(&f, CONDITION_COMM, s->comm);
	ask_by_path(&f, CONDITION_PATH, s->exe);
	ask_by_path(&f, CONDITION_CGROUP, s->cgroup);
	ask_by_path(&f, CONDITION_CGROUP, s->cgroup_v1);
	ask(&f, follow_index_others(index));
	return f.found < n ? &rules[f.found] : NULL;
}

bool
follow_excludes(const struct follow_rules *r, const struct candidate *s, bool is_inside,
    const struct follow_rule **ret_rule, bool *ret_inside)
{
	struct view v = { .s = s };
	const struct follow_rule *exclude, *include = NULL;

	exclude = first_that_holds(r->exclude, r->n_exclude, r->exclude_index, &v);
	include = first_that_holds(r->include, r->n_include, r->include_index, &v);
	bytes_done(&v.command);
	if (steps_are_spent())
		exclude = include = NULL;
	is_inside = is_inside || include != NULL;
	if (ret_rule != NULL)
		*ret_rule = exclude != NULL ? exclude : include;
	if (ret_inside != NULL)
		*ret_inside = is_inside;
	return exclude != NULL || (r->n_include > 0 && !is_inside && !steps_are_spent());
}

const struct follow_rule *
follow_distrusts(const struct follow_rules *r, const struct candidate *s)
{
	for (size_t i = 0; i < r->n_exclude; i++) {
		if (!is_trusted(r->exclude[i].trust, s) && match(r->exclude[i].when, s))
			return &r->exclude[i];
	}
	return NULL;
}
