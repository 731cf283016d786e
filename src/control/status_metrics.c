/*
 * SPDX-License-Identifier: Apache-2.0
 * status as metrics: Prometheus' text exposition format 0.0.4. Names end in their base unit
 * (seconds, bytes), counters in _total; a figure that is not known has no sample, never 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "control/status.h"

enum {
	LABEL_MAX = 256,	/* bytes of a label's value, before escaping */
};

struct writer {
	struct bytes *out;
	const char *family;
	int error;
};

static void
put(struct writer *w, const char *s)
{
	int r = w->error == 0 ? bytes_append(w->out, s, strlen(s)) : 0;

	if (r < 0)
		w->error = r;
}

static void __attribute__((format(printf, 2, 3)))
putf(struct writer *w, const char *format, ...)
{
	char buf[512];
	va_list args;

	va_start(args, format);
	vsnprintf(buf, sizeof(buf), format, args);
	va_end(args);
	put(w, buf);
}

/* All samples of a family must follow its head. help holds neither newline nor backslash. */
static void
family(struct writer *w, const char *name, const char *type, const char *help)
{
	w->family = name;
	putf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
label(struct writer *w, bool is_first, const char *name, const char *value)
{
	char utf8[TEXT_ESCAPE_MAX(LABEL_MAX)], one[2] = "";

	text_escape(value, strlen(value), utf8, sizeof(utf8), NULL);
	putf(w, "%s%s=\"", is_first ? "{" : ",", name);
	for (const char *at = utf8; *at != '\0'; at++) {
		one[0] = *at;
		put(w, *at == '\\' ? "\\\\" : *at == '"' ? "\\\"" : *at == '\n' ? "\\n" : one);
	}
	put(w, "\"");
}

/* A sample with up to two labels (name NULL: none). */
static void
sample(struct writer *w, const char *name1, const char *value1, const char *name2, const char *value2,
    const char *number)
{
	put(w, w->family);
	if (name1 != NULL)
		label(w, true, name1, value1);
	if (name2 != NULL)
		label(w, false, name2, value2);
	putf(w, "%s %s\n", name1 != NULL ? "}" : "", number);
}

static void
count_of(struct writer *w, const char *name1, const char *value1, const char *name2, const char *value2,
    uint64_t n)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64, n);
	sample(w, name1, value1, name2, value2, number);
}

static void
count(struct writer *w, uint64_t n)
{
	count_of(w, NULL, NULL, NULL, NULL, n);
}

/* Exact decimals, whatever the locale. */
static const char *
seconds(uint64_t ns, char buf[32])
{
	snprintf(buf, 32, "%" PRIu64 ".%09u", ns / 1000000000, (unsigned)(ns % 1000000000));
	return buf;
}

/*
 * One labelled counter, as the fillers give them. The same labels twice would make Prometheus refuse
 * the whole page, so those are added up.
 */
struct tally {
	const char *value1;
	const char *value2;
	uint64_t n;
};

static void
tallies(struct writer *w, const char *name1, const char *name2, struct tally *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (t[i].value1 == NULL)
			continue;	/* added to an earlier one */
		for (size_t j = i + 1; j < n; j++) {
			if (t[j].value1 == NULL || strcmp(t[i].value1, t[j].value1) != 0 ||
			    (name2 != NULL && strcmp(t[i].value2, t[j].value2) != 0))
				continue;
			t[i].n += t[j].n;
			t[j].value1 = NULL;
		}
		count_of(w, name1, t[i].value1, name2, t[i].value2, t[i].n);
	}
}

