/*
 * SPDX-License-Identifier: Apache-2.0
 * Any bytes as a record whose head the Kafka output reads.
 */
#include <stdint.h>
#include <stdlib.h>

#include "codec/decode_head.h"
#include "kafka/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct decoded_head head = { 0 };
	struct bytes frame = { 0 };

	if (decode_head(data, len, &head) && head.schema_version < 0)
		abort();
	if (kafka_frame(&frame, (int32_t)len, data, len) == 0 && (frame.len != len + KAFKA_FRAME_BYTES ||
	    kafka_frame_id(frame.data) != (int32_t)len))
		abort();
	bytes_done(&frame);
	return 0;
}
