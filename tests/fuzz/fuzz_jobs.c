/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as Snakemake's log, read in parts, and as the record of each of its jobs: nothing outside them is read, and
 * what names a task is text that a record can have. Before the first NUL is the log, behind it a command and, behind
 * the next one, a record.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "identify/jobs.h"

#define REQUIRE(claim)			\
	do {				\
		if (!(claim))		\
			abort();	\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the bytes up to the next NUL, as a copy with one of its own. */
static char *
next_part(const uint8_t **at, size_t *left, size_t *ret_len)
{
	const uint8_t *end = *left > 0 ? memchr(*at, '\0', *left) : NULL;
	size_t len = end != NULL ? (size_t)(end - *at) : *left;
	char *part = malloc(len + 1);

	REQUIRE(part != NULL);
	if (len > 0)
		memcpy(part, *at, len);
	part[len] = '\0';
	*at += len;
	*left -= len;
	if (*left > 0) {
		++*at;
		--*left;
	}
	*ret_len = len;
	return part;
}

static void
check(struct jobs *j, const struct job_sought *s)
{
	struct job_found found;

	memset(&found, 'x', sizeof(found));
	if (!jobs_find(j, s, &found))
		return;
	REQUIRE(strnlen(found.task, sizeof(found.task)) < sizeof(found.task) && found.task[0] != '\0');
	REQUIRE(strnlen(found.sample, sizeof(found.sample)) < sizeof(found.sample));
	REQUIRE(text_is_plain(found.task, strlen(found.task)) && text_is_plain(found.sample, strlen(found.sample)));
	REQUIRE(found.is_sure == s->is_over && found.source != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t log_len, command_len, record_len, at = 0;
	char *log = next_part(&data, &size, &log_len), *command = next_part(&data, &size, &command_len);
	char *record = next_part(&data, &size, &record_len), key[JOB_KEY_SIZE];
	struct jobs *j = jobs_new();
	struct job_log *l = job_log_new(j);
	struct job_sought s = { .task = 1, .command = job_command(command, command_len), .text = command };

	REQUIRE(j != NULL && l != NULL);
	for (size_t i = 0; i < log_len; i += 7)
		job_log_read(l, log + i, log_len - i < 7 ? log_len - i : 7);
	jobs_begun(j, command);
	check(j, &s);
	while (jobs_next_record(j, &at, key)) {
		REQUIRE(key[0] != '\0' && strnlen(key, sizeof(key)) < sizeof(key) && strchr(key, '/') == NULL);
		jobs_read_record(j, at, record, record_len);
	}
	s.is_over = true;
	s.text = NULL;
	check(j, &s);
	job_log_free(l);
	jobs_free(j);
	free(log);
	free(command);
	free(record);
	return 0;
}
