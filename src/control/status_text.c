/*
 * SPDX-License-Identifier: Apache-2.0
 * status as text for people: what is wrong first, then one line a part, then the tables that have
 * something to say.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/format.h"
#include "control/status.h"

#define RED "\033[1;31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

enum {
	LINE_MAX_BYTES = 2048,
};

struct page {
	struct bytes *out;
	bool has_colour;
	int error;
	char number[8][FORMAT_SIZE];	/* a few at a time: see count() */
	unsigned next;
};

/* Appends; a control character from a path or an error text never reaches the terminal. */
static void __attribute__((format(printf, 2, 3)))
put(struct page *p, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *at = line; *at != '\0'; at++) {
		if ((unsigned char)*at < ' ' && *at != '\n')
			*at = '?';
	}
	if (p->error == 0)
		p->error = bytes_append(p->out, line, strlen(line));
}

static void
colour(struct page *p, const char *sequence)
{
	if (p->has_colour && p->error == 0)
		p->error = bytes_append(p->out, sequence, strlen(sequence));
}

static char *
room(struct page *p)
{
	return p->number[p->next++ % (sizeof(p->number) / sizeof(p->number[0]))];
}

static const char *
count(struct page *p, uint64_t n)
{
	return format_count(n, room(p), FORMAT_SIZE);
}

static const char *
size(struct page *p, uint64_t bytes)
{
	return format_bytes(bytes, room(p), FORMAT_SIZE);
}

static const char *
duration(struct page *p, uint64_t ns)
{
	return format_duration(ns, room(p), FORMAT_SIZE);
}

static const char *
ago(struct page *p, const struct agent_status *s, int64_t then_us)
{
	return duration(p, then_us < s->time_us ? (uint64_t)(s->time_us - then_us) * 1000 : 0);
}

static void
on_problem(enum status_severity severity, const char *sentence, void *arg)
{
	struct page *p = arg;

	colour(p, severity == STATUS_ERROR ? RED : YELLOW);
	put(p, "%s %s", severity == STATUS_ERROR ? "!!" : " !", sentence);
	colour(p, PLAIN);
	put(p, "\n");
}

static void
put_top(struct page *p, const struct agent_status *s)
{
	char reason[STATUS_PROBLEM_SIZE];
	bool is_ready = status_is_ready(s, reason, sizeof(reason));

	colour(p, is_ready ? GREEN : RED);
	put(p, "%s", s->is_stopping ? "stopping" : is_ready ? "delivering" : "not delivering");
	colour(p, PLAIN);
	put(p, "  sluice %s on %s, pid %" PRId64 ", up %s\n", s->version, s->host_name, s->pid,
	    duration(p, s->uptime_ns));
	status_problems(s, on_problem, p);
	put(p, "\n");
}

static void
put_parts(struct page *p, const struct agent_status *s)
{
	double share = s->uptime_ns > 0 ? (double)s->cpu_ns / (double)s->uptime_ns : 0;

	put(p, "%-12s", "settings");
	put(p, "%s, generation %" PRIu64, s->config_file != NULL ? s->config_file : "built in", s->generation);
	if (s->reload_us > 0)
		put(p, ", %s %s ago", s->reload_failed ? "a reload was refused" : "reloaded", ago(p, s, s->reload_us));
	put(p, "\n");

	put(p, "%-12s%s %s", "delivery", s->outlet.kind != NULL ? s->outlet.kind : "-",
	    status_outlet_state_name(s->outlet.state));
	put(p, ", %s in flight, %s queued, %s retried\n", count(p, s->outlet.in_flight),
	    size(p, s->outlet.queued_bytes), count(p, s->outlet.retried));
	if (s->outlet.error[0] != '\0')
		put(p, "%-12slast error %s ago: %s\n", "", ago(p, s, s->outlet.error_us), s->outlet.error);

	if (s->registry.state != STATUS_REGISTRY_NONE) {
		put(p, "%-12s%s, %s, %u of %u schemas known\n", "registry",
		    status_registry_state_name(s->registry.state), s->registry.url, s->registry.known,
		    s->registry.known + s->registry.wanted);
		if (s->registry.error[0] != '\0')
			put(p, "%-12slast error %s ago: %s\n", "", ago(p, s, s->registry.error_us),
			    s->registry.error);
	}

	put(p, "%-12s%s record%s, %s of %s", "spool", count(p, s->spool.records),
	    s->spool.records == 1 ? "" : "s", size(p, s->spool.bytes), size(p, s->spool.max_bytes));
	if (s->spool.records > 0)
		put(p, ", oldest %s", duration(p, status_oldest_age_ns(s)));
	if (s->spool.memory_bytes > 0)
		put(p, ", %s in memory", size(p, s->spool.memory_bytes));
	put(p, "\n");

	put(p, "%-12s%s process%s", "follows", count(p, s->followed), s->followed == 1 ? "" : "es");
	if (s->other_processes.known)
		put(p, ", %s others on this host", count(p, s->other_processes.value));
	put(p, "\n");
	if (s->containers.is_asked)
		put(p, "%-12s%s named, %s unknown, %s failed, %s refused, by %s questions\n", "containers",
		    count(p, s->containers.named), count(p, s->containers.unknown), count(p, s->containers.failed),
		    count(p, s->containers.refused), count(p, s->containers.requests));
	put(p, "%-12s%s CPU (%.2f%% of one), %s, %s open files\n", "itself", duration(p, s->cpu_ns), share * 100,
	    size(p, s->rss_bytes), count(p, s->open_fds));
	if (s->privileges != NULL)
		put(p, "%-12s%s\n", "privileges", s->privileges);
	put(p, "%-12sagent %s, host %s\n", "identity", s->agent_id, s->host_id);
}

