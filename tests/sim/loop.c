/*
 * SPDX-License-Identifier: Apache-2.0
 * loop: the event loop, as libevent runs it: a turn takes all events that are ready, in any order, and runs them one by
 * one; an event that a callback makes active runs in the same turn, a timer that it sets in a later one.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/time.h>

#include "sim.h"

struct sim_loop_event {
	TAILQ_ENTRY(sim_loop_event) at;		/* in the list of all */
	TAILQ_ENTRY(sim_loop_event) at_turn;	/* with is_active */
	int fd;
	short what;
	event_callback_fn cb;
	void *arg;
	bool is_added;			/* watches fd */
	bool is_timed;
	int64_t due_us;
	int64_t every_us;		/* EV_PERSIST */
	bool is_active;
	short result;
};

static TAILQ_HEAD(, sim_loop_event) events = TAILQ_HEAD_INITIALIZER(events), turn = TAILQ_HEAD_INITIALIZER(turn);

static struct sim_loop_event *
of(const struct event *ev)
{
	return (struct sim_loop_event *)(uintptr_t)ev;
}

static void
set_active(struct sim_loop_event *e, short result)
{
	if (!e->is_active)
		TAILQ_INSERT_TAIL(&turn, e, at_turn);
	e->is_active = true;
	e->result |= result;
}

static void
set_inactive(struct sim_loop_event *e)
{
	if (e->is_active)
		TAILQ_REMOVE(&turn, e, at_turn);
	e->is_active = false;
	e->result = 0;
}

static int64_t
to_us(const struct timeval *tv)
{
	return (int64_t)tv->tv_sec * SIM_S + tv->tv_usec;
}

SIM_WRAP(struct event *, event_new, struct event_base *base, evutil_socket_t fd, short what, event_callback_fn cb,
    void *arg)
{
	struct sim_loop_event *e = calloc(1, sizeof(*e));

	(void)base;
	if (e == NULL)
		abort();
	e->fd = fd;
	e->what = what;
	e->cb = cb;
	e->arg = arg;
	TAILQ_INSERT_TAIL(&events, e, at);
	return (struct event *)e;
}

SIM_WRAP(int, event_del, struct event *ev)
{
	struct sim_loop_event *e = of(ev);

	set_inactive(e);
	e->is_added = e->is_timed = false;
	return 0;
}

SIM_WRAP(void, event_free, struct event *ev)
{
	(void)__wrap_event_del(ev);
	TAILQ_REMOVE(&events, of(ev), at);
	free(ev);
}

SIM_WRAP(int, event_add, struct event *ev, const struct timeval *tv)
{
	struct sim_loop_event *e = of(ev);

	if (e->what & EV_READ)
		e->is_added = true;
	if (tv == NULL)
		return 0;
	/* A timer that has expired in this turn is set anew instead. */
	if (e->is_active && (e->result & EV_TIMEOUT))
		set_inactive(e);
	e->is_timed = true;
	e->due_us = world->now_us + to_us(tv);
	e->every_us = e->what & EV_PERSIST ? to_us(tv) : 0;
	return 0;
}

SIM_WRAP(int, event_pending, const struct event *ev, short what, struct timeval *tv)
{
	const struct sim_loop_event *e = of(ev);
	short pending = (short)((e->is_added ? e->what & EV_READ : 0) | (e->is_timed ? EV_TIMEOUT : 0) | e->result);

	if (tv != NULL)
		sim_broken("event_pending() is not modelled to return a time");
	return pending & what;
}

SIM_WRAP(void, event_active, struct event *ev, int result, short calls)
{
	(void)calls;
	set_active(of(ev), (short)result);
}

/* Returns what an event is ready for. */
static short
ready_for(const struct sim_loop_event *e)
{
	short result = 0;

	if (e->is_added && sim_fd_is_readable(e->fd))
		result |= EV_READ;
	if (e->is_timed && e->due_us <= world->now_us)
		result |= EV_TIMEOUT;
	return result;
}

bool
sim_loop_ready(void)
{
	const struct sim_loop_event *e;

	if (!TAILQ_EMPTY(&turn))
		return true;
	TAILQ_FOREACH(e, &events, at)
		if (ready_for(e) != 0)
			return true;
	return false;
}

int64_t
sim_loop_next_us(void)
{
	const struct sim_loop_event *e;
	int64_t next_us = INT64_MAX;

	TAILQ_FOREACH(e, &events, at)
		if (e->is_timed && e->due_us < next_us)
			next_us = e->due_us;
	return next_us;
}

/* Takes all that is ready into the turn, in a random order. */
static void
begin_turn(void)
{
	struct sim_loop_event *ready[256], *e;
	size_t n = 0;

	TAILQ_FOREACH(e, &events, at)
		if (ready_for(e) != 0 && n < 256)
			ready[n++] = e;
	while (n > 0) {
		size_t i = sim_below(n);
		short result = ready_for(ready[i]);

		if (result & EV_TIMEOUT)
			ready[i]->is_timed = false;
		set_active(ready[i], result);
		ready[i] = ready[--n];
	}
}

void
sim_loop_step(void)
{
	struct sim_loop_event *e;
	short result;

	if (TAILQ_EMPTY(&turn))
		begin_turn();
	e = TAILQ_FIRST(&turn);
	if (e == NULL)
		return;
	result = e->result;
	set_inactive(e);
	if (e->what & EV_PERSIST && e->every_us > 0 && (result & EV_TIMEOUT)) {
		e->is_timed = true;
		e->due_us += e->every_us;
		if (e->due_us <= world->now_us)
			e->due_us = world->now_us + e->every_us;
	} else if (!(e->what & EV_PERSIST)) {
		e->is_added = e->is_timed = false;
	}
	e->cb(e->fd, result, e->arg);
}
