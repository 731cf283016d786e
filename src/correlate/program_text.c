/*
 * SPDX-License-Identifier: Apache-2.0
 * The names of a program: bytes from the kernel → redacted UTF-8, kept for its END record.
 */
#include "correlate/program_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/text_budget.h"
#include "identify/redact.h"
#include "identify/tool.h"
#include "identify/traceparent.h"
#include "model/user.h"

#define VARIABLES_MAX 16

/* Returns len bytes as UTF-8 in the arena; NULL if it is full. */
static const char *
escape(struct arena *a, const char *bytes, size_t len)
{
	size_t space = text_is_plain(bytes, len) ? len + 1 : TEXT_ESCAPE_MAX(len);
	char *out = arena_bytes(a, space);

	if (out != NULL)
		text_escape(bytes, len, out, space, NULL);
	return out;
}

static size_t
size_of(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

/* Copies s to *at and moves it. */
static const char *
put(char **at, const char *s)
{
	char *begin = *at;
	size_t n;

	if (s == NULL)
		return NULL;
	n = strlen(s) + 1;
	memcpy(begin, s, n);
	*at += n;
	return begin;
}

/* Adds the bytes of *s to *size, or leaves it out if the budget has no room for it beside *size bytes of its text. */
static void
keep_string(const struct correlator *c, owner_t owner, const char **s, size_t *size, bool *is_cut)
{
	size_t all = size_of(*s);

	if (!text_budget_has_for(c, owner, *size + all, TEXT_BUDGET_BYTES)) {
		*is_cut = *is_cut || *s != NULL;
		*s = NULL;
	} else {
		*size += all;
	}
}

/* The same for the variables, all of them. */
static void
keep_variables(const struct correlator *c, struct text_parts *x, size_t *size, bool *is_cut)
{
	size_t all = x->n_variables * sizeof(*x->variables);

	for (size_t i = 0; i < x->n_variables; i++)
		all += size_of(x->variables[i].name) + size_of(x->variables[i].value);
	if (!text_budget_has_for(c, x->owner, *size + all, TEXT_BUDGET_BYTES)) {
		*is_cut = *is_cut || x->n_variables > 0;
		x->n_variables = 0;
	} else {
		*size += all;
	}
}

/* The same for the arguments, all of them, for which a part of the budget is closed. */
static void
keep_argv(const struct correlator *c, struct text_parts *x, size_t *size, bool *is_cut)
{
	size_t all = (x->argc + 1) * sizeof(*x->argv);

	if (x->argv == NULL)
		return;
	for (size_t i = 0; i < x->argc; i++)
		all += size_of(x->argv[i]);
	if (!text_budget_has_for(c, x->owner, *size + all, TEXT_ARGV_BYTES)) {
		*is_cut = x->argv_truncated = true;
		x->argv = NULL;
	} else {
		*size += all;
	}
}

/*
 * Leaves out of x what the budget has no room for, and counts that. Strings of bounded length always stay, and the
 * longer ones come in the order of their worth. Returns the bytes of what stays.
 */
static size_t
keep_budget(struct correlator *c, struct text_parts *x)
{
	const char **const strings[] = { &x->exe, &x->cwd, &x->words.script, &x->words.subcommand, &x->words.jar,
	    &x->words.class };
	size_t size = size_of(x->comm) + size_of(x->tool) + size_of(x->trace_id) + size_of(x->span_id);
	bool is_cut = false;

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		keep_string(c, x->owner, strings[i], &size, &is_cut);
	keep_variables(c, x, &size, &is_cut);
	keep_argv(c, x, &size, &is_cut);
	if (is_cut)
		text_budget_count_cut(c, x->owner);
	return size;
}

/* Returns the name of x that ends with that of its tool, so that one copy does for both; NULL: none does. */
static const char *
holder_of_tool(const struct text_parts *x)
{
	if (x->tool == NULL)
		return NULL;
	if (x->exe != NULL && text_ends_with(x->exe, x->tool))
		return x->exe;
	return x->argv != NULL && x->argc > 0 && text_ends_with(x->argv[0], x->tool) ? x->argv[0] : NULL;
}

struct text *
program_text_of(struct correlator *c, const struct text_parts *parts)
{
	struct text_parts x = *parts;
	const struct candidate_words *words = &x.words;
	size_t size = keep_budget(c, &x);
	const char *holder = holder_of_tool(&x);
	struct named_text *variables = NULL;
	const char **kept = NULL;
	struct text *t;
	char *at;

	if (holder != NULL)
		size -= size_of(x.tool);
	t = malloc(sizeof(*t) + size);
	if (t == NULL)
		return NULL;
	*t = (struct text){ .refs = 1, .size = size, .owner = x.owner, .tool_rule = x.tool_rule,
		.is_tool = x.is_tool, .argv_truncated = x.argv_truncated };
	at = t->block;		/* pointers first: the block is aligned for them */
	if (x.argv != NULL) {
		kept = (const char **)(void *)at;
		at += (x.argc + 1) * sizeof(*kept);
	}
	if (x.n_variables > 0) {
		variables = (struct named_text *)(void *)at;
		at += x.n_variables * sizeof(*variables);
	}
	if (x.argv != NULL) {
		for (size_t i = 0; i < x.argc; i++)
			kept[i] = put(&at, x.argv[i]);
		kept[x.argc] = NULL;
		t->argv = kept;
		t->argc = x.argc;
	}
	t->exe = put(&at, x.exe);
	t->comm = put(&at, x.comm);
	t->cwd = put(&at, x.cwd);
	if (holder != NULL)
		t->tool = (holder == x.exe ? t->exe : t->argv[0]) + strlen(holder) - strlen(x.tool);
	else
		t->tool = put(&at, x.tool);
	t->words.subcommand = put(&at, words->subcommand);
	t->words.script = put(&at, words->script);
	t->words.jar = put(&at, words->jar);
	t->words.class = put(&at, words->class);
	t->trace_id = put(&at, x.trace_id);
	t->span_id = put(&at, x.span_id);
	for (size_t i = 0; i < x.n_variables; i++) {
		variables[i].name = put(&at, x.variables[i].name);
		variables[i].value = put(&at, x.variables[i].value);
	}
	t->variables = variables;
	t->n_variables = x.n_variables;
	text_budget_take_for(c, x.owner, size);
	return t;
}

void
program_text_candidate(const struct text *t, struct candidate *ret)
{
	*ret = (struct candidate){ .exe = t->exe, .comm = t->comm, .argv = t->argv,
		.argc = t->argv != NULL ? t->argc : 0, .cwd = t->cwd, .words = t->words, .tool = t->tool,
		.is_tool = t->is_tool };
}

struct text *
program_text_new(struct correlator *c, const struct exec_event *s, const struct text *known, struct candidate *ret)
{
	struct arena *a = &c->arena;
	const char **argv = NULL, **kept;
	const char *exe = NULL, *comm, *cwd = NULL, *rule = NULL;
	char tool[TOOL_NAME_SIZE];
	struct named_text variables[VARIABLES_MAX];
	struct traceparent trace;
	struct candidate in = { 0 };
	size_t argc = 0, n_variables = 0;
	bool has_trace = false;
	bool is_cut = s->argv_truncated;

	arena_reset(a);
	if (s->exe != NULL)
		exe = escape(a, s->exe, strlen(s->exe));
	else if (known != NULL && known->exe != NULL)
		exe = arena_copy(a, known->exe, strlen(known->exe));
	comm = escape(a, s->comm, strlen(s->comm));
	if (s->cwd != NULL)
		cwd = escape(a, s->cwd, strlen(s->cwd));
	else if (known != NULL && known->cwd != NULL)
		cwd = arena_copy(a, known->cwd, strlen(known->cwd));
	if (s->argv != NULL)
		argv = arena_alloc(a, (s->argc + 1) * sizeof(*argv));
	is_cut |= s->argv != NULL && argv == NULL;
	for (size_t i = 0; argv != NULL && i < s->argc; i++) {
		argv[i] = escape(a, s->argv[i], s->argv_len[i]);
		if (argv[i] == NULL) {
			is_cut = true;
			break;
		}
		argc++;
	}
	in.exe = exe;
	in.argv = argv;
	in.argc = argc;
	in.comm = comm;
	/* Must precede everything that takes a name from an argument. */
	if (argv != NULL)
		redaction_apply(c->redaction, c->rules, argv, argc, a);
	for (size_t i = 0; i < s->n_variables && n_variables < VARIABLES_MAX; i++) {
		struct named_text *v = &variables[n_variables];

		v->name = escape(a, s->variables[i].name, strlen(s->variables[i].name));
		v->value = escape(a, s->variables[i].value, strlen(s->variables[i].value));
		if (v->name == NULL || v->value == NULL)
			break;
		n_variables++;
		if (strcmp(v->name, TRACEPARENT_NAME) == 0)
			has_trace = traceparent_parse(v->value, &trace);
	}
	in.is_tool = tool_name(c->rules, &in, tool, sizeof(tool), &rule);
	in.tool = tool[0] != '\0' ? arena_copy(a, tool, strlen(tool)) : NULL;
	in.cwd = cwd;
	*ret = in;
	if (argv != NULL && c->redaction != NULL) {
		size_t all = argc;

		kept = arena_alloc(a, (argc + 2) * sizeof(*kept));
		if (kept != NULL)
			memcpy(kept, argv, argc * sizeof(*kept));
		argc = kept != NULL ? redaction_keep(c->redaction, kept, argc, a) : 0;
		/* A word of an argument that is not kept is not kept either. */
		if (argc != all || (argc > 1 && kept[1] != argv[1]))
			in.words = (struct candidate_words){ 0 };
		argv = kept;
	}
	return program_text_of(c, &(struct text_parts){
	    .owner = owner_of(user_behind(s->context.uid, s->context.user_uid)),
	    .argv = argv, .argc = argc, .argv_truncated = is_cut,
	    .exe = exe, .comm = comm, .cwd = cwd, .tool = in.tool, .words = in.words,
	    .trace_id = has_trace ? trace.trace_id : NULL, .span_id = has_trace ? trace.span_id : NULL,
	    .variables = variables, .n_variables = n_variables, .tool_rule = kept_name(c, rule),
	    .is_tool = in.is_tool });
}

struct text *
program_text_ref(struct text *t)
{
	if (t != NULL)
		t->refs++;
	return t;
}

void
program_text_unref(struct correlator *c, struct text *t)
{
	if (t == NULL || --t->refs > 0)
		return;
	text_budget_give_back_for(c, t->owner, t->size);
	free(t);
}
