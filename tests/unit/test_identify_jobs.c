/* SPDX-License-Identifier: Apache-2.0 */
/* jobs: Snakemake's logs and records, as its versions write them, and any other text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/steps.h"
#include "identify/jobs.h"

#define TIME "[Sun Nov 29 16:54:15 2026]\n"

/* Version 9.27.1. */
#define JOB(rule, output, id, wildcards)				\
	TIME								\
	"localrule " rule ":\n"						\
	"    input: in.txt\n"						\
	"    output: " output "\n"					\
	"    jobid: " id "\n"						\
	"    reason: Missing output files: " output "\n"		\
	"    wildcards: " wildcards "\n"				\
	"    resources: tmpdir=/tmp\n"

static struct jobs *jobs;
static struct job_log *the_log;
static struct job_found found;

static int
setup(void **state)
{
	(void)state;
	jobs = jobs_new();
	the_log = job_log_new(jobs);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	job_log_free(the_log);
	jobs_free(jobs);
	return 0;
}

static void
logs(const char *text)
{
	job_log_read(the_log, text, strlen(text));
}

/* Seeks the job of a task while it runs. */
static bool
seek(uint64_t task, const char *command)
{
	return jobs_find(jobs, &(struct job_sought){ .task = task, .command = job_command(command, strlen(command)),
	    .text = command }, &found);
}

static bool
seek_at_end(uint64_t task, const char *command)
{
	return jobs_find(jobs, &(struct job_sought){ .task = task, .command = job_command(command, strlen(command)),
	    .is_over = true }, &found);
}

/* Gives each record that is asked for this text. Returns how many there were. */
static size_t
records(const char *wanted_key, const char *text)
{
	char key[JOB_KEY_SIZE];
	size_t at = 0, n = 0;

	for (; jobs_next_record(jobs, &at, key); n++) {
		if (wanted_key == NULL || strcmp(key, wanted_key) == 0)
			jobs_read_record(jobs, at, text, strlen(text));
	}
	return n;
}

static void
a_job_is_found_by_an_output_in_the_command(void **state)
{
	(void)state;
	logs(JOB("align", "aligned/A.bam, aligned/A.bai", "2", "sample=A"));
	logs(JOB("align", "aligned/B.bam, aligned/B.bai", "3", "sample=B"));
	assert_true(jobs_are_logged(jobs));
	assert_true(seek(1, "set -euo pipefail;  bwa mem ref.fa | samtools sort -o aligned/B.bam -"));
	assert_string_equal(found.task, "align");
	assert_string_equal(found.sample, "B");
	assert_false(found.is_sure);
	assert_true(found.confidence == 0.8);
	assert_true(seek(2, "set -euo pipefail;  samtools index aligned/A.bam aligned/A.bai"));
	assert_string_equal(found.sample, "A");
}

static void
a_part_of_a_path_is_no_output(void **state)
{
	(void)state;
	logs(JOB("align", "A.bam", "2", "sample=A"));
	logs(JOB("call", "A.vcf", "3", "sample=A"));
	assert_false(seek(1, "cat x/A.bam A.bam.bai xA.bam A.bams A.bam-old"));
	assert_true(seek(1, "cat 'A.bam'"));
	assert_string_equal(found.task, "align");
}

static void
the_only_one_that_runs_is_found_without_its_output(void **state)
{
	(void)state;
	logs(JOB("first", "a.done", "2", "x=1"));
	assert_true(seek(1, "sleep 1"));
	assert_string_equal(found.task, "first");
	assert_string_equal(found.sample, "1");
	logs(JOB("second", "b.done", "3", "x=2"));
	assert_true(seek(2, "sleep 1"));
	assert_string_equal(found.task, "second");
	assert_true(seek(2, "sleep 1"));	/* it is its own */
	logs(JOB("third", "c.done", "4", "x=3"));
	logs(JOB("fourth", "d.done", "5", "x=4"));
	assert_false(seek(3, "sleep 1"));	/* two run */
	logs("[Sun Nov 29 16:54:17 2026]\nFinished jobid: 4 (Rule: third)\n1 of 9 steps (11%) done\n");
	assert_true(seek(3, "sleep 1"));
	assert_string_equal(found.task, "fourth");
	assert_false(seek(4, "sleep 1"));
}

