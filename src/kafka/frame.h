/*
 * SPDX-License-Identifier: Apache-2.0
 * frame: the bytes of a message's value: 0, a schema's id, an Avro record.
 */
#ifndef SLUICE_KAFKA_FRAME_H
#define SLUICE_KAFKA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
	KAFKA_FRAME_BYTES = 5,
};

/* Replaces what is in out. 0 or -ENOMEM. */
int kafka_frame(struct bytes *out, int32_t schema_id, const void *data, size_t len);
int32_t kafka_frame_id(const uint8_t frame[KAFKA_FRAME_BYTES]);

/* The fields of a record that a message tells beside its value. */
struct kafka_record_head {
	int64_t time_us;
	uint64_t seq;
	int32_t schema_version;
};

/* Reads them from the common fields that each record begins with. False when data does not begin so. */
bool kafka_record_head(const void *data, size_t len, struct kafka_record_head *ret);

#endif