static void
put_topics(struct page *p, const struct agent_status *s)
{
	put(p, "\n%-18s%12s%12s%12s%14s\n", "records", "produced", "delivered", "again", "dead letters");
	for (int topic = 0; topic < TOPIC_COUNT; topic++) {
		const struct status_topic *t = &s->topics[topic];
		uint64_t dead = 0;

		for (size_t i = 0; i < s->n_dead; i++)
			dead += s->dead[i].topic == (enum topic)topic ? s->dead[i].count : 0;
		if (t->produced == 0 && t->delivered == 0 && dead == 0)
			continue;
		put(p, "  %-16s%12s%12s%12s%14s\n", topic_name((enum topic)topic), count(p, t->produced),
		    count(p, t->delivered), count(p, t->redelivered), count(p, dead));
	}
}

static void
put_counts(struct page *p, const char *title, const struct status_count *counts, size_t n)
{
	if (n > 0)
		put(p, "\n%s\n", title);
	for (size_t i = 0; i < n; i++)
		put(p, "  %-16s%12s  %s\n", topic_name(counts[i].topic), count(p, counts[i].count),
		    counts[i].reason);
}

static void
put_lost(struct page *p, const struct agent_status *s)
{
	bool is_first = true;

	for (size_t i = 0; i < s->n_lost; i++) {
		if (s->lost[i].count == 0)
			continue;
		if (is_first)
			put(p, "\nlost\n");
		is_first = false;
		put(p, "  %-24s%12s  %s\n", s->lost[i].place, count(p, s->lost[i].count), s->lost[i].reason);
	}
}

static void
put_seeing(struct page *p, const struct agent_status *s)
{
	size_t counted = 0;

	if (s->n_signals > 0)
		put(p, "\n%-18s%-10s%s\n", "signals", "state", "hook");
	for (size_t i = 0; i < s->n_signals; i++) {
		const struct status_signal *signal = &s->signals[i];

		colour(p, signal->state == STATUS_SIGNAL_MISSING ? YELLOW : "");
		put(p, "  %-16s%-10s%s", signal->name, status_signal_state_name(signal->state),
		    signal->hook[0] != '\0' ? signal->hook : "-");
		colour(p, signal->state == STATUS_SIGNAL_MISSING ? PLAIN : "");
		put(p, "\n");
	}
	for (size_t i = 0; i < s->n_probes; i++)
		counted += status_probe_is_counted(&s->probes[i]);
	if (counted > 0)
		put(p, "\n%-26s%14s%12s\n", "programs", "runs", "a run");
	else if (s->n_probes > 0)
		put(p, "\n%-18s%zu; `sysctl kernel.bpf_stats_enabled=1` makes the kernel count what they cost\n",
		    "programs", s->n_probes);
	for (size_t i = 0; i < s->n_probes; i++) {
		const struct status_probe *probe = &s->probes[i];

		if (!status_probe_is_counted(probe))
			continue;
		put(p, "  %-24s%14s", probe->name, count(p, probe->runs));
		if (probe->run_time_ns.known && probe->runs > 0)
			put(p, "%9" PRIu64 " ns", probe->run_time_ns.value / probe->runs);
		put(p, "\n");
	}
}

int
status_text(const struct agent_status *s, bool has_colour, struct bytes *out)
{
	struct page p = { .out = out, .has_colour = has_colour };

	put_top(&p, s);
	put_parts(&p, s);
	put_topics(&p, s);
	put_counts(&p, "refused for good", s->dead, s->n_dead);
	put_counts(&p, "dropped by the spool", s->spool.dropped, s->spool.n_dropped);
	put_lost(&p, s);
	put_seeing(&p, s);
	return p.error;
}
