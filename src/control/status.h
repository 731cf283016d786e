/*
 * SPDX-License-Identifier: Apache-2.0
 * status: how the agent is, as one plain value, and the three ways to say it: JSON for programs, text
 * for people, metrics for Prometheus.
 *
 * The agent fills it on demand; nothing here reads anything. A const char * is the filler's and must
 * live until the callback's caller is done with it, which is before the loop turns.
 */
#ifndef SLUICE_CONTROL_STATUS_H
#define SLUICE_CONTROL_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct bytes;
struct json_t;

enum {
	STATUS_SIGNALS = 24,
	STATUS_PROBES = 48,
	STATUS_EVENTS = 24,
	STATUS_LOSSES = 96,
	STATUS_COUNTS = 32,
	STATUS_PROBLEM_SIZE = 768,
};

enum status_outlet_state {
	STATUS_OUTLET_STARTING,		/* nothing has been delivered yet */
	STATUS_OUTLET_UP,
	STATUS_OUTLET_DOWN,
};

enum status_registry_state {
	STATUS_REGISTRY_NONE,		/* not wanted: files */
	STATUS_REGISTRY_IDLE,
	STATUS_REGISTRY_OK,
	STATUS_REGISTRY_ASKING,
	STATUS_REGISTRY_AWAY,
	STATUS_REGISTRY_REFUSED,
};

enum status_signal_state {
	STATUS_SIGNAL_OK,
	STATUS_SIGNAL_FALLBACK,
	STATUS_SIGNAL_MISSING,
};

/* One kind of signal, and the hook that serves it. */
struct status_signal {
	const char *name;
	const char *hook;		/* "" missing */
	enum status_signal_state state;
	const char *detail;		/* "" when all is well */
};

/*
 * One BPF program, and what it cost since it was loaded. The kernel counts only while
 * kernel.bpf_stats_enabled is on: without a time, 0 runs are unknown too.
 */
struct status_probe {
	const char *name;
	uint64_t runs;
	struct opt_u64 run_time_ns;
};

struct status_event {
	const char *kind;
	uint64_t count;
};

struct status_loss {
	const char *place;
	const char *reason;
	uint64_t count;
};

struct status_count {
	enum topic topic;
	const char *reason;
	uint64_t count;
};

struct status_topic {
	uint64_t produced;		/* given a seq since the start */
	uint64_t delivered;
	uint64_t redelivered;		/* handed to the outlet once more */
};

struct agent_status {
	const char *version;
	int64_t pid;
	const char *agent_id;
	const char *host_id;
	const char *host_name;
	int64_t time_us;		/* now */
	int64_t start_us;
	uint64_t uptime_ns;
	bool is_stopping;

	const char *config_file;	/* NULL: none was given */
	uint64_t generation;
	int64_t reload_us;		/* of the last attempt; 0: none since the start */
	bool reload_failed;
	const char *reload_error;	/* of that attempt, or NULL */
	const char *restart_wanted;	/* the keys that wait for a restart; NULL: none */
	const char *privileges;		/* a sentence: "CAP_BPF, no_new_privs" */

	struct status_signal signals[STATUS_SIGNALS];
	size_t n_signals;
	struct status_probe probes[STATUS_PROBES];
	size_t n_probes;
	struct status_event events[STATUS_EVENTS];
	size_t n_events;
	uint64_t followed;		/* processes */
	struct opt_u64 other_processes;	/* of the host that are not followed */

	struct status_topic topics[TOPIC_COUNT];
	struct status_count dead[STATUS_COUNTS];	/* dead letters by topic and reason */
	size_t n_dead;
	struct status_loss lost[STATUS_LOSSES];
	size_t n_lost;

	struct {
		uint64_t records;
		uint64_t bytes;
		uint64_t max_bytes;
		uint64_t memory_bytes;	/* held for want of a disk */
		int64_t oldest_us;	/* 0: nothing waits */
		struct status_count dropped[STATUS_COUNTS];
		size_t n_dropped;
		int disk_error;		/* a negative errno while the disk takes nothing; 0 */
		const char *dir;
	} spool;

	struct {
		const char *kind;	/* "kafka", "files" */
		enum status_outlet_state state;
		char error[512];	/* the last one; "" none */
		int64_t error_us;
		uint64_t in_flight;
		uint64_t queued_bytes;
		uint64_t retried;
	} outlet;

	struct {
		enum status_registry_state state;
		char url[256];
		char error[512];
		int64_t error_us;
		unsigned known;
		unsigned wanted;	/* asked for and not known */
	} registry;

	struct {
		bool is_asked;		/* runtimes are, for the names of containers */
		uint64_t requests;	/* to any of their sockets */
		uint64_t named;
		uint64_t unknown;	/* to all of them */
		uint64_t failed;	/* nobody there, or no sense in the answer; asked again later */
		uint64_t refused;	/* not asked for: too many waited */
	} containers;

	uint64_t cpu_ns;		/* own */
	uint64_t rss_bytes;
	uint64_t open_fds;
};

/* Fills *s, which is zeroed. */
typedef void (*status_fill)(struct agent_status *s, void *arg);

/* Do records reach the place where they are to rest? Where not, a sentence why in reason. */
bool status_is_ready(const struct agent_status *s, char *reason, size_t size);

/* Age of what waits longest; 0: nothing waits. A clock that was set back makes nothing negative. */
uint64_t status_oldest_age_ns(const struct agent_status *s);

enum status_severity {
	STATUS_ERROR,		/* records do not arrive, or are gone */
	STATUS_WARNING,
};

/* Calls cb for each thing that is wrong, worst first, with a sentence. */
void status_problems(const struct agent_status *s,
    void (*cb)(enum status_severity severity, const char *sentence, void *arg), void *arg);

/* Did the kernel count its runs? */
bool status_probe_is_counted(const struct status_probe *p);

const char *status_outlet_state_name(enum status_outlet_state state);
const char *status_registry_state_name(enum status_registry_state state);
const char *status_signal_state_name(enum status_signal_state state);

/* A new reference, or NULL without memory. Field names are a contract; see sluice(1). */
struct json_t *status_json(const struct agent_status *s);
/* Appends; 0 or -ENOMEM. */
int status_text(const struct agent_status *s, bool has_colour, struct bytes *out);
/* Prometheus' text exposition format, version 0.0.4. Appends; 0 or -ENOMEM. */
int status_metrics(const struct agent_status *s, struct bytes *out);

#endif
