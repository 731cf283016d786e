/*
 * SPDX-License-Identifier: Apache-2.0
 * job_log: Snakemake's log, line by line.
 *
 *	[Sun Nov 29 16:54:15 2026]		before each begin and error
 *	localrule align:			the begin of a job, with as many lines as follow
 *	    output: aligned/A.bam		indented
 *	    jobid: 3
 *	    wildcards: sample=A
 *	Job 5: Aligning B			the begin of one that has a message, of any text and lines, which
 *	Reason: Forced execution		hides its rule and outputs
 *	Finished jobid: 3 (Rule: align)		before 8.0: Finished job 3.
 *	Error in rule align:			a job that failed
 *	    jobid: 4
 *	    shell:
 *	        bwa mem ref.fa A.fq >A.sam	its command, of one line or several
 *	        (command exited with non-zero exit code)
 *	    jobs:				those of a group that failed, after a line of the time
 *	        rule align:
 *	            jobid: 3
 *
 * Jobs of a group, such as those that a pipe connects, run at once; all lines about one of them are indented once more.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "identify/jobs_state.h"

enum {
	LINE_SIZE = 2048,	/* the rest of a longer line is left out */
	COMMAND_SIZE = 8192,	/* a longer one is not taken */
};

enum state {
	ELSEWHERE,
	IN_JOB,
	IN_ERROR,
	IN_COMMAND,
	IN_GROUP_ERROR,
};

struct job_log {
	struct jobs *jobs;	/* the caller's */
	uint64_t number;
	enum state state;
	bool is_timed;		/* a line of the time was read, and nothing since that it is not before */
	size_t indent;		/* of that line */
	uint64_t job;		/* number of the one that IN_JOB is about */
	uint64_t failed;	/* jobid that IN_ERROR is about */
	char failed_rule[JOB_RULE_SIZE];	/* its rule; "": no text that a record can have */
	size_t len, command_len;
	char line[LINE_SIZE];
	char command[COMMAND_SIZE];
};

struct job_log *
job_log_new(struct jobs *j)
{
	struct job_log *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		l->jobs = j;
		l->number = ++j->last;
	}
	return l;
}

void
job_log_free(struct job_log *l)
{
	free(l);
}

/* Returns what is behind prefix; NULL: the line begins otherwise. */
static const char *
after(const char *line, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(line, prefix, len) == 0 ? line + len : NULL;
}

/* Copies whole characters, as many as there is room for. What records cannot have unchanged is left out as a whole. */
static void
copy_text(char *to, size_t size, const char *from, size_t len)
{
	size_t used = 0, n;

	to[0] = '\0';
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)from[i] < ' ' || from[i] == 0x7f)
			return;
	}
	if (!text_is_plain(from, len))
		return;
	while (used < len && used + (n = text_char(from + used, len - used)) < size)
		used += n;
	memcpy(to, from, used);
	to[used] = '\0';
}

/* Reads a number and returns whether end follows it. */
static bool
read_id(const char *text, const char *end, uint64_t *ret)
{
	char digits[24];
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len >= sizeof(digits) || after(text + len, end) == NULL)
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	return text_number(digits, UINT64_MAX, ret);
}

/* Takes the first line of a job with a message, Job 5: Aligning B, which hides all but its jobid. */
static bool
begins_hidden(struct job_log *l, const char *line)
{
	const char *value = after(line, "Job ");
	struct job *job;
	uint64_t id;

	if (value == NULL || !read_id(value, ":", &id))
		return false;
	job = job_add(l->jobs);
	job->log = l->number;
	job->id = id;
	job->is_hidden = true;
	return true;
}

/* Takes the first line of a job: rule, localrule, checkpoint or localcheckpoint, and the rule's name. */
static bool
begins_job(struct job_log *l, const char *line)
{
	const char *rest = after(line, "local"), *name;
	struct job *job;
	size_t len;

	rest = rest != NULL ? rest : line;
	name = after(rest, "rule ");
	name = name != NULL ? name : after(rest, "checkpoint ");
	len = name != NULL ? strlen(name) : 0;
	if (len < 2 || name[len - 1] != ':' || strchr(name, ' ') != NULL || len > JOB_RULE_SIZE)
		return false;
	job = job_add(l->jobs);
	job->log = l->number;
	copy_text(job->rule, sizeof(job->rule), name, len - 1);
	l->jobs->are_logged = true;
	l->job = job->number;
	return true;
}

static struct job *
current(struct job_log *l)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (l->jobs->all[i].number == l->job)
			return &l->jobs->all[i];
	}
	return NULL;
}

/* Takes an indented line of a job. */
static void
take_job_line(struct job_log *l, const char *line)
{
	struct job *job = current(l);
	const char *value;

	if (job == NULL)
		return;		/* jobs of other logs have taken its place */
	value = after(line, "    output: ");
	if (value != NULL) {
		copy_text(job->outputs, sizeof(job->outputs), value, strlen(value));
		job_set_key(l->jobs, job);
	}
	value = after(line, "    jobid: ");
	if (value != NULL)
		(void)read_id(value, "", &job->id);
	value = after(line, "    wildcards: ");
	if (value != NULL)
		copy_text(job->wildcards, sizeof(job->wildcards), value, strlen(value));
}