static void
a_job_that_is_over_is_found_by_an_output_in_the_command(void **state)
{
	(void)state;
	logs(JOB("prep", "A.prep", "2", "sample=A"));
	logs("Finished jobid: 2 (Rule: prep)\n");
	logs(JOB("sorted", "A.sorted", "3", "sample=A"));
	assert_true(seek(1, "prep >A.prep"));
	assert_string_equal(found.task, "prep");
	assert_true(seek(2, "sort A.prep >A.sorted"));	/* one that runs comes first */
	assert_string_equal(found.task, "sorted");
	logs("Finished jobid: 3 (Rule: sorted)\n");
	logs(JOB("counted", "A.counted", "4", "sample=A"));
	assert_true(seek(3, "wc A.sorted"));		/* what another task made is no evidence */
	assert_string_equal(found.task, "counted");
	assert_false(seek(4, "ls"));
}

static void
a_job_is_found_at_its_end_by_its_record(void **state)
{
	(void)state;
	logs(JOB("align", "A.bam", "2", "sample=A, part=1"));
	logs(JOB("align", "B.bam", "3", "sample=B, part=1"));
	assert_int_equal(records(NULL, "{}"), 0);	/* while a job runs it has none */
	logs("Finished jobid: 2 (Rule: align)\n");
	assert_int_equal(records("QS5iYW0=", "{\"rule\": \"align\", \"input\": [], \"shellcmd\": \"\\n    make A\\n    \"}"), 1);
	assert_false(seek_at_end(1, "set -euo pipefail;  make B"));
	assert_true(seek_at_end(1, "set -euo pipefail;  \n    make A\n    "));
	assert_string_equal(found.task, "align");
	assert_string_equal(found.sample, "A, part=1");
	assert_true(found.is_sure);
	assert_int_equal(records(NULL, "{}"), 0);
}

static void
the_end_corrects_what_was_taken_for_it(void **state)
{
	(void)state;
	logs(JOB("wrong", "A.done", "2", "x=1"));
	assert_true(seek(1, "make B"));
	assert_string_equal(found.task, "wrong");
	logs(JOB("right", "B.done", "3", "x=2"));
	logs("Finished jobid: 3 (Rule: right)\n");
	assert_int_equal(records("Qi5kb25l", "{\"rule\": \"right\", \"shellcmd\": \"make B\"}"), 1);
	assert_true(seek_at_end(1, "make B"));
	assert_string_equal(found.task, "right");
	assert_true(seek(2, "make A"));		/* the other one is free again */
	assert_string_equal(found.task, "wrong");
}

static void
a_failed_job_is_found_by_its_log(void **state)
{
	(void)state;
	logs(JOB("align", "A.done", "2", "sample=A"));
	logs(JOB("align", "B.done", "3", "sample=B"));
	logs("RuleException:\nCalledProcessError in file \"/w/Snakefile\", line 7:\n"
	    "[Sun Nov 29 16:54:17 2026]\nError in rule align:\n    message: None\n    jobid: 3\n    output: B.done\n"
	    "    shell:\n        \n    bwa mem\n    false\n    \n        (command exited with non-zero exit code)\n"
	    "Removing output files of failed job align since they might be corrupted:\nB.done\n");
	assert_true(seek_at_end(1, "set -euo pipefail;  \n    bwa mem\n    false\n    "));
	assert_string_equal(found.sample, "B");
	assert_true(seek(2, "sleep 1"));
	assert_string_equal(found.sample, "A");
}

