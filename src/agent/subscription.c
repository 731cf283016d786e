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
#define BEGIN_S 10				/* for COMMAND's exec, which `sluice run` calls next */
#define CGROUPS_SENT 64
#define SETTLE_US 5000
#define SETTLE_US_LATER 200000			/* after half a second */
#define SETTLE_SLOW_NS UINT64_C(500000000)
#define SETTLE_PART 8				/* of a CPU's time, at most, is for the passes */
#define SETTLE_LIMIT_NS UINT64_C(10000000000)	/* for the kernel to free ended processes */

/* Whose an event is, for a subscriber. */
enum part {
	PART_NONE,		/* of no program of its run */
	PART_WITHHELD,		/* of a program of its run that is not its user's */
	PART_OWN,
};

struct subscription {
	struct subscription *prev, *next;
	struct agent *agent;
	struct bufferevent *to;		/* owned */
	char *run_id;			/* owned */
	uint32_t uid;			/* of the subscriber */
	uint32_t user;			/* behind it: whose share it takes, see model/user.h */
	uint32_t kept_pid;		/* see probes_keep(); 0: it has called exec */
	uint64_t lost;			/* events, which are not reported to the subscriber yet */
	uint64_t withheld;		/* programs, likewise */
	uint64_t cgroups[CGROUPS_SENT];	/* ids of those whose paths were passed on last */
	size_t next_cgroup;
	struct event *on_late;		/* owned; pending until it has called exec */
	bool is_settling;		/* the end is asked for, and not yet passed on */
	struct agent_settling settling;
	bool is_torn;			/* the present pass lacks a frame, for lack of room */
	enum part before;		/* whose the event that is being handled is, as was known before */
	bool is_over;			/* everything was passed on: it is freed once that is written */
};

/*
 * The last ends are awaited for less long while root waits for those of its run: then some of the whole host are made
 * up that the kernel would have reported, which no other user may bring about.
 */
static void
hurry(struct agent *a)
{
	const struct subscription *s;
	bool is_hurried = false;

	DL_FOREACH(a->subscriptions, s)
		is_hurried |= s->is_settling && s->uid == 0;
	probes_hurry(a->probes, is_hurried);
}

/* It has begun, or ended before: the pid may be another process's from now on. */
static void
keep_no_longer(struct subscription *s)
{
	probes_keep(s->agent->probes, s->kept_pid, false);
	s->kept_pid = 0;
	event_del(s->on_late);
}

static void
subscription_free(struct subscription *s)
{
	if (s->kept_pid != 0)
		keep_no_longer(s);
	DL_DELETE(s->agent->subscriptions, s);
	s->agent->n_subscriptions--;
	event_free(s->on_late);
	bufferevent_free(s->to);
	free(s->run_id);
	hurry(s->agent);
	free(s);
}

/*
 * Returns true if so many bytes more may wait for the subscriber: its user has as much as is free, so that one who does
 * not read takes half of it from the others at most.
 */
static bool
has_room(const struct subscription *s, size_t size)
{
	const struct subscription *other;
	size_t own = 0, all = 0;

	DL_FOREACH(s->agent->subscriptions, other) {
		size_t waiting = evbuffer_get_length(bufferevent_get_output(other->to));

		all += waiting;
		own += other->user == s->user ? waiting : 0;
	}
	return own + all + size <= SUBSCRIPTION_BYTES_MAX;
}

/* Appends a frame of two parts, of which the second may be empty. Returns false if there is no room. */
static bool
put(struct subscription *s, enum subscription_kind kind, const void *data, size_t len, const void *more, size_t n_more)
{
	static const char zeros[8];
	size_t size = (len + n_more + 7) / 8 * 8;
	const struct subscription_head head = { .size = (uint32_t)size, .kind = kind };
	struct evbuffer *out = bufferevent_get_output(s->to);

	if (!has_room(s, sizeof(head) + size) || evbuffer_expand(out, sizeof(head) + size) < 0)
		return false;
	(void)evbuffer_add(out, &head, sizeof(head));
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, more, n_more);
	(void)evbuffer_add(out, zeros, size - len - n_more);
	return true;
}

/* Reports lost events, and programs that were withheld, as soon as there is room for that. */
static void
put_missing(struct subscription *s)
{
	const struct subscription_count lost = { s->lost }, withheld = { s->withheld };

	if (s->lost > 0 && put(s, SUBSCRIPTION_LOST, &lost, sizeof(lost), NULL, 0))
		s->lost = 0;
	if (s->withheld > 0 && put(s, SUBSCRIPTION_WITHHELD, &withheld, sizeof(withheld), NULL, 0))
		s->withheld = 0;
}

static void
lose(struct subscription *s, uint64_t n)
{
	s->lost += n;
	put_missing(s);
}

