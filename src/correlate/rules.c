/*
 * SPDX-License-Identifier: Apache-2.0
 * The built-in engines: Snakemake and Nextflow name their jobs in what they exec.
 */
#include <string.h>

#include "correlate/rules.h"
#include "correlate/script.h"
#include "correlate/tool_rules.h"

/* Tools that run steps of others: a child of theirs is a task. */
static const char *const drivers[] = {
	"snakemake", "nextflow", "make", "gmake", "ninja", "cwltool", "toil", "luigi", "miniwdl", "cromwell",
};

static void
copy(char *out, size_t out_size, const char *from, size_t len)
{
	if (len >= out_size) {
		len = out_size - 1;
		while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;		/* not in the middle of a character */
	}
	memcpy(out, from, len);
	out[len] = '\0';
}

/* The value of a Snakemake wildcard in "a=1,sample=S2"; "sample" it is by convention. */
static void
find_sample(const char *wildcards, size_t len, char *sample, size_t sample_size)
{
	static const char name[] = "sample=";

	for (size_t at = 0; at < len;) {
		const char *comma = memchr(wildcards + at, ',', len - at);
		size_t n = comma != NULL ? (size_t)(comma - wildcards) - at : len - at;

		if (n > sizeof(name) - 1 && strncmp(wildcards + at, name, sizeof(name) - 1) == 0)
			copy(sample, sample_size, wildcards + at + sizeof(name) - 1, n - (sizeof(name) - 1));
		at += n + 1;
	}
}

/* "rule:wildcards", what --target-jobs is followed by: in a script up to a blank, or in quotes. */
static bool
snakemake_job(const char *job, bool in_script, struct rule_verdict *ret)
{
	size_t len = strlen(job), rule_len;
	const char *colon;

	if (in_script && (*job == '\'' || *job == '"')) {
		len = strcspn(job + 1, *job == '"' ? "\"" : "'");
		job++;
	} else if (in_script) {
		len = strcspn(job, "'\" \t\n");
	}
	colon = memchr(job, ':', len);
	if (colon == NULL || colon == job)
		return false;
	rule_len = (size_t)(colon - job);
	copy(ret->task, sizeof(ret->task), job, rule_len);
	/* Every rule:wildcards is one job of a run, but for its retries. */
	copy(ret->task_id, sizeof(ret->task_id), job, rule_len + 1 == len ? rule_len : len);
	find_sample(colon + 1, len - rule_len - 1, ret->sample, sizeof(ret->sample));
	ret->is_task = true;
	ret->engine = "snakemake";
	ret->source = "argv --target-jobs";
	ret->confidence = 0.95;
	return true;
}

/* Snakemake starts each remote job, and each with a run: block, as a snakemake of its own. */
static bool
judge_snakemake(const struct rule_input *in, struct rule_verdict *ret)
{
	static const char option[] = "--target-jobs";

	for (size_t i = 0; i < in->argc; i++) {
		const char *at;

		if (strcmp(in->argv[i], option) == 0)
			return i + 1 < in->argc && snakemake_job(in->argv[i + 1], false, ret);
		at = strstr(in->argv[i], option);	/* inside sh -c '...' */
		if (at != NULL) {
			at += sizeof(option) - 1;
			return snakemake_job(at + strspn(at, " \t="), true, ret);
		}
	}
	return false;
}

static bool
is_hex(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdef") >= n;
}

/* A Nextflow task runs .command.run in work/31/3c1293c6965300653aca74c68fd5e2, its id. */
static bool
judge_nextflow(const struct rule_input *in, struct rule_verdict *ret)
{
	bool is_wrapper = false;

	for (size_t i = 0; i < in->argc && !is_wrapper; i++) {
		const char *slash = strrchr(in->argv[i], '/');
		const char *base = slash != NULL ? slash + 1 : in->argv[i];

		is_wrapper = strcmp(base, ".command.run") == 0;
	}
	if (!is_wrapper || in->cwd == NULL)
		return false;
	for (const char *at = in->cwd; (at = strchr(at, '/')) != NULL; at++) {
		if (is_hex(at + 1, 2) && at[3] == '/' && is_hex(at + 4, 30) &&
		    (at[34] == '/' || at[34] == '\0')) {
			copy(ret->task_id, sizeof(ret->task_id), at + 1, 33);
			ret->is_task = true;
			ret->engine = "nextflow";
			ret->source = "cwd work directory";
			ret->confidence = 0.9;
			return true;
		}
	}
	return false;
}

void
rule_judge(const struct rule_input *in, struct rule_verdict *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (judge_snakemake(in, ret) || judge_nextflow(in, ret))
		return;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (in->tool != NULL && strcmp(in->tool, drivers[i]) == 0) {
			ret->is_driver = true;
			ret->engine = drivers[i];
			return;
		}
	}
}

void
rule_default_task(const struct rule_input *in, char *task, size_t task_size)
{
	task[0] = '\0';
	if (in->tool != NULL && tool_class(in->tool) == TOOL_SHELL) {
		for (size_t i = 1; i + 1 < in->argc; i++) {
			const char *arg = in->argv[i];

			/* -c, also among others: bash -euc */
			if (arg[0] == '-' && arg[1] != '-' && strchr(arg, 'c') != NULL) {
				if (script_name(in->argv[i + 1], task, task_size))
					return;
				break;
			}
		}
	}
	if (in->tool != NULL)
		copy(task, task_size, in->tool, strlen(in->tool));
}
