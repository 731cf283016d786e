/*
 * SPDX-License-Identifier: Apache-2.0
 * kafka_broker: a broker on 127.0.0.1 that creates topics, which librdkafka's mock broker does not, and that
 * never answers records. It implements only the requests that this needs.
 */
#ifndef SLUICE_TESTS_UNIT_KAFKA_BROKER_H
#define SLUICE_TESTS_UNIT_KAFKA_BROKER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BROKER_PRODUCE = 0,
	BROKER_METADATA = 3,
	BROKER_API_VERSIONS = 18,
	BROKER_CREATE_TOPICS = 19,
};

enum broker_mood {
	BROKER_ANSWERS,
	BROKER_GARBLES,		/* answers to CreateTopics are cut off */
	BROKER_IS_SILENT,	/* CreateTopics is not answered */
};

/* The requests that the broker has seen. */
struct broker_seen {
	unsigned produced;		/* requests with records, which are never answered */
	unsigned created;		/* requests to create topics */
	char wanted[1024];		/* in the last: "NAME PARTITIONS REPLICATION CONFIG=VALUE;" each */
};

struct broker {
	char address[32];
	int fds[32];			/* the listener, then connections */
	int stop[2];			/* a pipe: closed to end the thread */
	size_t n;
	pthread_t thread;
	pthread_mutex_t lock;		/* protects all members below */
	enum broker_mood mood;
	char topics[16][64];		/* topics that exist */
	size_t n_topics;
	bool leaves_out;		/* omits unknown topics from the metadata instead of reporting an error */
	int16_t error;			/* not 0: no topic is created, with this error */
	const char *text;		/* text of the error, or NULL */
	struct broker_seen seen;
};

struct broker_bytes {
	uint8_t data[4096];
	size_t at, len;
};

static inline uint32_t
broker_take(struct broker_bytes *b, int bytes)
{
	uint32_t n = 0;

	for (int i = 0; i < bytes && b->at < b->len; i++)
		n = n << 8 | b->data[b->at++];
	return n;
}

static inline void
broker_take_text(struct broker_bytes *b, char *ret, size_t size)
{
	size_t len = broker_take(b, 2);

	if (len > b->len - b->at)
		len = 0;	/* -1: null */
	snprintf(ret, size, "%.*s", (int)len, (const char *)b->data + b->at);
	b->at += len;
}

static inline void
broker_add(struct broker_bytes *b, int bytes, int64_t n)
{
	while (bytes-- > 0)
		b->data[b->len++] = (uint8_t)(n >> 8 * bytes);
}

static inline void
broker_add_text(struct broker_bytes *b, const char *text)
{
	broker_add(b, 2, text != NULL ? (int64_t)strlen(text) : -1);
	if (text != NULL)
		b->len += (size_t)snprintf((char *)b->data + b->len, sizeof(b->data) - b->len, "%s", text);
}

static inline bool
broker_has(const struct broker *k, const char *name)
{
	for (size_t i = 0; i < k->n_topics; i++) {
		if (strcmp(k->topics[i], name) == 0)
			return true;
	}
	return false;
}

static inline void
broker_make(struct broker *k, const char *name)
{
	if (!broker_has(k, name) && k->n_topics < 16)
		snprintf(k->topics[k->n_topics++], sizeof(k->topics[0]), "%s", name);
}

/* Answers ApiVersions, version 3, whose lists begin with their length plus one. */
static inline void
broker_answer_versions(struct broker_bytes *out)
{
	static const int16_t apis[][2] = { { BROKER_PRODUCE, 7 }, { BROKER_METADATA, 4 }, { BROKER_API_VERSIONS, 3 },
		{ BROKER_CREATE_TOPICS, 4 } };

	broker_add(out, 2, 0);
	broker_add(out, 1, 1 + 4);
	for (size_t i = 0; i < 4; i++) {
		broker_add(out, 2, apis[i][0]);
		broker_add(out, 2, 0);
		broker_add(out, 2, apis[i][1]);
		broker_add(out, 1, 0);
	}
	broker_add(out, 4, 0);
	broker_add(out, 1, 0);
}

/* Answers Metadata, version 4: this broker, which is the controller, and the requested topics. */
static inline void
broker_answer_metadata(struct broker *k, struct broker_bytes *in, struct broker_bytes *out)
{
	int32_t n = (int32_t)broker_take(in, 4);
	char name[64];
	size_t count;

	broker_add(out, 4, 0);
	broker_add(out, 4, 1);
	broker_add(out, 4, 1);
	broker_add_text(out, "127.0.0.1");
	broker_add(out, 4, atoi(strchr(k->address, ':') + 1));
	broker_add_text(out, NULL);
	broker_add_text(out, "cluster");
	broker_add(out, 4, 1);
	count = out->len;
	broker_add(out, 4, 0);
	for (int32_t i = 0; i < n; i++) {
		broker_take_text(in, name, sizeof(name));
		if (k->leaves_out && !broker_has(k, name))
			continue;
		out->data[count + 3]++;
		broker_add(out, 2, broker_has(k, name) ? 0 : 3);
		broker_add_text(out, name);
		broker_add(out, 1, 0);
		broker_add(out, 4, broker_has(k, name));
		if (!broker_has(k, name))
			continue;
		broker_add(out, 2, 0);		/* partition 0, led by broker 1, the only replica */
		broker_add(out, 4, 0);
		broker_add(out, 4, 1);
		broker_add(out, 4, 1);
		broker_add(out, 4, 1);
		broker_add(out, 4, 1);
		broker_add(out, 4, 1);
	}
}

