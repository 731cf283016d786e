/*
 * SPDX-License-Identifier: Apache-2.0
 * client: internal state of the Kafka output, shared by the files of this folder only.
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
	rd_kafka_queue_t	*admin_queue;	/* owned: answers to CreateTopics, read at each tick */
	atomic_uint		 refs;
};

struct kafka_topic {
	char			*name;		/* owned; with the prefix */
	char			*subject;	/* owned; "<name>-value" */
	enum {
		KAFKA_TOPIC_UNKNOWN,	/* not requested yet */
		KAFKA_TOPIC_THERE,
		KAFKA_TOPIC_MISSING,
		KAFKA_TOPIC_REFUSED,	/* brokers take no record of it, until an administrator changes that */
	}			 state;
	bool			 is_wanted;	/* a record waits for it */
	char			 error[160];	/* why it could not be created; "" */
	const char		*refusal;	/* static word: why it was refused last */
	int64_t			 refused_pause_us;	/* until the next try; 0: accepted since */
	int64_t			 refused_until_us;	/* monotonic; no try before */
	bool			 is_tried;	/* a record that shows whether it is accepted is on its way */
	/* share.c */
	uint64_t		 in_flight;	/* messages that are not answered, and their bytes */
	uint64_t		 queued_bytes;
	uint64_t		 old;		/* those of them that were put before mark_us */
	uint64_t		 late;		/* and before late_us */
	bool			 was_late;	/* it had such at a tick, and none was delivered since */
	int64_t			 delivered_us;	/* monotonic; when a message was delivered last; 0: never */
	/* batches.c */
	bool			 is_timeless;	/* messages have no timestamp */
	bool			 wants_timeless;	/* the next producer's have none */
	int64_t			 timeless_pause_us;	/* how long; 0: a timestamp was accepted since */
	int64_t			 timeless_until_us;	/* monotonic */
	uint64_t		 apart_before;	/* ids below it are sent each in a batch of its own; 0: none */
	unsigned		 refused_in_row;	/* records that were refused alone since one was taken */
	/* Ids of schemas in use, usually one. Earlier epochs' ids explain messages that are on their way. */
	struct {
		uint64_t fingerprint;
		uint64_t epoch;
		int32_t id;
		bool is_set;
	}			 ids[4];
	unsigned		 next_id;	/* slot that is overwritten next */
};

/* Answer of the thread that requested the topics' metadata; at most one such thread runs. */
struct kafka_mailbox {
	atomic_uint		 refs;
	int			 fd;		/* owned: a duplicate of the loop's eventfd, written after is_full */
	atomic_bool		 is_full;	/* false: the members below are the thread's; true: the loop's */
	rd_kafka_resp_err_t	 error;		/* error of the whole request */
	rd_kafka_resp_err_t	 topic_errors[TOPIC_COUNT];
};

struct kafka {
	struct output		 output;	/* first: outputs are cast */
	struct output_events	 events;
	/* Options. */
	int			(*schema_id)(void *arg, const char *subject, const struct spool_record *r,
				    int32_t *ret_id);
	void			(*on_log)(int level, const char *facility, const char *text, void *arg);
	void			*arg;		/* the caller's, argument of both callbacks */
	char			*brokers;	/* owned; "a:9092,b:9092" */
	char			*agent_version;	/* owned, or NULL */
	bool			 create_topics;
	int			 partitions;	/* -1: the broker's default */
	int			 replication;
	int64_t			 retention_ms;
	bool			 is_unacknowledged;	/* acks=0: brokers return no offsets */
	bool			 is_scram_broken;	/* SCRAM is in use, but Kafka 4 refuses this librdkafka's */

