/*
 * SPDX-License-Identifier: Apache-2.0
 * leb128: writes large numbers.
 */
#include "base/leb128.h"

#include "base/endian.h"

size_t
leb128_write_large(uint8_t *out, uint64_t value)
{
	size_t n = 0, last;

	if (value >> 56 != 0) {
		for (; value >= 0x80; value >>= 7)
			out[n++] = (uint8_t)(value | 0x80);
		out[n++] = (uint8_t)value;
		return n;
	}
	value = (value & UINT64_C(0xfffffff0000000)) << 4 | (value & UINT64_C(0xfffffff));
	value = (value & UINT64_C(0x0fffc0000fffc000)) << 2 | (value & UINT64_C(0x00003fff00003fff));
	value = (value & UINT64_C(0x3f803f803f803f80)) << 1 | (value & UINT64_C(0x007f007f007f007f));
	last = (size_t)(63 - __builtin_clzll(value)) / 8;
	le_put64(out, value | (UINT64_C(0x8080808080808080) & ((UINT64_C(1) << 8 * last) - 1)));
	return last + 1;
}
