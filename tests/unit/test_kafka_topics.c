/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_topics: the effects of answers that a test or a mock broker puts into the mailbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kafka/client.h"
#include "threads.h"

#define SECOND INT64_C(1000000)

static struct kafka k;
static unsigned ready;
static char brokers[] = "a:1,b:2";
static char error[256];

static void
on_ready(void *arg)
{
	assert_ptr_equal(arg, &ready);
	ready++;
}

/* As kafka_open() leaves it, but that nothing is asked by itself. */
static int
setup(void **state)
{
	struct kafka_property p[] = { { "test.mock.num.brokers", "1" } };
	struct kafka_options o = { .properties = p, .n_properties = 1 };

	(void)state;
	memset(&k, 0, sizeof(k));
	ready = 0;
	k.events.ready = on_ready;
	k.events.arg = &ready;
	k.brokers = brokers;
	k.partitions = k.replication = -1;
	k.now_us = 100 * SECOND;
	k.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	k.conf = kafka_conf_new(&o, error, sizeof(error));
	if (k.conf == NULL || kafka_topics_init(&k, "p.") < 0)
		return -1;
	k.client = kafka_client_new(k.conf, k.topics, k.fd, error, sizeof(error));
	k.ask_at_us = INT64_MAX;
	return k.client == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	kafka_client_release(k.client);
	kafka_topics_done(&k);
	rd_kafka_conf_destroy(k.conf);
	close(k.fd);
	return 0;
}

/* The answer of a thread that asked: this for one topic, all others are there. */
static void
answers(enum topic topic, rd_kafka_resp_err_t err)
{
	k.is_asking = true;
	k.mailbox->error = RD_KAFKA_RESP_ERR_NO_ERROR;
	for (int t = 0; t < TOPIC_COUNT; t++)
		k.mailbox->topic_errors[t] = t == (int)topic ? err : RD_KAFKA_RESP_ERR_NO_ERROR;
	k.mailbox->is_full = true;
	kafka_topics_work(&k);
}

static void
names_have_the_prefix(void **state)
{
	struct kafka other = { .fd = k.fd };

	(void)state;
	assert_string_equal(k.topics[TOPIC_PROGRAM].name, "p.sluice.program");
	assert_string_equal(k.topics[TOPIC_PROGRAM].subject, "p.sluice.program-value");
	assert_int_equal(kafka_topics_init(&other, NULL), 0);
	assert_string_equal(other.topics[TOPIC_RUN].name, "sluice.run");
	kafka_topics_done(&other);
	assert_int_equal(k.client->rk == NULL, 0);
	assert_string_equal(rd_kafka_topic_name(k.client->topics[TOPIC_TASK]), "p.sluice.task");
}

static void
topics_that_are_there_are_reported_once(void **state)
{
	(void)state;
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	strcpy(k.stats.missing_topic, "x");
	k.is_waiting = true;
	k.ask_pause_us = 8 * SECOND;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(ready, 1);
	assert_false(k.is_asking);
	assert_false(k.is_waiting);
	assert_string_equal(k.stats.missing_topic, "");
	assert_int_equal(k.ask_pause_us, SECOND / 2);
	assert_int_equal(k.ask_at_us, k.now_us + 8 * SECOND);
	assert_false(k.mailbox->is_full);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_true(kafka_topic_is_there(&k, t));
		assert_false(k.topics[t].is_wanted);
	}
	kafka_topics_work(&k);		/* the mailbox is empty */
	assert_int_equal(k.ask_pause_us, SECOND / 2);
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(ready, 1);	/* nothing new */
	assert_int_equal(k.ask_pause_us, SECOND);
}

static void
pauses_double_to_a_bound(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_in_range(k.ask_pause_us, 10 * SECOND, 20 * SECOND);
	k.ask_pause_us = 10 * SECOND;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(k.ask_pause_us, 10 * SECOND);
}

