/*
 * SPDX-License-Identifier: Apache-2.0
 * encode_record: a struct to Avro binary by its list of fields (fields.h); private to encode.c.
 */
#ifndef SLUICE_CODEC_ENCODE_RECORD_H
#define SLUICE_CODEC_ENCODE_RECORD_H

#include <stdint.h>

#include "base/bytes.h"
#include "codec/fields.h"

/* What the stream adds to a record. */
struct encode_stamp {
	const struct bytes *identity;	/* the fields of fields_of_identity, encoded */
	uint64_t seq;
};

/*
 * Adds the fields of r to out. 0; -EINVAL where a member that is never NULL is NULL or an enum has no
 * such value, or -ENOMEM, and out then ends within a field. stamp may be NULL if no field of the list
 * is FIELD_IDENTITY or FIELD_SEQ.
 */
int encode_record(struct bytes *out, struct field_list list, const void *r, const struct encode_stamp *stamp);

#endif
