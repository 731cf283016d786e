/*
 * SPDX-License-Identifier: Apache-2.0
 * frame: a message's value: byte 0, the schema's id, the Avro record.
 */
#ifndef SLUICE_KAFKA_FRAME_H
#define SLUICE_KAFKA_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
	KAFKA_FRAME_BYTES = 5,
};

/* Replaces the contents of out by a message's value. 0 or -ENOMEM. */
int kafka_frame(struct bytes *out, int32_t schema_id, const void *data, size_t len);
/* Returns the schema's id in a message's value. */
int32_t kafka_frame_id(const uint8_t frame[KAFKA_FRAME_BYTES]);

#endif
