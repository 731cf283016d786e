/* SPDX-License-Identifier: Apache-2.0 */
/* rules: engines know their jobs, and a step without a name gets one from its script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "correlate/rules.h"

#define ARGS(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)
#define WORK "/data/work/31/3c1293c6965300653aca74c68fd5e2"

static struct rule_verdict
judge(const char *tool, const char *cwd, const char *const *argv, size_t argc)
{
	struct rule_input in = { .tool = tool, .is_tool = true, .argv = argv, .argc = argc, .cwd = cwd };
	struct rule_verdict v;

	rule_judge(&in, &v);
	return v;
}

static void
snakemake_jobs_name_their_rule_and_wildcards(void **state)
{
	struct rule_verdict v = judge("snakemake", "/w", ARGS("python", "-m", "snakemake", "--target-jobs",
	    "align:sample=A", "--cores", "2"));

	(void)state;
	assert_true(v.is_task);
	assert_false(v.is_driver);
	assert_string_equal(v.engine, "snakemake");
	assert_string_equal(v.task, "align");
	assert_string_equal(v.task_id, "align:sample=A");
	assert_string_equal(v.sample, "A");
	assert_non_null(v.source);
	assert_true(v.confidence > 0.9);
}

static void
snakemake_wildcards_may_be_many_or_none(void **state)
{
	struct rule_verdict v = judge("snakemake", NULL, ARGS("snakemake", "--target-jobs",
	    "count:lane=1,sample=S 2,unit=x"));

	(void)state;
	assert_string_equal(v.task_id, "count:lane=1,sample=S 2,unit=x");
	assert_string_equal(v.sample, "S 2");
	v = judge("snakemake", NULL, ARGS("snakemake", "--target-jobs", "count:subsample=1"));
	assert_string_equal(v.sample, "");
	v = judge("snakemake", NULL, ARGS("snakemake", "--target-jobs", "all:"));
	assert_true(v.is_task);
	assert_string_equal(v.task, "all");
	assert_string_equal(v.task_id, "all");
	assert_string_equal(v.sample, "");
}

static void
snakemake_jobs_are_found_inside_a_shells_script(void **state)
{
	static const char *const scripts[] = {
		("cd /w && python -m snakemake --snakefile '/w/Snakefile' --target-jobs 'count:sample=A' "
		"--allowed-rules count --cores 2"),
		"exec python -m snakemake --target-jobs \"count:sample=A\" --mode remote",
		"exec python -m snakemake --target-jobs count:sample=A --mode remote",
		"exec python -m snakemake --target-jobs=count:sample=A\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct rule_verdict v = judge("sh", NULL, ARGS("/bin/sh", "-c", scripts[i]));

		assert_true(v.is_task);
		assert_string_equal(v.task_id, "count:sample=A");
		assert_string_equal(v.task, "count");
		assert_string_equal(v.sample, "A");
	}
	assert_string_equal(judge("sh", NULL, ARGS("sh", "-c",
	    "snakemake --target-jobs 'x:sample=A B,k=\"1\"' --cores 1")).sample, "A B");
}

static void
what_only_looks_like_a_snakemake_job_is_none(void **state)
{
	(void)state;
	assert_false(judge("x", NULL, ARGS("x", "--target-jobs")).is_task);
	assert_false(judge("x", NULL, ARGS("x", "--target-jobs", "")).is_task);
	assert_false(judge("x", NULL, ARGS("x", "--target-jobs", ":sample=A")).is_task);
	assert_false(judge("x", NULL, ARGS("x", "--target-jobs", "align")).is_task);
	assert_false(judge("x", NULL, ARGS("sh", "-c", "x --target-jobs")).is_task);
	assert_false(judge("x", NULL, ARGS("sh", "-c", "x --target-jobs '")).is_task);
	assert_false(judge("x", NULL, NULL, 0).is_task);
}

static void
names_too_long_are_cut_at_a_whole_character(void **state)
{
	char job[2 * RULE_NAME_SIZE + 20];
	struct rule_verdict v;

	(void)state;
	for (size_t shift = 0; shift < 2; shift++) {
		size_t n = 0;

		memset(job, 'r', shift);
		for (n = shift; n + 2 < sizeof(job) - 10; n += 2)
			memcpy(job + n, "\xc3\xa9", 2);
		strcpy(job + n, ":a=1");
		v = judge("snakemake", NULL, ARGS("snakemake", "--target-jobs", job));
		assert_true(v.is_task);
		assert_true(strlen(v.task) >= RULE_NAME_SIZE - 2);
		assert_true(text_is_plain(v.task, strlen(v.task)));
		assert_true(text_is_plain(v.task_id, strlen(v.task_id)));
	}
}

static void
nextflow_tasks_are_their_work_directory(void **state)
{
	struct rule_verdict v = judge("bash", WORK, ARGS("bash", WORK "/.command.run"));

	(void)state;
	assert_true(v.is_task);
	assert_string_equal(v.engine, "nextflow");
	assert_string_equal(v.task_id, "31/3c1293c6965300653aca74c68fd5e2");
	assert_string_equal(v.task, "");
	assert_true(judge("bash", WORK "/", ARGS("bash", "-ue", ".command.run", "nxf_launch")).is_task);
	assert_true(judge("bash", "/31/x" WORK, ARGS("bash", ".command.run")).is_task);
}

static void
what_only_looks_like_a_nextflow_task_is_none(void **state)
{
	(void)state;
	assert_false(judge("bash", NULL, ARGS("bash", ".command.run")).is_task);
	assert_false(judge("bash", "/w", ARGS("bash", ".command.run")).is_task);
	assert_false(judge("bash", "/", ARGS("bash", ".command.run")).is_task);
	assert_false(judge("bash", "/31", ARGS("bash", ".command.run")).is_task);
	assert_false(judge("bash", "/31/3c", ARGS("bash", ".command.run")).is_task);
	assert_false(judge("bash", WORK, ARGS("bash", ".command.sh")).is_task);
	assert_false(judge("bash", WORK "f0", ARGS("bash", ".command.run")).is_task);	/* 32 digits */
	assert_false(judge("bash", "/31/3C1293C6965300653ACA74C68FD5E2", ARGS("bash", ".command.run")).is_task);
}

