/*
 * SPDX-License-Identifier: Apache-2.0
 * client: a producer with its topics and queues, the threads that destroy it, and its last error.
 */
#include "kafka/client.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ca_bundle.h"
#include "base/clock.h"
#include "base/libc.h"

/* Number of producers, with those that are being destroyed. */
static atomic_uint producers;

bool
kafka_process_wait(unsigned ms)
{
	for (; ms > 0 && atomic_load(&producers) > 0; ms--)
		usleep(1000);
	return atomic_load(&producers) == 0;
}

void
kafka_process_init(void)
{
	/*
	 * librdkafka often frees memory in another thread than allocated it, which makes glibc merge fastbins
	 * repeatedly.
	 */
	mallopt(M_MXFAST, 0);
	/*
	 * Brokers without an ssl.ca.location, and the token endpoint of OIDC, for which librdkafka before 2.11 has no
	 * property at all.
	 */
	ca_bundle_set_default(ca_bundle_paths);
	/* The first call in a process sets the options. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static void
set_error(struct kafka *k, const char *format, va_list ap)
{
	vsnprintf(k->status.error, sizeof(k->status.error), format, ap);
	/* The error is shown on terminals, and may contain text from a broker. */
	for (char *c = k->status.error; *c != '\0'; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	k->status.error_us = clock_us(CLOCK_REALTIME);
}

void
kafka_set_error(struct kafka *k, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	set_error(k, format, ap);
	va_end(ap);
}

void
kafka_set_down(struct kafka *k, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	set_error(k, format, ap);
	va_end(ap);
	k->status.state = OUTPUT_DOWN;
}

int
kafka_thread_start(void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	/* Signals are delivered to the loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_detach(thread);
	return -r;
}

void
kafka_client_ref(struct kafka_client *c)
{
	atomic_fetch_add(&c->refs, 1);
}

void
kafka_client_unref(struct kafka_client *c)
{
	if (c == NULL || atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	if (c->admin_queue != NULL)
		rd_kafka_queue_destroy(c->admin_queue);
	if (c->main_queue != NULL)
		rd_kafka_queue_destroy(c->main_queue);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (c->topics[t] != NULL)
			rd_kafka_topic_destroy(c->topics[t]);
	}
	if (c->rk != NULL) {
		rd_kafka_purge(c->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
		    RD_KAFKA_PURGE_F_NON_BLOCKING);
		rd_kafka_destroy_flags(c->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	}
	free(c);
	atomic_fetch_sub(&producers, 1);
}

static void *
unref(void *arg)
{
	kafka_client_unref(arg);
	return NULL;
}

void
kafka_client_release(struct kafka_client *c)
{
	if (c == NULL)
		return;
	/* The queue must not write to the loop's fd any more, which may be closed soon. */
	rd_kafka_queue_io_event_enable(c->main_queue, -1, NULL, 0);
	/* If no thread can be started, this waits here, usually for some milliseconds. */
	if (kafka_thread_start(unref, c) < 0)
		kafka_client_unref(c);
}

static rd_kafka_topic_t *
new_topic(rd_kafka_t *rk, const char *name, enum topic topic)
{
	rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(rk);

	rd_kafka_topic_conf_set_opaque(conf, (void *)(uintptr_t)topic);
	return rd_kafka_topic_new(rk, name, conf);	/* frees conf on failure as well */
}

struct kafka_client *
kafka_client_new(const rd_kafka_conf_t *template, const struct kafka_topic *topics, int fd,
    char *error, size_t error_size)
{
	static const uint64_t one = 1;
	struct kafka_client *c = calloc(1, sizeof(*c));
	rd_kafka_conf_t *conf;

	if (c == NULL) {
		snprintf(error, error_size, "out of memory");
		return NULL;
	}
	atomic_init(&c->refs, 1);
	atomic_fetch_add(&producers, 1);
	conf = rd_kafka_conf_dup(template);
	c->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, error_size);
	if (c->rk == NULL) {
		rd_kafka_conf_destroy(conf);
		goto fail;
	}
	rd_kafka_set_log_queue(c->rk, NULL);	/* logs to the main queue */
	c->main_queue = rd_kafka_queue_get_main(c->rk);
	c->admin_queue = rd_kafka_queue_new(c->rk);
	rd_kafka_queue_io_event_enable(c->main_queue, fd, &one, sizeof(one));
	for (int t = 0; t < TOPIC_COUNT; t++) {
		c->topics[t] = new_topic(c->rk, topics[t].name, t);
		if (c->topics[t] == NULL) {
			snprintf(error, error_size, "topic %s: %s", topics[t].name,
			    rd_kafka_err2str(rd_kafka_last_error()));
			goto fail;
		}
	}
	return c;

fail:
	kafka_client_unref(c);
	return NULL;
}
