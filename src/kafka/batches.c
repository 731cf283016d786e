/*
 * SPDX-License-Identifier: Apache-2.0
 * batches: what the next producer sends otherwise because a broker has refused a batch, and for how long.
 *
 * A broker takes or refuses a batch as a whole, and the record at fault is not always known from its answer. The
 * records of a refused batch come again from the spool, in order, and the next producer sends them
 *
 *	without a timestamp		if the records may be at fault: for TIMELESS_MIN_US or longer
 *	each in a batch of its own	if they were refused without one, too: until all of that batch are handed over
 *	in batches of half the size	if the batch is too large: the limit is doubled after GROW_MIN_US or longer
 *
 * A record that is alone in its batch and refused is at fault itself. A few of them in a row show that it is not the
 * records: the topic has a rule of which the agent does not know. It waits, as for its rights.
 *
 * A broker compares timestamps with its own clock, and ours may be any time ahead of it or behind. No time that we
 * could choose is certain to be accepted, but a message without one is: the record has its time as a field. librdkafka
 * reports a refused timestamp as an invalid record where a batch has several of them, so that both errors lead to
 * messages without timestamps first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/format.h"
#include "kafka/client.h"

#define TIMELESS_MIN_US (INT64_C(10) * 60 * 1000000)
#define TIMELESS_MAX_US (INT64_C(60) * 60 * 1000000)
#define GROW_MIN_US (INT64_C(10) * 60 * 1000000)
#define GROW_MAX_US (INT64_C(8) * 60 * 60 * 1000000)
#define REFUSED_IN_ROW 8
#define CLOCK_US (INT64_C(10) * 60 * 1000000)	/* a record whose time is so close to now shows what our clock is */

static void
report(struct kafka *k, const char *facility, const char *text)
{
	if (k->on_log != NULL)
		k->on_log(4, facility, text, k->arg);
}

static int64_t
doubled(int64_t pause_us, int64_t min_us, int64_t max_us)
{
	if (pause_us == 0)
		return min_us;
	return pause_us > max_us / 2 ? max_us : 2 * pause_us;
}

/* --- judging what a broker has refused --- */

/* Explains, for status and log, why a topic's messages have no timestamp from now on. */
static void
explain_time(struct kafka *k, const struct kafka_topic *t, int64_t time_us)
{
	int64_t age_us = clock_us(CLOCK_REALTIME) - time_us;
	char age[FORMAT_SIZE];

	format_duration((uint64_t)(age_us < 0 ? -age_us : age_us) * 1000, age, sizeof(age));
	if (age_us > CLOCK_US)
		snprintf(k->status.warning, sizeof(k->status.warning), "messages to topic %s have no timestamp, because "
		    "the broker has refused a record that is %s old: see message.timestamp.before.max.ms of the topic",
		    t->name, age);
	else
		snprintf(k->status.warning, sizeof(k->status.warning), "messages to topic %s have no timestamp, because "
		    "the broker has refused the present time of this host: its clock and the broker's differ by more "
		    "than message.timestamp.after.max.ms of the topic", t->name);
}

static void
want_larger(struct kafka *k)
{
	if (!k->wants_larger)
		k->wants_larger_us = k->now_us;
	k->wants_larger = true;
}

/* Asks for larger batches once no topic has records to be sent apart; those of one that waits may be refused again. */
static void
end_apart(struct kafka *k)
{
	bool is_left = false;

	for (int t = 0; t < TOPIC_COUNT; t++)
		is_left |= k->topics[t].apart_before > 0 && k->topics[t].state != KAFKA_TOPIC_REFUSED;
	if (k->is_apart && !is_left)
		want_larger(k);
}

/* Judges a record that was refused alone, without a timestamp. */
static enum output_failure
judge_alone(struct kafka *k, enum topic topic, const char *reason)
{
	struct kafka_topic *t = &k->topics[topic];

	t->timeless_until_us = 0;	/* its time was not at fault */
	if (++t->refused_in_row < REFUSED_IN_ROW)
		return OUTPUT_NEVER;
	t->apart_before = 0;
	end_apart(k);
	kafka_topic_refused(k, topic, reason, "several records in a row, each of them alone");
	return OUTPUT_TOPIC_AGAIN;
}

