/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: the output without enough memory, descriptors or threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "kafka/client.h"
#include "kafka/frame.h"
#include "threads.h"

#define SECOND INT64_C(1000000)

/* Texts of unique lengths, so that their copies can be recognised. */
#define BROKER "a-broker-of-a-name-that-is-as-long-as-no-other-text-that-is-copied-while-an-output-opens.example:9092"
#define VERSION "1.2.3-of-a-version-that-is-as-long-as-no-other-text-that-is-copied-while-an-output-opens+another-length"

static struct event_base *base;
static struct output *output;
static char error[256];
static unsigned ready;

static void
on_ready(void *arg)
{
	(void)arg;
	ready++;
}

static const struct output_events events = { .ready = on_ready };	/* nothing is delivered */

static int
setup(void **state)
{
	(void)state;
	/* The descriptor that must not be closed, see below. */
	if (fcntl(STDIN_FILENO, F_GETFD, 0) < 0 && open("/dev/null", O_RDONLY) != STDIN_FILENO)
		return -1;
	base = event_base_new();
	output = NULL;
	error[0] = '\0';
	return base == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	if (output != NULL)
		output->ops->close(output);
	event_base_free(base);
	return 0;
}

static int
open_one(const char *prefix)
{
	static const char *const brokers[] = { BROKER };
	struct kafka_options o = { .brokers = brokers, .n_brokers = 1, .agent_version = VERSION,
		.topic_prefix = prefix };

	return kafka_open(base, &o, &events, &output, error, sizeof(error));
}

/* The output is not opened, an error explains it, and the next attempt works; nothing leaks. */
static void
expect_refused(struct fault f, int want)
{
	int r;

	error[0] = '\0';
	fault = f;
	r = open_one("p.");
	fault.calls = 0;
	assert_int_not_equal(fault.hit, 0);
	assert_int_equal(r, want);
	assert_null(output);
	assert_true(error[0] != '\0');
	assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD, 0), -1);	/* not ours to close */
}

