/* SPDX-License-Identifier: Apache-2.0 */
/* tool: names of programs, as users know them. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "identify/tool.h"
#include "shipped_rules.h"

#define ARGS_MAX 16

struct expectation {
	const char *exe;
	const char *argv[ARGS_MAX];
	const char *tool;
	const char *rule;
	bool is_tool;
};

static const struct expectation expectations[] = {
	/* the file's own name */
	{ "/usr/bin/wgsim", { "wgsim", "-N", "100", "ref.fa" }, "wgsim", "bioinformatics/wgsim", true },
	{ "/opt/bin/STAR", { "STAR", "--runMode", "alignReads" }, "STAR", "bioinformatics/STAR", true },
	{ "/usr/bin/minimap2", { "minimap2", "-ax", "sr" }, "minimap2", "bioinformatics/minimap2", true },
	{ "/opt/salmon (deleted)", { "salmon", "quant" }, "salmon quant", "bioinformatics/salmon", true },
	{ "/usr/bin/bowtie2-align-s", { "bowtie2-align-s" }, "bowtie2-align-s", "bioinformatics/bowtie2-align-s", true },
	{ "/usr/bin/gcc-12", { "gcc" }, "gcc-12", "exe", true },
	{ "/x/bin/x86_64-conda-linux-gnu-cc", { "cc" }, "x86_64-conda-linux-gnu-cc", "exe", true },
	/* subcommands */
	{ "/usr/bin/bwa", { "bwa", "mem", "-t", "2", "ref.fa" }, "bwa mem", "bioinformatics/bwa", true },
	{ "/usr/bin/samtools", { "samtools", "sort", "-" }, "samtools sort", "bioinformatics/samtools", true },
	{ "/usr/bin/samtools-1.19", { "samtools-1.19", "view" }, "samtools view", "bioinformatics/samtools", true },
	{ "/usr/bin/samtools", { "samtools", "--version" }, "samtools", "bioinformatics/samtools", true },
	{ "/usr/bin/samtools", { "samtools", "./sort", "x" }, "samtools", "bioinformatics/samtools", true },
	{ "/usr/bin/bcftools", { "bcftools", "+fill-tags", "x" }, "bcftools +fill-tags", "bioinformatics/bcftools",
	    true },
	{ "/opt/bwa-mem2.avx2", { "bwa-mem2", "index", "r.fa" }, "bwa-mem2 index", "bioinformatics/bwa-mem2", true },
	{ "/usr/bin/git", { "git", "-C", "/x", "--no-pager", "status" }, "git status", "system/git",
	    true },
	{ "/usr/bin/docker", { "docker", "--context", "x", "run", "-it", "img" }, "docker run",
	    "cluster/docker", true },
	{ "/usr/bin/cargo", { "cargo", "+nightly", "build" }, "cargo build", "system/cargo", true },
	/* interpreters */
	{ "/usr/bin/python3.11", { "python3", "/w/align.py", "-x" }, "align.py", "interpreter", true },
	{ "/usr/bin/python3.11", { "python3", "-u", "-W", "ignore", "-X", "dev", "s.py" }, "s.py",
	    "interpreter", true },
	{ "/usr/bin/python3.11", { "python", "-m", "snakemake", "-c2" }, "snakemake",
	    "cluster/snakemake", true },
	{ "/usr/bin/python3.11", { "python", "-um", "pkg.mod" }, "pkg.mod", "interpreter", true },
	{ "/usr/bin/python3.11", { "python", "-mpip", "install", "x" }, "pip install", "system/pip",
	    true },
	{ "/usr/bin/python3", { "python3", "-Ec", "print(1)" }, "python -c", "inline", true },
	{ "/usr/bin/python3", { "python3" }, "python", "runtimes/python", true },
	{ "/usr/bin/python3", { "python3", "-" }, "python", "runtimes/python", true },
	{ "/usr/bin/python3", { "python3", "-m" }, "python", "runtimes/python", true },
	{ "/usr/bin/python3", { "python3", "/opt/bin/macs2", "callpeak" }, "macs2 callpeak",
	    "bioinformatics/macs2", true },
	{ "/usr/bin/python3", { "python3", "/opt/multiqc/__main__.py" }, "multiqc", "bioinformatics/multiqc",
	    true },
	{ "/usr/bin/python3", { "python3", "/w/.snakemake/scripts/tmp3ubz2xzn.plot.py" }, "plot.py",
	    "interpreter", true },
	{ "/usr/bin/python3", { "python3", "/opt/gatk/gatk", "--java-options", "-Xmx4g",
	    "HaplotypeCaller" }, "gatk HaplotypeCaller", "bioinformatics/gatk", true },
	{ "/usr/bin/perl", { "perl", "-w", "-I", "lib", "/x/vep", "-i" }, "vep", "bioinformatics/vep", true },
	{ "/usr/bin/perl5.36", { "perl", "-lane", "print" }, "perl -e", "inline", true },
	{ "/usr/bin/perl", { "perl", "-i.orig", "x.pl" }, "x.pl", "interpreter", true },
	{ "/usr/bin/perl", { "perl", "/usr/bin/parallel", "-j2" }, "parallel", "wrapper", false },
	{ "/usr/lib/R/bin/Rscript", { "Rscript", "--vanilla", "de.R", "a" }, "de.R", "interpreter",
	    true },
	{ "/usr/lib/R/bin/Rscript", { "Rscript", "-e", "1+1" }, "Rscript -e", "inline", true },
	{ "/usr/lib/R/bin/exec/R", { "R", "--no-echo", "--no-restore", "--file=x/de.R", "--args", "-e" },
	    "de.R", "interpreter", true },
	{ "/usr/bin/dash", { "/bin/sh", "/usr/lib/R/bin/R", "--no-echo", "--file=de.R" }, "de.R",
	    "interpreter", true },
	{ "/usr/bin/R", { "R", "CMD", "check" }, "R", "runtimes/R", true },
	{ "/usr/bin/node", { "node", "--require", "x", "--max-old-space-size=9", "/a/app.js" }, "app.js",
	    "interpreter", true },
	{ "/usr/bin/node", { "node", "--eval", "1" }, "node -e", "inline", true },
	{ "/usr/bin/ruby3.1", { "ruby", "x.rb" }, "x.rb", "interpreter", true },
	{ "/usr/bin/lua5.4", { "lua", "x.lua" }, "x.lua", "interpreter", true },
	{ "/usr/bin/julia", { "julia", "--threads", "4", "--project=x", "sim.jl" }, "sim.jl",
	    "interpreter", true },
	{ "/lib64/ld-linux-x86-64.so.2", { "ld.so", "--library-path", "/l", "/opt/bwa", "mem" },
	    "bwa mem", "bioinformatics/bwa", true },
	/* java */
	{ "/usr/lib/jvm/bin/java", { "java", "-Xmx4g", "-jar", "/x/picard.jar", "MarkDuplicates", "I=x" },
	    "picard MarkDuplicates", "bioinformatics/picard", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-jar", "trimmomatic-0.39.jar", "PE" }, "trimmomatic PE",
	    "bioinformatics/trimmomatic", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-jar", "/g/gatk-package-4.4.0.0-local.jar", "Mutect2" },
	    "gatk Mutect2", "bioinformatics/gatk", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-jar", "varscan.jar", "mpileup2snp" }, "varscan mpileup2snp",
	    "bioinformatics/varscan", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-cp", "a:b", "--add-opens", "x=y", "org.foo.Main", "a" },
	    "Main", "java-class", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-cp", "a", "nextflow.cli.Launcher", "-log", "l", "run" },
	    "nextflow run", "cluster/nextflow", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-version" }, "java", "runtimes/java", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-jar" }, "java", "runtimes/java", true },
	{ "/usr/lib/jvm/bin/java", { "java", "-m", "my.mod/org.foo.App" }, "App", "java-class", true },
	/* shells */
	{ "/usr/bin/bash", { "bash", "-c", "bwa mem x" }, "bash", "shell", false },
	{ "/usr/bin/bash", { "/bin/bash", "-euo", "pipefail", "-c", "x" }, "bash", "shell", false },
	{ "/usr/bin/bash", { "bash", "-euo", "pipefail", "/w/run.sh", "1" }, "run.sh", "interpreter",
	    true },
	{ "/usr/bin/bash", { "bash", "+o", "history", "run.sh" }, "run.sh", "interpreter", true },
	{ "/usr/bin/bash", { "-bash" }, "bash", "shell", false },
	{ NULL, { "-bash" }, "bash", "shell", false },
	{ "/usr/bin/bash", { "bash", "/dev/fd/63" }, "bash", "shell", false },
	{ "/usr/bin/bash", { "bash", "/" }, "bash", "shell", false },
	{ "/usr/bin/dash", { "sh", "/opt/bin/picard", "-Xmx2g", "SortSam" }, "picard SortSam",
	    "bioinformatics/picard", true },
	/* wrappers and glue */
	{ "/usr/bin/env", { "env", "FOO=1", "bwa", "mem" }, "env", "wrapper", false },
	{ "/usr/bin/timeout", { "timeout", "9", "x" }, "timeout", "wrapper", false },
	{ "/usr/bin/cat", { "cat", "x" }, "cat", "glue", false },
	/* many programs in one file */
	{ "/bin/busybox", { "gzip", "x" }, "gzip", "system/gzip", true },
	{ "/bin/busybox", { "busybox", "gzip", "x" }, "gzip", "system/gzip", true },
	{ "/bin/busybox", { "sh", "-c", "x" }, "sh", "shell", false },
	{ "/bin/busybox", { "busybox" }, "busybox", "system/busybox", true },
	/* no file to speak of */
	{ "/memfd:job (deleted)", { "x" }, "job", "exe", true },
	{ "/memfd: (deleted)", { "x" }, "x", "argv0", true },
	{ "/dev/fd/5", { "/opt/bwa", "mem" }, "bwa mem", "bioinformatics/bwa", true },
	{ "/usr/bin/samtools", { NULL }, "samtools", "bioinformatics/samtools", true },
	{ NULL, { NULL }, "comm15", "comm", true },
	{ "", { "" }, "comm15", "comm", true },
	/* hostile */
	{ "/x/a\nb\033[31m", { "x" }, "a?b?[31m", "exe", true },
	{ "/x/\xff\xfe", { "x" }, "\\xff\\xfe", "exe", true },
	{ "/usr/bin/bwa", { "bwa", "mem\n" }, "bwa", "bioinformatics/bwa", true },
	{ "/usr/bin/bwa", { "bwa", "" }, "bwa", "bioinformatics/bwa", true },
	{ "/usr/bin/bash", { "bash", "" }, "bash", "shell", false },
};

