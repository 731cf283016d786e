/*
 * SPDX-License-Identifier: Apache-2.0
 * status as JSON: names as in the records' schemas, times RFC 3339 in UTC, what is unknown null.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "control/status.h"

#define TEXT_MAX 1024

/* Any bytes; jansson refuses what is not UTF-8. */
static json_t *
text(const char *s)
{
	char out[TEXT_ESCAPE_MAX(TEXT_MAX)];

	if (s == NULL)
		return json_null();
	text_escape(s, strlen(s), out, sizeof(out), NULL);
	return json_string(out);
}

/* "" is "there is none". */
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
config_json(const struct agent_status *s)
{
	const char *result = s->reload_us == 0 ? NULL : s->reload_failed ? "failed" : "ok";

	return json_pack("{so so so s{so so so}}",
	    "file", text(s->config_file),
	    "generation", number(s->generation),
	    "restart_wanted", text(s->restart_wanted),
	    "last_reload",
	    "time", stamp(s->reload_us),
	    "result", text(result),
	    "error", text(s->reload_failed ? s->reload_error : NULL));
}

static json_t *
signals_json(const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_signals; i++)
		json_array_append_new(list, json_pack("{so so ss so}", "name", text(s->signals[i].name),
		    "hook", text_or_null(s->signals[i].hook),
		    "state", status_signal_state_name(s->signals[i].state),
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
topics_json(const struct agent_status *s)
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
spool_json(const struct agent_status *s)
{
	return json_pack("{so so so so so so so so so}",
	    "dir", text(s->spool.dir),
	    "records", number(s->spool.records),
	    "bytes", number(s->spool.bytes),
	    "max_bytes", number(s->spool.max_bytes),
	    "memory_bytes", number(s->spool.memory_bytes),
	    "oldest_time", s->spool.records > 0 ? stamp(s->spool.oldest_us) : json_null(),
	    "oldest_age_ns", number(status_oldest_age_ns(s)),
	    "disk_error", text(s->spool.disk_error != 0 ? strerror(-s->spool.disk_error) : NULL),
	    "dropped", counts_json(s->spool.dropped, s->spool.n_dropped));
}

static json_t *
outlet_json(const struct agent_status *s)
{
	return json_pack("{so ss so so so so so}",
	    "kind", text(s->outlet.kind),
	    "state", status_outlet_state_name(s->outlet.state),
	    "last_error", text_or_null(s->outlet.error),
	    "last_error_time", stamp(s->outlet.error_us),
	    "in_flight", number(s->outlet.in_flight),
	    "queued_bytes", number(s->outlet.queued_bytes),
	    "retried", number(s->outlet.retried));
}

static json_t *
registry_json(const struct agent_status *s)
{
	if (s->registry.state == STATUS_REGISTRY_NONE)
		return json_null();
	return json_pack("{ss so so so so so}",
	    "state", status_registry_state_name(s->registry.state),
	    "url", text_or_null(s->registry.url),
	    "last_error", text_or_null(s->registry.error),
	    "last_error_time", stamp(s->registry.error_us),
	    "known", number(s->registry.known),
	    "wanted", number(s->registry.wanted));
}

static json_t *
containers_json(const struct agent_status *s)
{
	if (!s->containers.is_asked)
		return json_null();
	return json_pack("{so so so so so}",
	    "requests", number(s->containers.requests),
	    "named", number(s->containers.named),
	    "unknown", number(s->containers.unknown),
	    "failed", number(s->containers.failed),
	    "refused", number(s->containers.refused));
}

struct json_t *
status_json(const struct agent_status *s)
{
	char reason[STATUS_PROBLEM_SIZE];
	bool is_ready = status_is_ready(s, reason, sizeof(reason));
	json_t *problems = json_array(), *events = json_object(), *lost = json_array();

	status_problems(s, on_problem, problems);
	for (size_t i = 0; i < s->n_events; i++)
		json_object_set_new(events, s->events[i].kind, number(s->events[i].count));
	for (size_t i = 0; i < s->n_lost; i++)
		json_array_append_new(lost, json_pack("{so so so}", "place", text(s->lost[i].place),
		    "reason", text(s->lost[i].reason), "count", number(s->lost[i].count)));
	/* json_pack() frees what it was handed when it fails. */
	return json_pack("{so sI so so so so so so sb so so so so so so so so so so so so so so so s{so so so so}}",
	    "version", text(s->version),
	    "pid", (json_int_t)s->pid,
	    "agent_id", text(s->agent_id),
	    "host_id", text(s->host_id),
	    "host_name", text(s->host_name),
	    "time", stamp(s->time_us),
	    "start_time", stamp(s->start_us),
	    "uptime_ns", number(s->uptime_ns),
	    "ready", is_ready,
	    "not_ready_reason", text_or_null(reason),
	    "problems", problems,
	    "config", config_json(s),
	    "signals", signals_json(s),
	    "probes", probes_json(s),
	    "events", events,
	    "followed_processes", number(s->followed),
	    "other_processes", optional(s->other_processes),
	    "records", topics_json(s),
	    "dead_letters", counts_json(s->dead, s->n_dead),
	    "lost", lost,
	    "spool", spool_json(s),
	    "outlet", outlet_json(s),
	    "registry", registry_json(s),
	    "containers", containers_json(s),
	    "process",
	    "cpu_ns", number(s->cpu_ns),
	    "rss_bytes", number(s->rss_bytes),
	    "open_fds", number(s->open_fds),
	    "privileges", text(s->privileges));
}
