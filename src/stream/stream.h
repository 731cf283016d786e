/*
 * SPDX-License-Identifier: Apache-2.0
 * stream: numbers and encodes records, and passes them to a spool or a lake. One thread.
 */
#ifndef SLUICE_STREAM_STREAM_H
#define SLUICE_STREAM_STREAM_H

#include <stdint.h>

#include "model/record.h"

struct stream;

/*
 * Where encoded records are put. put() copies the record; 0, or a negative errno: the record is lost, and the
 * stream counts it. `to` is the caller's and outlives the stream.
 */
struct record_writer {
	int (*put)(void *to, const struct encoded_record *r);
	void *to;
};

/* Opens a stream. 0, or a negative errno with *ret_stream untouched. */
int stream_open(const struct agent_identity *id, struct record_writer output, struct stream **ret_stream);
/* Returns a sentence on why the last stream_open() failed; static. */
const char *stream_open_error(void);
void stream_close(struct stream *s);	/* s may be NULL */

/*
 * Encodes one record with the next seq of its topic and puts it. 0, or a negative errno: the
 * record is lost, counted in stream_lost(), and its seq stays a hole.
 */
int stream_program(struct stream *s, const struct program_record *r);
int stream_usage(struct stream *s, const struct usage_record *r);
int stream_task(struct stream *s, const struct work_record *r);
int stream_run(struct stream *s, const struct work_record *r);
int stream_host(struct stream *s, const struct host_record *r);
int stream_finding(struct stream *s, const struct finding_record *r);
int stream_agent(struct stream *s, const struct agent_record *r);

/* Leaves a hole of n in a topic's seq, for records that were lost before they got one. */
void stream_skip(struct stream *s, enum topic topic, uint64_t n);
/* Returns the seq that the next record of the topic will have. */
uint64_t stream_next_seq(const struct stream *s, enum topic topic);

uint64_t stream_written(const struct stream *s, enum topic topic);	/* records that the output took */
uint64_t stream_lost(const struct stream *s, enum topic topic);		/* records that were not encoded or put */

#endif