static void
a_log_of_version_7_is_read(void **state)
{
	(void)state;
	logs("[Sun Nov 29 16:54:15 2026]\nrule align:\n    output: A.bam\n    jobid: 2\n    wildcards: sample_id=A\n\n");
	logs("[Sun Nov 29 16:54:15 2026]\ncheckpoint split:\n    output: parts\n    jobid: 3\n\n");
	assert_true(seek(1, "mkdir parts/1"));
	assert_string_equal(found.task, "split");
	assert_string_equal(found.sample, "");
	logs("[Sun Nov 29 16:54:16 2026]\nFinished job 2.\n1 of 2 steps (50%) done\n[Sun Nov 29 16:54:16 2026]\n"
	    "Error in rule split:\n    jobid: 3\n    output: parts\n    shell:\n        mkdir parts/1\n"
	    "        (one of the commands exited with non-zero exit code; note that snakemake uses bash strict mode!)\n\n");
	assert_int_equal(records("QS5iYW0=", "{\"rule\": \"align\", \"shellcmd\": \"bwa\"}"), 1);
	assert_true(seek_at_end(2, "bwa"));
	assert_string_equal(found.sample, "A");
	assert_true(seek_at_end(1, "mkdir parts/1"));
}

/* Reads a log that Snakemake wrote. part: up to the line that begins with this; NULL: all. */
static void
logs_of(const char *name, const char *part)
{
	static char text[8192];
	char path[512];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/fixtures/snakemake_logs/%s.log", SOURCE_TREE, name);
	f = fopen(path, "re");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	len = part != NULL ? (size_t)(strstr(text, part) - text) : len;
	job_log_read(the_log, text, len);
}

static void
a_job_with_a_message_has_no_name_while_it_runs(void **state)
{
	static const char *const versions[] = { "7.21.0_messages", "9.27.1_messages" };

	for (size_t i = 0; i < 2; i++) {
		logs_of(versions[i], "Finished job");
		assert_false(jobs_are_logged(jobs));
		assert_false(seek(1, "set -euo pipefail;  sleep 0.3; touch A.msg"));
		logs(JOB("first", "a.done", "22", "x=1"));
		assert_false(seek(1, "set -euo pipefail;  sleep 0.3; touch A.msg"));	/* not the only one that runs */
		assert_true(seek(1, "set -euo pipefail;  touch a.done"));
		teardown(state);
		setup(state);
	}
}

static void
what_a_message_contains_is_no_job(void **state)
{
	static const char *const versions[] = { "7.21.0_messages", "9.27.1_messages" };

	for (size_t i = 0; i < 2; i++) {
		logs_of(versions[i], NULL);
		assert_false(seek(1, "cat A.lie"));
		teardown(state);
		setup(state);
	}
}

static void
an_earlier_job_is_not_that_of_a_command_which_may_be_hidden(void **state)
{
	(void)state;
	logs(JOB("prep", "A.prep", "2", "sample=A") TIME "Finished jobid: 2 (Rule: prep)\n");
	logs(TIME "Job 3: sorts A\nReason: Missing output files: A.sorted\n");
	assert_false(seek(1, "sort A.prep >A.sorted"));
	logs(TIME "Finished jobid: 3 (Rule: sorted)\n");
	assert_false(seek(1, "sort A.prep >A.sorted"));		/* heard of only now */
	logs(JOB("late", "late", "4", "sample=A") TIME "Finished jobid: 4 (Rule: late)\n");
	assert_true(seek(2, "cp x late"));
	assert_string_equal(found.task, "late");
}

static void
a_hidden_job_is_found_at_its_end_by_its_record(void **state)
{
	(void)state;
	logs(TIME "Job 3: sorts A\nReason: Missing output files: A.sorted\n");
	assert_false(jobs_are_logged(jobs));
	jobs_begun(jobs, "QS5zb3J0ZWQ=");
	logs(TIME "Finished jobid: 3 (Rule: sorted)\n");
	assert_int_equal(records("QS5zb3J0ZWQ=", "{\"rule\": \"sorted\", \"shellcmd\": \"sort A\"}"), 1);
	assert_true(seek_at_end(1, "sort A"));
	assert_string_equal(found.task, "sorted");
	assert_string_equal(found.sample, "");
	assert_true(found.is_sure);
}

