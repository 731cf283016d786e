/*
 * SPDX-License-Identifier: Apache-2.0
 * frame: a message's value: byte 0, the schema's id, the Avro record.
 */
#include "kafka/frame.h"

#include <string.h>

int
kafka_frame(struct bytes *out, int32_t schema_id, const void *data, size_t len)
{
	uint32_t id = (uint32_t)schema_id;
	int r;

	out->len = 0;
	r = bytes_reserve(out, KAFKA_FRAME_BYTES + len);
	if (r < 0)
		return r;
	out->data[0] = 0;
	for (int i = 0; i < 4; i++)
		out->data[1 + i] = (uint8_t)(id >> (24 - 8 * i));
	if (len > 0)
		memcpy(out->data + KAFKA_FRAME_BYTES, data, len);
	out->len = KAFKA_FRAME_BYTES + len;
	return 0;
}

int32_t
kafka_frame_id(const uint8_t frame[KAFKA_FRAME_BYTES])
{
	return (int32_t)((uint32_t)frame[1] << 24 | (uint32_t)frame[2] << 16 |
	    (uint32_t)frame[3] << 8 | frame[4]);
}
