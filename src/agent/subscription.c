/*
 * SPDX-License-Identifier: Apache-2.0
 * subscription: passes the events of a run on to the connections that asked for them.
 */
#include "agent/subscription.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/host.h"
#include "agent/state.h"
#include "base/clock.h"
#include "event.h"

#define SILENT_S 600				/* `sluice run` may be stopped for a while, with its command */
#define SETTLE_MS 20
#define SETTLE_MS_LATER 200			/* after half a second */
#define SETTLE_SLOW_NS UINT64_C(500000000)
#define SETTLE_LIMIT_NS UINT64_C(10000000000)	/* for the kernel to free ended processes */

struct subscription {
	struct subscription *prev, *next;
	struct agent *agent;
	struct bufferevent *to;		/* owned */
	char *run_id;			/* owned */
	uint32_t uid;			/* of the subscriber */
	uint32_t kept_pid;		/* see probes_keep(); 0: it has called exec */
	uint64_t lost;			/* events, which are not reported to the subscriber yet */
	struct event *on_settle;	/* owned; NULL until the end is asked for */
	struct agent_settling settling;
	bool is_torn;			/* the present pass lacks a frame, for lack of room */
	bool is_due;			/* the event that is being handled is of its run */
	bool is_over;			/* everything was passed on: it is freed once that is written */
};

/* The last ends are awaited for less long while a subscriber waits for those of its run. */
static void
hurry(struct agent *a)
{
	const struct subscription *s;
	bool is_settling = false;

	DL_FOREACH(a->subscriptions, s)
		is_settling |= s->on_settle != NULL;
	probes_hurry(a->probes, is_settling);
}

static void
subscription_free(struct subscription *s)
{
	if (s->kept_pid != 0)
		probes_keep(s->agent->probes, s->kept_pid, false);
	DL_DELETE(s->agent->subscriptions, s);
	s->agent->n_subscriptions--;
	if (s->on_settle != NULL)
		event_free(s->on_settle);
	bufferevent_free(s->to);
	free(s->run_id);
	hurry(s->agent);
	free(s);
}

/* Appends a frame of two parts, of which the second may be empty. Returns false if there is no room. */
static bool
put(struct subscription *s, enum subscription_kind kind, const void *data, size_t len, const void *more, size_t n_more)
{
	static const char zeros[8];
	size_t size = (len + n_more + 7) / 8 * 8;
	const struct subscription_head head = { .size = (uint32_t)size, .kind = kind };
	struct evbuffer *out = bufferevent_get_output(s->to);

	if (evbuffer_get_length(out) + sizeof(head) + size > SUBSCRIPTION_BYTES_MAX / s->agent->n_subscriptions ||
	    evbuffer_expand(out, sizeof(head) + size) < 0)
		return false;
	(void)evbuffer_add(out, &head, sizeof(head));
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, more, n_more);
	(void)evbuffer_add(out, zeros, size - len - n_more);
	return true;
}

/* Reports lost events as soon as there is room for that. */
static void
put_lost(struct subscription *s)
{
	const struct subscription_lost lost = { s->lost };

	if (s->lost > 0 && put(s, SUBSCRIPTION_LOST, &lost, sizeof(lost), NULL, 0))
		s->lost = 0;
}

static void
lose(struct subscription *s, uint64_t n)
{
	s->lost += n;
	put_lost(s);
}

void
subscriptions_before(struct agent *a, const struct program_key *key)
{
	struct subscription *s;

	DL_FOREACH(a->subscriptions, s)
		s->is_due = correlator_is_of_run(a->correlator, key, s->run_id);
}

void
subscriptions_after(struct agent *a, const struct program_key *key)
{
	struct subscription *s;
	size_t len;
	const struct event_head *record = decoder_record(a->decoder, &len);

	DL_FOREACH(a->subscriptions, s) {
		if (!s->is_due && !correlator_is_of_run(a->correlator, key, s->run_id))
			continue;
		if (record->kind == EVENT_EXEC && key->pid == s->kept_pid) {
			probes_keep(a->probes, s->kept_pid, false);
			s->kept_pid = 0;
		}
		put_lost(s);
		if (put(s, SUBSCRIPTION_EVENT, record, len, NULL, 0))
			continue;
		if (record->kind == EVENT_EXEC || record->kind == EVENT_EXIT)
			s->lost++;
		else
			s->is_torn = true;
	}
}

void
subscriptions_mark(struct agent *a, enum subscription_kind kind)
{
	struct subscription *s;

	DL_FOREACH(a->subscriptions, s) {
		if (kind == SUBSCRIPTION_PASS)
			s->is_torn = false;
		s->is_torn |= !put(s, kind, NULL, 0, NULL, 0);
	}
}

void
subscriptions_passed(struct agent *a)
{
	const struct subscription_passed passed = {
		.processes = a->other_processes + a->pass.seen,
		.threads = a->other_threads + a->pass.seen_threads,
	};
	struct subscription *s;

	/* Without this frame a pass counts as one that broke off: processes that it lacks are not gone. */
	DL_FOREACH(a->subscriptions, s) {
		if (!s->is_torn)
			(void)put(s, SUBSCRIPTION_PASSED, &passed, sizeof(passed), NULL, 0);
	}
}

