/*
 * SPDX-License-Identifier: Apache-2.0
 * door: accepts, and pauses.
 */
#include "control/door.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/pace.h"

enum {
	ACCEPTS = 8,		/* in one turn of the loop: the ring is drained between two turns */
	PAUSE_MS = 50,		/* the least; so that a flood wakes the loop twenty times a second */
	NO_DESCRIPTOR_MS = 1000,
};

struct door {
	struct door_options o;
	int fd;				/* owned */
	struct event *on_readable;	/* owned */
	struct event *on_again;		/* owned; listens again after a pause */
	struct pace pace;
	uint64_t waits;
};

static void
pause_for(struct door *d, uint64_t ms)
{
	event_del(d->on_readable);
	evtimer_add(d->on_again, (&(struct timeval){ (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) }));
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct door *d = arg;
	uint64_t cost_ns = UINT64_C(1000000000) / d->o.per_second, now = clock_ns(CLOCK_MONOTONIC);

	(void)what;
	for (int i = 0; i < ACCEPTS; i++) {
		uint64_t wait_ns = pace_wait_ns(&d->pace, cost_ns * d->o.burst, now);
		int client;

		if (wait_ns > 0) {
			d->waits++;
			pause_for(d, wait_ns / 1000000 > PAUSE_MS ? wait_ns / 1000000 : PAUSE_MS);
			return;
		}
		client = accept4((int)fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client >= 0) {
			pace_charge(&d->pace, cost_ns, now);
			d->o.on_accept(client, d->o.arg);
			continue;
		}
		/* Without descriptors or memory the socket stays readable, and the loop would spin. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_for(d, NO_DESCRIPTOR_MS);
		return;
	}
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_add(((struct door *)arg)->on_readable, NULL);
}

int
door_open(struct event_base *base, int fd, const struct door_options *o, struct door **ret)
{
	struct door *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		close(fd);
		return -ENOMEM;
	}
	d->o = *o;
	d->fd = fd;
	d->on_readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, d);
	d->on_again = evtimer_new(base, on_again, d);
	if (d->on_readable == NULL || d->on_again == NULL || event_add(d->on_readable, NULL) < 0) {
		door_close(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void
door_close(struct door *d)
{
	if (d == NULL)
		return;
	if (d->on_readable != NULL)
		event_free(d->on_readable);
	if (d->on_again != NULL)
		event_free(d->on_again);
	close(d->fd);
	free(d);
}

uint64_t
door_waits(const struct door *d)
{
	return d->waits;
}