	rd_kafka_conf_t		*conf;		/* owned; copied for each producer */
	struct kafka_client	*client;	/* a reference; NULL: could not be created */
	int			 fd;		/* owned eventfd: written by librdkafka and by a thread */
	struct event		*readable;	/* owned, watches fd */
	int64_t			 now_us;	/* monotonic, of the last tick or poll */
	int64_t			 wall_us;	/* the wall clock at the last tick (0: none yet), */
	int64_t			 wall_at_us;	/* and when that was, monotonic */
	unsigned		 budget;	/* delivery reports left in this turn of the loop */
	bool			 has_more;	/* the budget was spent */
	bool			 is_waiting;	/* put returned -EAGAIN, and ready() has not been called since */
	bool			 is_recalling;
	bool			 is_failed;	/* this producer cannot continue and is to be replaced */
	/* batches.c: what the next producer sends otherwise. */
	bool			 wants_smaller;	/* a broker refused one of its batches as too large */
	bool			 wants_apart;	/* each message in a batch of its own */
	bool			 wants_timeless;	/* messages of some topics without a timestamp */
	bool			 wants_larger;	/* once no message is on its way; none is taken until then */
	int64_t			 wants_larger_us;	/* monotonic; since when */
	bool			 is_apart;	/* each message has a batch of its own */
	bool			 has_grown;	/* since it was halved last */
	int			 batch_bytes;	/* limit of a batch unless is_apart: librdkafka's batch.size */
	int			 batch_bytes_max;	/* as configured */
	int64_t			 grow_at_us;	/* monotonic; batch_bytes is doubled then */
	int64_t			 grow_pause_us;
	int64_t			 recalled_us;	/* monotonic; when the recall began */
	int64_t			 replace_at_us;	/* monotonic; a failed producer is not replaced before */
	uint64_t		 room;		/* ready() is called once no more than this are in flight */
	uint64_t		 messages_max;	/* limits of librdkafka's queue */
	uint64_t		 bytes_max;
	int64_t			 mark_us;	/* monotonic; the last mark of share.c, */
	int64_t			 late_us;	/* and the one before: a message that was put before it is late */
	struct output_status	 status;
	struct kafka_stats	 stats;
	uint64_t		 epoch;		/* of the registry's ids */
	uint64_t		 retried_before;	/* by earlier producers */
	uint64_t		 retried_now;
	char			 cause[400];	/* last reason why a connection to a broker failed */
	struct bytes		 frame;
	int32_t			 version;	/* schema version of the last record; also as text */
	char			 version_text[12];
	int			 version_len;
	char			*key;		/* owned: key of a dead letter, NUL-terminated */
	size_t			 key_size;

	struct kafka_topic	 topics[TOPIC_COUNT];
	struct kafka_mailbox	*mailbox;	/* a reference */
	bool			 is_asking;	/* a thread requests the topics' metadata */
	bool			 is_creating;
	int64_t			 ask_at_us;	/* monotonic; no request before */
	int64_t			 ask_pause_us;
};

/* config.c */

/*
 * Returns a configuration with all our properties and the user's, but without callbacks; the caller's. NULL
 * with a sentence in error.
 */
rd_kafka_conf_t *kafka_conf_new(const struct kafka_options *o, char *error, size_t error_size);
/* Checks that this process may read the files that properties name. False: error has the sentence. */
bool kafka_files_can_be_read(const struct kafka_options *o, char *error, size_t error_size);
/* Returns a property's value, stored in buffer; NULL: unknown. */
const char *kafka_conf_get(const rd_kafka_conf_t *conf, const char *name, char *buffer, size_t size);
/* Returns "a:1,b:2", owned by the caller; NULL: no memory. */
char *kafka_join_brokers(const struct kafka_options *o);
/* Returns whether SCRAM is configured and this librdkafka's is refused by Kafka 4. */
bool kafka_conf_has_broken_scram(const rd_kafka_conf_t *conf);
/* Returns the limit of a batch in bytes. */
int kafka_conf_batch_bytes(const rd_kafka_conf_t *conf);

/* errors.c */

/* What is done about a message that was not delivered. */
enum kafka_remedy {
	KAFKA_PASSES,		/* it is handed over again as it is */
	KAFKA_TOPIC_GONE,	/* the topics have to be requested again */
	KAFKA_TOPIC_WAITS,	/* its topic's records wait until brokers accept them */
	KAFKA_BATCH_TOO_LARGE,	/* batches.c decides about these three */
	KAFKA_BATCH_REFUSED,
	KAFKA_TIME_REFUSED,
	KAFKA_RECORD_AT_FAULT,	/* a dead letter */
};

struct kafka_failure {
	enum kafka_remedy remedy;
	const char *reason;	/* static */
};
/* Maps an error to its remedy. */
struct kafka_failure kafka_failure(rd_kafka_resp_err_t err);

/* report.c */

/* Sets the callbacks; their opaque is a struct kafka. */
void kafka_report_set(rd_kafka_conf_t *conf);

/* batches.c */

