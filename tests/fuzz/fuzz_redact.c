/* SPDX-License-Identifier: Apache-2.0 */
/* Any argv: redacting changes only what it says, leaves strings whole, and a plain option's value
 * behind it never survives. One argument a line. */
#include "args.h"
#include "base/arena.h"
#include "correlate/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *argv[ARGS_MAX + 2], *again[ARGS_MAX + 2];
	size_t n, changed = 0, got;
	struct args args;
	struct arena a;

	args_init(&args, data, size);
	if (arena_init(&a, 4 * size + 4096) < 0)
		abort();
	n = args.n;
	for (size_t i = 0; i < n; i++)
		argv[i] = args.v[i];
	if (n > 0) {
		argv[n++] = "--password=hunter2";
		argv[n++] = "https://me:hunter2@host/";
	}
	got = redact_argv(argv, n, &a);
	for (size_t i = 0; i < n; i++) {
		changed += argv[i] != (i < args.n ? args.v[i] : argv[i]);
		if (strlen(argv[i]) > 4 * size + 4096)
			abort();
	}
	if (got < changed || got > changed + 2)
		abort();
	if (n > 0 && (strstr(argv[n - 1], "hunter2") != NULL || strstr(argv[n - 2], "hunter2") != NULL))
		abort();
	/* A full arena: no secret either. */
	arena_reset(&a);
	a.used = a.size;
	for (size_t i = 0; i < args.n; i++)
		again[i] = args.v[i];
	redact_argv(again, args.n, &a);
	for (size_t i = 0; i < args.n; i++) {
		if (again[i] != args.v[i] && strcmp(again[i], REDACTED) != 0)
			abort();
	}
	arena_done(&a);
	args_done(&args);
	return 0;
}
