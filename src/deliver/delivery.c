/*
 * SPDX-License-Identifier: Apache-2.0
 * delivery: hands the spool's records to an output, and releases delivered ones in the spool.
 *
 * Only the event pump hands records over, recalls and rewinds; callbacks of the output just count and wake it.
 * So no method of the output is called from within another.
 */
#include "deliver/delivery.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "deliver/dead_letter.h"

#define DEFAULT_PER_TURN 2000
#define DEFAULT_PAUSE_MIN_MS 100
#define DEFAULT_PAUSE_MAX_MS 5000
#define LETTERS_MAX ((size_t)4 << 20)	/* bytes of dead letters that wait for their disk */

enum state {
	RUNNING,
	RECALLING,	/* a record failed: until the output has answered for all that it took */
	PAUSED,		/* until the pump's timer expires */
};

/* A record whose dead letter is not known to be on the disk. */
struct given_up {
	uint64_t	id;
	enum topic	topic;
};

struct delivery {
	struct event		*pump;		/* owned */
	struct event		*deadline;	/* owned; of a drain */
	struct spool		*spool;		/* the caller's */
	struct output		*output;	/* owned; NULL before delivery_set_output() */
	struct dead_letters	*dead;		/* the caller's, or NULL */
	unsigned		 per_turn;
	uint32_t		 pause_min_ms;
	uint32_t		 pause_max_ms;
	uint32_t		 pause_ms;	/* length of the next pause */
	enum state		 state;
	bool			 was_recalled;	/* while RECALLING: the output's recall() was called */
	bool			 is_blocked;	/* the output takes no record now */
	uint64_t		 out[TOPIC_COUNT];	/* in flight */
	struct given_up		*given_up;	/* owned; in the order of their letters */
	size_t			 n_given_up, given_up_size;
	uint64_t		 letters[TOPIC_COUNT];	/* of given_up */
	bool			 has_failed[TOPIC_COUNT];	/* held, and rewound once none is in flight */
	void			(*on_drained)(bool is_empty, void *arg);	/* NULL: no drain */
	void			*drained_arg;
	struct delivery_stats	 stats;
};

/*
 * Runs the pump in the next turn of the loop. A timer is used because libevent runs an event that is activated
 * by another in the same turn: other timers and sockets would wait until the spool is empty.
 */
static void
wake(struct delivery *d)
{
	static const struct timeval now;

	if (!evtimer_pending(d->pump, NULL))
		evtimer_add(d->pump, &now);	/* on failure, the next tick tries again */
}

static void
set_failure(struct delivery *d, const char *reason, const char *detail)
{
	snprintf(d->stats.failure, sizeof(d->stats.failure), "%s: %s", reason, detail);
	d->stats.failure_us = clock_us(CLOCK_REALTIME);
}

static void
count_dead(struct delivery *d, enum topic topic, const char *reason)
{
	struct delivery_stats *s = &d->stats;
	size_t i;

	for (i = 0; i < s->n_dead; i++) {
		if (strcmp(s->dead[i].reason, reason) == 0)
			break;
	}
	if (i == s->n_dead && i == DELIVERY_REASONS) {
		i--;	/* the last one is named "other" */
	} else if (i == s->n_dead) {
		snprintf(s->dead[i].reason, sizeof(s->dead[i].reason), "%s",
		    i == DELIVERY_REASONS - 1 ? "other" : reason);
		s->n_dead++;
	}
	s->dead[i].count[topic]++;
}

/* Returns whether the output has answered for all that it took. What is in flight then waits for its dead letters. */
static bool
has_answers(const struct delivery *d)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (d->out[t] > d->letters[t])
			return false;
	return true;
}

/* A record is no longer in flight: it is delivered, given up, or to be handed over again. */
static void
land(struct delivery *d, enum topic topic)
{
	d->stats.in_flight--;
	d->out[topic]--;
	if (d->out[topic] == 0 && d->has_failed[topic])
		wake(d);
	if ((d->state == RECALLING && has_answers(d)) || (d->stats.in_flight == 0 && d->on_drained != NULL))
		wake(d);
}

/* Releases a record that is given up. error: why its letter is lost; 0: it is not. */
static void
release_given_up(struct delivery *d, const struct given_up *g, int error)
{
	if (error == -EDQUOT || error == -ENOSPC)
		d->stats.lost_full[g->topic]++;
	else if (error < 0)
		d->stats.lost_unwritable[g->topic]++;
	spool_ack(d->spool, g->id);
	land(d, g->topic);
}

