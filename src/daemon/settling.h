/*
 * SPDX-License-Identifier: Apache-2.0
 * settling: clients that wait until everything before their request is recorded and safe.
 *
 *	SEEING ──all ends are reported──► KEEPING ──synced, or delivered──► answered
 *	   └──────────────── timeout ────────┴──► answered: what is still pending
 *
 * The state is polled through settle_ops, 50 times a second for a second, then 10 times. Waiting changes
 * nothing in the records but when they are written: a running program continues, and a task that may
 * get another program stays open.
 */
#ifndef SLUICE_DAEMON_SETTLING_H
#define SLUICE_DAEMON_SETTLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host.h"
#include "spool/spool.h"

struct control_request;
struct event_base;
struct json_t;
struct settle;

enum {
	SETTLE_CLIENTS = 8,			/* clients that may wait at once; more get an error */
	SETTLE_DEFAULT_MS = 30000,
	SETTLE_MAX_MS = 600000,
};

struct settle_want {
	bool delivered;		/* also until records are acknowledged by the output, or dropped and counted */
	bool tasks;		/* also until tasks and runs without a program are ended, and failures recorded */
	uint32_t timeout_ms;
};

/* The records up to a mark that are not safe yet. Members of 0 are left out of the answer. */
struct settle_rest {
	uint64_t unsynced;		/* records that are not synced to the spool's disk */
	int disk_error;			/* last error of the disk, a negative errno; 0: none */
	bool is_waiting;		/* with settle_want.delivered: for the output */
	uint64_t waiting[TOPIC_COUNT];
	const char *output;		/* "the broker", "the lake": static */
	char error[512];		/* error of the output while it is down, or why a topic waits; else "" */
};

struct settle_ops {
	/* The first two are like agent_ring_end() and agent_settle(); mark returns the end of the spool. */
	uint64_t (*ring_end)(void *arg);
	bool (*look)(struct agent_settling *settling, size_t n, void *arg);
	void (*mark)(struct spool_mark *ret, void *arg);
	/* Pushes the records up to the mark on, and returns whether all of them are safe; else sets *ret. */
	bool (*keep)(const struct spool_mark *m, bool delivered, struct settle_rest *ret, void *arg);
};

/*
 * Parses {"delivered":BOOL,"tasks":BOOL,"timeout":SECONDS}, each optional. Returns 0, or -EINVAL with a
 * sentence in error.
 */
int settle_parse(const struct json_t *args, struct settle_want *ret, char *error, size_t error_size);

/* Creates *ret, which base must outlive; ops is copied. Returns 0 or -ENOMEM. */
int settle_open(struct event_base *base, const struct settle_ops *ops, void *arg, struct settle **ret);
/* Answers the waiting clients that the agent stops, and frees s. Call before control_close(). NULL is fine. */
void settle_close(struct settle *s);

/* Handles a request of the control socket (a control_cb). arg is the struct settle. */
void settle_on_request(struct control_request *req, const struct json_t *args, void *arg);

#endif
