/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settling.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/disk.h"
#include "control/control.h"

#define LOOK_MS 20
#define LOOK_LATER_MS 100
#define LATER_NS UINT64_C(1000000000)	/* after which it polls less often */

enum stage {
	SEEING,
	KEEPING,
};

struct waiter {
	struct waiter *prev, *next;
	struct control_request *request;
	struct settle_want want;
	uint64_t asked_ns;		/* CLOCK_MONOTONIC */
	enum stage stage;
	bool has_looked;		/* the last pass was complete */
	struct agent_settling at;
	struct spool_mark mark;		/* KEEPING */
	struct settle_rest rest;	/* KEEPING */
};

struct settle {
	struct settle_ops ops;
	void *arg;
	struct event *again;		/* owned; pending while a client waits */
	struct waiter *waiters;		/* owned */
	size_t n;
};

static int
parse_bool(const json_t *args, const char *name, bool *ret)
{
	const json_t *value = json_object_get(args, name);
	const char *text = json_string_value(value);

	if (value == NULL)
		return 0;
	if (!json_is_boolean(value) &&
	    (text == NULL || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)))
		return -EINVAL;
	*ret = json_is_true(value) || (text != NULL && strcmp(text, "true") == 0);
	return 0;
}

int
settle_parse(const json_t *args, struct settle_want *ret, char *error, size_t error_size)
{
	struct settle_want want = { .timeout_ms = SETTLE_DEFAULT_MS };
	const json_t *timeout = json_object_get(args, "timeout");
	double seconds = json_number_value(timeout);
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)args, key, value) {
		if (strcmp(key, "delivered") == 0 || strcmp(key, "tasks") == 0 || strcmp(key, "timeout") == 0)
			continue;
		snprintf(error, error_size, "settle takes --delivered, --tasks and --timeout, and no %s",
		    strcmp(key, "words") == 0 ? "other word" : "other option");
		return -EINVAL;
	}
	if (parse_bool(args, "delivered", &want.delivered) < 0 ||
	    parse_bool(args, "tasks", &want.tasks) < 0) {
		snprintf(error, error_size, "settle: delivered and tasks are true or false");
		return -EINVAL;
	}
	if (timeout != NULL &&
	    !(json_is_number(timeout) && seconds >= 0.001 && seconds <= SETTLE_MAX_MS / 1000.0)) {
		snprintf(error, error_size, "settle: the timeout is a number of seconds, of at most %d",
		    SETTLE_MAX_MS / 1000);
		return -EINVAL;
	}
	if (timeout != NULL)
		want.timeout_ms = (uint32_t)(seconds * 1000 + 0.5);
	*ret = want;
	return 0;
}

/* A sentence under construction: "…; …". */
struct sentence {
	char text[1024];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void
say(struct sentence *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->text + s->len, sizeof(s->text) - s->len, format, args);
	va_end(args);
	if (n > 0)
		s->len += (size_t)n;
	if (s->len >= sizeof(s->text))
		s->len = sizeof(s->text) - 1;
}

static void
say_count(struct sentence *s, uint64_t n, const char *one, const char *many)
{
	if (n > 0)
		say(s, "; %llu %s", (unsigned long long)n, n == 1 ? one : many);
}

static void
say_waiting(struct sentence *s, const struct settle_rest *rest)
{
	uint64_t all = 0;
	bool is_first = true;

	for (int t = 0; t < TOPIC_COUNT; t++)
		all += rest->waiting[t];
	say(s, "; ");
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (rest->waiting[t] == 0)
			continue;
		say(s, is_first ? "%llu record%s of %s" : ", %llu record%s of %s",
		    (unsigned long long)rest->waiting[t], rest->waiting[t] == 1 ? "" : "s", topic_name(t));
		is_first = false;
	}
	say(s, "%s for %s", all == 0 ? "records wait" : all == 1 ? " waits" : " wait", rest->output);
	if (rest->error[0] != '\0')
		say(s, ": %s", rest->error);
}

/* Writes what the client waits for, as of the last pass. */
static void
say_pending(struct sentence *s, const struct waiter *w)
{
	size_t before = s->len;

	if (w->stage == SEEING) {
		if (w->has_looked && !w->at.is_read)
			say(s, "; the kernel's ring is not read up to the request");
		say_count(s, w->at.ends, "ended process is not reported by the kernel",
		    "ended processes are not reported by the kernel");
		if (w->want.tasks) {
			say_count(s, w->at.held.tasks, "task without a program may continue",
			    "tasks without a program may continue");
			say_count(s, w->at.held.runs, "run without a program may continue",
			    "runs without a program may continue");
			say_count(s, w->at.held.failures, "failure is not recorded", "failures are not recorded");
		}
		if (s->len == before)
			say(s, "; the processes could not be read");
		return;
	}
	say_count(s, w->rest.unsynced, "record is not synced to the spool's disk",
	    "records are not synced to the spool's disk");
	if (w->rest.disk_error != 0)
		say(s, ", which refuses writes: %s", disk_error_text(w->rest.disk_error));
	if (w->rest.is_waiting)
		say_waiting(s, &w->rest);
}

