/*
 * SPDX-License-Identifier: Apache-2.0
 * What a program is called: bytes from the kernel → redacted UTF-8, kept for its END record.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/redact.h"
#include "correlate/state.h"
#include "correlate/tool.h"

/* len bytes as UTF-8 in the arena; NULL when it is full. */
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

struct text *
program_text_of(struct correlator *c, const struct text_parts *parts)
{
	size_t size = size_of(parts->exe) + size_of(parts->comm) + size_of(parts->cwd) + size_of(parts->tool);
	bool has_argv = parts->argv != NULL, is_cut = parts->argv_truncated;
	struct text *t;
	char *at;

	if (has_argv) {
		size_t all = (parts->argc + 1) * sizeof(*parts->argv);

		for (size_t i = 0; i < parts->argc; i++)
			all += size_of(parts->argv[i]);
		if (c->text_bytes + size + all > TEXT_BUDGET_BYTES)
			has_argv = false, is_cut = true;
		else
			size += all;
	}
	t = malloc(sizeof(*t) + size);
	if (t == NULL)
		return NULL;
	*t = (struct text){ .refs = 1, .size = size, .tool_rule = parts->tool_rule,
		.is_tool = parts->is_tool, .argv_truncated = is_cut };
	at = t->block;
	if (has_argv) {		/* pointers first: the block is aligned for them */
		const char **kept = (const char **)(void *)at;

		at += (parts->argc + 1) * sizeof(*kept);
		for (size_t i = 0; i < parts->argc; i++)
			kept[i] = put(&at, parts->argv[i]);
		kept[parts->argc] = NULL;
		t->argv = kept;
		t->argc = parts->argc;
	}
	t->exe = put(&at, parts->exe);
	t->comm = put(&at, parts->comm);
	t->cwd = put(&at, parts->cwd);
	t->tool = put(&at, parts->tool);
	c->text_bytes += size;
	return t;
}

struct text *
program_text_new(struct correlator *c, const struct exec_signal *s)
{
	struct arena *a = &c->arena;
	const char **argv = NULL;
	const char *exe = NULL, *comm, *cwd = NULL, *rule = NULL;
	char tool[TOOL_NAME_SIZE];
	struct tool_input in = { 0 };
	size_t argc = 0;
	bool is_tool, is_cut = s->argv_truncated;

	arena_reset(a);
	if (s->exe != NULL)
		exe = escape(a, s->exe, strlen(s->exe));
	comm = escape(a, s->comm, strlen(s->comm));
	if (s->cwd != NULL)
		cwd = escape(a, s->cwd, strlen(s->cwd));
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
	/* Before anything is named after an argument. */
	if (argv != NULL)
		redact_argv(argv, argc, a);
	is_tool = tool_name(&in, tool, sizeof(tool), &rule);

	return program_text_of(c, &(struct text_parts){ argv, argc, is_cut, exe, comm, cwd,
	    tool[0] != '\0' ? tool : NULL, rule, is_tool });
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
	c->text_bytes -= t->size;
	free(t);
}
