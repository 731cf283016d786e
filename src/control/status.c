/*
 * SPDX-License-Identifier: Apache-2.0
 * status: derives from the figures whether the agent is ready, and its problems.
 */
#include "control/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "base/format.h"

/* From this share on the spool is a problem, before it is full. */
#define SPOOL_FULL_SHARE 0.8
/* A disk with less room is full, and its error is shown beside its floor. */
#define DISK_IS_FULL_BELOW (UINT64_C(16) << 20)

bool
status_probe_is_counted(const struct agent_probe *p)
{
	return p->run_time_ns.known || p->runs > 0;
}

uint64_t
status_oldest_age_ns(const struct agent_status *s)
{
	if (s->spool.records == 0 || s->spool.oldest_us <= 0 || s->spool.oldest_us >= s->agent.time_us)
		return 0;
	return (uint64_t)(s->agent.time_us - s->spool.oldest_us) * 1000;
}

bool
status_is_ready(const struct agent_status *s, char *reason, size_t size)
{
	const char *kind = s->output.kind != NULL ? s->output.kind : "the output";

	if (size > 0)
		reason[0] = '\0';
	if (s->agent.is_stopping) {
		snprintf(reason, size, "the agent is stopping");
		return false;
	}
	if (s->seeing.blind_reason != NULL) {
		snprintf(reason, size, "%s", s->seeing.blind_reason);
		return false;
	}
	/* The registry first: without any id the output cannot have delivered any record. */
	switch (s->registry.state) {
	case REGISTRY_UNUSED:
	case REGISTRY_IDLE:
	case REGISTRY_OK:
		break;
	case REGISTRY_ASKING:
	case REGISTRY_AWAY:
	case REGISTRY_REFUSED:
		if (s->registry.wanted == 0)
			break;	/* every id that is needed is known */
		if (s->registry.known > 0 && s->output.state == OUTPUT_UP)
			break;	/* only the topics wait whose schemas have no id */
		snprintf(reason, size, "the schema registry at %s %s, %" PRIu64 " of %" PRIu64 " schema ids are missing%s%s",
		    s->registry.url,
		    s->registry.state == REGISTRY_ASKING ? "has not answered yet" :
		    s->registry.state == REGISTRY_AWAY ? "is away" : "refuses",
		    s->registry.wanted, s->registry.wanted + s->registry.known,
		    s->registry.error[0] != '\0' ? ": " : "", s->registry.error);
		return false;
	}
	switch (s->output.state) {
	case OUTPUT_UP:
		return true;
	case OUTPUT_STARTING:
		snprintf(reason, size, "%s: nothing has been delivered yet%s%s", kind,
		    s->output.error[0] != '\0' ? ": " : "", s->output.error);
		return false;
	case OUTPUT_DOWN:
		break;
	}
	snprintf(reason, size, "%s is down%s%s", kind, s->output.error[0] != '\0' ? ": " : "", s->output.error);
	return false;
}

static uint64_t
sum(const struct status_count *counts, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += counts[i].count;
	return total;
}

static double
spool_share(const struct agent_status *s)
{
	return (double)s->spool.bytes / (double)s->spool.max_bytes;
}

/* Formats "3 records", "1 record". */
static const char *
some_records(uint64_t n, char *buf, size_t size)
{
	char number[FORMAT_SIZE];

	snprintf(buf, size, "%s record%s", format_count(n, number, sizeof(number)), n == 1 ? "" : "s");
	return buf;
}

/* Returns whether the spool has no room because it leaves it to others: at its floor it does not try to write. */
static bool
is_kept_free(const struct agent_status *s)
{
	return s->spool.disk_error == -ENOSPC && s->spool.is_at_floor && s->spool.free_bytes >= DISK_IS_FULL_BELOW;
}

