/*
 * SPDX-License-Identifier: Apache-2.0
 * The table of jobs, Snakemake's records of their outputs, and which job a task runs.
 */
#include "identify/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/steps.h"
#include "base/text.h"
#include "identify/jobs_state.h"

static const char by_log[] = "snakemake's log";
static const char by_record[] = "snakemake's record of the job";

struct jobs *
jobs_new(void)
{
	return calloc(1, sizeof(struct jobs));
}

void
jobs_free(struct jobs *j)
{
	free(j);
}

bool
jobs_are_logged(const struct jobs *j)
{
	bool are_logged = j->are_logged;

	for (size_t i = 0; i < JOBS_MAX; i++)
		are_logged &= j->all[i].number == 0 || !j->all[i].is_hidden || j->all[i].is_over;
	return are_logged;
}

/* Returns how much a job is needed: one that runs more than one that is over, whose task may still end. */
static int
need(const struct job *job)
{
	return job->number == 0 ? 0 : job->is_over && job->task != 0 && job->command != 0 ? 1 : job->is_over ? 2 : 3;
}

struct job *
job_add(struct jobs *j)
{
	struct job *job = &j->all[0];

	for (size_t i = 1; i < JOBS_MAX; i++) {
		struct job *other = &j->all[i];

		if (need(other) < need(job) || (need(other) == need(job) && other->number < job->number))
			job = other;
	}
	memset(job, 0, sizeof(*job));
	job->number = ++j->last;
	return job;
}

struct job *
job_of_log(struct jobs *j, uint64_t log, uint64_t id)
{
	struct job *last = NULL;

	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct job *job = &j->all[i];

		if (job->number != 0 && job->log == log && job->id == id &&
		    (last == NULL || job->number > last->number))
			last = job;
	}
	return last;
}

static struct job *
job_of_key(struct jobs *j, const char *key)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (j->all[i].number != 0 && strcmp(j->all[i].key, key) == 0)
			return &j->all[i];
	}
	return NULL;
}

void
job_set_key(struct jobs *j, struct job *job)
{
	const char *end = strstr(job->outputs, ", ");
	size_t len = end != NULL ? (size_t)(end - job->outputs) : strlen(job->outputs);
	static const char pipe[] = " (pipe)";
	struct job *begun;
	char key[JOB_KEY_SIZE + 4];

	if (len >= sizeof(pipe) && memcmp(job->outputs + len - sizeof(pipe) + 1, pipe, sizeof(pipe) - 1) == 0)
		len -= sizeof(pipe) - 1;
	if (len == 0 || (len + 2) / 3 * 4 >= JOB_KEY_SIZE)
		return;
	EVP_EncodeBlock((unsigned char *)key, (const unsigned char *)job->outputs, (int)len);
	for (char *c = key; *c != '\0'; c++)
		*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
	begun = job_of_key(j, key);
	if (begun != NULL && begun->log == 0 && begun->task == 0)
		begun->number = 0;	/* the same job, of which less was known */
	memcpy(job->key, key, strlen(key) + 1);
}

