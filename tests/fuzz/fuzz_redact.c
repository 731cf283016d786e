/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any argv, with the shipped patterns and any of a user's: redaction changes only the arguments that it
 * counts, strings stay valid, and the value of a plain secret option appended to them never survives. Lines:
 * arguments; the first is also the user's pattern, and the second's first byte selects what is kept.
 */
#include "args.h"
#include "base/arena.h"
#include "base/text.h"
#include "identify/redact.h"
#include "rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ruleset *rules;	/* the shipped ones */

static int
is_text(const char *s)
{
	for (size_t i = 0, len = strlen(s), width; i < len; i += width) {
		width = text_char(s + i, len - i);
		if (width == 0)
			return 0;
	}
	return 1;
}

/* Redacts as the correlator does: UTF-8 in, UTF-8 out, for any pattern. */
static void
check_user(const struct args *args, struct arena *a, size_t space)
{
	static const char *const fixed = "--pin=(?<secret>.*)";
	const char *patterns[] = { REDACT_BUILTIN, fixed, args->v[0] }, *argv[ARGS_MAX + 1];
	struct redaction_options o = { patterns, 3,
		args->n > 1 ? (enum redact_keep)((unsigned char)args->v[1][0] % 3) : REDACT_KEEP_ALL,
		"host" };
	struct redaction *r = NULL;
	size_t argc = 0, kept;
	char error[512];

	if (redaction_new(&o, &r, error, sizeof(error)) < 0) {
		if (r != NULL || error[0] == '\0')
			abort();
		o.n_patterns = 2;
		if (redaction_new(&o, &r, error, sizeof(error)) < 0)
			abort();
	}
	arena_reset(a);
	for (; argc < args->n; argc++) {
		size_t len = strlen(args->v[argc]);
		char *text = arena_bytes(a, TEXT_ESCAPE_MAX(len));

		text_escape(args->v[argc], len, text, TEXT_ESCAPE_MAX(len), NULL);
		argv[argc] = text;
	}
	argv[argc++] = "--pin=hunter2";
	redaction_apply(r, rules, argv, argc, a);
	for (size_t i = 0; i < argc; i++) {
		if (!is_text(argv[i]) || strlen(argv[i]) > space)
			abort();
	}
	if (strstr(argv[argc - 1], "hunter2") != NULL)
		abort();
	kept = redaction_keep(r, argv, argc, a);
	if (redaction_drops(r) != (o.keep != REDACT_KEEP_ALL) || kept < 1 || (kept > 2 && redaction_drops(r)) ||
	    (kept != argc && !redaction_drops(r)))
		abort();
	if (kept == 2 && o.keep == REDACT_KEEP_HASH &&
	    (strncmp(argv[1], REDACT_HASH_PREFIX, 7) != 0 || strlen(argv[1]) != 39))
		abort();
	redaction_free(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *argv[ARGS_MAX + 3], *again[ARGS_MAX + 2];
	const size_t space = 16 * size + 4096;
	size_t n, changed = 0, got;
	struct args args;
	struct arena a;

	if (rules == NULL)
		rules = rules_shipped();
	args_init(&args, data, size);
	if (arena_init(&a, space) < 0)
		abort();
	n = args.n;
	for (size_t i = 0; i < n; i++)
		argv[i] = args.v[i];
	if (n > 0) {
		argv[n++] = "--password=hunter2";
		argv[n++] = "https://me:hunter2@host/";
		argv[n++] = "ghp_" "hunter2hunter2hunter2";
	}
	got = redact_argv(rules, argv, n, &a);
	for (size_t i = 0; i < n; i++) {
		changed += argv[i] != (i < args.n ? args.v[i] : argv[i]);
		if (strlen(argv[i]) > space)
			abort();
	}
	if (got < changed || got > changed + 3)
		abort();
	for (size_t i = args.n; i < n; i++) {
		if (strstr(argv[i], "hunter2") != NULL)
			abort();
	}
	/* With a full arena no secret is left either. */
	arena_reset(&a);
	a.used = a.size;
	for (size_t i = 0; i < args.n; i++)
		again[i] = args.v[i];
	redact_argv(rules, again, args.n, &a);
	for (size_t i = 0; i < args.n; i++) {
		if (again[i] != args.v[i] && strcmp(again[i], REDACTED) != 0)
			abort();
	}
	if (args.n > 0)
		check_user(&args, &a, space);
	arena_done(&a);
	args_done(&args);
	return 0;
}
