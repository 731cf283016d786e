/*
 * SPDX-License-Identifier: Apache-2.0
 * main: runs the subcommand that the first argument names.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
} subcommands[] = {
	{ "run", cli_run, "run a command and see what actually ran" },
	{ "agent", cli_agent, "the daemon: follow the whole host, deliver to Kafka or files" },
	{ "cat", cli_cat, "print records of a lake as JSON lines" },
	{ "check", cli_check, "tell what is wrong with the configuration and the rules; explain them" },
	{ "ctl", cli_ctl, "ask or tell the running agent: status, reload" },
	{ "doctor", cli_doctor, "tell what this kernel and host allow" },
	{ "tune", cli_tune, "explain a run of a lake: what held it up, why it failed, what would be right" },
	{ "sweep", cli_sweep, "find capacity in a lake that did nothing" },
	{ "lake", cli_lake, "keep a lake: compact, retain" },
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void
usage(FILE *f)
{
	fputs("Usage: sluice SUBCOMMAND [OPTION…]\n"
	    "Sees what actually ran on this host: every program, exactly, however short.\n\n", f);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(f, "  %-10s%s\n", subcommands[i].name, subcommands[i].summary);
	fputs("  help      show this; `sluice help SUBCOMMAND` shows its options\n\n"
	    "  --version, --help\n\n"
	    "See sluice(1).\n", f);
}

static int
run_subcommand(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < SUBCOMMANDS; i++) {
		if (strcmp(name, subcommands[i].name) == 0)
			return subcommands[i].main(argc, argv);
	}
	fprintf(stderr, "sluice: no subcommand '%s'; there are", name);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(stderr, "%s %s", i > 0 ? "," : "", subcommands[i].name);
	fputs(" and help\n", stderr);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");	/* prints names in tables as UTF-8 if the terminal uses it */
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("sluice " SLUICE_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2)) {
		usage(stdout);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "help") == 0) {
		char help[] = "--help";
		char *args[] = { argv[2], help, NULL };

		return run_subcommand(argv[2], 2, args);
	}
	return run_subcommand(argv[1], argc - 1, argv + 1);
}