static void
jobs_of_a_pipe_are_found(void **state)
{
	static const char *const versions[] = { "7.21.0_messages", "9.27.1_messages" };

	for (size_t i = 0; i < 2; i++) {
		logs_of(versions[i], "Job 5:");
		assert_true(seek(1, "cat A.pipe >A.drunk"));
		assert_string_equal(found.task, "drunk");
		assert_string_equal(found.sample, "A");
		assert_true(records("QS5waXBl", "{\"rule\": \"poured\", \"shellcmd\": \"echo >A.pipe\"}") > 0);
		assert_true(seek_at_end(2, "echo >A.pipe"));
		assert_string_equal(found.task, "poured");
		teardown(state);
		setup(state);
	}
}

static void
jobs_of_a_group_that_failed_are_over(void **state)
{
	static const char *const versions[] = { "7.21.0_group_fails", "9.27.1_group_fails" };

	for (size_t i = 0; i < 2; i++) {
		logs_of(versions[i], NULL);
		assert_false(seek(1, "sleep 1"));
		assert_true(records("YjIucGlwZQ==", "{\"rule\": \"uppipe\", \"shellcmd\": \"x\"}") > 0 || i == 1);
		teardown(state);
		setup(state);
	}
	/* Version 9 logs their commands, and with them which one is hidden. */
	logs_of(versions[1], NULL);
	assert_true(seek_at_end(1, "cat b2.pipe >b2.out; exit 3"));
	assert_string_equal(found.task, "msgpipe");
	assert_true(seek_at_end(2, "echo x >b2.pipe; sleep 0.2"));
	assert_string_equal(found.task, "uppipe");
}

static void
a_log_is_read_in_any_parts(void **state)
{
	const char *text = JOB("align", "A.bam", "2", "sample=A") "Finished jobid: 2 (Rule: align)\n";

	(void)state;
	for (size_t i = 0; text[i] != '\0'; i++)
		job_log_read(the_log, text + i, 1);
	assert_false(seek(1, "sleep 1"));
	assert_int_equal(records("QS5iYW0=", "{\"rule\": \"align\", \"shellcmd\": \"cat A.bam\"}"), 1);
	assert_true(seek_at_end(1, "cat A.bam"));
}

static void
without_a_log_of_rules_a_job_is_found_by_its_outputs(void **state)
{
	(void)state;
	logs("Execute 2 jobs...\nFinished jobid: 2 (Rule: align)\n");
	assert_false(jobs_are_logged(jobs));
	jobs_begun(jobs, "QS5iYW0=");
	jobs_begun(jobs, "QS5iYW0=");
	jobs_begun(jobs, "../../etc/passwd");
	jobs_begun(jobs, "");
	assert_false(seek(1, "cat A.bam"));
	assert_int_equal(records(NULL, "{\"rule\": \"align\", \"shellcmd\": \"cat A.bam\"}"), 1);
	assert_true(seek_at_end(1, "cat A.bam"));
	assert_string_equal(found.task, "align");
	assert_string_equal(found.sample, "");
	jobs_begun(jobs, "QS5iYW0=");		/* the same output again, of a job that is not over */
	assert_int_equal(records(NULL, "{}"), 1);
}

static void
a_log_completes_what_an_output_revealed(void **state)
{
	(void)state;
	jobs_begun(jobs, "QS5iYW0=");
	logs(JOB("align", "A.bam", "2", "sample=A"));
	assert_true(seek(1, "cat A.bam"));
	assert_int_equal(records(NULL, "{}"), 0);	/* one job, which runs */
}

static void
a_record_is_asked_for_three_times(void **state)
{
	(void)state;
	logs(JOB("align", "A.bam", "2", "sample=A") "Finished jobid: 2 (Rule: align)\n");
	for (int i = 0; i < 3; i++)
		assert_int_equal(records(NULL, "not JSON"), 1);
	assert_int_equal(records(NULL, "not JSON"), 0);
}

