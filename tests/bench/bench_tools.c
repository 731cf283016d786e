/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_tools ROUNDS PROGRAMS: CPU ns to name a program's tool, with 10, 500 and 10,000 rules and with
 * the shipped ones; and ms to read 10,000 rules.
 *
 * Every other program has a rule, spread over the set; the rest have none, which is the most expensive
 * case, since every possible name is looked up.
 */
#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"
#include "identify/tool.h"
#include "sample.h"

enum { ROUNDS_MAX = 1000, PROGRAMS = 1024 };

/* Returns the text of n rules, half with subcommands, one in ten with a condition. The caller frees it. */
static char *
write_rules(unsigned n, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (f == NULL)
		return NULL;
	fputs("tools:\n  - {exe: sh, role: shell, runs: {inline: [-c]}}\n", f);
	for (unsigned i = 1; i < n; i++) {
		fprintf(f, "  - {exe: tool-%u%s%s}\n", i, i % 2 == 0 ? ", subcommands: true, values: [-t]" : "",
		    i % 10 == 0 ? ", when: {cwd: /data/}" : "");
	}
	return fclose(f) == 0 ? text : NULL;
}

static struct ruleset *
read_rules(const char *text, size_t len)
{
	const struct rules_extra extra = { "bench.yaml", text, len };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	if (text == NULL || rules_load(&o, &set, &errors) < 0)
		config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	return set;
}

struct program {
	char exe[64];
	const char *argv[6];
	struct candidate candidate;
};

static void
make_programs(struct program programs[PROGRAMS], unsigned n_rules)
{
	for (unsigned i = 0; i < PROGRAMS; i++) {
		struct program *p = &programs[i];
		unsigned rule = 1 + (unsigned)((uint64_t)i * (n_rules - 1) / PROGRAMS);

		if (i % 2 == 0)
			snprintf(p->exe, sizeof(p->exe), "/opt/tools/bin/tool-%u", rule);
		else
			snprintf(p->exe, sizeof(p->exe), "/opt/tools/bin/unknown%u-1.%u", rule, i);
		p->argv[0] = strrchr(p->exe, '/') + 1;
		p->argv[1] = "-t";
		p->argv[2] = "4";
		p->argv[3] = "sort";
		p->argv[4] = "/data/run7/sample-1.bam";
		p->candidate = (struct candidate){ .exe = p->exe, .comm = p->argv[0], .argv = p->argv, .argc = 5,
			.cwd = "/data/run7" };
	}
}

static int
bench(const char *name, const struct ruleset *set, unsigned n_rules, unsigned rounds, unsigned long n)
{
	static struct program programs[PROGRAMS];
	double values[ROUNDS_MAX];

	make_programs(programs, n_rules);
	for (unsigned round = 0; round < rounds; round++) {
		double start = sample_cpu_ns();
		unsigned long named = 0;

		for (unsigned long i = 0; i < n; i++) {
			char tool[TOOL_NAME_SIZE];

			named += tool_name(set, &programs[i % PROGRAMS].candidate, tool, sizeof(tool), NULL);
		}
		values[round] = (sample_cpu_ns() - start) / (double)n;
		if (named != n)
			return -1;
	}
	sample_print(name, values, rounds);
	return 0;
}

/* Reads n rules and measures the time. */
static int
bench_size(unsigned n_rules, unsigned rounds, unsigned long n)
{
	double values[ROUNDS_MAX];
	size_t len = 0;
	char name[32], *text = write_rules(n_rules, &len);
	struct ruleset *set = NULL;
	int r = -1;

	for (unsigned round = 0; round < rounds && (round == 0 || set != NULL); round++) {
		double start;

		ruleset_unref(set);
		start = sample_cpu_ns();
		set = read_rules(text, len);
		values[round] = (sample_cpu_ns() - start) / 1e6;
	}
	if (set != NULL) {
		snprintf(name, sizeof(name), "tool_name_%u", n_rules);
		r = bench(name, set, n_rules, rounds, n);
		snprintf(name, sizeof(name), "tools_read_ms_%u", n_rules);
		sample_print(name, values, rounds);
	}
	ruleset_unref(set);
	free(text);
	return r;
}

int
main(int argc, char **argv)
{
	static const unsigned sizes[] = { 10, 500, 10000 };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct ruleset *shipped;
	int r = 0;

	if (rounds == 0 || rounds > ROUNDS_MAX || n == 0) {
		fputs("usage: bench_tools ROUNDS PROGRAMS\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && r == 0; i++)
		r = bench_size(sizes[i], rounds, n);
	shipped = r == 0 ? rules_shipped() : NULL;
	if (shipped != NULL)
		r = bench("tool_name_shipped", shipped, 10000, rounds, n);
	if (shipped == NULL || r < 0) {
		fputs("bench_tools: failed\n", stderr);
		r = -1;
	}
	ruleset_unref(shipped);
	return r < 0;
}
