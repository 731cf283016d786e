/*
 * SPDX-License-Identifier: Apache-2.0
 * secret_ranges: ranges are added in any order, sorted once, and replaced in one pass.
 */
#include "identify/secret_ranges.h"

#include <string.h>

#include "base/arena.h"
#include "identify/redact.h"

void
secret_ranges_init(struct secret_ranges *ranges, size_t len)
{
	ranges->n = 0;
	ranges->len = len;
}

void
secret_ranges_add(struct secret_ranges *ranges, size_t start, size_t end)
{
	if (end <= start)
		return;
	if (ranges->n < SECRET_RANGES_MAX) {
		ranges->s[ranges->n++] = (struct secret_range){ start, end };
		return;
	}
	/* No room: redact from the earlier of the last range and this one to the end. */
	if (start < ranges->s[SECRET_RANGES_MAX - 1].start)
		ranges->s[SECRET_RANGES_MAX - 1].start = start;
	ranges->s[SECRET_RANGES_MAX - 1].end = ranges->len;
}

/* Sorts ranges and joins those that touch. */
static void
settle(struct secret_ranges *ranges)
{
	size_t n = 0;

	for (size_t i = 1; i < ranges->n; i++) {
		struct secret_range s = ranges->s[i];
		size_t k = i;

		for (; k > 0 && ranges->s[k - 1].start > s.start; k--)
			ranges->s[k] = ranges->s[k - 1];
		ranges->s[k] = s;
	}
	for (size_t i = 0; i < ranges->n; i++) {
		if (n > 0 && ranges->s[i].start <= ranges->s[n - 1].end) {
			if (ranges->s[i].end > ranges->s[n - 1].end)
				ranges->s[n - 1].end = ranges->s[i].end;
		} else {
			ranges->s[n++] = ranges->s[i];
		}
	}
	ranges->n = n;
}

const char *
secret_ranges_replace(const char *text, struct secret_ranges *ranges, struct arena *a)
{
	size_t mark = strlen(REDACTED), len = ranges->len, from = 0;
	char *out, *p;

	settle(ranges);
	for (size_t i = 0; i < ranges->n; i++)
		len = len + mark - (ranges->s[i].end - ranges->s[i].start);
	out = p = arena_bytes(a, len + 1);
	if (out == NULL)
		return REDACTED;
	for (size_t i = 0; i < ranges->n; i++) {
		memcpy(p, text + from, ranges->s[i].start - from);
		p += ranges->s[i].start - from;
		memcpy(p, REDACTED, mark);
		p += mark;
		from = ranges->s[i].end;
	}
	memcpy(p, text + from, ranges->len - from + 1);
	return out;
}