static void
without_memory_no_output_opens(void **state)
{
	static const struct {
		size_t size;
		unsigned skip;
		int error;
	} pieces[] = {
		{ sizeof(struct kafka), 0, -ENOMEM },
		{ sizeof(BROKER) + 1, 0, -EINVAL },		/* for librdkafka's configuration */
		{ sizeof(BROKER) + 1, 1, -ENOMEM },		/* and for the error */
		{ sizeof(VERSION), 0, -ENOMEM },
		{ sizeof(struct kafka_mailbox), 0, -ENOMEM },
		/* The mailbox is allocated before it, and may be as large. */
		{ sizeof(struct kafka_client), sizeof(struct kafka_client) == sizeof(struct kafka_mailbox), -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		expect_refused((struct fault){ .calls = FAULT_MEMORY, .size = pieces[i].size, .skip = pieces[i].skip,
		    .times = 1, .error = ENOMEM }, pieces[i].error);
		assert_string_equal(error, "out of memory");
	}
	/* A name and a subject for each topic. */
	for (unsigned n = 0; n < 2 * TOPIC_COUNT; n++) {
		expect_refused((struct fault){ .calls = FAULT_TEXT, .skip = n, .times = 1, .error = ENOMEM }, -ENOMEM);
		assert_string_equal(error, "out of memory");
	}
	assert_int_equal(open_one("p."), 0);
}

static void
without_room_in_the_loop_no_output_opens(void **state)
{
	unsigned n;

	(void)state;
	for (n = 0;; n++) {
		int r;

		event_base_free(base);
		base = event_base_new();
		error[0] = '\0';
		fault = (struct fault){ .calls = FAULT_LIBRARY, .skip = n, .times = 1, .error = ENOMEM };
		r = open_one("p.");
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_null(output);
		assert_string_equal(error, "out of memory");
	}
	assert_true(n >= 2);		/* the event, and the loop's list of them */
	assert_non_null(output);
}

static void
without_descriptors_no_output_opens(void **state)
{
	(void)state;
	expect_refused((struct fault){ .calls = FAULT_EVENT, .times = 1, .error = EMFILE }, -EMFILE);
	assert_non_null(strstr(error, strerror(EMFILE)));
	expect_refused((struct fault){ .calls = FAULT_DUP, .times = 1, .error = EMFILE }, -EMFILE);
	assert_int_equal(open_one("p."), 0);
}

static void
a_topics_name_that_is_too_long_is_reported(void **state)
{
	char prefix[600];

	(void)state;
	memset(prefix, 'x', sizeof(prefix));
	prefix[sizeof(prefix) - 1] = '\0';
	assert_int_equal(open_one(prefix), -EINVAL);
	assert_null(output);
	assert_memory_equal(error, "topic xxx", 9);
}

/* What the loop would leave to a thread is done at once: nothing is left behind. */
static void
without_a_thread_a_producer_is_taken_down_at_once(void **state)
{
	(void)state;
	assert_int_equal(open_one("p."), 0);
	fault = (struct fault){ .calls = FAULT_THREAD, .times = 1 };
	output->ops->close(output);
	output = NULL;
	assert_int_equal(fault.hit, FAULT_THREAD);
	assert_int_equal(fault.count, 1);
}

static void
without_a_thread_the_topics_are_asked_for_later(void **state)
{
	static const struct fault faults[] = {
		{ .calls = FAULT_THREAD, .times = 1 },
		{ .calls = FAULT_MEMORY, .size = 2 * sizeof(void *), .times = 1, .error = ENOMEM },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct kafka k = { .now_us = 100 * SECOND, .partitions = -1, .replication = -1 };
		struct kafka_options o = { 0 };

		k.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		k.conf = kafka_conf_new(&o, error, sizeof(error));
		assert_int_equal(kafka_topics_init(&k, NULL), 0);
		k.client = kafka_client_new(k.conf, k.topics, k.fd, error, sizeof(error));
		assert_non_null(k.client);
		fault = faults[i];
		kafka_topics_work(&k);
		fault.calls = 0;
		assert_int_equal(fault.hit, faults[i].calls);
		assert_false(k.is_asking);
		assert_int_equal(k.ask_at_us, k.now_us + SECOND / 2);
		/* There is no other reference. */
		assert_int_equal(k.mailbox->refs, 1);
		assert_int_equal(atomic_load(&k.client->refs), 1);
		kafka_topics_work(&k);
		assert_false(k.is_asking);	/* not before its time */
		kafka_client_unref(k.client);
		kafka_topics_done(&k);
		rd_kafka_conf_destroy(k.conf);
		close(k.fd);
	}
}

/* The output stays without one, reports it, and tries again after a while. */
static void
without_memory_a_producer_is_not_replaced_yet(void **state)
{
	const struct spool_record r = { .topic = TOPIC_RUN, .key = "k", .data = "x", .len = 1 };
	struct output_status status;
	struct kafka_stats stats;
	const char *reason;
	struct kafka *k;

	(void)state;
	assert_int_equal(open_one("p."), 0);
	k = (struct kafka *)output;
	k->retried_now = 5;
	output->ops->recall(output);
	ready = 0;
	for (int i = 0; i < 2; i++) {
		fault = (struct fault){ .calls = FAULT_MEMORY, .size = sizeof(struct kafka_client), .times = 1,
			.error = ENOMEM };
		k->replace_at_us = 0;
		output->ops->tick(output, 0);
		fault.calls = 0;
		assert_int_equal(fault.hit, FAULT_MEMORY);
		output->ops->status(output, &status);
		assert_int_equal(status.state, OUTPUT_DOWN);
		assert_string_equal(status.error, "cannot create a producer: out of memory");
		assert_int_equal(ready, 0);
		assert_int_equal(output->ops->put(output, &r, &reason), -EAGAIN);
		output->ops->flush(output);
		output->ops->recall(output);
		output->ops->tick(output, 0);		/* not at once */
		event_base_loop(base, EVLOOP_NONBLOCK);
		kafka_stats(output, &stats);
		assert_int_equal(stats.producers, 1);
	}
	k->replace_at_us = 0;
	output->ops->tick(output, 0);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 2);
	assert_int_equal(ready, 1);
	assert_int_equal(k->retried_before, 5);
}

static void
a_frame_without_memory_is_none(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	fault = (struct fault){ .calls = FAULT_MEMORY, .times = 1, .error = ENOMEM };
	assert_int_equal(kafka_frame(&b, 7, "abc", 3), -ENOMEM);
	assert_int_equal(b.len, 0);
	assert_int_equal(kafka_frame(&b, 7, "abc", 3), 0);
	assert_int_equal(b.len, KAFKA_FRAME_BYTES + 3);
	bytes_done(&b);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_memory_no_output_opens),
		T(without_room_in_the_loop_no_output_opens),
		T(without_descriptors_no_output_opens),
		T(a_topics_name_that_is_too_long_is_reported),
		T(without_a_thread_a_producer_is_taken_down_at_once),
		T(without_a_thread_the_topics_are_asked_for_later),
		T(without_memory_a_producer_is_not_replaced_yet),
		T(a_frame_without_memory_is_none),
	};

	/* Before libevent does anything. */
	event_set_mem_functions(fault_library_alloc, fault_library_grow, free);
	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