enum output_failure
kafka_batch_refused(struct kafka *k, const struct spool_record *r, size_t bytes, struct kafka_failure *f)
{
	struct kafka_topic *t = &k->topics[r->topic];
	bool is_apart = bytes >= (size_t)kafka_batch_limit(k);

	/* The one record that tries a topic again is alone. */
	if (f->remedy == KAFKA_BATCH_REFUSED && t->refused_in_row >= REFUSED_IN_ROW)
		return judge_alone(k, r->topic, f->reason);
	if (f->remedy == KAFKA_BATCH_TOO_LARGE) {
		if (is_apart)
			return OUTPUT_NEVER;
		f->reason = "batch_too_large";
		k->wants_smaller = true;
	} else if (!t->is_timeless) {
		if (!t->wants_timeless)
			explain_time(k, t, r->time_us);
		f->reason = "timestamp_refused";
		k->wants_timeless = t->wants_timeless = true;
	} else if (f->remedy == KAFKA_TIME_REFUSED) {
		kafka_topic_refused(k, r->topic, f->reason, "even messages without a timestamp");
		return OUTPUT_TOPIC_AGAIN;
	} else if (!is_apart) {
		f->reason = "batch_refused";
		k->wants_apart = true;
		if (r->id >= t->apart_before)
			t->apart_before = r->id + 1;
	} else {
		return judge_alone(k, r->topic, f->reason);
	}
	return OUTPUT_AGAIN;
}

bool
kafka_batches_want_other(const struct kafka *k)
{
	return k->wants_smaller || k->wants_apart || k->wants_timeless;
}

int
kafka_batch_limit(const struct kafka *k)
{
	return k->is_apart ? 1 : k->batch_bytes;
}

/* --- the next producer --- */

/* Halves the batch size, until batches are accepted or have one message. */
static void
shrink(struct kafka *k)
{
	char text[96];

	snprintf(text, sizeof(text), "a broker refuses batches of %d bytes: batch.size is halved", k->batch_bytes);
	report(k, "BATCH", text);
	k->batch_bytes = k->batch_bytes > 1 ? k->batch_bytes / 2 : 1;
	/* The limit is found by halving repeatedly; only after it was raised again in vain is the next time later. */
	if (k->has_grown || k->grow_pause_us == 0)
		k->grow_pause_us = doubled(k->grow_pause_us, GROW_MIN_US, GROW_MAX_US);
	k->has_grown = false;
	k->grow_at_us = k->now_us + k->grow_pause_us;
}

static void
grow(struct kafka *k)
{
	if (k->is_apart) {
		k->is_apart = false;
		return;
	}
	k->batch_bytes = k->batch_bytes > k->batch_bytes_max / 2 ? k->batch_bytes_max : 2 * k->batch_bytes;
	k->has_grown = true;
	k->grow_at_us = k->now_us + k->grow_pause_us;
}

static void
begin_timeless(struct kafka *k, struct kafka_topic *t)
{
	t->wants_timeless = false;
	t->is_timeless = true;
	t->timeless_pause_us = doubled(t->timeless_pause_us, TIMELESS_MIN_US, TIMELESS_MAX_US);
	t->timeless_until_us = k->now_us + t->timeless_pause_us;
	report(k, "TIME", k->status.warning);
}

void
kafka_batches_next(struct kafka *k)
{
	char value[16], error[256];

	if (!kafka_batches_want_other(k) && !k->wants_larger)
		return;
	if (k->wants_smaller)
		shrink(k);
	else if (k->wants_apart)
		k->is_apart = true;
	else if (k->wants_larger)
		grow(k);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (k->topics[t].wants_timeless)
			begin_timeless(k, &k->topics[t]);
	}
	k->wants_smaller = k->wants_apart = k->wants_larger = k->wants_timeless = false;
	snprintf(value, sizeof(value), "%d", kafka_batch_limit(k));
	(void)rd_kafka_conf_set(k->conf, "batch.size", value, error, sizeof(error));
}

/* --- back to what was configured --- */

void
kafka_batches_handed_over(struct kafka *k, const struct spool_record *r)
{
	if (r->id + 1 >= k->topics[r->topic].apart_before)
		k->topics[r->topic].apart_before = 0;
	end_apart(k);
}

void
kafka_batches_delivered(struct kafka *k, enum topic topic)
{
	k->topics[topic].refused_in_row = 0;
	if (!k->topics[topic].is_timeless)
		k->topics[topic].timeless_pause_us = 0;
}

void
kafka_batches_tick(struct kafka *k)
{
	bool is_timeless = k->wants_timeless;

	if (k->is_apart) {
		end_apart(k);
		return;
	}
	if (k->batch_bytes < k->batch_bytes_max && k->now_us >= k->grow_at_us)
		want_larger(k);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct kafka_topic *topic = &k->topics[t];

		if (topic->is_timeless && k->now_us >= topic->timeless_until_us)
			topic->is_timeless = false;
		is_timeless |= topic->is_timeless;
	}
	if (!is_timeless)
		k->status.warning[0] = '\0';
}
