/*
 * SPDX-License-Identifier: Apache-2.0
 * stream: numbers each record, encodes it and passes it to the output.
 */
#include "stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/encode.h"

struct topic_state {
	uint64_t seq;		/* of the next record */
	uint64_t written;
	uint64_t lost;
};

struct stream {
	struct record_writer output;
	struct encoder	*encoder;	/* owned */
	struct topic_state topics[TOPIC_COUNT];
	char		*host_id;	/* owned; the first part of every key */
	char		*key;		/* owned; "<host_id>:<run_id>", grown as needed */
	size_t		 key_size;
};

static char open_error[256];

const char *
stream_open_error(void)
{
	return open_error;
}

int
stream_open(const struct agent_identity *id, struct record_writer output, struct stream **ret_stream)
{
	struct stream *s;
	int r = -ENOMEM;

	snprintf(open_error, sizeof(open_error), "out of memory");
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->output = output;
	r = encoder_open(id, &s->encoder, open_error, sizeof(open_error));
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	s->host_id = strdup(id->host_id);
	s->key_size = strlen(id->host_id) + 128;
	s->key = malloc(s->key_size);
	if (s->host_id == NULL || s->key == NULL)
		goto fail;
	for (int t = 0; t < TOPIC_COUNT; t++)
		s->topics[t].seq = id->first_seq[t];
	open_error[0] = '\0';
	*ret_stream = s;
	return 0;

fail:
	stream_close(s);
	return r;
}

void
stream_close(struct stream *s)
{
	if (s == NULL)
		return;
	encoder_close(s->encoder);
	free(s->host_id);
	free(s->key);
	free(s);
}

/* Returns "<host_id>:<run_id>", so that records of a run on one host keep their order; NULL without memory. */
static const char *
key(struct stream *s, const char *run_id)
{
	size_t host_len = strlen(s->host_id);
	size_t run_len = run_id != NULL ? strlen(run_id) : 0;
	size_t need = host_len + 1 + run_len + 1;

	if (need > s->key_size) {
		char *grown = realloc(s->key, need);

		if (grown == NULL)
			return NULL;
		s->key = grown;
		s->key_size = need;
	}
	memcpy(s->key, s->host_id, host_len);
	s->key[host_len] = ':';
	if (run_len > 0)
		memcpy(s->key + host_len + 1, run_id, run_len);
	s->key[need - 1] = '\0';
	return s->key;
}

static int
put(struct stream *s, enum topic topic, const struct record_head *head, const void *record, bool is_end)
{
	struct topic_state *t = &s->topics[topic];
	uint64_t seq = t->seq++;	/* taken even if the record fails: the hole shows the loss */
	struct encoded_record out = { .topic = topic, .time_us = head->time_us, .seq = seq,
	    .user = head->user, .is_end = is_end };
	const uint8_t *data;
	int r;

	r = encode(s->encoder, topic, record, seq, &data, &out.len);
	if (r < 0)
		goto fail;
	out.data = data;
	out.key = key(s, head->run_id);
	r = out.key == NULL ? -ENOMEM : s->output.put(s->output.to, &out);
	if (r < 0)
		goto fail;
	t->written++;
	return 0;

fail:
	t->lost++;
	return r;
}

int
stream_program(struct stream *s, const struct program_record *r)
{
	return put(s, TOPIC_PROGRAM, &r->head, r, r->phase == PHASE_END);
}

int
stream_usage(struct stream *s, const struct usage_record *r)
{
	return put(s, TOPIC_USAGE, &r->head, r, false);
}

int
stream_task(struct stream *s, const struct work_record *r)
{
	return put(s, TOPIC_TASK, &r->head, r, r->phase == PHASE_END);
}

int
stream_run(struct stream *s, const struct work_record *r)
{
	return put(s, TOPIC_RUN, &r->head, r, r->phase == PHASE_END);
}

int
stream_host(struct stream *s, const struct host_record *r)
{
	return put(s, TOPIC_HOST, &r->head, r, false);
}

int
stream_finding(struct stream *s, const struct finding_record *r)
{
	return put(s, TOPIC_FINDING, &r->head, r, true);
}

int
stream_agent(struct stream *s, const struct agent_record *r)
{
	return put(s, TOPIC_AGENT, &r->head, r, false);
}

void
stream_skip(struct stream *s, enum topic topic, uint64_t n)
{
	s->topics[topic].seq += n;
}

uint64_t
stream_next_seq(const struct stream *s, enum topic topic)
{
	return s->topics[topic].seq;
}

uint64_t
stream_written(const struct stream *s, enum topic topic)
{
	return s->topics[topic].written;
}

uint64_t
stream_lost(const struct stream *s, enum topic topic)
{
	return s->topics[topic].lost;
}
