/*
 * SPDX-License-Identifier: Apache-2.0
 * The built-in engines: Snakemake and Nextflow name their jobs in what they exec.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "correlate/rules.h"
#include "correlate/tool.h"

#define SCRIPT_MAX 4096		/* of a -c script, to find a name in */
#define WORDS_MAX 32		/* of one command */
#define PIPELINE_MAX 3		/* commands in a name */

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

/* "rule:wildcards", up to a quote or blank: what --target-jobs is followed by. */
static bool
snakemake_job(const char *job, struct rule_verdict *ret)
{
	size_t len, rule_len;
	const char *colon;

	if (*job == '\'' || *job == '"')
		job++;
	len = strcspn(job, "'\" \t\n");
	colon = memchr(job, ':', len);
	if (colon == NULL || colon == job)
		return false;
	rule_len = (size_t)(colon - job);
	copy(ret->task, sizeof(ret->task), job, rule_len);
	/* Every rule:wildcards is one job of a run, but for its retries. */
	copy(ret->task_id, sizeof(ret->task_id), job, colon[1] == '\0' || rule_len + 1 == len ? rule_len : len);
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
			return i + 1 < in->argc && snakemake_job(in->argv[i + 1], ret);
		at = strstr(in->argv[i], option);	/* inside sh -c '...' */
		if (at != NULL) {
			at += sizeof(option) - 1;
			return snakemake_job(at + strspn(at, " \t="), ret);
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
		if (is_hex(at + 1, 2) && at[3] == '/' && is_hex(at + 4, 30)) {
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

/* True for a word that is no command: VAR=value. */
static bool
is_assignment(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return n > 0 && !isdigit((unsigned char)word[0]) && word[n] == '=';
}

/* Reads one word of shell at *at, without its quotes, into out. False at the command's end. */
static bool
next_word(const char **at, char **out, char *out_end)
{
	const char *s = *at;
	char quote = '\0';

	while (*s == ' ' || *s == '\t' || (*s == '\\' && s[1] == '\n'))
		s += *s == '\\' ? 2 : 1;
	if (*s == '\0' || strchr("|&;\n()<>#", *s) != NULL) {
		*at = s;
		return false;
	}
	while (*s != '\0' && *out < out_end - 1) {
		if (quote == '\0' && strchr(" \t\n|&;()<>", *s) != NULL)
			break;
		if (quote == '\0' && (*s == '\'' || *s == '"'))
			quote = *s;
		else if (quote != '\0' && *s == quote)
			quote = '\0';
		else if (*s == '\\' && quote != '\'' && s[1] != '\0')
			*(*out)++ = *++s;
		else
			*(*out)++ = *s;
		s++;
	}
	*(*out)++ = '\0';
	*at = s;
	return true;
}

/* Names the command that starts at *at and moves behind it; false where it is no tool. */
static bool
name_command(const char **at, char *name, size_t name_size)
{
	char buffer[SCRIPT_MAX], *out = buffer;
	const char *words[WORDS_MAX];
	size_t n = 0;
	struct tool_input in = { 0 };

	for (;;) {
		char *word = out;

		if (!next_word(at, &out, buffer + sizeof(buffer))) {
			/* A redirection is not the end: 2> log may stand before further words. */
			if (**at == '<' || **at == '>') {
				*at += strspn(*at, "<>&");
				if (!next_word(at, &out, buffer + sizeof(buffer)))
					break;
				out = word;
				continue;
			}
			break;
		}
		if (out >= buffer + sizeof(buffer) - 2)
			break;
		if (n == 0 && is_assignment(word)) {
			out = word;
			continue;
		}
		if (n < WORDS_MAX)
			words[n++] = word;
	}
	if (n == 0)
		return false;
	in.exe = words[0];
	in.argv = words;
	in.argc = n;
	return tool_name(&in, name, name_size, NULL);
}

/* Shell words that do no work of their own. */
static bool
is_prologue(const char *at)
{
	static const char *const words[] = { "set", "source", ".", "export", "cd", "mkdir", "echo", "module",
		"trap", "ulimit", "umask", "if", "then", "for", "do", "while", "time", "exec", "true", "test",
		"[", "[[", "local", "declare", "eval", "wait", "rm", "touch", "ln", "unset", "shopt", "else",
		"fi", "done", "{", "}", "!" };
	size_t n = strcspn(at, " \t\n;|&()");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == n && strncmp(at, words[i], n) == 0)
			return true;
	}
	return false;
}

/* The first pipeline of a script that runs a tool: "bwa mem | samtools sort". */
static bool
name_script(const char *script, char *task, size_t task_size)
{
	const char *at = script, *end = script + strnlen(script, SCRIPT_MAX);
	size_t used = 0, commands = 0;

	while (at < end) {
		char name[TOOL_NAME_SIZE];
		const char *before;

		at += strspn(at, " \t\n;&(){}");
		if (at >= end)
			break;
		if (*at == '#') {
			at += strcspn(at, "\n");
			continue;
		}
		before = at;
		if (*at == '|')
			at++;
		else if (commands > 0)
			break;		/* the pipeline is over */
		else if (is_prologue(at)) {
			/* `time bwa mem` runs it; what set, cd ... take is not a command */
			size_t n = strcspn(at, " \t\n;|&()");
			bool goes_on = strncmp(at, "time", n) == 0 || strncmp(at, "exec", n) == 0 ||
			    strncmp(at, "then", n) == 0 || strncmp(at, "do", n) == 0 ||
			    strncmp(at, "else", n) == 0 || n == 1;

			at += n;
			if (!goes_on)
				at += strcspn(at, "\n;&|");
			continue;
		}
		if (name_command(&at, name, sizeof(name)) && commands < PIPELINE_MAX) {
			int n = snprintf(task + used, task_size - used, "%s%s", commands > 0 ? " | " : "", name);

			if (n < 0 || (size_t)n >= task_size - used) {
				task[used] = '\0';
				break;
			}
			used += (size_t)n;
			commands++;
		}
		at += strspn(at, " \t");
		if (*at == '&' && at[1] != '&' && commands == 0)
			at++;
		if (at == before)
			at++;		/* always onwards */
	}
	return commands > 0;
}

void
rule_default_task(const struct rule_input *in, char *task, size_t task_size)
{
	task[0] = '\0';
	if (!in->is_tool) {
		for (size_t i = 1; i + 1 < in->argc; i++) {
			const char *arg = in->argv[i];

			/* -c, also among others: bash -euc */
			if (arg[0] == '-' && arg[1] != '-' && strchr(arg, 'c') != NULL) {
				if (name_script(in->argv[i + 1], task, task_size))
					return;
				break;
			}
		}
	}
	snprintf(task, task_size, "%s", in->tool != NULL ? in->tool : "");
}
