/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice agent: runs the daemon.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/pins.h"
#include "base/spell.h"
#include "cli/cli.h"
#include "daemon/daemon.h"

static const char help[] =
    "Usage: sluice agent [-c FILE]\n"
    "       sluice agent --uninstall\n"
    "Follows every process of this host and delivers its records to Kafka, or to a folder of\n"
    "Avro files. Runs in the foreground until SIGTERM; SIGHUP makes it read the configuration\n"
    "again. The probes stay in the kernel when it ends, so that the next agent continues\n"
    "where this one stopped.\n\n"
    "  -c, --config FILE  configuration (default: /etc/sluice/sluice.yaml); its drop-ins are\n"
    "                     in conf.d/ beside it\n"
    "      --pins DIR     folder of a BPF file system in which the probes are pinned\n"
    "                     (default: " DAEMON_PINS ")\n"
    "      --uninstall    remove the probes that an agent left in the kernel, and exit\n"
    "  -h, --help         print this help\n\n"
    "Exit status: 0 stopped on request; 2 wrong usage or configuration; 125 the agent cannot\n"
    "run here. `sluice check` checks the configuration, `sluice ctl status` shows the state\n"
    "of a running agent. See sluice(1) and sluice.yaml(5).\n";

static int
uninstall(const char *pins)
{
	int r;

	if (geteuid() != 0) {
		fputs("sluice agent: removing probes needs root; run: sudo sluice agent --uninstall\n", stderr);
		return EXIT_OWN_FAILURE;
	}
	r = pins_uninstall(pins);
	if (r < 0) {
		spell_line(stderr, "sluice agent: cannot remove %s: %s\n", pins, r == -EMEDIUMTYPE ?
		    "it is not in a BPF file system, where probes are pinned" : r == -EWOULDBLOCK ?
		    "an agent that runs uses them; stop it first" : strerror(-r));
		return EXIT_OWN_FAILURE;
	}
	return EXIT_DONE;
}

int
cli_agent(int argc, char **argv)
{
	enum { OPT_PINS = 256, OPT_UNINSTALL };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "pins", required_argument, NULL, OPT_PINS },
		{ "uninstall", no_argument, NULL, OPT_UNINSTALL },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct daemon_options o = { .pins = DAEMON_PINS };
	bool is_uninstall = false;
	int c;

	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o.config = optarg;
			break;
		case OPT_PINS:
			o.pins = optarg;
			break;
		case OPT_UNINSTALL:
			is_uninstall = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs("sluice agent: see `sluice agent --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		spell_line(stderr, "sluice agent: takes no argument '%s'; see `sluice agent --help`\n", argv[optind]);
		return EXIT_USAGE;
	}
	return is_uninstall ? uninstall(o.pins) : daemon_run(&o);
}