static void
one_that_is_missing_is_complained_of_once_it_is_wanted(void **state)
{
	(void)state;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_MISSING);
	assert_int_equal(k.topics[TOPIC_RUN].state, KAFKA_TOPIC_THERE);
	assert_int_equal(k.status.state, OUTPUT_STARTING);
	assert_true(kafka_topics_any_there(&k));
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_int_equal(k.status.state, OUTPUT_STARTING);	/* the others are there */
	assert_string_equal(k.stats.missing_topic, "p.sluice.task");
	assert_string_equal(k.status.error, "topic p.sluice.task is missing; create it: kafka-topics.sh "
	    "--bootstrap-server a:1,b:2 --create --topic p.sluice.task");
	/* Known already: not at each record. */
	k.status.error[0] = '\0';
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_string_equal(k.status.error, "");
	/* But with each answer. */
	k.partitions = 1;
	k.replication = 1;
	k.status.state = OUTPUT_UP;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
	assert_int_equal(k.status.state, OUTPUT_UP);
	assert_non_null(strstr(k.status.error, "--topic p.sluice.task --partitions 1 --replication-factor 1"));
	k.partitions = k.replication = -1;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_null(strstr(k.status.error, "--partitions"));
	assert_false(k.is_creating);
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_true(kafka_topic_is_there(&k, TOPIC_TASK));
}

static void
without_any_topic_the_output_is_down(void **state)
{
	(void)state;
	assert_false(kafka_topics_any_there(&k));
	for (int t = 0; t < TOPIC_COUNT; t++)
		k.topics[t].state = KAFKA_TOPIC_MISSING;
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_int_equal(k.status.state, OUTPUT_DOWN);
	assert_false(kafka_topics_any_there(&k));
}

static void
what_an_answer_does_not_say_stays_as_it_is(void **state)
{
	(void)state;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_UNKNOWN);
	assert_int_equal(k.topics[TOPIC_RUN].state, KAFKA_TOPIC_THERE);
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);	/* reports are better */
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_THERE);
	assert_int_equal(ready, 2);

	k.is_asking = true;
	k.mailbox->error = RD_KAFKA_RESP_ERR__TRANSPORT;
	k.mailbox->topic_errors[TOPIC_TASK] = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	k.mailbox->is_full = true;
	k.now_us += 3 * SECOND;
	kafka_topics_work(&k);
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_THERE);
	assert_false(k.is_asking);
	assert_int_equal(k.ask_at_us, k.now_us + SECOND / 2);
	assert_int_equal(ready, 2);
}

/* It is requested again after a pause, which doubles until a record is delivered. */
static void
one_that_is_refused_waits_longer_each_time(void **state)
{
	struct kafka_topic *t = &k.topics[TOPIC_TASK];

	(void)state;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	kafka_topic_refused(&k, TOPIC_TASK, "policy_violation", "no");
	kafka_topic_refused(&k, TOPIC_TASK, "policy_violation", "no");	/* another of the same batch */
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_int_equal(t->refused_pause_us, SECOND / 2);
	assert_int_equal(k.ask_at_us, k.now_us + SECOND / 2);
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_true(kafka_topic_is_there(&k, TOPIC_RUN));
	ready = 0;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);	/* too early */
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_int_equal(ready, 0);
	k.now_us += SECOND;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_int_equal(t->refused_pause_us, SECOND);
	assert_string_equal(t->refusal, "topic_authorization_failed");
	k.now_us += SECOND;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(t->state, KAFKA_TOPIC_THERE);
	assert_int_equal(ready, 1);

	/* One record tries it. */
	assert_true(kafka_topic_is_there(&k, TOPIC_TASK));
	kafka_topic_tried(&k, TOPIC_TASK);
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	kafka_topic_answered(&k, TOPIC_TASK, false);
	kafka_topic_refused(&k, TOPIC_TASK, "policy_violation", "no");
	assert_int_equal(t->refused_pause_us, 2 * SECOND);
	for (int i = 0; i < 10; i++)
		answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(t->refused_pause_us, 10 * SECOND);
	k.now_us += 10 * SECOND;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	kafka_topic_tried(&k, TOPIC_TASK);
	ready = 0;
	kafka_topic_answered(&k, TOPIC_TASK, true);
	assert_int_equal(ready, 1);
	kafka_topic_tried(&k, TOPIC_TASK);
	assert_true(kafka_topic_is_there(&k, TOPIC_TASK));
	kafka_topic_answered(&k, TOPIC_TASK, true);
	assert_int_equal(ready, 1);
	kafka_topic_refused(&k, TOPIC_TASK, "policy_violation", "no");
	assert_int_equal(t->refused_pause_us, SECOND / 2);
}

