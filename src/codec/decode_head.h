/*
 * SPDX-License-Identifier: Apache-2.0
 * decode_head: the fields of a record that are needed without decoding all of it, from its Avro binary.
 */
#ifndef SLUICE_CODEC_DECODE_HEAD_H
#define SLUICE_CODEC_DECODE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decoded_head {
	int64_t time_us;
	uint64_t seq;
	int32_t schema_version;
};

/*
 * Reads the fields from the common fields at the beginning of each record, by their table in fields.c. Returns false,
 * with *ret untouched, where data does not begin with them.
 */
bool decode_head(const void *data, size_t len, struct decoded_head *ret);

#endif
