/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes escape to valid UTF-8 and can be restored, cut or not. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that the escaped text is UTF-8 without NUL and restores the first `used` bytes. */
static void
check(const char *bytes, const char *out, size_t n, size_t used)
{
	char *back = malloc(n + 1);

	for (size_t i = 0, width; i < n; i += width) {
		width = text_char(out + i, n - i);
		if (width == 0 || out[i] == '\0')
			abort();
	}
	if (out[n] != '\0' || text_unescape(out, n, back) != used || memcmp(back, bytes, used) != 0)
		abort();
	free(back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes;
	size_t used, n, small;
	char *out;

	if (size < 2)
		return 0;
	/* The first two bytes select the size of a buffer, which may be too small. */
	small = (size_t)(data[0] << 8 | data[1]) + 1;
	bytes = (const char *)data + 2;
	size -= 2;

	out = malloc(TEXT_ESCAPE_MAX(size));
	n = text_escape(bytes, size, out, TEXT_ESCAPE_MAX(size), &used);
	if (used != size || text_is_plain(bytes, size) != (n == size && memcmp(out, bytes, n) == 0))
		abort();
	check(bytes, out, n, used);
	free(out);

	out = malloc(small);
	n = text_escape(bytes, size, out, small, &used);
	if (n >= small || (used < size && n + 4 < small))	/* stopped early with room left */
		abort();
	check(bytes, out, n, used);
	free(out);

	/* Text that was never escaped can be unescaped safely. */
	out = malloc(size + 1);
	if (text_unescape(bytes, size, out) > size)
		abort();
	free(out);
	return 0;
}
