/*
 * SPDX-License-Identifier: Apache-2.0
 * subscriber: what the agent of the host passes on, to the stages of this agent.
 */
#include "agent/subscriber.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"
#include "collect/frames.h"

#define READS_MAX 16	/* between two returns to the event loop */

struct subscriber {
	struct agent *agent;
	int fd;				/* owned */
	struct event *on_readable;	/* owned */
	void (*on_end)(bool is_settled, void *arg);
	void *arg;
	struct frames frames;
	uint64_t last_usage_ns;
	uint64_t passes;
	uint64_t withheld;
	bool is_in_pass;
	size_t have;
	_Alignas(8) char buffer[2 * SUBSCRIPTION_FRAME_MAX];
};

static void
on_cgroup(const struct cgroup_event *e, void *arg)
{
	struct cgroup_event with_limits = *e;

	agent_learn_cgroup(((struct subscriber *)arg)->agent, &with_limits);
}

static void
on_pass(void *arg)
{
	struct subscriber *s = arg;
	struct agent *a = s->agent;
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	bool is_due = agent_is_due(a, s->last_usage_ns, now);

	if (is_due)
		s->last_usage_ns = now;
	a->pass = (struct agent_pass){ 0 };
	a->is_sweeping = false;
	s->is_in_pass = true;
	correlator_snapshot_begin(a->correlator, is_due);
}

static void
on_sweep(void *arg)
{
	((struct subscriber *)arg)->agent->is_sweeping = true;
}

static void
on_passed(const struct subscription_passed *passed, void *arg)
{
	struct subscriber *s = arg;
	struct agent *a = s->agent;

	a->is_sweeping = false;
	if (!s->is_in_pass)
		return;
	s->is_in_pass = false;
	s->passes++;
	a->other_processes = passed->processes > a->pass.seen ? passed->processes - a->pass.seen : 0;
	a->other_threads = passed->threads > a->pass.seen_threads ? passed->threads - a->pass.seen_threads : 0;
	correlator_snapshot_end(a->correlator, clock_ns(CLOCK_BOOTTIME));
}

static void
on_lost(uint64_t events, void *arg)
{
	agent_lose(((struct subscriber *)arg)->agent, events);
}

static void
on_withheld(uint64_t programs, void *arg)
{
	((struct subscriber *)arg)->withheld += programs;
}

static void
on_known(enum optional_signal signal, uint64_t since_ns, void *arg)
{
	correlator_set_known_since(((struct subscriber *)arg)->agent->correlator, signal, since_ns);
}

static const struct frames_ops frames_ops = {
	.cgroup = on_cgroup,
	.pass = on_pass,
	.sweep = on_sweep,
	.passed = on_passed,
	.lost = on_lost,
	.withheld = on_withheld,
	.known = on_known,
};

/* Reads once. Returns 0, 1 after the last frame, -EAGAIN, or another negative errno: the connection is of no use. */
static int
read_some(struct subscriber *s)
{
	ssize_t n = read(s->fd, s->buffer + s->have, sizeof(s->buffer) - s->have);
	bool is_last = false;

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -EPIPE;
	s->have += (size_t)n;
	n = frames_read(&s->frames, s->buffer, s->have, &is_last);
	if (n < 0)
		return (int)n;
	memmove(s->buffer, s->buffer + n, s->have - (size_t)n);
	s->have -= (size_t)n;
	return is_last;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct subscriber *s = arg;
	int r = 0;

	(void)fd;
	(void)what;
	for (int i = 0; i < READS_MAX && r == 0; i++)
		r = read_some(s);
	if (r == 0 || r == -EAGAIN)
		return;
	event_del(s->on_readable);
	s->on_end(r == 1, s->arg);
}

int
subscriber_open(struct agent *a, int fd, void (*on_end)(bool is_settled, void *arg), void *arg,
    struct subscriber **ret)
{
	struct subscriber *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->on_readable = event_new(a->base, fd, EV_READ | EV_PERSIST, on_readable, s);
	if (s == NULL || s->on_readable == NULL || event_add(s->on_readable, NULL) < 0) {
		if (s != NULL && s->on_readable != NULL)
			event_free(s->on_readable);
		free(s);
		close(fd);
		return -ENOMEM;
	}
	s->agent = a;
	s->fd = fd;
	s->on_end = on_end;
	s->arg = arg;
	s->frames = (struct frames){ a->decoder, &frames_ops, s, (uint32_t)getpid() };
	s->last_usage_ns = clock_ns(CLOCK_BOOTTIME);
	*ret = s;
	return 0;
}

void
subscriber_close(struct subscriber *s)
{
	if (s == NULL)
		return;
	event_free(s->on_readable);
	close(s->fd);
	free(s);
}

void
subscriber_finish(struct subscriber *s)
{
	shutdown(s->fd, SHUT_WR);
}

uint64_t
subscriber_passes(const struct subscriber *s)
{
	return s->passes;
}

uint64_t
subscriber_withheld(const struct subscriber *s)
{
	return s->withheld;
}
