/*
 * SPDX-License-Identifier: Apache-2.0
 * encode_record: which member of a record struct goes into which field; private to encode.c.
 */
#ifndef SLUICE_CODEC_ENCODE_RECORD_H
#define SLUICE_CODEC_ENCODE_RECORD_H

#include <stdint.h>

#include "codec/put.h"
#include "model/record.h"


/* What the stream adds to a record. */
struct encode_stamp {
	const struct bytes *identity;	/* by encode_identity() */
	uint64_t seq;
};

/* The fields host_id to agent_id: the same in every record, so encoded once. */
void encode_identity(struct put *p, const struct agent_identity *id);
/* r is the record struct of topic. Errors are in p. */
void encode_record(struct put *p, enum topic topic, const void *r,
    const struct encode_stamp *stamp);

#endif