static void
wrong_records_are_not_taken(void **state)
{
	static const char *const wrong[] = {
		"[]", "null", "{\"rule\": 1, \"shellcmd\": \"x\"}", "{\"rule\": \"align\", \"shellcmd\": null}",
		"{\"rule\": \"align\"}", "{\"rule\": \"\", \"shellcmd\": \"x\"}", "{\"rule\": \"other\", \"shellcmd\": \"x\"}",
		"{\"rule\": \"a b\", \"shellcmd\": \"x\"}", "{\"rule\": \"align\", \"shellcmd\": \"\\u0000x\"}",
		"{\"rule\": \"align\\u0000\", \"shellcmd\": \"x\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		logs(JOB("align", "A.bam", "2", "sample=A") "Finished jobid: 2 (Rule: align)\n");
		assert_true(records(NULL, wrong[i]) > 0);
		assert_false(seek_at_end(1, "x"));
	}
}

static void
names_that_are_no_text_are_left_out(void **state)
{
	(void)state;
	logs(TIME "rule a\033[2Jb:\n    output: A.bam\n    jobid: 1\n");
	assert_false(seek(1, "cat A.bam"));
	logs(TIME "rule good:\n    output: A.bam\n    jobid: 2\n    wildcards: sample=\xff\n");
	assert_true(seek(1, "cat A.bam"));
	assert_string_equal(found.task, "good");
	assert_string_equal(found.sample, "");
}

