/*
 * SPDX-License-Identifier: Apache-2.0
 * status: the state of the agent as one plain value, whose figures are listed in figures.def, and its three
 * outputs: JSON for programs, text for people, metrics for Prometheus.
 *
 * The agent fills it on demand; nothing here reads anything. Pointers belong to the filler and must be valid
 * until the callback's caller is done with them, which is before the loop runs again.
 */
#ifndef SLUICE_CONTROL_STATUS_H
#define SLUICE_CONTROL_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health.h"
#include "model/record.h"

struct bytes;
struct json_t;

enum {
	STATUS_PROBES = 48,
	STATUS_EVENTS = 24,
	STATUS_COUNTS = 112,
	STATUS_UNKNOWN = 32,
	STATUS_REMOVED = 4,
	STATUS_LIMITS = 16,
	STATUS_PROBLEM_SIZE = 768,
};

struct status_count {
	enum topic topic;
	const char *reason;
	uint64_t count;
};

struct status_topic {
	uint64_t produced;		/* records that got a seq since the start */
	uint64_t delivered;
	uint64_t redelivered;		/* records that were handed to the output again */
};

/* What retention has removed from the lake, by reason. */
struct status_removed {
	const char *reason;
	uint64_t files;
	uint64_t records;
	uint64_t bytes;
};

/* Records of a topic that this version does not know, which the spool keeps for a later version. */
struct status_unknown {
	const char *topic;
	uint64_t records;
};

/* How often a limit of a door was reached: a connection or request was refused, ended or made to wait. */
struct status_limit {
	const char *door;		/* "control", "metrics", "run" */
	const char *reason;
	uint64_t count;
};

/* A struct for each part of figures.def, with its figures as members, and the lists. */
struct agent_status {
#define PART(part) struct {
#define END(part) } part;	/* NOLINT(bugprone-macro-parentheses): a member's name */
#define MEMBER(part, declaration) declaration;
#define FIGURE(part, member, type, ...) FIGURE_MEMBER_##type(member);
#define DERIVED(part, name, type, ...)
#define LIST(part, name)
#define FIGURE_MEMBER_TEXT(name) const char *name
#define FIGURE_MEMBER_SENTENCE(name) char name[512]
#define FIGURE_MEMBER_COUNT(name) uint64_t name
#define FIGURE_MEMBER_NUMBER(name) uint64_t name
#define FIGURE_MEMBER_MAYBE(name) struct opt_u64 name
#define FIGURE_MEMBER_BYTES(name) uint64_t name
#define FIGURE_MEMBER_NS(name) uint64_t name
#define FIGURE_MEMBER_TIME(name) int64_t name
#define FIGURE_MEMBER_FLAG(name) bool name
#include "control/figures.def"
#undef PART
#undef END
#undef MEMBER
#undef FIGURE
#undef DERIVED
#undef LIST

	const struct signal_status *signals;
	size_t n_signals;
	struct agent_probe probes[STATUS_PROBES];	/* counted by the kernel while kernel.bpf_stats_enabled is on */
	size_t n_probes;
	struct named_number events[STATUS_EVENTS];	/* by kind */
	size_t n_events;
	struct status_topic topics[TOPIC_COUNT];
	struct status_count dead[STATUS_COUNTS];	/* dead letters by topic and reason */
	size_t n_dead;
	const struct agent_loss *lost;
	size_t n_lost;
	struct user_loss lost_by_user[USER_LOSSES];
	size_t n_lost_by_user;
	struct status_count waiting[TOPIC_COUNT];	/* topics that the output takes none of now */
	size_t n_waiting;
	struct status_count dropped[STATUS_COUNTS];	/* records that the spool dropped */
	size_t n_dropped;
	struct status_removed removed[STATUS_REMOVED];
	size_t n_removed;
	struct status_unknown unknown_topics[STATUS_UNKNOWN];
	size_t n_unknown_topics;
	struct status_limit limits[STATUS_LIMITS];
	size_t n_limits;
};

/* Fills *s, which is zeroed before. */
typedef void (*status_fill)(struct agent_status *s, void *arg);

/* Returns true if the agent sees, and records reach their destination; if not, reason is a sentence why. */
bool status_is_ready(const struct agent_status *s, char *reason, size_t size);

/*
 * Returns the age of the oldest record that is queued; 0: none is. It is never negative, even if the clock was
 * set back.
 */
uint64_t status_oldest_age_ns(const struct agent_status *s);

enum status_severity {
	STATUS_ERROR,		/* records do not arrive, or are lost */
	STATUS_WARNING,
};

/* Calls cb with a sentence for each problem, worst first. */
void status_problems(const struct agent_status *s,
    void (*cb)(enum status_severity severity, const char *sentence, void *arg), void *arg);

/* Returns true if the kernel counted its runs. */
bool status_probe_is_counted(const struct agent_probe *p);

/* Returns the status as a new reference, or NULL if memory fails. Field names are a contract; see sluice(1). */
struct json_t *status_json(const struct agent_status *s);
/* Appends the status as text. Returns 0 or -ENOMEM. */
int status_text(const struct agent_status *s, bool has_colour, struct bytes *out);
/* Appends the metrics in Prometheus' text exposition format, version 0.0.4. Returns 0 or -ENOMEM. */
int status_metrics(const struct agent_status *s, struct bytes *out);

#endif