void
jobs_begun(struct jobs *j, const char *key)
{
	size_t len = strlen(key);
	struct job *job;

	if (len == 0 || len >= JOB_KEY_SIZE || strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789-_=") != len)
		return;
	job = job_of_key(j, key);
	if (job != NULL && job->command == 0)
		return;
	job = job_add(j);
	memcpy(job->key, key, len + 1);
}

bool
jobs_next_record(struct jobs *j, size_t *at, char key[JOB_KEY_SIZE])
{
	for (; *at < JOBS_MAX; ++*at) {
		struct job *job = &j->all[*at];

		if (job->number == 0 || job->key[0] == '\0' || job->command != 0 || job->reads == JOB_READS_MAX ||
		    !(job->is_over || job->log == 0))
			continue;
		job->reads++;
		memcpy(key, job->key, JOB_KEY_SIZE);
		++*at;
		return true;
	}
	return false;
}

void
jobs_read_record(struct jobs *j, size_t at, const char *text, size_t len)
{
	struct job *job = &j->all[at - 1];
	json_t *record = len <= JOB_RECORD_MAX ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : NULL;
	const json_t *rule = json_object_get(record, "rule"), *command = json_object_get(record, "shellcmd");
	const char *name = json_string_value(rule);
	size_t name_len = json_string_length(rule);

	if (name != NULL && name_len > 0 && name_len < sizeof(job->rule) && text_is_plain(name, name_len) &&
	    strpbrk(name, "\t\n\r ") == NULL && json_is_string(command)) {
		if (job->rule[0] == '\0')
			memcpy(job->rule, name, name_len + 1);
		if (strcmp(job->rule, name) == 0)
			job->command = job_command(json_string_value(command), json_string_length(command));
		if (job->command != 0)
			job->is_over = true;
	}
	json_decref(record);
}

/* Returns the length of the wildcard that begins at a text. */
static size_t
wildcard_len(const char *at)
{
	const char *end = strstr(at, ", ");

	return end != NULL ? (size_t)(end - at) : strlen(at);
}

static const char *
next_wildcard(const char *at)
{
	at += wildcard_len(at);
	return *at != '\0' ? at + 2 : at;
}

/* Returns the value of a wildcard that names a sample; NULL: it names something else. */
static const char *
value_of_sample(const char *wildcard)
{
	static const char *const names[] = { "sample=", "sample_id=", "sample_name=", "samples=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(wildcard, names[i], strlen(names[i])) == 0)
			return wildcard + strlen(names[i]);
	}
	return NULL;
}

/* sample=A is "A", as is part=A alone; part=1, sample=A is "A, part=1": jobs with other wildcards differ. */
static void
copy_sample(const char *wildcards, char sample[ENGINE_NAME_SIZE])
{
	const char *first = wildcards, *value = NULL;
	int used;

	while (*first != '\0' && (value = value_of_sample(first)) == NULL)
		first = next_wildcard(first);
	if (value == NULL && *next_wildcard(wildcards) == '\0' && strchr(wildcards, '=') != NULL) {
		first = wildcards;
		value = strchr(wildcards, '=') + 1;
	}
	if (value == NULL) {
		snprintf(sample, ENGINE_NAME_SIZE, "%s", wildcards);
		return;
	}
	used = snprintf(sample, ENGINE_NAME_SIZE, "%.*s", (int)wildcard_len(value), value);
	for (const char *at = wildcards; *at != '\0'; at = next_wildcard(at)) {
		if (at != first)
			used += snprintf(sample + used, (size_t)(ENGINE_NAME_SIZE - used), ", %.*s", (int)wildcard_len(at), at);
	}
}

static bool
is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	    c == '.' || (unsigned char)c >= 0x80;
}

/* Takes the steps of one memmem(), which prepares and compares the path each time, and walks with some 5 ns a byte. */
static bool
take_search(size_t path_len, size_t walked)
{
	return steps_take(1 + path_len / 4 + walked / 4);
}

/* Returns whether a command has a path as a word of its own, or as the folder of one. */
static bool
has_path(const char *command, const char *command_end, const char *path, size_t len)
{
	for (const char *from = command, *at; len > 0 && !steps_are_spent(); from = at + 1) {
		at = memmem(from, (size_t)(command_end - from), path, len);
		if (!take_search(len, (size_t)((at != NULL ? at : command_end) - from)) || at == NULL)
			return false;
		if ((at == command || (!is_path_char(at[-1]) && at[-1] != '/')) && !is_path_char(at[len]))
			return true;
	}
	return false;
}

static bool
names_output(const char *command, const char *command_end, const struct job *job)
{
	for (const char *at = job->outputs, *end; *at != '\0' && !steps_are_spent();
	    at = *end != '\0' ? end + 2 : end) {
		end = strstr(at, ", ");
		if (end == NULL)
			end = at + strlen(at);
		if (has_path(command, command_end, at, (size_t)(end - at)))
			return true;
	}
	return false;
}

/*
 * Returns the one job that may be that of a task that runs. NULL: there is none, or several. A hidden job may be that
 * of any task, also once it is over, as its shell may be heard of only then; and what it reads was made by one that was
 * over before it began.
 */