static void
wildcards_become_a_sample(void **state)
{
	static const char *const pairs[][2] = {
		{ "sample=A", "A" }, { "part=7", "7" }, { "part=7, sample=A", "A, part=7" }, { "sample=A, part=7", "A, part=7" },
		{ "x=1, samples=A, y=2", "A, x=1, y=2" }, { "x=1, y=2", "x=1, y=2" }, { "sample=", "" }, { "odd", "odd" },
		{ "path=a, b", "path=a, b" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		snprintf(text, sizeof(text), TIME "rule r%zu:\n    output: out%zu\n    jobid: %zu\n    wildcards: %s\n", i, i, i,
		    pairs[i][0]);
		logs(text);
		snprintf(text, sizeof(text), "cat out%zu", i);
		assert_true(seek(i + 1, text));
		assert_string_equal(found.sample, pairs[i][1]);
	}
}

static void
the_last_128_jobs_are_kept(void **state)
{
	char text[256];

	(void)state;
	logs(JOB("runs", "first", "1", "n=1"));
	for (int i = 2; i < 1000; i++) {
		snprintf(text, sizeof(text), JOB("r", "out%d", "%d", "n=%d"), i, i, i, i);
		logs(text);
		snprintf(text, sizeof(text), "Finished jobid: %d (Rule: r)\n", i);
		logs(text);
	}
	assert_true(seek(1, "cat first"));	/* one that runs is needed most */
	assert_string_equal(found.task, "runs");
	assert_int_equal(records(NULL, "{}"), 127);
}

static void
a_search_ends(void **state)
{
	char text[512], *command = malloc(32769);
	clock_t begin;

	(void)state;
	/* Each output is a part of the command at each of its bytes. */
	for (int i = 0; i < 128; i++) {
		snprintf(text, sizeof(text), JOB("r", "x, x, x, x, x, x, x, x", "%d", "n=%d"), i, i);
		logs(text);
	}
	memset(command, 'x', 32768);
	command[32768] = '\0';
	begin = clock();
	assert_false(seek(1, command));
	assert_true(clock() - begin < CLOCKS_PER_SEC / 2);
	/* It gave up: what it had no time for may be the one. */
	logs("Finished jobid: 0 (Rule: r)\n" JOB("only", "only", "200", "n=1"));
	for (int i = 1; i < 128; i++) {
		snprintf(text, sizeof(text), "Finished jobid: %d (Rule: r)\n", i);
		logs(text);
	}
	assert_false(seek(1, command));
	assert_true(seek(1, "sleep 1"));
	assert_string_equal(found.task, "only");
	free(command);
}

/* One long output, which begins at each byte of the command, and many short ones that are nowhere in it. */
static void
a_search_ends_whatever_the_outputs_are(void **state)
{
	char text[2048], outputs[1020], *command = malloc(32769);
	struct steps outer;

	memset(command, 'x', 32768);
	command[32768] = '\0';
	for (int kind = 0; kind < 2; kind++) {
		clock_t begin;

		memset(outputs, 'x', sizeof(outputs) - 1);
		outputs[sizeof(outputs) - 1] = '\0';
		for (size_t at = 7; kind == 1 && at + 3 < sizeof(outputs); at += 10)
			memcpy(outputs + at, "y, ", 3);
		for (int i = 0; i < 128; i++) {
			snprintf(text, sizeof(text), TIME "localrule r:\n    output: %s\n    jobid: %d\n", outputs, i);
			logs(text);
		}
		begin = clock();
		assert_false(seek(1, command));
		assert_true(clock() - begin < CLOCKS_PER_SEC / 10);	/* some 2 ms without sanitizers */
		/* What it takes is the program's that is judged. */
		steps_begin(&outer, 1000);
		assert_false(seek(1, command));
		assert_true(steps_end(&outer));
		teardown(state);
		setup(state);
	}
	free(command);
}

static void
long_lines_do_no_harm(void **state)
{
	char *text = malloc(100000);

	(void)state;
	memset(text, 'x', 100000);
	job_log_read(the_log, text, 100000);
	logs("\n" TIME "rule a:\n    output: ");
	job_log_read(the_log, text, 100000);
	logs("\n    jobid: 1\n" TIME "Error in rule a:\n    jobid: 1\n    shell:\n        ");
	for (int i = 0; i < 20; i++) {
		job_log_read(the_log, text, 1000);
		logs("\n");
	}
	logs("        (command exited with non-zero exit code)\n" JOB("b", "B", "2", "sample=B"));
	assert_true(seek(1, "cat B"));
	free(text);
}

static void
commands_are_equal_in_a_shell_and_in_a_record(void **state)
{
	static const char *const same[][2] = {
		{ "set -euo pipefail;  x", "x" }, { "set -euo pipefail;  \n    x\n    y\n ", "\n    x\n    y\n" },
		{ "set -euo pipefail;  source /c/bin/activate '/e/1f'; x", "x" },
		{ "set -euo pipefail; set -euo pipefail; x", "set -euo pipefail; set -euo pipefail; x" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_true(job_command(same[i][0], strlen(same[i][0])) == job_command(same[i][1], strlen(same[i][1])));
	assert_true(job_command("a", 1) != job_command("b", 1));
	assert_true(job_command("a b", 3) != job_command("a  b", 4));
	assert_true(job_command("", 0) == 0 && job_command(" \n", 2) == 0 && job_command("set -euo pipefail;", 18) == 0);
	assert_true(job_command("a\xff", 2) == 0 && job_command("a\0b", 3) == 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_job_is_found_by_an_output_in_the_command),
		TEST(a_part_of_a_path_is_no_output),
		TEST(the_only_one_that_runs_is_found_without_its_output),
		TEST(a_job_that_is_over_is_found_by_an_output_in_the_command),
		TEST(a_job_is_found_at_its_end_by_its_record),
		TEST(the_end_corrects_what_was_taken_for_it),
		TEST(a_failed_job_is_found_by_its_log),
		TEST(a_log_of_version_7_is_read),
		TEST(a_job_with_a_message_has_no_name_while_it_runs),
		TEST(what_a_message_contains_is_no_job),
		TEST(an_earlier_job_is_not_that_of_a_command_which_may_be_hidden),
		TEST(a_hidden_job_is_found_at_its_end_by_its_record),
		TEST(jobs_of_a_pipe_are_found),
		TEST(jobs_of_a_group_that_failed_are_over),
		TEST(a_log_is_read_in_any_parts),
		TEST(without_a_log_of_rules_a_job_is_found_by_its_outputs),
		TEST(a_log_completes_what_an_output_revealed),
		TEST(a_record_is_asked_for_three_times),
		TEST(wrong_records_are_not_taken),
		TEST(names_that_are_no_text_are_left_out),
		TEST(wildcards_become_a_sample),
		TEST(the_last_128_jobs_are_kept),
		TEST(a_search_ends),
		TEST(a_search_ends_whatever_the_outputs_are),
		TEST(long_lines_do_no_harm),
		TEST(commands_are_equal_in_a_shell_and_in_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