/* Root has all of its run, any other user what that user runs: no program that is, or may become, another one. */
static enum part
part_of(const struct subscription *s, const struct belongings *of)
{
	if (of->run_id == NULL || strcmp(of->run_id, s->run_id) != 0)
		return PART_NONE;
	return s->uid == 0 || (of->uid.known && of->uid.value == s->uid) ? PART_OWN : PART_WITHHELD;
}

void
subscriptions_before(struct agent *a, const struct program_key *key)
{
	struct belongings of;
	struct subscription *s;

	if (a->subscriptions == NULL || !correlator_belongings(a->correlator, key, &of))
		of = (struct belongings){ 0 };
	DL_FOREACH(a->subscriptions, s)
		s->before = part_of(s, &of);
}

/* Passes the path of a cgroup on before the first event in it: those of others are not the subscriber's to know. */
static void
put_cgroup(struct subscription *s, uint64_t id, bool is_v2)
{
	const struct subscription_cgroup head = { .id = id, .is_v2 = is_v2 };
	const char *path;

	for (size_t i = 0; i < CGROUPS_SENT; i++)
		if (s->cgroups[i] == id)
			return;
	path = correlator_cgroup_path(s->agent->correlator, id, is_v2);
	if (path == NULL || !put(s, SUBSCRIPTION_CGROUP, &head, sizeof(head), path, strlen(path) + 1))
		return;
	s->cgroups[s->next_cgroup] = id;
	s->next_cgroup = (s->next_cgroup + 1) % CGROUPS_SENT;
}

static void
put_event(struct subscription *s, const struct event_head *record, size_t len)
{
	put_missing(s);
	if (put(s, SUBSCRIPTION_EVENT, record, len, NULL, 0))
		return;
	if (record->kind == EVENT_EXEC || record->kind == EVENT_EXIT)
		s->lost++;
	else if (record->kind != EVENT_SIGNAL)
		s->is_torn = true;
}

/*
 * Counts a program that is withheld: at its exec, or at its end if it is one that never exec'd. A program of the
 * subscriber's that it replaces has ended: of that exec the subscriber gets what it would of one that rules leave out.
 */
static void
withhold(struct subscription *s, const void *record)
{
	const struct event_head *head = record;
	const struct event_exec *exec = record;
	const struct event_state *state = record;
	struct event_exec end;

	s->withheld += head->kind == EVENT_EXEC || (head->kind == EVENT_EXIT && (state->flags & EVENT_EXECED) == 0);
	if (head->kind != EVENT_EXEC || s->before != PART_OWN)
		return;
	end = (struct event_exec){ .head = *head, .self = exec->self, .prev = exec->prev,
		.flags = EVENT_EXECED | EVENT_REPLACED | EVENT_EXCLUDED |
		(exec->flags & (EVENT_HAS_PEAK | EVENT_HAS_BLOCK_IO | EVENT_THREADS_CUT)) };
	if ((exec->flags & EVENT_REPLACED) == 0)
		end.prev = (struct event_counters){ 0 };
	end.head.size = sizeof(end);
	put_event(s, &end.head, sizeof(end));
}

void
subscriptions_after(struct agent *a, const struct program_key *key)
{
	struct belongings of;
	struct subscription *s;
	size_t len;
	const struct event_head *record = decoder_record(a->decoder, &len);

	if (a->subscriptions == NULL || !correlator_belongings(a->correlator, key, &of))
		of = (struct belongings){ 0 };
	DL_FOREACH(a->subscriptions, s) {
		enum part part = part_of(s, &of);

		if (part == PART_NONE)
			part = s->before;	/* the event took it out of the run, or out of what is known */
		if (part != PART_NONE && key->pid == s->kept_pid &&
		    (record->kind == EVENT_EXEC || record->kind == EVENT_EXIT || record->kind == EVENT_STALE))
			keep_no_longer(s);
		if (part == PART_OWN) {
			put_cgroup(s, of.cgroup_v2, true);
			put_cgroup(s, of.cgroup_v1, false);
			put_event(s, record, len);
		} else if (part == PART_WITHHELD) {
			withhold(s, record);
		}
		s->before = PART_NONE;
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
		put_missing(s);
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

/*
 * Plans the next pass for those that wait for their ends: soon for one that has asked a moment ago, and so that passes
 * take a part of a CPU's time.
 */
static int
settle_later(struct agent *a)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME), pause_us = SETTLE_US_LATER;
	const struct subscription *s;
	bool is_any = false;

	DL_FOREACH(a->subscriptions, s) {
		is_any |= s->is_settling;
		if (s->is_settling && now - s->settling.since_ns <= SETTLE_SLOW_NS)
			pause_us = SETTLE_US;
	}
	if (!is_any)
		return 0;
	if (a->settle_from_ns > now + pause_us * 1000)
		pause_us = (a->settle_from_ns - now) / 1000;
	return event_add(a->on_settle, &(struct timeval){ (time_t)(pause_us / 1000000),
	    (suseconds_t)(pause_us % 1000000) });
}