static void
forget(struct settle *s, struct waiter *w)
{
	DL_DELETE(s->waiters, w);
	s->n--;
	free(w);
}

/* Removes waiters whose client has disconnected: they would take the room of others. */
static void
forget_gone(struct settle *s)
{
	struct waiter *w, *next;

	DL_FOREACH_SAFE(s->waiters, w, next) {
		if (!control_is_gone(w->request))
			continue;
		control_answer(w->request, NULL);
		forget(s, w);
	}
}

static void
answer_done(struct settle *s, struct waiter *w, uint64_t now_ns)
{
	double seconds = (double)(now_ns - w->asked_ns) / 1e9;
	char message[128];

	snprintf(message, sizeof(message), "everything before this request is %s (%.2f s)",
	    w->want.delivered ? "delivered" : "in the spool", seconds);
	control_answer(w->request, json_pack("{ss sf}", "message", message, "seconds", seconds));
	forget(s, w);
}

static void
answer_late(struct settle *s, struct waiter *w)
{
	struct sentence what = { .len = 0 };

	say_pending(&what, w);
	control_answer_error(w->request, "not settled within %g s: %s", w->want.timeout_ms / 1000.0, what.text + 2);
	forget(s, w);
}

static bool
is_seen(const struct waiter *w)
{
	return w->has_looked && w->at.is_read && w->at.ends == 0 &&
	    (!w->want.tasks || w->at.held.tasks + w->at.held.runs + w->at.held.failures == 0);
}

/* One pass for all clients for which an end is not reported yet. */
static void
look(struct settle *s)
{
	struct agent_settling at[SETTLE_CLIENTS];
	struct waiter *w;
	bool has_looked;
	size_t n = 0;

	DL_FOREACH(s->waiters, w) {
		if (w->stage == SEEING)
			at[n++] = w->at;
	}
	if (n == 0)
		return;
	has_looked = s->ops.look(at, n, s->arg);
	n = 0;
	DL_FOREACH(s->waiters, w) {
		if (w->stage != SEEING)
			continue;
		w->at = at[n++];
		w->has_looked = has_looked;
		if (!is_seen(w))
			continue;
		s->ops.mark(&w->mark, s->arg);
		w->stage = KEEPING;
	}
}

static void
plan(struct settle *s, uint64_t now_ns)
{
	struct timeval in = { 0, LOOK_LATER_MS * 1000 };
	struct waiter *w;

	DL_FOREACH(s->waiters, w) {
		if (now_ns - w->asked_ns < LATER_NS)
			in.tv_usec = LOOK_MS * 1000;
	}
	if (s->waiters != NULL)
		evtimer_add(s->again, &in);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct settle *s = arg;
	struct waiter *w, *next;
	uint64_t now_ns;

	(void)fd;
	(void)what;
	forget_gone(s);
	look(s);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	DL_FOREACH_SAFE(s->waiters, w, next) {
		if (w->stage == KEEPING && s->ops.keep(&w->mark, w->want.delivered, &w->rest, s->arg))
			answer_done(s, w, now_ns);
		else if (now_ns - w->asked_ns >= (uint64_t)w->want.timeout_ms * 1000000)
			answer_late(s, w);
	}
	plan(s, now_ns);
}

void
settle_on_request(struct control_request *req, const json_t *args, void *arg)
{
	static const struct timeval now;
	struct settle *s = arg;
	struct settle_want want;
	struct waiter *w;
	char error[256];

	if (settle_parse(args, &want, error, sizeof(error)) < 0) {
		control_answer_error(req, "%s", error);
		return;
	}
	if (s->n >= SETTLE_CLIENTS)
		forget_gone(s);
	if (s->n >= SETTLE_CLIENTS) {
		control_answer_error(req, "%d clients wait for this already; try again in a moment", SETTLE_CLIENTS);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		control_answer_error(req, "out of memory");
		return;
	}
	w->request = req;
	w->want = want;
	w->asked_ns = clock_ns(CLOCK_MONOTONIC);
	w->at.since_ns = clock_ns(CLOCK_BOOTTIME);
	w->at.ring_end = s->ops.ring_end(s->arg);
	DL_APPEND(s->waiters, w);
	s->n++;
	evtimer_add(s->again, &now);
}

int
settle_open(struct event_base *base, const struct settle_ops *ops, void *arg, struct settle **ret)
{
	struct settle *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->ops = *ops;
	s->arg = arg;
	s->again = evtimer_new(base, on_again, s);
	if (s->again == NULL) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void
settle_close(struct settle *s)
{
	if (s == NULL)
		return;
	while (s->waiters != NULL) {
		control_answer_error(s->waiters->request, "the agent stops");
		forget(s, s->waiters);
	}
	event_free(s->again);
	free(s);
}