static size_t
count_args(const char *const *argv)
{
	size_t n = 0;

	while (n < ARGS_MAX && argv[n] != NULL)
		n++;
	return n;
}

static void
programs_get_the_names_that_people_use(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
		const struct expectation *e = &expectations[i];
		struct candidate s = { .exe = e->exe, .comm = "comm15", .argv = e->argv, .argc = count_args(e->argv) };
		char tool[TOOL_NAME_SIZE];
		const char *rule;
		bool is_tool = tool_name(shipped, &s, tool, sizeof(tool), &rule);

		assert_true(s.is_tool == is_tool && s.tool == tool);
		if (strcmp(tool, e->tool) != 0 || strcmp(rule, e->rule) != 0 || is_tool != e->is_tool) {
			print_error("row %zu: %s %s: got \"%s\" by %s (%d), not \"%s\" by %s (%d)\n", i,
			    e->exe ? e->exe : "-", e->argv[0] ? e->argv[0] : "-", tool, rule, is_tool,
			    e->tool, e->rule, e->is_tool);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void
nothing_known_is_no_tool(void **state)
{
	struct candidate s = { 0 };
	char tool[TOOL_NAME_SIZE] = "x";

	(void)state;
	assert_false(tool_name(shipped, &s, tool, sizeof(tool), NULL));
	assert_string_equal(tool, "");
	assert_null(s.tool);
	assert_null(s.words.subcommand);
}

/* What a child of the kernel's limits may bring: 100 KB in one argument, wherever names come from. */
static void
huge_arguments_are_cut_to_the_buffer(void **state)
{
	size_t len = 100000;
	char *huge = malloc(len + 1);
	const char *shapes[][5] = {
		{ "/usr/bin/bwa", "bwa", huge }, { "/usr/bin/python3", "python3", huge },
		{ "/usr/bin/python3", "python3", "-m", huge }, { "/bin/java", "java", "-jar", huge },
		{ "/bin/java", "java", "-cp", "x", huge }, { huge, huge, huge }, { "/bin/busybox", huge, huge },
	};

	(void)state;
	for (int fill = 0; fill < 3; fill++) {
		memset(huge, "a\xc3\n"[fill], len);
		huge[len] = '\0';
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			struct candidate s = { .exe = shapes[i][0], .comm = huge, .argv = shapes[i] + 1,
				.argc = count_args(shapes[i]) - 1 };

			for (size_t size = 1; size <= TOOL_NAME_SIZE; size += 9) {
				char tool[TOOL_NAME_SIZE];

				tool_name(shipped, &s, tool, size, NULL);
				assert_true(strlen(tool) < size);
				assert_true(text_char(tool, strlen(tool) + 1) > 0);
			}
		}
	}
	free(huge);
}

/* What the words of a rule's conditions are, and of the engines'. */
static void
words_are_distinguished(void **state)
{
	static const struct {
		const char *exe;
		const char *argv[ARGS_MAX];
		struct candidate_words words;
	} cases[] = {
		{ "/usr/bin/bwa", { "bwa", "mem", "x" }, { "mem", "", "", "" } },
		{ "/usr/bin/python3.11", { "python3", "-u", "/w/a.py", "mem" }, { "", "/w/a.py", "", "" } },
		{ "/usr/bin/python3.11", { "python3", "-m", "pip", "install" }, { "install", "pip", "", "" } },
		{ "/usr/bin/java", { "java", "-jar", "/x/picard-2.9.jar", "SortSam" },
		    { "SortSam", "", "/x/picard-2.9.jar", "" } },
		{ "/usr/bin/java", { "java", "-cp", "x", "org.foo.Main", "a" }, { "", "", "", "org.foo.Main" } },
		{ "/usr/bin/dash", { "sh", "/usr/lib/R/bin/R", "--file=de.R" }, { "", "de.R", "", "" } },
		{ "/usr/bin/cat", { "cat", "x" }, { "", "", "", "" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct candidate s = { .exe = cases[i].exe, .argv = cases[i].argv, .argc = count_args(cases[i].argv) };
		char tool[TOOL_NAME_SIZE];

		tool_name(shipped, &s, tool, sizeof(tool), NULL);
		assert_string_equal(s.words.subcommand, cases[i].words.subcommand);
		assert_string_equal(s.words.script, cases[i].words.script);
		assert_string_equal(s.words.jar, cases[i].words.jar);
		assert_string_equal(s.words.class, cases[i].words.class);
	}
}

static void
without_rules_files_name_programs(void **state)
{
	struct ruleset none = { 0 };
	const char *argv[] = { "samtools-1.19", "view" };
	struct candidate s = { .exe = "/usr/bin/samtools-1.19", .argv = argv, .argc = 2 };
	char tool[TOOL_NAME_SIZE];
	const char *rule;

	(void)state;
	assert_true(tool_name(NULL, &s, tool, sizeof(tool), &rule));
	assert_string_equal(tool, "samtools");
	assert_string_equal(rule, "exe");
	assert_true(tool_name(&none, &s, tool, sizeof(tool), &rule));
	assert_string_equal(tool, "samtools");
	assert_int_equal(tool_role(NULL, "bash"), TOOL_PLAIN);
	assert_int_equal(tool_role(shipped, "bash"), TOOL_SHELL);
	assert_int_equal(tool_role(shipped, "env"), TOOL_WRAPPER);
	assert_int_equal(tool_role(shipped, "bwa"), TOOL_PLAIN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_get_the_names_that_people_use),
		cmocka_unit_test(nothing_known_is_no_tool),
		cmocka_unit_test(huge_arguments_are_cut_to_the_buffer),
		cmocka_unit_test(words_are_distinguished),
		cmocka_unit_test(without_rules_files_name_programs),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
