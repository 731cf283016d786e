/*
 * SPDX-License-Identifier: Apache-2.0
 * status as JSON: names as in the records' schemas, times in RFC 3339 in UTC, unknown values null.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "control/figures.h"

#define TEXT_MAX 1024

/* Converts any bytes; jansson refuses those that are not UTF-8. */
static json_t *
text(const char *s)
{
	char out[TEXT_ESCAPE_MAX(TEXT_MAX)];

	if (s == NULL)
		return json_null();
	text_escape(s, strlen(s), out, sizeof(out), NULL);
	return json_string(out);
}

/* Converts a text; "" means there is none. */
static json_t *
text_or_null(const char *s)
{
	return text(s != NULL && s[0] != '\0' ? s : NULL);
}

static json_t *
stamp(int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	char out[64];

	if (us <= 0 || gmtime_r(&seconds, &tm) == NULL)
		return json_null();
	strftime(out, sizeof(out), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + strlen(out), 16, ".%06dZ", (int)(us % 1000000));
	return json_string(out);
}

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *
optional(struct opt_u64 n)
{
	return n.known ? number(n.value) : json_null();
}

static json_t *
counts_json(const struct status_count *counts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{so so so}", "topic", text(topic_name(counts[i].topic)),
		    "reason", text(counts[i].reason), "count", number(counts[i].count)));
	return list;
}

static void
on_problem(enum status_severity severity, const char *sentence, void *arg)
{
	json_array_append_new(arg, json_pack("{ss so}", "severity",
	    severity == STATUS_ERROR ? "error" : "warning", "text", text(sentence)));
}

static json_t *
problems_json(const struct agent_status *s)
{
	json_t *list = json_array();

	status_problems(s, on_problem, list);
	return list;
}

static json_t *
signals_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_signals; i++)
		json_array_append_new(list, json_pack("{so so ss so}", "name", text(s->signals[i].name),
		    "hook", text_or_null(s->signals[i].hook),
		    "state", signal_state_name(s->signals[i].state),
		    "detail", text_or_null(s->signals[i].detail)));
	return list;
}

static json_t *
probes_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_probes; i++)
		json_array_append_new(list, json_pack("{so so so}", "name", text(s->probes[i].name), "runs",
		    status_probe_is_counted(&s->probes[i]) ? number(s->probes[i].runs) : json_null(),
		    "run_time_ns", optional(s->probes[i].run_time_ns)));
	return list;
}

static json_t *
records_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (int topic = 0; topic < TOPIC_COUNT; topic++) {
		uint64_t dead = 0;

		for (size_t i = 0; i < s->n_dead; i++)
			dead += s->dead[i].topic == (enum topic)topic ? s->dead[i].count : 0;
		json_array_append_new(list, json_pack("{ss so so so so}", "topic", topic_name((enum topic)topic),
		    "produced", number(s->topics[topic].produced),
		    "delivered", number(s->topics[topic].delivered),
		    "redelivered", number(s->topics[topic].redelivered),
		    "dead_letters", number(dead)));
	}
	return list;
}

static json_t *
dead_letters_json(const struct agent_status *s)
{
	return counts_json(s->dead, s->n_dead);
}

static json_t *
waiting_json(const struct agent_status *s)
{
	return counts_json(s->waiting, s->n_waiting);
}

static json_t *
dropped_json(const struct agent_status *s)
{
	return counts_json(s->dropped, s->n_dropped);
}

static json_t *
removed_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_removed; i++)
		json_array_append_new(list, json_pack("{so so so so}", "reason", text(s->removed[i].reason),
		    "files", number(s->removed[i].files), "records", number(s->removed[i].records),
		    "bytes", number(s->removed[i].bytes)));
	return list;
}

static json_t *
unknown_topics_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_unknown_topics; i++)
		json_array_append_new(list, json_pack("{so so so}", "topic", text(s->unknown_topics[i].topic),
		    "reason", text("unknown_topic"), "count", number(s->unknown_topics[i].records)));
	return list;
}

static json_t *
events_json(const struct agent_status *s)
{
	json_t *events = json_object();

	for (size_t i = 0; i < s->n_events; i++)
		json_object_set_new(events, s->events[i].name, number((uint64_t)s->events[i].value));
	return events;
}