static void
put_agent(struct writer *w, const struct agent_status *s)
{
	char buf[32], reason[STATUS_PROBLEM_SIZE];

	family(w, "sluice_build_info", "gauge", "1; the version is its label.");
	sample(w, "version", s->version, NULL, NULL, "1");
	family(w, "sluice_agent_info", "gauge", "1; the agent and its host are its labels.");
	sample(w, "agent_id", s->agent_id, "host_id", s->host_id, "1");
	family(w, "sluice_ready", "gauge", "1 while records reach the place where they are to rest.");
	count(w, status_is_ready(s, reason, sizeof(reason)));
	family(w, "process_cpu_seconds_total", "counter", "CPU time of the agent, user and system.");
	sample(w, NULL, NULL, NULL, NULL, seconds(s->cpu_ns, buf));
	family(w, "process_resident_memory_bytes", "gauge", "Resident memory of the agent.");
	count(w, s->rss_bytes);
	family(w, "process_start_time_seconds", "gauge", "When the agent started, since 1970.");
	sample(w, NULL, NULL, NULL, NULL, seconds((uint64_t)s->start_us * 1000, buf));
	family(w, "process_open_fds", "gauge", "Open file descriptors of the agent.");
	count(w, s->open_fds);
	family(w, "sluice_config_generation", "gauge", "Number of the configuration in use; grows by 1 at each reload that worked.");
	count(w, s->generation);
	family(w, "sluice_config_last_reload_successful", "gauge", "0 when the last reload was refused.");
	count(w, !s->reload_failed);
	if (s->reload_us > 0) {
		family(w, "sluice_config_last_reload_timestamp_seconds", "gauge", "When a reload was last tried.");
		sample(w, NULL, NULL, NULL, NULL, seconds((uint64_t)s->reload_us * 1000, buf));
	}
}

static void
put_seeing(struct writer *w, const struct agent_status *s)
{
	struct tally t[STATUS_LOSSES];	/* the longest of the lists */
	char buf[32];
	bool has_runs = false, has_times = false;

	family(w, "sluice_signal_up", "gauge", "1 when a hook of this kernel serves the signal, 0 when its fields are null.");
	for (size_t i = 0; i < s->n_signals; i++)
		count_of(w, "signal", s->signals[i].name, "hook", s->signals[i].hook,
		    s->signals[i].state != STATUS_SIGNAL_MISSING);
	for (size_t i = 0; i < s->n_probes; i++) {
		has_runs |= status_probe_is_counted(&s->probes[i]);
		has_times |= s->probes[i].run_time_ns.known;
	}
	if (has_runs)
		family(w, "sluice_probe_runs_total", "counter", "Runs of each BPF program; needs kernel.bpf_stats_enabled.");
	for (size_t i = 0; i < s->n_probes; i++) {
		if (status_probe_is_counted(&s->probes[i]))
			count_of(w, "probe", s->probes[i].name, NULL, NULL, s->probes[i].runs);
	}
	if (has_times)
		family(w, "sluice_probe_run_seconds_total", "counter", "Time spent in each BPF program; needs kernel.bpf_stats_enabled.");
	for (size_t i = 0; i < s->n_probes; i++) {
		if (s->probes[i].run_time_ns.known)
			sample(w, "probe", s->probes[i].name, NULL, NULL, seconds(s->probes[i].run_time_ns.value, buf));
	}
	family(w, "sluice_events_total", "counter", "What was seen, by kind.");
	for (size_t i = 0; i < s->n_events; i++)
		t[i] = (struct tally){ s->events[i].kind, NULL, s->events[i].count };
	tallies(w, "kind", NULL, t, s->n_events);
	family(w, "sluice_followed_processes", "gauge", "Processes that the kernel side follows now.");
	count(w, s->followed);
	family(w, "sluice_lost_total", "counter", "Events and records that were lost, by place and reason.");
	for (size_t i = 0; i < s->n_lost; i++)
		t[i] = (struct tally){ s->lost[i].place, s->lost[i].reason, s->lost[i].count };
	tallies(w, "place", "reason", t, s->n_lost);
}

static void
put_topics(struct writer *w, const char *name, const char *help, const struct agent_status *s, size_t offset)
{
	family(w, name, "counter", help);
	for (int topic = 0; topic < TOPIC_COUNT; topic++)
		count_of(w, "topic", topic_name((enum topic)topic), NULL, NULL,
		    *(const uint64_t *)((const char *)&s->topics[topic] + offset));
}

