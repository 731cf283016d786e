/* SPDX-License-Identifier: Apache-2.0 */
/* Any program gets a verdict within bounds and in UTF-8. Lines: exe, cwd, parent's argv, an empty line, argv. */
#include "args.h"
#include "base/text.h"
#include "rules/rules.h"
#include "identify/engine.h"
#include "identify/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text may be cut, but only at a whole character. */
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

static void
check_path(const char *text, size_t size)
{
	check(text, size);
	if (text[0] != '\0' && text[0] != '/' && text[strcspn(text, ":/")] != ':')
		abort();
}

static void
check_verdict(const struct engine_verdict *v)
{
	check(v->pipeline, sizeof(v->pipeline));
	check(v->run_name, sizeof(v->run_name));
	check(v->run_key, sizeof(v->run_key));
	check_path(v->root, sizeof(v->root));
	check(v->task_id, sizeof(v->task_id));
	check(v->task, sizeof(v->task));
	check(v->sample, sizeof(v->sample));
	check_path(v->work_dir, sizeof(v->work_dir));
	check_path(v->header, sizeof(v->header));
	if ((v->role != ENGINE_NONE || v->is_overhead) != (v->rule != NULL && v->engine != NULL && v->source != NULL))
		abort();
	if (v->is_overhead && v->role == ENGINE_TASK)
		abort();
	if (v->attempt.known && v->attempt.value < 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ruleset *shipped;
	struct candidate s = { 0 }, parent = { 0 };
	char tool[TOOL_NAME_SIZE], parent_tool[TOOL_NAME_SIZE], task[ENGINE_NAME_SIZE], sample[ENGINE_NAME_SIZE];
	struct engine_verdict v;
	struct args args;
	size_t i = 2;

	if (shipped == NULL)
		shipped = rules_shipped();
	engine_read_header(shipped, "nextflow", (const char *)data, size, task, sample);
	check(task, sizeof(task));
	check(sample, sizeof(sample));
	/* All other text that reaches the rules is UTF-8 (see program_text.c). */
	for (size_t at = 0, width; at < size; at += width) {
		width = data[at] == '\0' ? 1 : text_char((const char *)data + at, size - at);
		if (width == 0)
			return -1;
	}
	args_init(&args, data, size);
	s.exe = args.n > 0 ? args.v[0] : NULL;
	s.cwd = args.n > 1 ? args.v[1] : NULL;
	while (i < args.n && args.v[i][0] != '\0')
		i++;
	if (i > 2) {
		parent.argv = (const char *const *)args.v + 2;
		parent.argc = i - 2;
		parent.exe = args.v[2];
		tool_name(shipped, &parent, parent_tool, sizeof(parent_tool), NULL);
		s.parent = &parent;
	}
	if (i + 1 < args.n) {
		s.argv = (const char *const *)args.v + i + 1;
		s.argc = args.n - i - 1;
	}
	tool_name(shipped, &s, tool, sizeof(tool), NULL);
	for (int in = 0; in < 3; in++) {
		static const char *const engines[] = { NULL, "nextflow", "snakemake" };

		memset(&v, 'x', sizeof(v));
		engine_judge(shipped, &s, engines[in], &v);
		check_verdict(&v);
		memset(task, 'x', sizeof(task));
		engine_default_task(shipped, &s, task);
		check(task, sizeof(task));
	}
	args_done(&args);
	return 0;
}
