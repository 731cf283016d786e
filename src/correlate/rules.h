/*
 * SPDX-License-Identifier: Apache-2.0
 * rules: which programs drive others, and which say by themselves what step they are.
 *
 * The few engines known here are the built-in ones; configured rules (config/rules.d) come in this
 * place: one program in, one verdict out.
 */
#ifndef SLUICE_CORRELATE_RULES_H
#define SLUICE_CORRELATE_RULES_H

#include <stdbool.h>
#include <stddef.h>

#define RULE_NAME_SIZE 128

/* What is known of a program when its exec is judged. UTF-8, redacted; NULL where unknown. */
struct rule_input {
	const char *tool;		/* as tool_name() named it */
	bool is_tool;			/* tool_name()'s verdict: no shell, no glue */
	const char *const *argv;
	size_t argc;
	const char *cwd;
};

struct rule_verdict {
	bool is_driver;			/* the processes that it forks are tasks */
	bool is_task;			/* this program and what descends from it is the task below */
	char task_id[RULE_NAME_SIZE];	/* "" where the engine has none */
	char task[RULE_NAME_SIZE];	/* "" unknown */
	char sample[RULE_NAME_SIZE];	/* "" unknown */
	const char *engine;		/* static; NULL unknown */
	const char *source;		/* static: the evidence */
	double confidence;
};

void rule_judge(const struct rule_input *in, struct rule_verdict *ret);

/*
 * A name for a step that has none: what a shell's -c script runs first, "bwa mem | samtools sort",
 * else the tool. Writes "" only where there is no tool either.
 */
void rule_default_task(const struct rule_input *in, char *task, size_t task_size);

#endif
