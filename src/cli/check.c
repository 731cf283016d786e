/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice check: what is wrong with the configuration, in the words of the agent.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "config/config.h"

static const char help[] =
    "Usage: sluice check [-c FILE] [--dump]\n"
    "Reads the agent's configuration and its drop-ins (conf.d/*.yaml beside it) and tells what is\n"
    "wrong, one error a line: FILE:LINE:COLUMN: what, and the mend. Starts nothing and connects to\n"
    "nothing.\n\n"
    "  -c, --config FILE  default " CONFIG_PATH "\n"
    "      --dump         print the effective configuration, and where each value was set\n"
    "  -h, --help\n\n"
    "Exit status: 0 nothing is wrong, 2 otherwise.\n";

static int
check(const char *path, bool dump)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_load(path, &c, &errors);
	size_t drop_ins;

	config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	if (r == -ENOMEM)
		fputs("sluice check: no memory\n", stderr);
	if (r < 0)
		return EXIT_USAGE;
	drop_ins = c->files.n - c->has_main;
	if (dump)
		config_dump(c, stdout);
	else
		printf("%s: %s, %zu drop-in%s\n", path != NULL ? path : CONFIG_PATH,
		    c->has_main ? "ok" : "not there, the defaults count", drop_ins, drop_ins == 1 ? "" : "s");
	config_free(c);
	return EXIT_DONE;
}

int
cli_check(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "dump", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *path = NULL;
	bool dump = false;
	int c;

	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			path = optarg;
			break;
		case 'd':
			dump = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs("sluice check: see `sluice check --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sluice check: takes no '%s'; see `sluice check --help`\n", argv[optind]);
		return EXIT_USAGE;
	}
	return check(path, dump);
}