/* rule: of a job that failed; NULL: unknown. */
static void
end_job(struct job_log *l, uint64_t id, uint64_t command, const char *rule)
{
	struct job *job = job_of_log(l->jobs, l->number, id);

	if (job == NULL)
		return;
	job->is_over = true;
	if (command != 0)
		job->command = command;
	if (rule != NULL && job->is_hidden && job->rule[0] == '\0')
		memcpy(job->rule, rule, sizeof(job->rule));
}

/* Takes a line of a failed job's command, or the one behind it. */
static void
take_command_line(struct job_log *l, const char *line)
{
	const char *text = line;
	size_t len;

	if (after(line, "        (command exited with ") != NULL ||
	    after(line, "        (one of the commands exited with ") != NULL) {
		end_job(l, l->failed, job_command(l->command, l->command_len), l->failed_rule);
		l->state = ELSEWHERE;
		return;
	}
	if (l->command_len == 0 && after(line, "        ") != NULL)
		text = line + 8;
	len = strlen(text);
	if (len + 1 > sizeof(l->command) - l->command_len) {
		l->state = ELSEWHERE;
		return;
	}
	memcpy(l->command + l->command_len, text, len);
	l->command[l->command_len + len] = '\n';
	l->command_len += len + 1;
}

static void
take_error_line(struct job_log *l, const char *line)
{
	const char *value = after(line, "    jobid: ");

	if (value != NULL && read_id(value, "", &l->failed))
		end_job(l, l->failed, 0, l->failed_rule);
	if (strcmp(line, "    shell:") == 0) {
		l->state = IN_COMMAND;
		l->command_len = 0;
	}
}

/* Takes the line that an error begins with, and the name of its rule. */
static bool
begins_error(struct job_log *l, const char *line)
{
	const char *name = after(line, "Error in rule ");

	if (name == NULL)
		return false;
	copy_text(l->failed_rule, sizeof(l->failed_rule), name, strcspn(name, ":, "));
	l->failed = UINT64_MAX;
	return true;
}

/* Returns whether a line is the time, [Sun Nov 29 16:54:15 2026], and remembers how far it is indented. */
static bool
take_time(struct job_log *l, const char *line)
{
	size_t indent = after(line, "    ") != NULL ? 4 : 0, len = strlen(line);

	if (line[indent] != '[' || line[len - 1] != ']' || len - indent != sizeof("[Sun Nov 29 16:54:15 2026]") - 1)
		return false;
	l->indent = indent;
	l->is_timed = true;
	l->state = ELSEWHERE;
	return true;
}

/* Takes a line that no job's text and no error has. The lines of other threads are between a time and what it is of. */
static void
take_other_line(struct job_log *l, const char *line)
{
	const char *value;
	uint64_t id;

	l->state = ELSEWHERE;
	if (l->is_timed && begins_job(l, line)) {
		l->state = IN_JOB;
	} else if (l->is_timed && begins_error(l, line)) {
		l->state = IN_ERROR;
	} else if (((value = after(line, "Finished jobid: ")) != NULL && read_id(value, " ", &id)) ||
	    ((value = after(line, "Finished job ")) != NULL && read_id(value, ".", &id))) {
		end_job(l, id, 0, NULL);
		return;
	} else if (line[0] == '\0' || after(line, "Error in group ") != NULL) {
		return;
	} else if (l->is_timed) {
		(void)begins_hidden(l, line);
	}
	l->is_timed = false;
}

static void
take_line(struct job_log *l, const char *line)
{
	const char *value;
	uint64_t id;

	if (take_time(l, line))
		return;
	if (l->indent > 0 && after(line, "    ") != NULL)
		line += l->indent;
	if (l->state == IN_COMMAND) {
		take_command_line(l, line);
	} else if (after(line, "    ") == NULL) {
		take_other_line(l, line);
	} else if (l->state == IN_JOB) {
		take_job_line(l, line);
	} else if (l->state == IN_ERROR) {
		take_error_line(l, line);
	} else if (l->state == IN_GROUP_ERROR) {
		value = after(line, "            jobid: ");
		if (value != NULL && read_id(value, "", &id))
			end_job(l, id, 0, NULL);
	} else if (l->is_timed && strcmp(line, "    jobs:") == 0) {
		l->state = IN_GROUP_ERROR;
	}
}

void
job_log_read(struct job_log *l, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			l->line[l->len] = '\0';
			take_line(l, l->line);
			l->len = 0;
		} else if (l->len < sizeof(l->line) - 1) {
			l->line[l->len++] = text[i] != '\0' ? text[i] : '\1';
		}
	}
}