/* Answers CreateTopics, version 4. */
static inline void
broker_create(struct broker *k, struct broker_bytes *in, struct broker_bytes *out)
{
	uint32_t n = broker_take(in, 4);
	char *wanted = k->seen.wanted;
	size_t at = 0, size = sizeof(k->seen.wanted);

	k->seen.created++;
	wanted[0] = '\0';
	broker_add(out, 4, 0);
	broker_add(out, 4, n);
	for (uint32_t i = 0; i < n; i++) {
		char name[64], key[64], value[64];
		int partitions, replication;

		broker_take_text(in, name, sizeof(name));
		partitions = (int32_t)broker_take(in, 4);
		replication = (int16_t)broker_take(in, 2);
		(void)broker_take(in, 4);	/* no assignments */
		at += (size_t)snprintf(wanted + at, size - at, "%s %d %d", name, partitions, replication);
		for (uint32_t c = broker_take(in, 4); c > 0; c--) {
			broker_take_text(in, key, sizeof(key));
			broker_take_text(in, value, sizeof(value));
			at += (size_t)snprintf(wanted + at, size - at, " %s=%s", key, value);
		}
		at += (size_t)snprintf(wanted + at, size - at, ";");
		if (k->error == 0)
			broker_make(k, name);
		broker_add_text(out, name);
		broker_add(out, 2, k->error);
		broker_add_text(out, k->error != 0 ? k->text : NULL);
	}
	if (k->mood == BROKER_GARBLES)
		out->len = 4 + 4 + 6;
}

/* Serves one request. False: the connection is closed. */
static inline bool
broker_serve(struct broker *k, int fd)
{
	struct broker_bytes in = { .len = 4 }, out = { .len = 8 };
	uint32_t api, id, len;

	if (recv(fd, in.data, 4, MSG_WAITALL) != 4)
		return false;
	in.len = broker_take(&in, 4);
	in.at = 0;
	if (in.len > sizeof(in.data) || recv(fd, in.data, in.len, MSG_WAITALL) != (ssize_t)in.len)
		return false;
	api = broker_take(&in, 2);
	(void)broker_take(&in, 2);
	id = broker_take(&in, 4);
	len = broker_take(&in, 2);
	in.at += len;		/* skips the client id */
	pthread_mutex_lock(&k->lock);
	if (api == BROKER_API_VERSIONS)
		broker_answer_versions(&out);
	else if (api == BROKER_METADATA)
		broker_answer_metadata(k, &in, &out);
	else if (api == BROKER_CREATE_TOPICS)
		broker_create(k, &in, &out);
	else if (api == BROKER_PRODUCE)
		k->seen.produced++;
	if (api == BROKER_PRODUCE || (api == BROKER_CREATE_TOPICS && k->mood == BROKER_IS_SILENT))
		out.len = 0;
	pthread_mutex_unlock(&k->lock);
	if (out.len == 0)
		return true;
	in.len = out.len;
	out.len = 0;
	broker_add(&out, 4, (int64_t)in.len - 4);
	broker_add(&out, 4, id);
	return send(fd, out.data, in.len, MSG_NOSIGNAL) == (ssize_t)in.len;
}

static inline void *
broker_run(void *arg)
{
	struct broker *k = arg;

	for (;;) {
		struct pollfd p[33] = { { .fd = k->stop[0], .events = POLLIN } };
		size_t n = k->n;

		for (size_t i = 0; i < n; i++)
			p[1 + i] = (struct pollfd){ .fd = k->fds[i], .events = POLLIN };
		if (poll(p, 1 + n, -1) < 0)
			continue;
		if (p[0].revents != 0)
			return NULL;
		if (p[1].revents != 0 && k->n < 32) {
			int fd = accept(k->fds[0], NULL, NULL);

			if (fd >= 0)
				k->fds[k->n++] = fd;
		}
		for (size_t i = 1; i < n; i++) {
			if (p[1 + i].revents != 0 && !broker_serve(k, k->fds[i])) {
				close(k->fds[i]);
				k->fds[i] = -1;		/* ignored by poll(2) */
			}
		}
	}
}

/* Returns the requests seen so far. */
static inline struct broker_seen
broker_look(struct broker *k)
{
	struct broker_seen now;

	pthread_mutex_lock(&k->lock);
	now = k->seen;
	pthread_mutex_unlock(&k->lock);
	return now;
}

static inline int
broker_start(struct broker *k)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	memset(k, 0, sizeof(*k));
	pthread_mutex_init(&k->lock, NULL);
	k->n = 1;
	k->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pipe(k->stop) < 0 || bind(k->fds[0], (struct sockaddr *)&a, sizeof(a)) < 0 || listen(k->fds[0], 8) < 0 ||
	    getsockname(k->fds[0], (struct sockaddr *)&a, &len) < 0)
		return -1;
	snprintf(k->address, sizeof(k->address), "127.0.0.1:%d", ntohs(a.sin_port));
	return pthread_create(&k->thread, NULL, broker_run, k) == 0 ? 0 : -1;
}

static inline void
broker_stop(struct broker *k)
{
	close(k->stop[1]);
	pthread_join(k->thread, NULL);
	close(k->stop[0]);
	for (size_t i = 0; i < k->n; i++) {
		if (k->fds[i] >= 0)
			close(k->fds[i]);
	}
	pthread_mutex_destroy(&k->lock);
}

#endif
