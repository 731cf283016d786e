/*
 * SPDX-License-Identifier: Apache-2.0
 * main: runs the subcommand that the first argument names.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/spell.h"
#include "cli/cli.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
} subcommands[] = {
	{ "run", cli_run, "run a command and record every program that it starts" },
	{ "agent", cli_agent, "follow the whole host and deliver to Kafka or files, as a daemon" },
	{ "cat", cli_cat, "print records of a lake as JSON lines" },
	{ "check", cli_check, "check the configuration and the rules; explain them" },
	{ "ctl", cli_ctl, "query or change the running agent: status, reload" },
	{ "dead-letters", cli_dead_letters, "list, print and replay records that the output refused" },
	{ "doctor", cli_doctor, "show what this kernel and host support" },
	{ "update", cli_update, "replace this program by the newest release of a mirror; off by default" },
	{ "tune", cli_tune, "explain a run in a lake: what delayed it, why it failed, which requests fit" },
	{ "sweep", cli_sweep, "find idle capacity in a lake" },
	{ "lake", cli_lake, "maintain a lake: compact, retain" },
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void
usage(FILE *f)
{
	fputs("Usage: sluice SUBCOMMAND [OPTION…]\n"
	    "Records what actually ran on this host: every program, exactly, however short.\n\n", f);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(f, "  %-14s%s\n", subcommands[i].name, subcommands[i].summary);
	fputs("  help          print this help; `sluice help SUBCOMMAND` prints that of a subcommand\n\n"
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
	spell_line(stderr, "sluice: no subcommand '%s'; the subcommands are", name);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(stderr, "%s %s", i > 0 ? "," : "", subcommands[i].name);
	fputs(" and help\n", stderr);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	clock_open();
	setlocale(LC_CTYPE, "");	/* prints names in tables as UTF-8 if the terminal uses it */
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return cli_version();
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