/* Makes room for one more. 0 or a negative errno. */
static int
reserve(struct delivery *d)
{
	size_t size = d->given_up_size > 0 ? 2 * d->given_up_size : 64;
	struct given_up *grown;

	if (d->n_given_up < d->given_up_size)
		return 0;
	grown = realloc(d->given_up, size * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	d->given_up = grown;
	d->given_up_size = size;
	return 0;
}

/*
 * Gives up a record that is in flight: has a dead letter written, and counts it even if that fails. The record is in
 * flight until the letter is synced.
 */
static void
dead_letter(struct delivery *d, const struct spool_record *r, const char *reason, const char *detail)
{
	struct given_up g = { r->id, r->topic };
	int error = d->dead != NULL ? reserve(d) : -ENOENT;

	set_failure(d, reason, detail);
	count_dead(d, r->topic, reason);
	if (error == 0)
		error = dead_letters_put(d->dead, r, reason, detail);
	if (error < 0) {
		release_given_up(d, &g, error);
		return;
	}
	d->given_up[d->n_given_up++] = g;
	d->letters[g.topic]++;
}

/* Releases records whose dead letters are on the disk, or are lost. */
static void
settle_dead_letters(struct delivery *d)
{
	size_t n = 0;
	int error;

	while (d->dead != NULL && dead_letters_next(d->dead, &error))
		if (n < d->n_given_up) {	/* else it is a letter of a delivery that was closed */
			d->letters[d->given_up[n].topic]--;
			release_given_up(d, &d->given_up[n++], error);
		}
	if (n == 0)
		return;
	d->n_given_up -= n;
	memmove(d->given_up, d->given_up + n, d->n_given_up * sizeof(*d->given_up));
}

static void
on_delivered(enum topic topic, uint64_t id, void *arg)
{
	struct delivery *d = arg;

	d->stats.delivered[topic]++;
	d->pause_ms = d->pause_min_ms;
	spool_ack(d->spool, id);
	land(d, topic);
}

static void
on_failed(const struct spool_record *r, enum output_failure failure, const char *reason,
    const char *detail, void *arg)
{
	struct delivery *d = arg;

	if (failure == OUTPUT_NEVER) {
		dead_letter(d, r, reason, detail);
		return;
	}
	if (failure == OUTPUT_TOPIC_AGAIN && d->state == RUNNING) {
		if (!d->has_failed[r->topic])
			set_failure(d, reason, detail);
		d->has_failed[r->topic] = true;
		spool_hold(d->spool, r->topic);
	} else if (d->state == RUNNING) {
		/* The first failure has the cause; those of recalled records after it do not. */
		set_failure(d, reason, detail);
		d->state = RECALLING;
		d->was_recalled = false;
		wake(d);
	}
	land(d, r->topic);
}

/* Offers the output records of all topics again, but for those of which some are still on their way. */
static void
unblock(struct delivery *d)
{
	d->is_blocked = false;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (!d->has_failed[t])
			spool_release(d->spool, (enum topic)t);
	}
}

/*
 * Hands out the records of all topics again, from the oldest on: those of a topic with dead letters on their way once
 * these are written, because what is given up would be handed out as well.
 */
static void
rewind_all(struct delivery *d)
{
	d->stats.rewinds++;
	memset(d->has_failed, 0, sizeof(d->has_failed));
	if (d->n_given_up == 0) {
		spool_rewind(d->spool);
		return;
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		d->has_failed[t] = d->letters[t] > 0;
		if (d->has_failed[t])
			spool_hold(d->spool, (enum topic)t);
		else
			spool_rewind_topic(d->spool, (enum topic)t);
	}
}

/* Hands out the records of topics that have failed again, from the oldest on. */
static void
rewind_topics(struct delivery *d)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (!d->has_failed[t] || d->out[t] > 0)
			continue;
		d->has_failed[t] = false;
		spool_rewind_topic(d->spool, (enum topic)t);
		spool_release(d->spool, (enum topic)t);
		d->stats.rewinds++;
	}
}

static void
on_ready(void *arg)
{
	struct delivery *d = arg;

	unblock(d);
	wake(d);
}

static void
pause_for(struct delivery *d)
{
	struct timeval tv = { d->pause_ms / 1000, d->pause_ms % 1000 * 1000 };

	d->state = PAUSED;
	d->pause_ms = d->pause_ms > d->pause_max_ms / 2 ? d->pause_max_ms : 2 * d->pause_ms;
	evtimer_add(d->pump, &tv);
}

/* Puts back the record that the output has not taken. reason: why only those of its topic; NULL: it takes none. */
static void
block(struct delivery *d, enum topic topic, const char *reason)
{
	struct delivery_wait *w = &d->stats.waits[topic];

	spool_unget(d->spool);
	if (reason == NULL) {
		d->is_blocked = true;
		return;
	}
	spool_hold(d->spool, topic);
	if (w->reason == NULL)
		w->since_us = clock_us(CLOCK_REALTIME);
	w->reason = reason;
}

/* Hands over records until the spool is empty, the output is full, or this turn's share is used up. */
static void
hand_over(struct delivery *d)
{
	struct spool_record record;

	for (unsigned n = 0; n < d->per_turn; n++) {
		const char *reason = NULL;
		int r;

		if (!spool_next(d->spool, &record)) {
			if (spool_is_interrupted(d->spool))
				wake(d);
			return;
		}
		/* Their disk hangs, or is slow: what is given up is not to fill the memory. */
		if (d->letters[record.topic] > 0 && dead_letters_waiting(d->dead) > LETTERS_MAX) {
			block(d, record.topic, "dead_letters_wait");
			continue;
		}
		r = d->output->ops->put(d->output, &record, &reason);
		if (r == -EAGAIN) {
			block(d, record.topic, reason);
			if (d->is_blocked)
				return;
			continue;
		}
		d->stats.waits[record.topic].reason = NULL;
		d->stats.in_flight++;
		d->out[record.topic]++;
		if (r < 0) {
			dead_letter(d, &record, reason != NULL ? reason : "refused", strerror(-r));
			continue;
		}
		if (record.is_again)
			d->stats.redelivered[record.topic]++;
	}
	wake(d);
}

