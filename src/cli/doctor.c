/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice doctor: loads the probes for a moment and prints which hook serves each signal, what librdkafka
 * supports, and which privileges the agent needs here. With --self-test: whether what is recorded is true.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "attach/probes.h"
#include "attach/sizes.h"
#include "base/clock.h"
#include "base/host_id.h"
#include "base/namespaces.h"
#include "base/spell.h"
#include "cli/cli.h"
#include "cli/host_agent.h"
#include "cli/print_json.h"
#include "cli/self_test.h"
#include "collect/meter.h"
#include "kafka/kafka.h"

static const char help[] =
    "Usage: sluice doctor [--self-test] [--json]\n"
    "Loads the probes briefly, without following anything, and prints which hook of this\n"
    "kernel serves each signal, which fallbacks are used, what is missing and how to fix it;\n"
    "also what librdkafka, which delivers to Kafka, supports, which privileges the agent needs,\n"
    "by what energy is metered, and whether this is the host's PID namespace. Without root:\n"
    "whether `sluice run` needs it.\n\n"
    "  --self-test  run a known tree of programs instead, as `sluice run` does, and print in one\n"
    "               line whether each of them was recorded exactly; it leaves nothing behind\n"
    "  --json       print one JSON object\n"
    "  -h, --help   print this help\n\n"
    "Exit status: 0 all signals are available, some by a fallback, or the self-test passed;\n"
    "1 a signal is missing, or the self-test failed;\n"
    "2 wrong usage; 125 the probes cannot be loaded.\n";

/* The results that print_findings_json() and print_table() print. */
struct findings {
	struct host_id host;
	const struct signal_status *signals;	/* the probes' */
	size_t n_signals;
	struct kafka_library kafka;
	struct privilege_need needs[PRIVILEGES_NEEDED];
	size_t n_needs;
	int maps_ask;			/* result of privileges_maps_ask() */
	bool has_hosts_pids;		/* in the host's PID namespace */
	bool has_hosts_times;		/* in its time namespace */
	struct sizes sizes;		/* of the agent, unless its configuration has others */
	struct meter_state meter;	/* as root sees it */
};

static json_t *
kafka_json(const struct kafka_library *kafka)
{
	json_t *list = json_array();

	for (size_t i = 0; i < kafka->n; i++)
		json_array_append_new(list, json_pack("{ss sb ss}", "name", kafka->abilities[i].name, "works",
		    kafka->abilities[i].works, "error", kafka->abilities[i].error));
	return json_pack("{ss sb so sO}", "version", kafka->version, "scram_kafka_4", kafka->has_modern_scram,
	    "features", list, "abilities", list);	/* abilities: former name, for one version */
}

static json_t *
privileges_json(const struct findings *f)
{
	json_t *list = json_array();
	char name[32];

	for (size_t i = 0; i < f->n_needs; i++)
		json_array_append_new(list, json_pack("{ss ss sb sb}", "capability",
		    privileges_names(PRIVILEGE(f->needs[i].cap), name, sizeof(name)), "purpose", f->needs[i].purpose,
		    "required", f->needs[i].is_must, "held", f->needs[i].is_held));
	json_t *maps = f->maps_ask < 0 ? json_null() : json_boolean(f->maps_ask);

	return json_pack("{so s[s] so sO}", "start", list, "kept", "bpf", "maps_require_bpf", maps,
	    "maps_ask_for_bpf", maps);	/* maps_ask_for_bpf: former name, for one version */
}

/* Returns why no energy is metered, in words. */
static const char *
meter_error(const struct meter_state *m)
{
	return m->error == -ENODEV ? "no powercap zone of a CPU package, and no driver of hwmon that counts energy" :
	    strerror(-m->error);
}

static json_t *
energy_json(const struct meter_state *m)
{
	if (m->source == ENERGY_UNKNOWN)
		return json_pack("{sn si ss ss}", "source", "counters", 0, "file", m->path, "error", meter_error(m));
	return json_pack("{ss si ss ss}", "source", energy_source_name(m->source), "counters", (int)m->counters, "file", "",
	    "error", "");
}

