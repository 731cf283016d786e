/*
 * SPDX-License-Identifier: Apache-2.0
 * varint: Avro's variable-length zigzag integers, and bytes after their length, from and to bytes.
 */
#ifndef SLUICE_CODEC_VARINT_H
#define SLUICE_CODEC_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/leb128.h"

enum {
	VARINT_MAX_BYTES = LEB128_MAX_BYTES,
};

/* Writes value to out, which has room for VARINT_MAX_BYTES; returns how many it took. */
static inline size_t
varint_write(uint8_t *out, int64_t value)
{
	return leb128_write(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

/* Appends value to out. Returns 0 or -ENOMEM. */
static inline int
varint_append(struct bytes *out, int64_t value)
{
	int r = bytes_reserve(out, VARINT_MAX_BYTES);

	if (r == 0)
		out->len += varint_write(out->data + out->len, value);
	return r;
}

/* Appends len, then len bytes, as Avro writes the types bytes and string. Returns 0 or -ENOMEM. */
static inline int
varint_append_bytes(struct bytes *out, const void *data, size_t len)
{
	int r = varint_append(out, (int64_t)len);

	return r < 0 ? r : bytes_append(out, data, len);
}

enum varint_result {
	VARINT_OK,
	VARINT_SHORT,	/* the bytes end within it */
	VARINT_BAD,	/* longer than 64 bits */
};

/* Reads one at *at, which moves behind it on VARINT_OK only. */
static inline enum varint_result
varint_read(const uint8_t *data, size_t len, size_t *at, int64_t *ret)
{
	uint64_t zigzag = 0;
	size_t i = *at;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (i >= len)
			return VARINT_SHORT;
		byte = data[i++];
		if (shift == 63 && byte > 1)
			return VARINT_BAD;
		zigzag |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*at = i;
			*ret = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
			return VARINT_OK;
		}
	}
	return VARINT_BAD;
}

#endif
