/*
 * SPDX-License-Identifier: Apache-2.0
 * status as text for people: problems first, then one line for each part, then the tables that are not empty.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/format.h"
#include "base/spell.h"
#include "control/figures.h"

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
	char number[8][FORMAT_SIZE];	/* a few are in use at a time: see count() */
	unsigned next;
};

/* Appends text, spelt out but for newlines: paths and error texts must not control the terminal. */
static void __attribute__((format(printf, 2, 3)))
put(struct page *p, const char *format, ...)
{
	char line[LINE_MAX_BYTES], spelt[SPELL_TEXT_MAX(LINE_MAX_BYTES)];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	spell_lines(line, spelt, sizeof(spelt));
	if (p->error == 0)
		p->error = bytes_append(p->out, spelt, strlen(spelt));
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
	put(p, "%s", s->agent.is_stopping ? "stopping" : is_ready ? "delivering" :
	    s->seeing.blind_reason != NULL ? "not seeing" : "not delivering");
	colour(p, PLAIN);
	put(p, "  sluice %s on %s, pid %" PRIu64 ", up %s\n", s->agent.version, s->agent.host_name, s->agent.pid,
	    duration(p, s->agent.uptime_ns));
	status_problems(s, on_problem, p);
	put(p, "\n");
}

static const char *
figure_text(struct page *p, const struct agent_status *s, const struct figure *f, const struct figure_value *v)
{
	uint64_t now_us = (uint64_t)s->agent.time_us;
	char *buf;

	if (!v->is_known)
		return f->otherwise;
	switch (f->type) {
	case FIGURE_TEXT:
	case FIGURE_SENTENCE:
		return v->text;
	case FIGURE_COUNT:
	case FIGURE_MAYBE:
		return count(p, v->number);
	case FIGURE_BYTES:
		return size(p, v->number);
	case FIGURE_NS:
		return duration(p, v->number);
	case FIGURE_TIME:
		return duration(p, v->number < now_us ? (now_us - v->number) * 1000 : 0);
	case FIGURE_FLAG:
		return v->number != 0 ? "yes" : "no";
	case FIGURE_NUMBER:
		break;
	}
	buf = room(p);
	snprintf(buf, FORMAT_SIZE, "%" PRIu64, v->number);
	return buf;
}

/* Writes the lines of a part; has_line: a line must be ended before the next. */
static void
put_part(struct page *p, const struct agent_status *s, enum figure_part part, bool *has_line)
{
	for (const struct figure *f = figures; f < figures + n_figures; f++) {
		struct figure_value v;
		const char *phrase, *text, *at;

		if (f->part != part || f->phrase == NULL || (f->is_shown != NULL && !f->is_shown(s)))
			continue;
		figure_get(f, s, &v);
		text = figure_text(p, s, f, &v);
		if (text == NULL)
			continue;
		if (f->line != NULL) {
			put(p, "%s%-12s", *has_line ? "\n" : "", f->line);
			*has_line = true;
		}
		phrase = f->phrase_many != NULL && v.number != 1 ? f->phrase_many : f->phrase;
		at = strstr(phrase, "%s");
		put(p, "%s%.*s%s%s", f->line != NULL || phrase[0] == ' ' ? "" : ", ", (int)(at - phrase), phrase, text,
		    at + strlen("%s"));
	}
}

static void
put_parts(struct page *p, const struct agent_status *s)
{
	static const enum figure_part order[] = { FIGURE_PART_config, FIGURE_PART_output, FIGURE_PART_registry,
		FIGURE_PART_lake, FIGURE_PART_spool, FIGURE_PART_seeing, FIGURE_PART_containers, FIGURE_PART_kubelet,
		FIGURE_PART_process, FIGURE_PART_agent };
	bool has_line = false;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (figure_part_exists(order[i], s))
			put_part(p, s, order[i], &has_line);
	}
	put(p, "\n");
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
put_limits(struct page *p, const struct agent_status *s)
{
	bool is_first = true;

	for (size_t i = 0; i < s->n_limits; i++) {
		if (s->limits[i].count == 0)
			continue;
		if (is_first)
			put(p, "\nlimits of doors\n");
		is_first = false;
		put(p, "  %-24s%12s  %s\n", s->limits[i].door, count(p, s->limits[i].count), s->limits[i].reason);
	}
}

static void
put_lost_by_user(struct page *p, const struct agent_status *s)
{
	if (s->n_lost_by_user > 0)
		put(p, "\n%-26s%12s%12s%12s\n", "lost of the user", "refused", "lost", "cut");
	for (size_t i = 0; i < s->n_lost_by_user; i++) {
		const struct user_loss *l = &s->lost_by_user[i];

		put(p, "  %-24" PRIu64 "%12s", l->uid, count(p, l->refused));
		put(p, "%12s", count(p, l->lost));
		put(p, "%12s\n", count(p, l->cut));
	}
}

static void
put_seeing(struct page *p, const struct agent_status *s)
{
	size_t counted = 0;

	if (s->n_signals > 0)
		put(p, "\n%-18s%-10s%s\n", "signals", "state", "hook");
	for (size_t i = 0; i < s->n_signals; i++) {
		const struct signal_status *signal = &s->signals[i];

		colour(p, signal->state == SIGNAL_MISSING ? YELLOW : "");
		put(p, "  %-16s%-10s%s", signal->name, signal_state_name(signal->state),
		    signal->hook[0] != '\0' ? signal->hook : "-");
		colour(p, signal->state == SIGNAL_MISSING ? PLAIN : "");
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
		const struct agent_probe *probe = &s->probes[i];

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
	put_counts(&p, "waits in the spool", s->waiting, s->n_waiting);
	put_counts(&p, "dropped by the spool", s->dropped, s->n_dropped);
	if (s->n_removed > 0)
		put(&p, "\nold files removed from the lake\n");
	for (size_t i = 0; i < s->n_removed; i++)
		put(&p, "  %-16s%12s records  %s\n", "", count(&p, s->removed[i].records), s->removed[i].reason);
	if (s->n_unknown_topics > 0)
		put(&p, "\nset aside for a later version\n");
	for (size_t i = 0; i < s->n_unknown_topics; i++)
		put(&p, "  %-16s%12s  unknown_topic\n", s->unknown_topics[i].topic, count(&p, s->unknown_topics[i].records));
	put_lost(&p, s);
	put_limits(&p, s);
	put_lost_by_user(&p, s);
	put_seeing(&p, s);
	return p.error;
}
