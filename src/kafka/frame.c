/*
 * SPDX-License-Identifier: Apache-2.0
 * frame: a message's value: byte 0, the schema's id, the Avro record.
 */
#include "kafka/frame.h"

#include <string.h>

#include "codec/varint.h"

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

static bool
skip_string(const uint8_t *data, size_t len, size_t *at)
{
	int64_t n;

	if (varint_read(data, len, at, &n) != VARINT_OK || n < 0 || (uint64_t)n > len - *at)
		return false;
	*at += (size_t)n;
	return true;
}

bool
kafka_record_head(const void *record, size_t len, struct kafka_record_head *ret)
{
	const uint8_t *data = record;
	int64_t time, seq, branch, version;
	size_t at = 0;

	/* time, host_id, host_name, boot_id, agent_id, seq */
	if (varint_read(data, len, &at, &time) != VARINT_OK)
		return false;
	for (int i = 0; i < 4; i++) {
		if (!skip_string(data, len, &at))
			return false;
	}
	if (varint_read(data, len, &at, &seq) != VARINT_OK)
		return false;
	/* run_id, pipeline, task_id, task, sample: null or a string */
	for (int i = 0; i < 5; i++) {
		if (varint_read(data, len, &at, &branch) != VARINT_OK || branch < 0 || branch > 1)
			return false;
		if (branch == 1 && !skip_string(data, len, &at))
			return false;
	}
	if (varint_read(data, len, &at, &version) != VARINT_OK || version < 0 || version > INT32_MAX)
		return false;
	*ret = (struct kafka_record_head){ time, (uint64_t)seq, (int32_t)version };
	return true;
}
