/*
 * SPDX-License-Identifier: Apache-2.0
 * leb128: unsigned numbers in groups of 7 bits, the lowest first, each in a byte whose highest bit is set if another
 * follows.
 */
#ifndef SLUICE_BASE_LEB128_H
#define SLUICE_BASE_LEB128_H

#include <stddef.h>
#include <stdint.h>

enum {
	LEB128_MAX_BYTES = 10,	/* of 64 bits */
};

/*
 * The same for numbers above 2^28, as times are: the groups of up to 56 bits are spread over 8 bytes in three steps.
 * Not inline, since a record has few of them and many small ones.
 */
size_t leb128_write_large(uint8_t *out, uint64_t value);

/*
 * Writes value to out, which has room for LEB128_MAX_BYTES; returns how many bytes it took. Those behind them may be
 * overwritten.
 */
static inline size_t
leb128_write(uint8_t *out, uint64_t value)
{
	size_t n = 0;

	if (value >> 28 != 0)
		return leb128_write_large(out, value);
	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}

#endif