static void
print_energy(const struct meter_state *m)
{
	if (m->source != ENERGY_UNKNOWN)
		printf("energy: %zu counter%s of %s, which only root may read, as a rule: the service gives them to its account "
		    "before it starts\n", m->counters, m->counters == 1 ? "" : "s", energy_source_name(m->source));
	else if (m->error == -ENODEV)
		printf("energy: not recorded: %s; `sluice tune --watts-per-cpu default` shows modelled figures\n", meter_error(m));
	else
		spell_line(stdout, "energy: not recorded: cannot read %s: %s\n", m->path, meter_error(m));
}

static void
print_findings_json(const struct findings *f)
{
	json_t *list = json_array(), *root;

	for (size_t i = 0; i < f->n_signals; i++)
		json_array_append_new(list, json_pack("{ss ss ss ss ss}", "name", f->signals[i].name, "state",
		    signal_state_name(f->signals[i].state), "hook", f->signals[i].hook, "fields", f->signals[i].fields,
		    "detail", f->signals[i].detail));
	root = json_pack("{ss ss ss ss so so so s{sb sb} s{sI sI} so}", "version", SLUICE_VERSION, "kernel", f->host.kernel,
	    "architecture", f->host.architecture, "host_id", f->host.id, "signals", list,
	    "librdkafka", kafka_json(&f->kafka), "privileges", privileges_json(f), "hosts_namespaces", "pid",
	    f->has_hosts_pids, "time", f->has_hosts_times, "sizes", "max_processes",
	    (json_int_t)f->sizes.max_processes, "ring_bytes", (json_int_t)f->sizes.ring_bytes, "energy", energy_json(&f->meter));
	print_json(stdout, root);
	json_decref(root);
}

static void
print_kafka(const struct kafka_library *kafka)
{
	const char *comma = "";

	printf("librdkafka %s:", kafka->version);
	for (size_t i = 0; i < kafka->n; i++) {
		if (kafka->abilities[i].works) {
			printf("%s %s", comma, kafka->abilities[i].name);
			comma = ",";
		}
	}
	putchar('\n');
	for (size_t i = 0; i < kafka->n; i++) {
		if (!kafka->abilities[i].works)
			spell_line(stdout, "librdkafka: no %s: %s\n", kafka->abilities[i].name, kafka->abilities[i].error);
	}
	if (!kafka->has_modern_scram)
		puts("librdkafka: SCRAM works with Kafka 3 but not with Kafka 4, which needs 2.6.1 or later: build sluice "
		    "with the one of dev/librdkafka");
}

static void
print_privileges(const struct findings *f)
{
	char name[32];

	fputs("privileges: the agent starts as root with", stdout);
	for (size_t i = 0; i < f->n_needs; i++)
		printf(" %s", privileges_names(PRIVILEGE(f->needs[i].cap), name, sizeof(name)));
	puts(f->maps_ask == 0 ? "; it keeps bpf alone, for new rules: nothing else needs it on this kernel" :
	    f->maps_ask == 1 ? "; it keeps bpf alone, which this kernel requires whenever a map is read" :
	    "; it keeps bpf alone");
	for (size_t i = 0; i < f->n_needs; i++) {
		if (!f->needs[i].is_held)
			printf("privileges: %s is not held here: it is %s to %s\n",
			    privileges_names(PRIVILEGE(f->needs[i].cap), name, sizeof(name)),
			    f->needs[i].is_must ? "needed" : "used", f->needs[i].purpose);
	}
}

static void
print_namespaces(const struct findings *f)
{
	if (!f->has_hosts_pids)
		puts("namespaces: this is a PID namespace of its own: `sluice run` works in it, and records the PIDs of the "
		    "host; `sluice agent` needs the host's (--pid=host, hostPID: true)");
	if (!f->has_hosts_times)
		puts("namespaces: this is a time namespace of its own: records have the times of the host");
}