static struct job *
running(struct jobs *j, const struct job_sought *s)
{
	struct job *only = NULL, *named = NULL, *over = NULL;
	size_t n_only = 0, n_named = 0;
	const char *end = s->text + strlen(s->text);
	uint64_t hidden = 0;

	for (size_t i = 0; i < JOBS_MAX && !steps_are_spent(); i++) {
		struct job *job = &j->all[i];

		if (job->number == 0 || (job->task != 0 && job->task != s->task))
			continue;
		if (job->is_hidden) {
			hidden = job->number > hidden ? job->number : hidden;
			n_only++;
			continue;
		}
		if (job->rule[0] == '\0')
			continue;
		if (!job->is_over) {
			only = job;
			n_only++;
		}
		if (!names_output(s->text, end, job))
			continue;
		if (!job->is_over) {
			named = job;
			n_named++;
		} else if (over == NULL || job->number > over->number) {
			over = job;
		}
	}
	if (n_named > 0)
		return n_named == 1 ? named : NULL;
	/* A short job may be over in the log before its shell is heard of. */
	if (over != NULL)
		return over->number > hidden ? over : NULL;
	return n_only == 1 ? only : NULL;
}

/* Returns the job that has the task's command: the one that was taken for its job, one of no task, or any other. */
static struct job *
with_command(struct jobs *j, const struct job_sought *s)
{
	struct job *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct job *job = &j->all[i];
		int rank = job->task == s->task ? 3 : job->task == 0 ? 2 : 1;

		if (job->number == 0 || job->rule[0] == '\0' || s->command == 0 || job->command != s->command)
			continue;
		if (best == NULL || rank > best_rank || (rank == best_rank && job->number < best->number)) {
			best = job;
			best_rank = rank;
		}
	}
	return best;
}

static void
release(struct jobs *j, uint64_t task)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (j->all[i].task == task)
			j->all[i].task = 0;
	}
}

bool
jobs_find(struct jobs *j, const struct job_sought *s, struct job_found *ret)
{
	uint64_t room = steps_left() < JOB_FIND_STEPS ? steps_left() : JOB_FIND_STEPS;
	struct steps steps;
	struct job *job;
	bool is_spent;

	steps_begin(&steps, room);
	job = s->is_over ? with_command(j, s) : s->text != NULL ? running(j, s) : NULL;
	is_spent = steps_end(&steps);
	/* They are the program's that is judged now, if one is, which has none left where they did not suffice. */
	(void)steps_take(room - steps.left + (is_spent && room < JOB_FIND_STEPS));
	if (is_spent || job == NULL)
		return false;
	release(j, s->task);
	job->task = s->task;
	memcpy(ret->task, job->rule, sizeof(job->rule));
	copy_sample(job->wildcards, ret->sample);
	ret->is_sure = s->is_over;
	ret->source = s->is_over ? by_record : by_log;
	ret->confidence = s->is_over ? 0.95 : 0.8;
	return true;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Leaves out word, which ends with a blank or a semicolon, and the blanks behind it. */
static bool
skip(const char **text, size_t *len, const char *word)
{
	size_t n = strlen(word);

	if (*len < n || memcmp(*text, word, n) != 0)
		return false;
	*text += n;
	*len -= n;
	for (; *len > 0 && is_space(**text); ++*text)
		--*len;
	return true;
}

uint64_t
job_command(const char *text, size_t len)
{
	uint64_t h = UINT64_C(14695981039346656037);	/* FNV-1a */
	const char *end;

	if (!text_is_plain(text, len))
		return 0;
	(void)skip(&text, &len, "");
	(void)skip(&text, &len, "set -euo pipefail;");
	/* source /opt/conda/bin/activate '/data/.snakemake/conda/1f'; */
	while (skip(&text, &len, "source ") && (end = memchr(text, ';', len)) != NULL) {
		len -= (size_t)(end - text);
		text = end;
		(void)skip(&text, &len, ";");
	}
	while (len > 0 && is_space(text[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return len == 0 ? 0 : h != 0 ? h : 1;
}