static void
put_counts(struct writer *w, const char *name, const char *help, const struct status_count *counts, size_t n)
{
	struct tally t[STATUS_COUNTS];

	family(w, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		t[i] = (struct tally){ topic_name(counts[i].topic), counts[i].reason, counts[i].count };
	tallies(w, "topic", "reason", t, n);
}

static void
put_delivery(struct writer *w, const struct agent_status *s)
{
	char buf[32];

	put_topics(w, "sluice_records_produced_total", "Records that were given a sequence number.", s,
	    offsetof(struct status_topic, produced));
	put_topics(w, "sluice_records_delivered_total", "Records that rest where they are to rest.", s,
	    offsetof(struct status_topic, delivered));
	put_topics(w, "sluice_records_redelivered_total", "Records that were handed over once more.", s,
	    offsetof(struct status_topic, redelivered));
	put_counts(w, "sluice_records_dead_lettered_total", "Records that were refused for good.", s->dead, s->n_dead);

	family(w, "sluice_spool_records", "gauge", "Records that wait in the spool.");
	count(w, s->spool.records);
	family(w, "sluice_spool_bytes", "gauge", "Bytes that the spool takes up.");
	count(w, s->spool.bytes);
	family(w, "sluice_spool_limit_bytes", "gauge", "Bytes that the spool may take up.");
	count(w, s->spool.max_bytes);
	family(w, "sluice_spool_memory_bytes", "gauge", "Bytes of the spool that are held in memory for want of a disk.");
	count(w, s->spool.memory_bytes);
	family(w, "sluice_spool_oldest_age_seconds", "gauge", "Age of the record that waits longest, 0 when none waits.");
	sample(w, NULL, NULL, NULL, NULL, seconds(status_oldest_age_ns(s), buf));
	family(w, "sluice_spool_writable", "gauge", "0 while the spool's disk takes nothing.");
	count(w, s->spool.disk_error == 0);
	put_counts(w, "sluice_spool_dropped_total", "Records that the spool gave up.", s->spool.dropped, s->spool.n_dropped);

	family(w, "sluice_outlet_up", "gauge", "1 while the outlet delivers.");
	count_of(w, "kind", s->outlet.kind != NULL ? s->outlet.kind : "", NULL, NULL,
	    s->outlet.state == STATUS_OUTLET_UP);
	family(w, "sluice_outlet_in_flight_records", "gauge", "Records handed over and not yet acknowledged.");
	count(w, s->outlet.in_flight);
	family(w, "sluice_outlet_queued_bytes", "gauge", "Bytes that the outlet holds in memory.");
	count(w, s->outlet.queued_bytes);
	family(w, "sluice_outlet_retried_total", "counter", "Deliveries that the outlet tried again.");
	count(w, s->outlet.retried);
	if (s->registry.state == STATUS_REGISTRY_NONE)
		return;
	family(w, "sluice_registry_up", "gauge", "0 while the schema registry is away or refuses.");
	count(w, s->registry.state != STATUS_REGISTRY_AWAY && s->registry.state != STATUS_REGISTRY_REFUSED);
	family(w, "sluice_registry_schemas_known", "gauge", "Schemas whose id is known.");
	count(w, s->registry.known);
	family(w, "sluice_registry_schemas_wanted", "gauge", "Schemas whose id was asked for and is not known.");
	count(w, s->registry.wanted);
}

static void
put_containers(struct writer *w, const struct agent_status *s)
{
	if (!s->containers.is_asked)
		return;
	family(w, "sluice_container_name_requests_total", "counter", "Questions to container runtimes for names and images.");
	count(w, s->containers.requests);
	family(w, "sluice_container_names_total", "counter", "Containers whose name was asked for, by what came of it.");
	count_of(w, "result", "named", NULL, NULL, s->containers.named);
	count_of(w, "result", "unknown", NULL, NULL, s->containers.unknown);
	count_of(w, "result", "failed", NULL, NULL, s->containers.failed);
	count_of(w, "result", "refused", NULL, NULL, s->containers.refused);
}

int
status_metrics(const struct agent_status *s, struct bytes *out)
{
	struct writer w = { .out = out };

	put_agent(&w, s);
	put_seeing(&w, s);
	put_delivery(&w, s);
	put_containers(&w, s);
	return w.error;
}