static void
one_that_was_lost_is_looked_for_at_once(void **state)
{
	(void)state;
	kafka_topic_lost(&k, TOPIC_TASK);	/* not known to be there: no news */
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_UNKNOWN);
	assert_int_equal(k.status.state, OUTPUT_STARTING);
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	strcpy(k.topics[TOPIC_TASK].error, "of another time");
	k.ask_pause_us = 8 * SECOND;
	k.ask_at_us = INT64_MAX;
	k.create_topics = true;
	kafka_topic_lost(&k, TOPIC_TASK);
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_MISSING);
	assert_true(k.topics[TOPIC_TASK].is_wanted);
	assert_int_equal(k.ask_at_us, k.now_us);
	assert_int_equal(k.ask_pause_us, SECOND / 2);
	assert_string_equal(k.stats.missing_topic, "p.sluice.task");
	assert_int_equal(k.status.state, OUTPUT_STARTING);	/* it will be made: no complaint yet */
}

/* Works until the mailbox has been filled and taken, for some seconds. */
static void
work_until_answered(void)
{
	struct pollfd p = { .fd = k.fd, .events = POLLIN };
	eventfd_t n;

	for (int i = 0; i < 200 && k.is_asking; i++) {
		(void)poll(&p, 1, 50);
		(void)!eventfd_read(k.fd, &n);
		kafka_topics_work(&k);
	}
	assert_false(k.is_asking);
}

static void
asking_has_its_time_and_its_reasons(void **state)
{
	(void)state;
	k.ask_at_us = k.now_us + 1;
	kafka_topics_work(&k);
	assert_false(k.is_asking);
	k.now_us++;
	k.is_failed = true;
	kafka_topics_work(&k);
	assert_false(k.is_asking);
	k.is_failed = false;
	k.is_creating = true;
	kafka_topics_work(&k);
	assert_false(k.is_asking);
	k.is_creating = false;
	kafka_topics_work(&k);
	assert_true(k.is_asking);
	assert_int_equal(k.ask_at_us, k.now_us + SECOND / 2);
	k.ask_at_us = INT64_MAX;
	work_until_answered();		/* the mock broker has every requested topic */
	assert_int_equal(ready, 1);
	k.ask_at_us = 0;
	kafka_topics_work(&k);
	assert_false(k.is_asking);	/* all there: no reason */
	k.topics[TOPIC_RUN].state = KAFKA_TOPIC_MISSING;
	kafka_topics_work(&k);
	assert_false(k.is_asking);	/* it is not needed */
	k.topics[TOPIC_RUN].is_wanted = true;
	kafka_topics_work(&k);
	assert_true(k.is_asking);
	k.ask_at_us = INT64_MAX;
	work_until_answered();
	assert_true(kafka_topic_is_there(&k, TOPIC_RUN));
}

static void
creating_waits_for_a_reason(void **state)
{
	(void)state;
	k.create_topics = true;
	k.is_recalling = true;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_false(k.is_creating);		/* that producer is about to go */
	k.is_recalling = false;
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_false(k.is_creating);		/* none is missing */
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_true(k.is_creating);
}

static void
why_a_topic_cannot_be_created_is_reported(void **state)
{
	(void)state;
	k.create_topics = true;
	k.partitions = 200000;		/* more than librdkafka allows */
	answers(TOPIC_TASK, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_false(k.is_creating);
	assert_non_null(strstr(k.topics[TOPIC_TASK].error, "num_partitions"));
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_non_null(strstr(k.status.error, "topic p.sluice.task is missing and cannot be created: num_partitions"));
	assert_int_equal(k.status.state, OUTPUT_STARTING);	/* the others are there */
}

/* With two that are missing only the one that is wanted is complained of. */
static void
the_other_topics_are_left_as_they_are(void **state)
{
	(void)state;
	k.is_asking = true;
	k.mailbox->error = RD_KAFKA_RESP_ERR_NO_ERROR;
	for (int t = 0; t < TOPIC_COUNT; t++)
		k.mailbox->topic_errors[t] = t < 2 ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : 0;
	k.topics[1].is_wanted = true;
	k.mailbox->is_full = true;
	kafka_topics_work(&k);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_int_equal(k.topics[t].state, t < 2 ? KAFKA_TOPIC_MISSING : KAFKA_TOPIC_THERE);
		assert_int_equal(k.topics[t].is_wanted, t == 1);
	}
	assert_string_equal(k.stats.missing_topic, k.topics[1].name);
	assert_int_equal(ready, 1);
}

