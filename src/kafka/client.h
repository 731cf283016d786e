/*
 * SPDX-License-Identifier: Apache-2.0
 * client: what the files of the Kafka output share; private to kafka*.c.
 */
#ifndef SLUICE_KAFKA_CLIENT_H
#define SLUICE_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "kafka/kafka.h"

struct event;

/* A producer and its topics. The loop has one reference, each thread that works with it another. */
struct kafka_client {
	rd_kafka_t		*rk;		/* owned */
	rd_kafka_topic_t	*topics[TOPIC_COUNT];	/* owned; the opaque of each is its enum topic */
	rd_kafka_queue_t	*main_queue;	/* owned */
	rd_kafka_queue_t	*admin_queue;	/* owned: answers to CreateTopics, for the tick */
	atomic_uint		 refs;
};

struct kafka_topic {
	char			*name;		/* owned; with the prefix */
	char			*subject;	/* owned; "<name>-value" */
	enum {
		KAFKA_TOPIC_UNKNOWN,	/* nobody has asked yet */
		KAFKA_TOPIC_THERE,
		KAFKA_TOPIC_MISSING,
	}			 state;
	bool			 is_wanted;	/* a record waits for it */
	char			 error[160];	/* why it could not be created; "" */
	/* Schemas in use, usually one. */
	struct {
		uint64_t fingerprint;
		int32_t id;
		bool is_set;
	}			 ids[4];
	unsigned		 next_id;	/* the slot that is given up next */
};

/* What a thread that asked for the topics brings back; there is one such thread at a time. */
struct kafka_mailbox {
	atomic_uint		 refs;
	int			 fd;		/* owned: an eventfd of the loop's, written when is_full */
	atomic_bool		 is_full;	/* what follows is the thread's until it is set, then the loop's */
	rd_kafka_resp_err_t	 error;		/* of the whole answer */
	rd_kafka_resp_err_t	 topic_errors[TOPIC_COUNT];
};

struct kafka {
	struct output		 output;	/* first: outputs are cast */
	struct output_events	 events;
	/* options */
	int			(*schema_id)(void *arg, const char *subject, const struct spool_record *r,
				    int32_t *ret_id);
	void			(*on_log)(int level, const char *facility, const char *text, void *arg);
	void			*arg;		/* the caller's, of both */
	char			*brokers;	/* owned; "a:9092,b:9092" */
	char			*agent_version;	/* owned, or NULL */
	bool			 create_topics;
	int			 partitions;	/* -1: the broker's default */
	int			 replication;
	int64_t			 retention_ms;
	bool			 is_unacknowledged;	/* acks=0: brokers name no offsets */
	bool			 is_scram_broken;	/* asked for, with a librdkafka that Kafka 4 refuses */

	rd_kafka_conf_t		*conf;		/* owned; copied for each producer */
	struct kafka_client	*client;	/* a reference; NULL: could not be made */
	int			 fd;		/* owned eventfd: librdkafka or a thread has something */
	struct event		*readable;	/* owned, watches fd */
	int64_t			 now_us;	/* monotonic, of the last tick or poll */
	unsigned		 budget;	/* delivery reports left in this turn */
	bool			 has_more;	/* the budget was spent */
	bool			 is_waiting;	/* put has said not now, and why has not changed */
	bool			 is_recalling;
	bool			 is_failed;	/* this producer can do no more: replace it */
	bool			 wants_smaller;	/* a broker refused a batch of it as too large */
	int			 batch_bytes;	/* of a batch, as of librdkafka's batch.size */
	int64_t			 recalled_us;	/* when that began */
	int64_t			 replace_at_us;	/* a producer that failed, not before */
	uint64_t		 room;		/* put is worth another try with this few in flight */
	struct output_status	 status;
	struct kafka_stats	 stats;
	uint64_t		 retried_before;	/* by the producers that are gone */
	uint64_t		 retried_now;
	char			 cause[400];	/* the last that a broker's connection failed of */
	struct bytes		 frame;
	int32_t			 version;	/* of the last record's schema, and as text */
	char			 version_text[12];
	int			 version_len;
	char			*key;		/* owned: a dead letter's, with a NUL */
	size_t			 key_size;

	struct kafka_topic	 topics[TOPIC_COUNT];
	struct kafka_mailbox	*mailbox;	/* a reference */
	bool			 is_asking;	/* a thread asks for the topics */
	bool			 is_creating;
	int64_t			 ask_at_us;	/* monotonic; not before */
	int64_t			 ask_pause_us;
};

/* config.c */

/* All properties set, ours and the user's; callbacks are not. NULL with a sentence in error. */
rd_kafka_conf_t *kafka_conf_new(const struct kafka_options *o, char *error, size_t error_size);
/* Those that properties name, by whom we are now. False: error has the sentence. */
bool kafka_files_can_be_read(const struct kafka_options *o, char *error, size_t error_size);
/* A property's value in conf; NULL unknown. buffer has the text. */
const char *kafka_conf_get(const rd_kafka_conf_t *conf, const char *name, char *buffer, size_t size);
/* "a:1,b:2", owned by the caller; NULL without memory. */
char *kafka_join_brokers(const struct kafka_options *o);
/* SCRAM is wanted, from a librdkafka that does it in a way that Kafka 4 refuses. */
bool kafka_conf_has_broken_scram(const rd_kafka_conf_t *conf);
/* How much goes into one batch at most. */
int kafka_conf_batch_bytes(const rd_kafka_conf_t *conf);

/* errors.c */

struct kafka_failure {
	enum output_failure failure;
	const char *reason;	/* static */
	bool is_topic_gone;	/* the topic has to be looked for */
};
struct kafka_failure kafka_failure(rd_kafka_resp_err_t err);

/* report.c */

/* The callbacks; their opaque is a struct kafka. */
void kafka_report_set(rd_kafka_conf_t *conf);

/* client.c */

/* The last error, for the status. */
void kafka_set_error(struct kafka *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and the state is down. */
void kafka_set_down(struct kafka *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A producer with this configuration, of which a copy is made. NULL with a sentence in error. */
struct kafka_client *kafka_client_new(const rd_kafka_conf_t *conf, const struct kafka_topic *topics,
    int fd, char *error, size_t error_size);
/* A detached thread that gets no signals. 0 or a negative errno. */
int kafka_thread_start(void *(*run)(void *arg), void *arg);
void kafka_client_ref(struct kafka_client *c);
void kafka_client_unref(struct kafka_client *c);	/* the last one waits for librdkafka's threads */
/* The same without waiting, for the loop's thread. */
void kafka_client_release(struct kafka_client *c);

/* topics.c */

int kafka_topics_init(struct kafka *k, const char *prefix);
void kafka_topics_done(struct kafka *k);
/* True when records may be produced to it; else it is looked for. */
bool kafka_topic_is_there(struct kafka *k, enum topic topic);
/* A broker says that it is not there any more. */
void kafka_topic_lost(struct kafka *k, enum topic topic);
/* Asks, creates, takes answers in. From the tick and whenever fd was readable. */
void kafka_topics_work(struct kafka *k);

#endif