void
subscriptions_lost(struct agent *a, uint64_t n)
{
	struct subscription *s;

	DL_FOREACH(a->subscriptions, s)
		lose(s, n);
}

static void
put_known(struct subscription *s, uint64_t signal, uint64_t since_ns)
{
	const struct subscription_known known = { signal, since_ns };

	(void)put(s, SUBSCRIPTION_KNOWN, &known, sizeof(known), NULL, 0);
}

void
subscriptions_known(struct agent *a, uint64_t signal, uint64_t since_ns)
{
	struct subscription *s;

	DL_FOREACH(a->subscriptions, s)
		put_known(s, signal, since_ns);
}

static void
put_cgroup(const struct cgroup_event *c, void *arg)
{
	const struct subscription_cgroup head = { .id = c->id, .is_v2 = c->is_v2 };

	(void)put(arg, SUBSCRIPTION_CGROUP, &head, sizeof(head), c->path, strlen(c->path) + 1);
}

void
subscriptions_cgroup(struct agent *a, const struct cgroup_event *c)
{
	struct subscription *s;

	DL_FOREACH(a->subscriptions, s)
		put_cgroup(c, s);
}

static void
on_settle(evutil_socket_t fd, short what, void *arg)
{
	struct subscription *s = arg;
	struct agent *a = s->agent;
	uint64_t now = clock_ns(CLOCK_BOOTTIME), waited = now - s->settling.since_ns;
	const struct timeval again = { 0, (waited > SETTLE_SLOW_NS ? SETTLE_MS_LATER : SETTLE_MS) * 1000 };
	bool is_whole = a->scope->settle(a, &s->settling, 1);

	(void)fd;
	(void)what;
	if (waited < SETTLE_LIMIT_NS && !(is_whole && s->settling.is_read && s->settling.ends == 0)) {
		event_add(s->on_settle, &again);
		return;
	}
	put_lost(s);
	s->is_over = true;
	if (!put(s, SUBSCRIPTION_SETTLED, NULL, 0, NULL, 0))
		subscription_free(s);
}

static void
on_written(struct bufferevent *bev, void *arg)
{
	struct subscription *s = arg;

	(void)bev;
	if (s->is_over)
		subscription_free(s);
	else
		put_lost(s);
}

/* A subscriber has nothing to say, and memory is not for what it says. */
static void
on_read(struct bufferevent *bev, void *arg)
{
	struct subscription *s = arg;

	(void)bev;
	s->agent->subscription_stats.malformed++;
	subscription_free(s);
}

static void
on_connection(struct bufferevent *bev, short what, void *arg)
{
	const struct timeval soon = { 0, SETTLE_MS * 1000 };
	struct subscription *s = arg;

	(void)bev;
	if ((what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0 && s->on_settle == NULL) {
		s->settling = (struct agent_settling){ .since_ns = clock_ns(CLOCK_BOOTTIME),
			.ring_end = ring_end(s->agent->ring), .run_id = s->run_id };
		s->on_settle = evtimer_new(s->agent->base, on_settle, s);
		if (s->on_settle != NULL && event_add(s->on_settle, &soon) == 0) {
			hurry(s->agent);
			return;
		}
	}
	if ((what & BEV_EVENT_TIMEOUT) != 0)
		s->agent->subscription_stats.slow++;
	subscription_free(s);
}

bool
agent_may_subscribe(struct agent *a, uint32_t uid)
{
	const struct subscription *s;
	unsigned same = 0, others = 0;
	bool has_room;

	DL_FOREACH(a->subscriptions, s) {
		same += s->uid == uid;
		others += s->uid != 0;
	}
	has_room = a->n_subscriptions < SUBSCRIPTIONS_MAX &&
	    (uid == 0 || (same < SUBSCRIPTIONS_OF_UID && others < SUBSCRIPTIONS_MAX - SUBSCRIPTIONS_KEPT));
	a->subscription_stats.crowded += !has_room;
	return has_room;
}

int
agent_subscribe(struct agent *a, const char *run_id, uint32_t pid, uint32_t uid, struct bufferevent *to)
{
	const struct timeval silent = { SILENT_S, 0 };
	struct subscription *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->run_id = strdup(run_id)) == NULL || probes_keep(a->probes, pid, true) < 0) {
		if (s != NULL)
			free(s->run_id);
		free(s);
		bufferevent_free(to);
		return -ENOMEM;
	}
	s->uid = uid;
	s->kept_pid = pid;
	s->agent = a;
	s->to = to;
	DL_APPEND(a->subscriptions, s);
	a->n_subscriptions++;
	bufferevent_setcb(to, on_read, on_written, on_connection, s);
	bufferevent_set_timeouts(to, NULL, &silent);
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		put_known(s, (uint64_t)i, probes_known_since_ns(a->probes, (enum optional_signal)i));
	correlator_each_cgroup(a->correlator, put_cgroup, s);
	return 0;
}

void
agent_subscription_stats(const struct agent *a, struct subscription_stats *ret)
{
	*ret = a->subscription_stats;
}

void
agent_unsubscribe_all(struct agent *a)
{
	while (a->subscriptions != NULL) {
		struct bufferevent *to = a->subscriptions->to;

		/* as much as the connection takes at once */
		(void)evbuffer_write(bufferevent_get_output(to), bufferevent_getfd(to));
		subscription_free(a->subscriptions);
	}
}