static unsigned n_reported;

static void
on_told(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
	(void)rk;
	(void)m;
	(void)arg;
	n_reported++;
}

/* A message that is taken back at once. */
static void
make_event(struct kafka_client *c)
{
	char text[] = "x";

	n_reported = 0;
	while (rd_kafka_poll(c->rk, 0) > 0)
		;	/* only the first event of a queue is signalled */
	assert_int_equal(rd_kafka_produce(c->topics[0], 0, RD_KAFKA_MSG_F_COPY, text, 1, NULL, 0, NULL), 0);
	rd_kafka_purge(c->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	for (int i = 0; i < 100 && n_reported == 0; i++)
		rd_kafka_poll(c->rk, 100);
	assert_int_equal(n_reported, 1);
}

/* The descriptor may be closed by then, and its number reused. */
static void
a_producer_that_was_released_wakes_nobody(void **state)
{
	struct pollfd p = { .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .events = POLLIN };
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(k.conf);
	struct kafka_client *c;
	eventfd_t n;

	(void)state;
	rd_kafka_conf_set_dr_msg_cb(conf, on_told);
	c = kafka_client_new(conf, k.topics, p.fd, error, sizeof(error));
	assert_non_null(c);
	make_event(c);
	assert_int_equal(poll(&p, 1, 0), 1);	/* this output is notified of its own ones */
	kafka_client_ref(c);
	kafka_client_release(c);
	for (int i = 0; i < 5000 && atomic_load(&c->refs) > 1; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&c->refs), 1);	/* ours: the other was given back, once */
	assert_int_equal(eventfd_read(p.fd, &n), 0);
	make_event(c);
	assert_int_equal(poll(&p, 1, 0), 0);
	kafka_client_unref(c);
	rd_kafka_conf_destroy(conf);
	close(p.fd);
}

static struct {
	atomic_bool is_done;
	bool was_detached, had_signals;
} thread;

static void *
look_at_oneself(void *arg)
{
	sigset_t blocked;
	int detached = PTHREAD_CREATE_JOINABLE;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	thread.had_signals = !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGINT);
	/* Who has started it may have to be given a moment. */
	for (int i = 0; i < 500 && detached != PTHREAD_CREATE_DETACHED; i++) {
		pthread_attr_t attributes;

		if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
			pthread_attr_getdetachstate(&attributes, &detached);
			pthread_attr_destroy(&attributes);
		}
		usleep(1000);
	}
	thread.was_detached = detached == PTHREAD_CREATE_DETACHED;
	atomic_store(&thread.is_done, true);
	return arg;
}

static void
threads_are_nobodys_and_hear_no_signals(void **state)
{
	sigset_t blocked;

	(void)state;
	assert_int_equal(kafka_thread_start(look_at_oneself, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);	/* the starting thread still receives them */
	assert_false(sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGINT));
	for (int i = 0; i < 5000 && !atomic_load(&thread.is_done); i++)
		usleep(1000);
	assert_true(atomic_load(&thread.is_done));
	assert_true(thread.was_detached);
	assert_false(thread.had_signals);
}

static void
without_a_producer_nothing_is_done(void **state)
{
	struct kafka_client *c = k.client;

	(void)state;
	k.client = NULL;
	k.ask_at_us = 0;
	k.mailbox->is_full = true;
	kafka_topics_work(&k);
	assert_true(k.mailbox->is_full);
	k.client = c;
	assert_false(k.is_asking);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_have_the_prefix),
		T(topics_that_are_there_are_reported_once),
		T(pauses_double_to_a_bound),
		T(one_that_is_missing_is_complained_of_once_it_is_wanted),
		T(without_any_topic_the_output_is_down),
		T(what_an_answer_does_not_say_stays_as_it_is),
		T(one_that_is_refused_waits_longer_each_time),
		T(one_that_was_lost_is_looked_for_at_once),
		T(asking_has_its_time_and_its_reasons),
		T(creating_waits_for_a_reason),
		T(why_a_topic_cannot_be_created_is_reported),
		T(the_other_topics_are_left_as_they_are),
		T(a_producer_that_was_released_wakes_nobody),
		T(threads_are_nobodys_and_hear_no_signals),
		T(without_a_producer_nothing_is_done),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