static void
check_drained(struct delivery *d)
{
	void (*on_drained)(bool is_empty, void *arg) = d->on_drained;

	/* No record to hand out does not mean drained: some may not be synced yet, and others are in flight. */
	if (on_drained == NULL || !spool_is_drained(d->spool))
		return;
	d->on_drained = NULL;
	event_del(d->deadline);
	on_drained(true, d->drained_arg);	/* last: it may close the delivery */
}

static void
on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct delivery *d = arg;

	(void)fd;
	(void)what;
	if (d->output == NULL)
		return;
	if (d->state == PAUSED)
		d->state = RUNNING;
	if (d->state == RECALLING && !d->was_recalled) {
		d->was_recalled = true;
		d->output->ops->recall(d->output);
	}
	if (d->state == RECALLING && has_answers(d)) {
		rewind_all(d);
		unblock(d);
		pause_for(d);
		return;
	}
	if (d->state == RUNNING)
		rewind_topics(d);
	if (d->state == RUNNING && !d->is_blocked)
		hand_over(d);
	if (d->state == RUNNING)
		check_drained(d);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct delivery *d = arg;
	void (*on_drained)(bool is_empty, void *arg) = d->on_drained;

	(void)fd;
	(void)what;
	d->on_drained = NULL;
	if (on_drained != NULL)
		on_drained(false, d->drained_arg);
}

int
delivery_open(struct event_base *base, struct spool *spool, const struct delivery_options *o,
    struct output_events *ret_events, struct delivery **ret)
{
	struct delivery *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->spool = spool;
	d->dead = o->dead;
	d->per_turn = o->per_turn != 0 ? o->per_turn : DEFAULT_PER_TURN;
	d->pause_min_ms = o->pause_min_ms != 0 ? o->pause_min_ms : DEFAULT_PAUSE_MIN_MS;
	d->pause_max_ms = o->pause_max_ms != 0 ? o->pause_max_ms : DEFAULT_PAUSE_MAX_MS;
	d->pause_ms = d->pause_min_ms;
	d->pump = evtimer_new(base, on_pump, d);
	d->deadline = evtimer_new(base, on_deadline, d);
	if (d->pump == NULL || d->deadline == NULL) {
		delivery_close(d);
		return -ENOMEM;
	}
	*ret_events = (struct output_events){ .delivered = on_delivered, .failed = on_failed,
	    .ready = on_ready, .arg = d };
	*ret = d;
	return 0;
}

void
delivery_set_output(struct delivery *d, struct output *output)
{
	d->output = output;
	wake(d);
}

void
delivery_close(struct delivery *d)
{
	if (d == NULL)
		return;
	/* Close the output first: it may still report deliveries. */
	if (d->output != NULL)
		d->output->ops->close(d->output);
	if (d->pump != NULL)
		event_free(d->pump);
	if (d->deadline != NULL)
		event_free(d->deadline);
	free(d->given_up);	/* their letters may not be on the disk: they are handed over again */
	free(d);
}

void
delivery_wake(struct delivery *d)
{
	if (d->state == RUNNING && !d->is_blocked && spool_has_more(d->spool))
		wake(d);
}

void
delivery_tick(struct delivery *d, int64_t now_us)
{
	if (d->output == NULL)
		return;
	settle_dead_letters(d);
	d->output->ops->tick(d->output, now_us);
	if (d->on_drained != NULL)
		d->output->ops->flush(d->output);
	/* One attempt is cheap; after a missed ready(), delivery would stop forever. */
	unblock(d);
	/*
	 * No event wakes the pump for records that were synced since they were committed, or after its timer
	 * failed.
	 */
	if (d->state != RUNNING || spool_has_more(d->spool) || d->on_drained != NULL)
		wake(d);
}

void
delivery_flush(struct delivery *d)
{
	delivery_wake(d);
	if (d->output != NULL)
		d->output->ops->flush(d->output);
}

void
delivery_drain(struct delivery *d, uint32_t timeout_ms,
    void (*on_done)(bool is_empty, void *arg), void *arg)
{
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	d->on_drained = on_done;
	d->drained_arg = arg;
	spool_limit_to_committed(d->spool);
	if (event_add(d->deadline, &tv) < 0)
		event_active(d->deadline, EV_TIMEOUT, 0);	/* without a timer, end the drain at once */
	if (d->output != NULL)
		d->output->ops->flush(d->output);
	wake(d);
}

void
delivery_stats(const struct delivery *d, struct delivery_stats *ret)
{
	*ret = d->stats;
}
