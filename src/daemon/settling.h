/*
 * SPDX-License-Identifier: Apache-2.0
 * settling: clients who wait until all that happened before they asked is recorded and safe.
 *
 *	SEEING ──all ends are told──► KEEPING ──synced, or delivered──► answered
 *	   └───────────── time is up ────┴──► answered: what is still pending
 *
 * What a moment's ends, tasks and records are, the owner looks up: 50 times a second for a second, then 10 times.
 * It changes nothing of what is recorded but the time: a program that runs goes on, a task to which another
 * program may come stays open.
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
	SETTLE_CLIENTS = 8,			/* that wait at once: others are told so */
	SETTLE_DEFAULT_MS = 30000,
	SETTLE_MAX_MS = 600000,
};

struct settle_want {
	bool delivered;		/* and acknowledged by the output, or given up and counted */
	bool tasks;		/* and tasks and runs without a program told as ended, and their failures */
	uint32_t timeout_ms;
};

/* What of all up to a mark is not safe yet; of interest is only what is not 0. */
struct settle_rest {
	uint64_t unsynced;		/* records that the spool's disk does not have for certain */
	int disk_error;			/* a negative errno; 0: it takes records */
	bool is_waiting;		/* with delivered: for the output */
	uint64_t waiting[TOPIC_COUNT];
	const char *output;		/* "the broker", "the lake": static */
	char error[512];		/* the output's, while it is down; else "" */
};

struct settle_ops {
	/* As agent_ring_end() and agent_settle(). */
	uint64_t (*ring_end)(void *arg);
	bool (*look)(struct agent_settling *settling, size_t n, void *arg);
	void (*mark)(struct spool_mark *ret, void *arg);
	/* Hastens it, too. True: all up to the mark is safe. */
	bool (*keep)(const struct spool_mark *m, bool delivered, struct settle_rest *ret, void *arg);
};

/* {"delivered":BOOL,"tasks":BOOL,"timeout":SECONDS}, each optional. 0, or -EINVAL with a sentence in error. */
int settle_parse(const struct json_t *args, struct settle_want *ret, char *error, size_t error_size);

/* 0 or -ENOMEM. base must outlive it. */
int settle_open(struct event_base *base, const struct settle_ops *ops, void *arg, struct settle **ret);
/* Before the control socket: who still waits is told that the agent stops. NULL is fine. */
void settle_close(struct settle *s);

/* A control_cb: arg is the settle. */
void settle_on_request(struct control_request *req, const struct json_t *args, void *arg);

#endif
