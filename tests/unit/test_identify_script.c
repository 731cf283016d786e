/* SPDX-License-Identifier: Apache-2.0 */
/* script: a step without a name gets one from its shell's script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "identify/engine.h"
#include "identify/script.h"
#include "shipped_rules.h"

#define ARGS(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

/* What `bash -c script` is called. */
static const char *
named(const char *script)
{
	static char task[ENGINE_NAME_SIZE];
	const char *const argv[] = { "/usr/bin/bash", "-c", script };
	struct candidate s = { .tool = "bash", .argv = argv, .argc = 3 };

	engine_default_task(shipped, &s, task);
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
	assert_string_equal(named("$TOOL sort x"), "bash");	/* the command is not known */
	assert_string_equal(named("for"), "bash");
	assert_string_equal(named("\\"), "bash");
	assert_string_equal(named("'"), "bash");
}

static const char *
named_as(const char *tool, bool is_tool, const char *const *argv, size_t argc)
{
	static char task[ENGINE_NAME_SIZE];
	struct candidate s = { .tool = tool, .is_tool = is_tool, .argv = argv, .argc = argc };

	engine_default_task(shipped, &s, task);
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

	(void)state;
	assert_true(script_name(shipped, "bwa mem r | samtools sort | bcftools view", task, sizeof(task)));
	assert_string_equal(task, "bwa mem");	/* whole tools only */
}

static void
without_rules_a_script_has_its_programs_names(void **state)
{
	char name[64];

	(void)state;
	assert_true(script_name(NULL, "bwa mem r | samtools sort", name, sizeof(name)));
	assert_string_equal(name, "bwa | samtools");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts_are_named_after_their_first_pipeline),
		cmocka_unit_test(what_is_no_command_is_passed_over),
		cmocka_unit_test(redirections_are_no_words),
		cmocka_unit_test(quotes_keep_words_together),
		cmocka_unit_test(a_script_without_a_tool_is_named_after_its_shell),
		cmocka_unit_test(only_a_shells_script_is_read),
		cmocka_unit_test(long_scripts_are_read_in_part_and_never_overrun),
		cmocka_unit_test(a_name_fits_where_it_is_written),
		cmocka_unit_test(without_rules_a_script_has_its_programs_names),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