/*
 * Decides about a record of bytes (key and value) whose batch was refused, as f has it, and notes what the next
 * producer sends otherwise. OUTPUT_AGAIN: f has another reason. OUTPUT_TOPIC_AGAIN: its topic waits. OUTPUT_NEVER: the
 * record itself is at fault.
 */
enum output_failure kafka_batch_refused(struct kafka *k, const struct spool_record *r, size_t bytes,
    struct kafka_failure *f);
/* Returns whether the producer is to be replaced, because its batches were refused. */
bool kafka_batches_want_other(const struct kafka *k);
/* Returns the limit of a batch in bytes. 1: each message has a batch of its own. */
int kafka_batch_limit(const struct kafka *k);
/* Applies to the next producer what is noted. */
void kafka_batches_next(struct kafka *k);
/* Notes that a record was handed over, or a message delivered. */
void kafka_batches_handed_over(struct kafka *k, const struct spool_record *r);
void kafka_batches_delivered(struct kafka *k, enum topic topic);
/* Returns to what was configured, once its time has come. To be called at each tick. */
void kafka_batches_tick(struct kafka *k);

/* share.c */

/* Reads the limits of librdkafka's queue. */
void kafka_share_init(struct kafka *k);
/* Returns whether a topic has as many messages in librdkafka's queue as it may have. */
bool kafka_share_is_used(const struct kafka *k, enum topic topic);
/* Counts a message in flight, and that it was answered; latency_us: since it was put, negative: unknown. */
void kafka_share_put(struct kafka *k, enum topic topic, size_t bytes);
void kafka_share_answered(struct kafka *k, enum topic topic, size_t bytes, int64_t latency_us);
/*
 * Returns whether a topic has messages that are not answered in time, or had such and none was delivered since, so that
 * it is to wait alone.
 */
bool kafka_share_is_late(const struct kafka *k, enum topic topic);
/* Notes that a message was delivered. */
void kafka_share_delivered(struct kafka *k, enum topic topic);
/* Returns whether any was since another one was put, which was latency_us ago; negative: unknown, and false. */
bool kafka_share_delivered_since(const struct kafka *k, enum topic topic, int64_t latency_us);
/* Finds out which messages are late. To be called at each tick. */
void kafka_share_tick(struct kafka *k);

/* client.c */

/* Sets the last error, which the status shows. */
void kafka_set_error(struct kafka *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the last error and the state OUTPUT_DOWN. */
void kafka_set_down(struct kafka *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Creates a producer with a copy of this configuration. fd is written when it has events. NULL with a sentence
 * in error.
 */
struct kafka_client *kafka_client_new(const rd_kafka_conf_t *conf, const struct kafka_topic *topics,
    int fd, char *error, size_t error_size);
/* Starts a detached thread in which signals are blocked. 0 or a negative errno. */
int kafka_thread_start(void *(*run)(void *arg), void *arg);
/* Takes a reference. */
void kafka_client_ref(struct kafka_client *c);
/* Drops a reference; the last one destroys the producer, which waits for librdkafka's threads. */
void kafka_client_unref(struct kafka_client *c);
/* Drops a reference without waiting, for the loop's thread. */
void kafka_client_release(struct kafka_client *c);

/* topics.c */

/* Sets the topics' names and subjects. 0 or a negative errno. */
int kafka_topics_init(struct kafka *k, const char *prefix);
/* Frees the names, and drops the reference to the mailbox. */
void kafka_topics_done(struct kafka *k);
/* Returns whether a record may be produced to a topic; if not, the topic is requested. */
bool kafka_topic_is_there(struct kafka *k, enum topic topic);
/* Returns whether any topic is known to exist. */
bool kafka_topics_any_there(const struct kafka *k);
/* Marks a topic as missing after a broker has reported it unknown. */
void kafka_topic_lost(struct kafka *k, enum topic topic);
/* Makes a topic's records wait after brokers have refused them. reason: a static word; detail: a sentence. */
void kafka_topic_refused(struct kafka *k, enum topic topic, const char *reason, const char *detail);
/* Notes that a record of a refused topic is on its way, and that it was delivered or not. */
void kafka_topic_tried(struct kafka *k, enum topic topic);
void kafka_topic_answered(struct kafka *k, enum topic topic, bool is_delivered);
/* Processes answers, requests metadata and creates topics. To be called at each tick and when fd was readable. */
void kafka_topics_work(struct kafka *k);

#endif
