/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text and pattern on any arguments: the results of related conditions are consistent, and a template
 * that is filled from a match is UTF-8. Lines: text or pattern, template, cgroup, argv.
 */
#include <stdio.h>

#include "args.h"
#include "model/template.h"
#include "base/text.h"
#include "identify/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
holds(enum condition_kind kind, const char *text, struct pattern *pattern, const struct candidate *s)
{
	const struct condition c = { .kind = kind, .text = text, .pattern = pattern };
	const struct condition not = { .kind = CONDITION_NOT, .first = &c };
	bool is_known = kind != CONDITION_CGROUP || s->cgroup != NULL;

	if (match(&c, s) && match(&not, s))
		abort();
	if (is_known && !match(&c, s) && !match(&not, s))
		abort();
	return match(&c, s);
}

static void
check_arguments(const char *text, const struct candidate *s)
{
	bool is_one = holds(CONDITION_ARGV, text, NULL, s), is_first = holds(CONDITION_FIRST_ARG, text, NULL, s);
	bool is_in = holds(CONDITION_ARGV_CONTAINS, text, NULL, s);

	if ((is_first && !is_one) || (is_one && !is_in))
		abort();
	if (text[0] == '\0' && s->argc > 1 && !is_in)
		abort();
}

/* The parts of a match in an argument lie inside that argument. */
static void
check_pattern(struct pattern *p, const struct candidate *s)
{
	struct pattern_part parts[64];
	bool is_found = false;

	for (size_t i = 1; i < s->argc; i++) {
		const char *arg = s->argv[i];

		if (!pattern_find(p, arg, strlen(arg), parts, 64))
			continue;
		is_found = true;
		for (size_t g = 0; pattern_group(p, g) != NULL; g++) {
			if (parts[g].at != NULL && (parts[g].at < arg ||
			    parts[g].at + parts[g].len > arg + strlen(arg)))
				abort();
		}
	}
	if (holds(CONDITION_ARGV_MATCHES, NULL, p, s) != is_found)
		abort();
	holds(CONDITION_COMMAND_MATCHES, NULL, p, s);
}

static bool
value(const char *name, const char **ret, size_t *ret_len, void *arg)
{
	const struct candidate *s = arg;

	if (s->argc == 0 || name[0] == '_')
		return false;
	*ret = s->argv[0];
	*ret_len = strlen(s->argv[0]);
	return true;
}

static void
check_template(const char *text, struct candidate *s)
{
	struct ruleset *set = ruleset_new();
	char error[256] = "", out[32];
	const struct template *t = template_new(set, text, strlen(text), error, sizeof(error));

	if (t == NULL) {
		if (error[0] == '\0')
			abort();
	} else {
		bool is_filled = template_fill(t, out, sizeof(out), value, s);
		size_t len = strnlen(out, sizeof(out));

		if (len == sizeof(out) || (!is_filled && len > 0))
			abort();
		for (size_t i = 0, n; i < len; i += n) {
			n = text_char(out + i, len - i);
			if (n == 0)
				abort();
		}
	}
	ruleset_unref(set);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct args args;
	struct candidate s = { 0 };
	struct pattern *p;
	char error[256];

	/* All text that reaches the rules is UTF-8. */
	for (size_t i = 0, n; i < size; i += n) {
		n = data[i] == '\0' ? 1 : text_char((const char *)data + i, size - i);
		if (n == 0)
			return -1;
	}
	args_init(&args, data, size);
	if (args.n >= 3) {
		s.cgroup = args.v[2];
		s.exe = args.v[2];
		s.cwd = args.v[2];
		s.image = args.v[2];
		s.words.jar = args.v[2];
		s.tool = args.v[2];
		s.argv = (const char *const *)args.v + 3;
		s.argc = args.n - 3;
		check_arguments(args.v[0], &s);
		/* A path is below itself. */
		if (!holds(CONDITION_CGROUP, args.v[2], NULL, &s))
			abort();
		holds(CONDITION_CGROUP, args.v[0], NULL, &s);
		if (!holds(CONDITION_IMAGE, "*", NULL, &s) || !holds(CONDITION_IMAGE, args.v[2], NULL, &s))
			abort();
		for (enum condition_kind kind = CONDITION_EXE; kind <= CONDITION_TOOL; kind++) {
			if (kind != CONDITION_COMM)
				holds(kind, args.v[0], NULL, &s);
		}
		holds(CONDITION_IMAGE, args.v[0], NULL, &s);
		holds(CONDITION_JAR, args.v[0], NULL, &s);
		holds(CONDITION_CWD, args.v[0], NULL, &s);
		p = pattern_new(args.v[0], error, sizeof(error));
		if (p != NULL)
			check_pattern(p, &s);
		else if (error[0] == '\0')
			abort();
		pattern_free(p);
		check_template(args.v[1], &s);
	}
	args_done(&args);
	return 0;
}
