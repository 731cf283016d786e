/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice doctor: loads the probes for a moment and tells what serves each signal.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/probes.h"
#include "base/host_id.h"
#include "cli/cli.h"

static const char help[] =
    "Usage: sluice doctor [--json]\n"
    "Tells which hook of this kernel serves each signal, what takes its place, what is\n"
    "missing and how to mend it. Loads the probes for a moment; follows nothing.\n\n"
    "  --json       one JSON object\n"
    "  -h, --help\n\n"
    "Exit status: 0 all signals are there (some by a fallback), 1 some are missing,\n"
    "2 wrong usage, 125 the probes cannot be loaded.\n";

static const char *
state_name(enum signal_state state)
{
	switch (state) {
	case SIGNAL_OK:
		return "ok";
	case SIGNAL_FALLBACK:
		return "fallback";
	default:
		return "missing";
	}
}

static void
print_json(const struct host_id *host, const struct signal_status *signals, size_t n)
{
	json_t *list = json_array(), *root;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{ss ss ss ss ss}", "name", signals[i].name, "state",
		    state_name(signals[i].state), "hook", signals[i].hook, "fields", signals[i].fields,
		    "detail", signals[i].detail));
	root = json_pack("{ss ss ss ss so}", "version", SLUICE_VERSION, "kernel", host->kernel,
	    "architecture", host->architecture, "host_id", host->id, "signals", list);
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static int
print_table(const struct host_id *host, const struct signal_status *signals, size_t n)
{
	struct libscols_table *t = scols_new_table();

	printf("sluice %s on Linux %s %s, host_id %s (%s)\n\n", SLUICE_VERSION, host->kernel,
	    host->architecture, host->id, host_id_source_name(host->source));
	if (t == NULL)
		return -ENOMEM;
	scols_table_new_column(t, "signal", 0, 0);
	scols_table_new_column(t, "state", 0, 0);
	scols_table_new_column(t, "hook", 0, 0);
	scols_table_new_column(t, "serves", 0, 0);
	for (size_t i = 0; i < n; i++) {
		struct libscols_line *line = scols_table_new_line(t, NULL);

		if (line == NULL)
			break;
		scols_line_set_data(line, 0, signals[i].name);
		scols_line_set_data(line, 1, state_name(signals[i].state));
		scols_line_set_data(line, 2, signals[i].hook[0] != '\0' ? signals[i].hook : "-");
		scols_line_set_data(line, 3, signals[i].fields);
	}
	scols_print_table(t);
	scols_unref_table(t);
	putchar('\n');
	for (size_t i = 0; i < n; i++) {
		if (signals[i].detail[0] != '\0')
			printf("%s: %s\n", signals[i].name, signals[i].detail);
	}
	return 0;
}

int
cli_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct probes_options probes_options = { 0 };
	const struct signal_status *signals;
	struct probes *probes;
	struct host_id host;
	char error[768];
	bool as_json = false;
	size_t n, missing = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			as_json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs("sluice doctor: see `sluice doctor --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sluice doctor: takes no '%s'; see `sluice doctor --help`\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (geteuid() != 0) {
		fputs("sluice doctor: only root may load probes; run `sudo sluice doctor`\n", stderr);
		return EXIT_OWN_FAILURE;
	}
	if (host_id_read("", &host) < 0)
		memset(&host, 0, sizeof(host));
	if (probes_open(&probes_options, &probes, error, sizeof(error)) < 0) {
		fprintf(stderr, "sluice doctor: %s\n", error);
		return EXIT_OWN_FAILURE;
	}
	signals = probes_signals(probes, &n);
	for (size_t i = 0; i < n; i++)
		missing += signals[i].state == SIGNAL_MISSING;
	if (as_json)
		print_json(&host, signals, n);
	else
		print_table(&host, signals, n);
	probes_close(probes);
	return missing > 0 ? EXIT_NO : EXIT_DONE;
}