static json_t *
lost_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_lost; i++)
		json_array_append_new(list, json_pack("{so so so}", "place", text(s->lost[i].place),
		    "reason", text(s->lost[i].reason), "count", number(s->lost[i].count)));
	return list;
}

static json_t *
limits_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_limits; i++)
		json_array_append_new(list, json_pack("{so so so}", "door", text(s->limits[i].door),
		    "reason", text(s->limits[i].reason), "count", number(s->limits[i].count)));
	return list;
}

static json_t *
lost_by_user_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_lost_by_user; i++) {
		const struct user_loss *l = &s->lost_by_user[i];

		json_array_append_new(list, json_pack("{so so so so}", "uid", number(l->uid), "refused", number(l->refused),
		    "lost", number(l->lost), "cut", number(l->cut)));
	}
	return list;
}

static const struct {
	const char *key;
	json_t *(*make)(const struct agent_status *s);
} lists[FIGURE_LISTS] = {
	[FIGURE_LIST_problems] = { "problems", problems_json },
	[FIGURE_LIST_signals] = { "signals", signals_json },
	[FIGURE_LIST_probes] = { "probes", probes_json },
	[FIGURE_LIST_events] = { "events", events_json },
	[FIGURE_LIST_records] = { "records", records_json },
	[FIGURE_LIST_dead_letters] = { "dead_letters", dead_letters_json },
	[FIGURE_LIST_lost] = { "lost", lost_json },
	[FIGURE_LIST_lost_by_user] = { "lost_by_user", lost_by_user_json },
	[FIGURE_LIST_waiting] = { "spool.waiting", waiting_json },
	[FIGURE_LIST_dropped] = { "spool.dropped", dropped_json },
	[FIGURE_LIST_removed] = { "lake.removed", removed_json },
	[FIGURE_LIST_limits] = { "doors.limits", limits_json },
	[FIGURE_LIST_unknown_topics] = { "spool.unknown_topics", unknown_topics_json },
};

/* Converts a figure's value; null if it is unknown. */
static json_t *
figure_json(const struct figure *f, const struct figure_value *v)
{
	if (!v->is_known)
		return json_null();
	switch (f->type) {
	case FIGURE_TEXT:
	case FIGURE_SENTENCE:
		return text(v->text);
	case FIGURE_TIME:
		return stamp((int64_t)v->number);
	case FIGURE_FLAG:
		return json_boolean(v->number != 0);
	case FIGURE_COUNT:
	case FIGURE_NUMBER:
	case FIGURE_MAYBE:
	case FIGURE_BYTES:
	case FIGURE_NS:
		break;
	}
	return number(v->number);
}

/*
 * Sets the member at path, such as "config.last_reload.time", and makes missing objects on the way. Takes the
 * reference to value.
 */
static int
set(json_t *object, const char *path, json_t *value)
{
	const char *dot;

	while ((dot = strchr(path, '.')) != NULL) {
		json_t *inner = json_object_getn(object, path, (size_t)(dot - path));

		if (inner == NULL) {
			inner = json_object();
			if (json_object_setn_new(object, path, (size_t)(dot - path), inner) < 0) {
				json_decref(value);
				return -1;
			}
		}
		object = inner;
		path = dot + 1;
	}
	return json_object_set_new(object, path, value);
}

struct json_t *
status_json(const struct agent_status *s)
{
	json_t *status = json_object();
	struct figure_value v;
	int r = status != NULL ? 0 : -1;

	for (const struct figure *f = figures; r == 0 && f < figures + n_figures; f++) {
		const char *key = f->list != FIGURE_NO_LIST ? lists[f->list].key : f->key;

		if (key == NULL)
			continue;
		if (!figure_part_exists(f->part, s)) {
			r = json_object_setn_new(status, key, strcspn(key, "."), json_null());
		} else if (f->list != FIGURE_NO_LIST) {
			r = set(status, key, lists[f->list].make(s));
		} else {
			figure_get(f, s, &v);
			r = set(status, key, figure_json(f, &v));
		}
	}
	/* The former name of "output". */
	if (r == 0)
		r = json_object_set(status, "outlet", json_object_get(status, "output"));
	if (r == 0)
		return status;
	json_decref(status);
	return NULL;
}