void
status_problems(const struct agent_status *s,
    void (*cb)(enum status_severity severity, const char *sentence, void *arg), void *arg)
{
	char text[STATUS_PROBLEM_SIZE + 256], reason[STATUS_PROBLEM_SIZE], a[64], b[64];
	uint64_t n;

	if (!status_is_ready(s, reason, sizeof(reason))) {
		/* An output that is just starting is no error yet. */
		bool is_young = s->output.state == OUTPUT_STARTING && s->output.error[0] == '\0' &&
		    s->agent.uptime_ns < UINT64_C(30000000000);

		snprintf(text, sizeof(text), "%s: %s", s->seeing.blind_reason != NULL ? "not seeing" : "not delivering", reason);
		cb(is_young || s->agent.is_stopping ? STATUS_WARNING : STATUS_ERROR, text, arg);
	}
	for (size_t i = 0; i < s->n_waiting; i++) {
		bool is_schema = strncmp(s->waiting[i].reason, "schema", strlen("schema")) == 0;
		const char *error = is_schema ? s->registry.error : s->output.error;

		snprintf(text, sizeof(text), "%s waits, with %s in the spool: %s%s%s", topic_name(s->waiting[i].topic),
		    some_records(s->waiting[i].count, a, sizeof(a)), s->waiting[i].reason, error[0] != '\0' ? ": " : "",
		    error);
		cb(STATUS_ERROR, text, arg);
	}
	if (s->spool.disk_error != 0 && !is_kept_free(s)) {
		snprintf(text, sizeof(text),
		    "writes to the spool's disk fail: %s (%s); %s are held in memory and would be lost with the agent",
		    disk_error_text(s->spool.disk_error), s->spool.dir != NULL ? s->spool.dir : "?",
		    format_bytes(s->spool.memory_bytes, a, sizeof(a)));
		cb(STATUS_ERROR, text, arg);
	}
	if (s->spool.is_at_floor) {
		char held[128] = "";

		if (is_kept_free(s) && s->spool.memory_bytes > 0)
			snprintf(held, sizeof(held), ". %s are held in memory and would be lost with the agent",
			    format_bytes(s->spool.memory_bytes, a, sizeof(a)));
		snprintf(text, sizeof(text), "disk_floor: the disk of the spool %s has %s free, of which disk_free_min keeps "
		    "%s: the spool does not grow, and its oldest records give way if they are not delivered; free some room "
		    "there, or lower disk_free_min%s", s->spool.dir != NULL ? s->spool.dir : "?",
		    format_bytes(s->spool.free_bytes, a, sizeof(a)), format_bytes(s->spool.floor_bytes, b, sizeof(b)),
		    held);
		cb(STATUS_ERROR, text, arg);
	}
	n = sum(s->dropped, s->n_dropped);
	if (n > 0) {
		snprintf(text, sizeof(text), "%s were dropped by the spool, which holds %s at most%s",
		    some_records(n, a, sizeof(a)), format_bytes(s->spool.max_bytes, b, sizeof(b)),
		    s->spool.is_at_floor ? ", and less now, because of disk_free_min" : "");
		cb(STATUS_ERROR, text, arg);
	}
	n = 0;
	for (size_t i = 0; i < s->n_unknown_topics; i++)
		n += s->unknown_topics[i].records;
	if (n > 0) {
		snprintf(text, sizeof(text), "%s of topics that this version does not know are set aside for a later version",
		    some_records(n, a, sizeof(a)));
		cb(STATUS_WARNING, text, arg);
	}
	n = sum(s->dead, s->n_dead);
	if (n > 0) {
		snprintf(text, sizeof(text), "%s were refused for good: see `sluice dead-letters list`",
		    some_records(n, a, sizeof(a)));
		cb(STATUS_ERROR, text, arg);
	}
	if (s->config.reload_failed) {
		snprintf(text, sizeof(text), "the last reload failed, generation %" PRIu64 " stays in use: %s",
		    s->config.generation,
		    s->config.reload_error != NULL ? s->config.reload_error : "no reason known");
		cb(STATUS_ERROR, text, arg);
	}
	if (s->doors.metrics_error != NULL) {
		snprintf(text, sizeof(text), "no metrics at %s; what is read there is not the agent's", s->doors.metrics_error);
		cb(STATUS_ERROR, text, arg);
	}
	if (s->output.warning[0] != '\0')
		cb(STATUS_WARNING, s->output.warning, arg);
	n = 0;
	for (size_t i = 0; i < s->n_lost; i++)
		n += s->lost[i].count;
	if (n > 0) {
		snprintf(text, sizeof(text), "%s events or records were lost since the start, see below",
		    format_count(n, a, sizeof(a)));
		cb(STATUS_WARNING, text, arg);
	}
	if (s->spool.max_bytes > 0 && spool_share(s) >= SPOOL_FULL_SHARE) {
		snprintf(text, sizeof(text), "the spool is %s full", format_percent(spool_share(s), a, sizeof(a)));
		cb(STATUS_WARNING, text, arg);
	}
	if (s->seeing.canary_error != 0) {
		snprintf(text, sizeof(text), "whether the probes see is not proved: the agent cannot fork a child: %s",
		    strerror(s->seeing.canary_error));
		cb(STATUS_WARNING, text, arg);
	}
	if (s->seeing.gaps > 0) {
		snprintf(text, sizeof(text), "since the start the agent did not see for %s in all, in %s gap%s; each has a GAP record",
		    format_duration(s->seeing.gaps_ns, a, sizeof(a)), format_count(s->seeing.gaps, b, sizeof(b)),
		    s->seeing.gaps == 1 ? "" : "s");
		cb(STATUS_WARNING, text, arg);
	}
	if (s->config.restart_wanted != NULL) {
		snprintf(text, sizeof(text), "these settings need a restart: %s", s->config.restart_wanted);
		cb(STATUS_WARNING, text, arg);
	}
	for (size_t i = 0; i < s->n_signals; i++) {
		if (s->signals[i].state != SIGNAL_MISSING)
			continue;
		snprintf(text, sizeof(text), "%s is missing%s%s", s->signals[i].name,
		    s->signals[i].detail[0] != '\0' ? ": " : "", s->signals[i].detail);
		cb(STATUS_WARNING, text, arg);
	}
}
