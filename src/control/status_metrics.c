/*
 * SPDX-License-Identifier: Apache-2.0
 * status as metrics: Prometheus' text exposition format 0.0.4. Names end in their base unit (seconds, bytes),
 * counters in _total; a figure that is unknown has no sample, never 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/spell.h"
#include "control/figures.h"

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

/* Writes the head of a family; all its samples must follow. help has neither newline nor backslash. */
static void
family(struct writer *w, const char *name, const char *type, const char *help)
{
	w->family = name;
	putf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
label(struct writer *w, bool is_first, const char *name, const char *value)
{
	char spelt[SPELL_TEXT_MAX(LABEL_MAX)], one[2] = "";

	spell_lines(value, spelt, sizeof(spelt));	/* people read the page too, with curl(1) */
	putf(w, "%s%s=\"", is_first ? "{" : ",", name);
	for (const char *at = spelt; *at != '\0'; at++) {
		one[0] = *at;
		put(w, *at == '\\' ? "\\\\" : *at == '"' ? "\\\"" : *at == '\n' ? "\\n" : one);
	}
	put(w, "\"");
}

/* Writes a sample with up to two labels (name NULL: none). */
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

/* Formats exact decimals in every locale. */
static const char *
seconds(uint64_t ns, char buf[32])
{
	snprintf(buf, 32, "%" PRIu64 ".%09u", ns / 1000000000, (unsigned)(ns % 1000000000));
	return buf;
}

/*
 * One labelled counter of a list. Prometheus refuses a whole page that has the same labels twice, so their
 * values are added up.
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
put_signals(struct writer *w, const struct agent_status *s)
{
	family(w, "sluice_signal_up", "gauge", "1 when a hook of this kernel serves the signal, 0 when its fields are null.");
	for (size_t i = 0; i < s->n_signals; i++)
		count_of(w, "signal", s->signals[i].name, "hook", s->signals[i].hook,
		    s->signals[i].hook[0] != '\0');
}

static void
put_probes(struct writer *w, const struct agent_status *s)
{
	char buf[32];
	bool has_runs = false, has_times = false;

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
}

static void
put_events(struct writer *w, const struct agent_status *s)
{
	struct tally t[STATUS_EVENTS];

	family(w, "sluice_events_total", "counter", "Events that were seen, by kind.");
	for (size_t i = 0; i < s->n_events; i++)
		t[i] = (struct tally){ s->events[i].name, NULL, (uint64_t)s->events[i].value };
	tallies(w, "kind", NULL, t, s->n_events);
}

static void
put_lost(struct writer *w, const struct agent_status *s)
{
	struct tally *t = calloc(s->n_lost + 1, sizeof(*t));

	if (t == NULL) {
		w->error = -ENOMEM;
		return;
	}
	family(w, "sluice_lost_total", "counter", "Events and records that were lost, by place and reason.");
	for (size_t i = 0; i < s->n_lost; i++)
		t[i] = (struct tally){ s->lost[i].place, s->lost[i].reason, s->lost[i].count };
	tallies(w, "place", "reason", t, s->n_lost);
	free(t);
}

/* Their number is bounded, and so is that of the labels. */
static void
put_lost_by_user(struct writer *w, const struct agent_status *s)
{
	char uid[24];

	if (s->n_lost_by_user > 0)
		family(w, "sluice_user_lost_total", "counter", "What was lost of those users of whom most was lost, by user and "
		    "reason: refused programs, runs, tasks, facts and findings, lost events and records, what was cut, not read "
		    "or not judged.");
	for (size_t i = 0; i < s->n_lost_by_user; i++) {
		const struct user_loss *l = &s->lost_by_user[i];

		snprintf(uid, sizeof(uid), "%" PRIu64, l->uid);
		count_of(w, "uid", uid, "reason", "refused", l->refused);
		count_of(w, "uid", uid, "reason", "lost", l->lost);
		count_of(w, "uid", uid, "reason", "cut", l->cut);
	}
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
put_counts(struct writer *w, const char *name, const char *type, const char *help,
    const struct status_count *counts, size_t n)
{
	struct tally t[STATUS_COUNTS];

	family(w, name, type, help);
	for (size_t i = 0; i < n; i++)
		t[i] = (struct tally){ topic_name(counts[i].topic), counts[i].reason, counts[i].count };
	tallies(w, "topic", "reason", t, n);
}

static void
put_records(struct writer *w, const struct agent_status *s)
{
	put_topics(w, "sluice_records_produced_total", "Records that were given a sequence number.", s,
	    offsetof(struct status_topic, produced));
	put_topics(w, "sluice_records_delivered_total", "Records that have reached their destination.", s,
	    offsetof(struct status_topic, delivered));
	put_topics(w, "sluice_records_redelivered_total", "Records that were handed to the output again.", s,
	    offsetof(struct status_topic, redelivered));
}

static void
put_dead_letters(struct writer *w, const struct agent_status *s)
{
	put_counts(w, "sluice_records_dead_lettered_total", "counter", "Records that were refused for good.", s->dead,
	    s->n_dead);
}

static void
put_dropped(struct writer *w, const struct agent_status *s)
{
	put_counts(w, "sluice_spool_dropped_total", "counter", "Records that the spool dropped.", s->dropped,
	    s->n_dropped);
}

static void
put_waiting(struct writer *w, const struct agent_status *s)
{
	put_counts(w, "sluice_spool_waiting_records", "gauge",
	    "Records in the spool of each topic that the output does not take now, by reason.", s->waiting, s->n_waiting);
}

/* Writes one counter of what was removed. offset: of the figure. */
static void
put_removed_as(struct writer *w, const struct agent_status *s, const char *name, const char *help, size_t offset)
{
	family(w, name, "counter", help);
	for (size_t i = 0; i < s->n_removed; i++)
		count_of(w, "reason", s->removed[i].reason, NULL, NULL,
		    *(const uint64_t *)((const char *)&s->removed[i] + offset));
}

static void
put_removed(struct writer *w, const struct agent_status *s)
{
	put_removed_as(w, s, "sluice_lake_removed_files_total", "Old files that were removed from the lake, by reason.",
	    offsetof(struct status_removed, files));
	put_removed_as(w, s, "sluice_lake_removed_records_total", "Delivered records that they had.",
	    offsetof(struct status_removed, records));
	put_removed_as(w, s, "sluice_lake_removed_bytes_total", "Bytes that they had.",
	    offsetof(struct status_removed, bytes));
}

static void
put_unknown_topics(struct writer *w, const struct agent_status *s)
{
	family(w, "sluice_spool_unknown_topic_records", "gauge",
	    "Records of topics that this version does not know, kept for a later version.");
	for (size_t i = 0; i < s->n_unknown_topics; i++)
		count_of(w, "topic", s->unknown_topics[i].topic, NULL, NULL, s->unknown_topics[i].records);
}

static void
put_limits(struct writer *w, const struct agent_status *s)
{
	struct tally t[STATUS_LIMITS];

	family(w, "sluice_door_limits_total", "counter",
	    "Connections and requests that were refused, ended or made to wait, by door and reason.");
	for (size_t i = 0; i < s->n_limits; i++)
		t[i] = (struct tally){ s->limits[i].door, s->limits[i].reason, s->limits[i].count };
	tallies(w, "door", "reason", t, s->n_limits);
}

/* The list of problems has no metric: it is for people, and alerts judge the metrics that problems are derived from. */
static void (*const lists[FIGURE_LISTS])(struct writer *w, const struct agent_status *s) = {
	[FIGURE_LIST_signals] = put_signals,
	[FIGURE_LIST_probes] = put_probes,
	[FIGURE_LIST_events] = put_events,
	[FIGURE_LIST_records] = put_records,
	[FIGURE_LIST_dead_letters] = put_dead_letters,
	[FIGURE_LIST_lost] = put_lost,
	[FIGURE_LIST_lost_by_user] = put_lost_by_user,
	[FIGURE_LIST_waiting] = put_waiting,
	[FIGURE_LIST_dropped] = put_dropped,
	[FIGURE_LIST_removed] = put_removed,
	[FIGURE_LIST_unknown_topics] = put_unknown_topics,
	[FIGURE_LIST_limits] = put_limits,
};

static void
put_metric(struct writer *w, const struct agent_status *s, const struct figure *f, const char *name)
{
	struct figure_value v;
	char number[32];

	figure_get(f, s, &v);
	if (!v.is_known)
		return;
	if (w->family == NULL || strcmp(w->family, name) != 0)
		family(w, name, f->is_counter ? "counter" : "gauge", f->help);
	if (f->type == FIGURE_NS || f->type == FIGURE_TIME)
		seconds(f->type == FIGURE_NS ? v.number : v.number * 1000, number);
	else
		snprintf(number, sizeof(number), "%" PRIu64, v.number);
	sample(w, f->label[0], v.label[0], f->label[1], v.label[1], number);
}

int
status_metrics(const struct agent_status *s, struct bytes *out)
{
	static const enum figure_part order[] = { FIGURE_PART_agent, FIGURE_PART_process, FIGURE_PART_config,
		FIGURE_PART_seeing, FIGURE_PART_loss, FIGURE_PART_records, FIGURE_PART_spool, FIGURE_PART_output,
		FIGURE_PART_lake, FIGURE_PART_registry, FIGURE_PART_containers, FIGURE_PART_kubelet,
		FIGURE_PART_doors };
	struct writer w = { .out = out };

	_Static_assert(sizeof(order) / sizeof(order[0]) == FIGURE_PARTS, "each part has metrics");
	for (size_t i = 0; i < FIGURE_PARTS; i++) {
		for (const struct figure *f = figures; f < figures + n_figures; f++) {
			if (f->part != order[i] || !figure_part_exists(f->part, s))
				continue;
			if (f->metric != NULL)
				put_metric(&w, s, f, f->metric);
			else if (lists[f->list] != NULL)
				lists[f->list](&w, s);
			if (f->former_metric != NULL)
				put_metric(&w, s, f, f->former_metric);
		}
	}
	return w.error;
}