static void
drivers_are_known_by_their_tool(void **state)
{
	(void)state;
	assert_true(judge("snakemake", NULL, ARGS("snakemake", "-c2")).is_driver);
	assert_true(judge("nextflow", NULL, NULL, 0).is_driver);
	assert_true(judge("make", NULL, ARGS("make")).is_driver);
	assert_false(judge("bwa mem", NULL, ARGS("bwa", "mem")).is_driver);
	assert_false(judge("bash", NULL, ARGS("bash")).is_driver);
	assert_false(judge(NULL, NULL, NULL, 0).is_driver);
}

/* What `bash -c script` is called. */
static const char *
named(const char *script)
{
	static char task[RULE_NAME_SIZE];
	const char *const argv[] = { "/usr/bin/bash", "-c", script };
	struct rule_input in = { .tool = "bash", .argv = argv, .argc = 3 };

	rule_default_task(&in, task, sizeof(task));
	return task;
}

struct naming {
	const char *script;
	const char *name;
};

static void
scripts_are_named_after_their_first_pipeline(void **state)
{
	static const struct naming namings[] = {
		{ "set -euo pipefail;  bwa mem ref.fa data/A.fa 2> logs/A.log | samtools sort -o out/A.bam -",
		    "bwa mem | samtools sort" },
		{ "samtools index a.bam", "samtools index" },
		{ "  \n\t samtools index a.bam\n", "samtools index" },
		{ "samtools index a.bam; bcftools stats x", "samtools index" },
		{ "samtools index a.bam && bcftools stats x", "samtools index" },
		{ "samtools index a.bam\nbcftools stats x", "samtools index" },
		{ "samtools index a.bam & bcftools stats x", "samtools index" },
		{ "bwa mem r a | samtools sort - | samtools view -h | bcftools view", "bwa mem | samtools sort | samtools view" },
		{ "bwa mem r a |& samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem r a |\n  samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem r a \\\n  | samtools sort", "bwa mem | samtools sort" },
		{ "bwa \\\n mem r a", "bwa mem" },
		{ "bwa mem r a || samtools index x", "bwa mem" },
		{ "false || bwa mem x", "bwa mem" },
		{ "/opt/bin/samtools-1.19 sort x", "samtools sort" },
		/* glue on either side is no tool */
		{ "cat a.fq | bwa mem ref - | tee x", "bwa mem" },
		{ "mkdir -p out && samtools index a", "samtools index" },
		{ "cat list | xargs rm; samtools index a", "samtools index" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++)
		assert_string_equal(named(namings[i].script), namings[i].name);
}

static void
what_is_no_command_is_passed_over(void **state)
{
	static const struct naming namings[] = {
		{ "# bwa mem first\nsamtools sort x", "samtools sort" },
		{ "#!/bin/bash\n\n#\nsamtools sort x", "samtools sort" },
		{ "A=1\nB=\"x y\" C='z | w' samtools sort x", "samtools sort" },
		{ "A=1; samtools sort x", "samtools sort" },
		{ "export PATH=/x:$PATH; samtools sort x", "samtools sort" },
		{ "X=$(date +%s | tr a b) samtools sort x", "samtools sort" },
		{ "X=$(date +%s)\nsamtools sort x", "samtools sort" },
		{ "X=`nproc | cut -c 1`\nsamtools sort x", "samtools sort" },
		{ "cd x && samtools sort y", "samtools sort" },
		{ "( samtools sort y )", "samtools sort" },
		{ "(cd x; samtools sort y) > z", "samtools sort" },
		{ "{ samtools sort y; }", "samtools sort" },
		{ "! samtools sort y", "samtools sort" },
		{ "source activate x\n. ./env.sh\nsamtools sort y", "samtools sort" },
		{ "time bwa index r.fa", "bwa index" },
		{ "time -p bwa index r.fa", "bwa index" },
		{ "exec bwa index r.fa", "bwa index" },
		{ "if [ -f x ]; then bwa index r.fa; fi", "bwa index" },
		{ "if ! bwa index r.fa; then exit 1; fi", "bwa index" },
		{ "[ -f x ] || exit 1; bwa index r.fa", "bwa index" },
		{ "[[ -f x && -f y ]] && bwa index r.fa", "bwa index" },
		{ "test -f x || bwa index r.fa", "bwa index" },
		{ "for f in *.fa; do bwa index $f; done", "bwa index" },
		{ "for f in *.fa\ndo\n  bwa index $f\ndone", "bwa index" },
		{ "while read -r f; do bwa index $f; done < list", "bwa index" },
		{ "trap 'rm -f x' EXIT; bwa index r.fa", "bwa index" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++)
		assert_string_equal(named(namings[i].script), namings[i].name);
}

static void
redirections_are_no_words(void **state)
{
	static const struct naming namings[] = {
		{ "2> log bwa mem r | samtools sort", "bwa mem | samtools sort" },
		{ "> out bwa mem r", "bwa mem" },
		{ "< in bwa mem r 2>&1 | samtools sort", "bwa mem | samtools sort" },
		{ "bwa 2>&1 >x mem r | samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem r &> log | samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem r &>> log; samtools sort", "bwa mem" },
		{ "bwa mem r >| log | samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem r <(zcat a.gz) <(zcat b.gz | head) | samtools sort", "bwa mem | samtools sort" },
		{ "samtools view -@ $(nproc) x | bwa mem y", "samtools view | bwa mem" },
		{ "samtools view -@ `nproc` x | bwa mem y", "samtools view | bwa mem" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++)
		assert_string_equal(named(namings[i].script), namings[i].name);
}

static void
quotes_keep_words_together(void **state)
{
	static const struct naming namings[] = {
		{ "'bwa' \"mem\" -R '@RG\\tID:x | y ; z' r | samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem -R \"a \\\" | b\" r | samtools sort", "bwa mem | samtools sort" },
		{ "bwa mem a\\|b | samtools sort", "bwa mem | samtools sort" },
		{ "\"/opt/my tools/samtools\" sort x", "samtools sort" },
		{ "bwa mem 'never closed | samtools sort", "bwa mem" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++)
		assert_string_equal(named(namings[i].script), namings[i].name);
}

static void
a_script_without_a_tool_is_named_after_its_shell(void **state)
{
	(void)state;
	assert_string_equal(named(""), "bash");
	assert_string_equal(named("# nothing"), "bash");
	assert_string_equal(named("cd x && mkdir y; echo bwa mem"), "bash");
	assert_string_equal(named("A=1 B=2"), "bash");
	assert_string_equal(named("| | ; & ) ("), "bash");
	assert_string_equal(named("$TOOL sort x"), "bash");	/* which, nobody can say */
	assert_string_equal(named("for"), "bash");
	assert_string_equal(named("\\"), "bash");
	assert_string_equal(named("'"), "bash");
}

static const char *
named_as(const char *tool, bool is_tool, const char *const *argv, size_t argc)
{
	static char task[RULE_NAME_SIZE];
	struct rule_input in = { .tool = tool, .is_tool = is_tool, .argv = argv, .argc = argc };

	rule_default_task(&in, task, sizeof(task));
	return task;
}

static void
only_a_shells_script_is_read(void **state)
{
	(void)state;
	assert_string_equal(named_as("bash", false, ARGS("bash", "-euo", "pipefail", "-c", "bwa mem x")), "bwa mem");
	assert_string_equal(named_as("sh", false, ARGS("sh", "-lc", "bwa mem x", "sh")), "bwa mem");
	assert_string_equal(named_as("sh", false, ARGS("sh", "-c")), "sh");
	assert_string_equal(named_as("bash", false, ARGS("bash", "--norc", "-i")), "bash");
	/* others mean something else by -c */
	assert_string_equal(named_as("cut", false, ARGS("cut", "-c", "samtools sort")), "cut");
	assert_string_equal(named_as("python -c", true, ARGS("python", "-c", "bwa mem")), "python -c");
	assert_string_equal(named_as("bwa mem", true, ARGS("bwa", "mem")), "bwa mem");
	assert_string_equal(named_as(NULL, false, NULL, 0), "");
	assert_string_equal(named_as("bash", false, NULL, 0), "bash");
}

static void
long_scripts_are_read_in_part_and_never_overrun(void **state)
{
	static char script[20000];
	size_t at;

	(void)state;
	/* a tool within the part that is read, and one behind it */
	memset(script, ' ', 3000);
	strcpy(script + 3000, "samtools sort x");
	assert_string_equal(named(script), "samtools sort");
	memset(script, ' ', 10000);
	strcpy(script + 10000, "samtools sort x");
	assert_string_equal(named(script), "bash");
	/* one word, longer than any buffer */
	memset(script, 'x', sizeof(script) - 1);
	script[sizeof(script) - 1] = '\0';
	assert_string_not_equal(named(script), "bash");
	strcpy(script, "samtools sort");
	script[13] = ' ';
	memset(script + 14, 'x', 10000);
	assert_string_equal(named(script), "samtools sort");
	/* ever more words, assignments, quotes, backslashes, redirections */
	for (int unit = 0; unit < 8; unit++) {
		static const char *const units[] = { "w ", "A=1 ", "' '", "\\\n", "> f ", "\\x", "((", "$(" };

		for (at = 0; at + 8 < sizeof(script); at += strlen(units[unit]))
			strcpy(script + at, units[unit]);
		named(script);
		for (size_t cut = 4080; cut < 4112; cut++) {
			char was = script[cut];

			script[cut] = '\0';
			named(script);
			script[cut] = was;
		}
	}
}

static void
a_name_fits_where_it_is_written(void **state)
{
	char task[16];
	const char *const argv[] = { "sh", "-c", "bwa mem r | samtools sort | bcftools view" };
	struct rule_input in = { .tool = "sh", .argv = argv, .argc = 3 };

	(void)state;
	rule_default_task(&in, task, sizeof(task));
	assert_string_equal(task, "bwa mem");	/* whole tools only */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snakemake_jobs_name_their_rule_and_wildcards),
		cmocka_unit_test(snakemake_wildcards_may_be_many_or_none),
		cmocka_unit_test(snakemake_jobs_are_found_inside_a_shells_script),
		cmocka_unit_test(what_only_looks_like_a_snakemake_job_is_none),
		cmocka_unit_test(names_too_long_are_cut_at_a_whole_character),
		cmocka_unit_test(nextflow_tasks_are_their_work_directory),
		cmocka_unit_test(what_only_looks_like_a_nextflow_task_is_none),
		cmocka_unit_test(drivers_are_known_by_their_tool),
		cmocka_unit_test(scripts_are_named_after_their_first_pipeline),
		cmocka_unit_test(what_is_no_command_is_passed_over),
		cmocka_unit_test(redirections_are_no_words),
		cmocka_unit_test(quotes_keep_words_together),
		cmocka_unit_test(a_script_without_a_tool_is_named_after_its_shell),
		cmocka_unit_test(only_a_shells_script_is_read),
		cmocka_unit_test(long_scripts_are_read_in_part_and_never_overrun),
		cmocka_unit_test(a_name_fits_where_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