/* Passes on that all is passed on, with which the subscription is over. */
static void
settled(struct subscription *s)
{
	put_missing(s);
	s->is_settling = false;
	s->is_over = true;
	if (put(s, SUBSCRIPTION_SETTLED, NULL, 0, NULL, 0))
		hurry(s->agent);
	else
		subscription_free(s);
}

/* One pass for all that wait for their ends. */
static void
on_settle(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	struct agent_settling at[SUBSCRIPTIONS_MAX];
	struct subscription *s, *next;
	uint64_t now = clock_ns(CLOCK_BOOTTIME), begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool is_whole;
	size_t n = 0;

	(void)fd;
	(void)what;
	DL_FOREACH(a->subscriptions, s) {
		if (s->is_settling)
			at[n++] = s->settling;
	}
	if (n == 0)
		return;		/* all have disconnected */
	is_whole = a->scope->settle(a, at, n);
	/* By its CPU time: where others had the CPU meanwhile, the next pass would only be later for that. */
	a->settle_from_ns = clock_ns(CLOCK_BOOTTIME) + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * SETTLE_PART;
	n = 0;
	DL_FOREACH_SAFE(a->subscriptions, s, next) {
		if (!s->is_settling)
			continue;
		s->settling = at[n++];
		if (now - s->settling.since_ns >= SETTLE_LIMIT_NS ||
		    (is_whole && s->settling.is_read && s->settling.ends == 0))
			settled(s);
	}
	(void)settle_later(a);
}

/* Returns whether its end is being awaited from now on. */
static bool
settle(struct subscription *s)
{
	struct agent *a = s->agent;

	if (a->on_settle == NULL)
		a->on_settle = evtimer_new(a->base, on_settle, a);
	if (a->on_settle == NULL)
		return false;
	s->settling = (struct agent_settling){ .since_ns = clock_ns(CLOCK_BOOTTIME), .ring_end = ring_end(a->ring),
		.run_id = s->run_id };
	s->is_settling = true;
	hurry(a);
	return settle_later(a) == 0;
}

/* A process that never calls exec, and the room that it takes from runs that begin. */
static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct subscription *s = arg;

	(void)fd;
	(void)what;
	s->agent->subscription_stats.slow++;
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
		put_missing(s);
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
	struct subscription *s = arg;

	(void)bev;
	if ((what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0 && !s->is_settling && !s->is_over &&
	    settle(s))
		return;
	if ((what & BEV_EVENT_TIMEOUT) != 0)
		s->agent->subscription_stats.slow++;
	subscription_free(s);
}

bool
agent_may_subscribe(struct agent *a, uint32_t user)
{
	const size_t most = SUBSCRIPTIONS_MAX - SUBSCRIPTIONS_KEPT;
	const size_t most_beginning = SUBSCRIPTIONS_BEGINNING - SUBSCRIPTIONS_KEPT;
	size_t own = 0, others = 0, own_beginning = 0, beginning = 0;
	const struct subscription *s;
	bool has_room;

	DL_FOREACH(a->subscriptions, s) {
		own += s->user == user;
		others += s->user != 0;
		own_beginning += s->user == user && s->kept_pid != 0;
		beginning += s->user != 0 && s->kept_pid != 0;
	}
	has_room = user == 0 ? a->n_subscriptions < SUBSCRIPTIONS_MAX :
	    own + others < most && own_beginning + beginning < most_beginning;
	a->subscription_stats.crowded += !has_room;
	return has_room;
}

int
agent_subscribe(struct agent *a, const char *run_id, uint32_t pid, uint32_t uid, uint32_t user,
    struct bufferevent *to)
{
	const struct timeval silent = { SILENT_S, 0 }, late = { BEGIN_S, 0 };
	struct subscription *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->run_id = strdup(run_id);
		s->on_late = evtimer_new(a->base, on_late, s);
	}
	if (s == NULL || s->run_id == NULL || s->on_late == NULL || event_add(s->on_late, &late) < 0 ||
	    probes_keep(a->probes, pid, true) < 0) {
		if (s != NULL && s->on_late != NULL)
			event_free(s->on_late);
		if (s != NULL)
			free(s->run_id);
		free(s);
		bufferevent_free(to);
		return -ENOMEM;
	}
	s->uid = uid;
	s->user = user;
	s->kept_pid = pid;
	s->agent = a;
	s->to = to;
	DL_APPEND(a->subscriptions, s);
	a->n_subscriptions++;
	bufferevent_setcb(to, on_read, on_written, on_connection, s);
	bufferevent_set_timeouts(to, NULL, &silent);
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		put_known(s, (uint64_t)i, probes_known_since_ns(a->probes, (enum optional_signal)i));
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
	if (a->on_settle != NULL)
		event_free(a->on_settle);
	a->on_settle = NULL;
}
