/* SPDX-License-Identifier: Apache-2.0 */
/* Any tool, cwd and argv get a verdict and a name, within their bounds and in UTF-8. Lines: tool, cwd, argv. */
#include "args.h"
#include "base/text.h"
#include "correlate/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cut where it must be, but at a whole character. */
static void
check(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		abort();
	for (size_t i = 0, width; i < len; i += width) {
		width = text_char(text + i, len - i);
		if (width == 0)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct args args;
	struct rule_verdict v;
	struct rule_input in = { 0 };
	size_t task_size = 1;
	char *task;

	/* What reaches the rules is UTF-8 (see program_text.c). */
	for (size_t i = 0, width; i < size; i += width) {
		width = data[i] == '\0' ? 1 : text_char((const char *)data + i, size - i);
		if (width == 0)
			return -1;
	}
	args_init(&args, data, size);
	if (size > 0)
		task_size += data[size - 1] % RULE_NAME_SIZE;
	task = malloc(task_size);
	for (int with = 0; with < 4; with++) {
		in.tool = with & 1 && args.n > 0 ? args.v[0] : "bash";
		in.is_tool = with & 1;
		in.cwd = with & 2 && args.n > 1 ? args.v[1] : NULL;
		in.argv = args.n > 2 ? (const char *const *)args.v + 2 : NULL;
		in.argc = args.n > 2 ? args.n - 2 : 0;
		memset(&v, 'x', sizeof(v));
		rule_judge(&in, &v);
		check(v.task, sizeof(v.task));
		check(v.task_id, sizeof(v.task_id));
		check(v.sample, sizeof(v.sample));
		if (v.is_task && (v.engine == NULL || v.source == NULL || v.task_id[0] == '\0'))
			abort();
		rule_default_task(&in, task, task_size);
		check(task, task_size);
	}
	free(task);
	args_done(&args);
	return 0;
}