static int
print_table(const struct findings *f)
{
	struct libscols_table *t = scols_new_table();
	const struct signal_status *signals = f->signals;

	printf("sluice %s on Linux %s %s, host_id %s (%s)\n\n", SLUICE_VERSION, f->host.kernel,
	    f->host.architecture, f->host.id, host_id_source_name(f->host.source));
	if (t == NULL)
		return -ENOMEM;
	scols_table_new_column(t, "signal", 0, 0);
	scols_table_new_column(t, "state", 0, 0);
	scols_table_new_column(t, "hook", 0, 0);
	scols_table_new_column(t, "serves", 0, 0);
	for (size_t i = 0; i < f->n_signals; i++) {
		struct libscols_line *line = scols_table_new_line(t, NULL);

		if (line == NULL)
			break;
		scols_line_set_data(line, 0, signals[i].name);
		scols_line_set_data(line, 1, signal_state_name(signals[i].state));
		scols_line_set_data(line, 2, signals[i].hook[0] != '\0' ? signals[i].hook : "-");
		scols_line_set_data(line, 3, signals[i].fields);
	}
	scols_print_table(t);
	scols_unref_table(t);
	putchar('\n');
	for (size_t i = 0; i < f->n_signals; i++) {
		if (signals[i].detail[0] != '\0')
			spell_line(stdout, "%s: %s\n", signals[i].name, signals[i].detail);
	}
	print_kafka(&f->kafka);
	print_privileges(f);
	print_energy(&f->meter);
	print_namespaces(f);
	printf("sizes: the agent follows up to %u processes at once, with a ring of %zu KiB, unless probes.max_processes and "
	    "probes.ring are set\n", f->sizes.max_processes, f->sizes.ring_bytes >> 10);
	return 0;
}

static void
find_meter(struct meter_state *ret)
{
	struct meter *m;

	*ret = (struct meter_state){ .error = -ENOMEM };
	if (meter_open("/sys", clock_ns(CLOCK_BOOTTIME), &m) < 0)
		return;
	meter_state(m, ret);
	meter_close(m);
}

/* Prints whether a user who is not root has own runs followed. */
static void
print_own_runs(void)
{
	char suffix[HOST_AGENT_SUFFIX_SIZE], error[512];
	int fd = host_agent_find(NULL, suffix, error, sizeof(error));

	if (fd >= 0)
		fputs("sluice doctor: this user needs no root for `sluice run`: an agent of this host follows its runs\n", stderr);
	else
		spell_line(stderr, "sluice doctor: `sluice run` needs root here, too: %s\n", error);
	if (fd >= 0)
		close(fd);
}

int
cli_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "self-test", no_argument, NULL, 's' },
		{ SELF_TEST_PART, required_argument, NULL, 'p' },	/* for itself alone */
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct probes_options probes_options = { 0 };
	struct findings f = { 0 };
	struct probes *probes;
	char error[768];
	bool as_json = false, tests_itself = false;
	size_t missing = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			tests_itself = true;
			break;
		case 'p':
			_exit(self_test_part(optarg));	/* what a sanitizer does at an exit is not of the tree */
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
		spell_line(stderr, "sluice doctor: takes no '%s'; see `sluice doctor --help`\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (geteuid() != 0) {
		fputs("sluice doctor: only root may load probes; run `sudo sluice doctor`\n", stderr);
		if (!tests_itself)
			print_own_runs();
		return EXIT_OWN_FAILURE;
	}
	if (tests_itself)
		return self_test(as_json);
	if (host_id_read("", &f.host) < 0)
		memset(&f.host, 0, sizeof(f.host));
	f.n_needs = privileges_needed(f.needs, PRIVILEGES_NEEDED);
	f.maps_ask = privileges_maps_ask();
	f.has_hosts_pids = namespace_is_hosts(NAMESPACE_PID);
	f.has_hosts_times = namespace_is_hosts(NAMESPACE_TIME);
	f.sizes = sizes_of_host();
	find_meter(&f.meter);
	if (probes_open(&probes_options, &probes, error, sizeof(error)) < 0) {
		spell_line(stderr, "sluice doctor: %s\n", error);
		return EXIT_OWN_FAILURE;
	}
	f.signals = probes_signals(probes, &f.n_signals);
	for (size_t i = 0; i < f.n_signals; i++)
		missing += f.signals[i].state == SIGNAL_MISSING;
	kafka_library_describe(&f.kafka);
	if (as_json)
		print_findings_json(&f);
	else
		print_table(&f);
	probes_close(probes);
	return missing > 0 ? EXIT_NO : EXIT_DONE;
}
