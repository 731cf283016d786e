/*
 * SPDX-License-Identifier: Apache-2.0
 * spans: noted in any order, sorted once, and replaced in one pass.
 */
#include "identify/spans.h"

#include <string.h>

#include "base/arena.h"
#include "identify/redact.h"

void
spans_init(struct spans *spans, size_t len)
{
	spans->n = 0;
	spans->len = len;
}

void
spans_add(struct spans *spans, size_t start, size_t end)
{
	if (end <= start)
		return;
	if (spans->n < SPANS_MAX) {
		spans->s[spans->n++] = (struct span){ start, end };
		return;
	}
	/* No room: everything from the earliest of the last one and this one goes. */
	if (start < spans->s[SPANS_MAX - 1].start)
		spans->s[SPANS_MAX - 1].start = start;
	spans->s[SPANS_MAX - 1].end = spans->len;
}

/* Sorts spans and joins those that touch. */
static void
settle(struct spans *spans)
{
	size_t n = 0;

	for (size_t i = 1; i < spans->n; i++) {
		struct span s = spans->s[i];
		size_t k = i;

		for (; k > 0 && spans->s[k - 1].start > s.start; k--)
			spans->s[k] = spans->s[k - 1];
		spans->s[k] = s;
	}
	for (size_t i = 0; i < spans->n; i++) {
		if (n > 0 && spans->s[i].start <= spans->s[n - 1].end) {
			if (spans->s[i].end > spans->s[n - 1].end)
				spans->s[n - 1].end = spans->s[i].end;
		} else {
			spans->s[n++] = spans->s[i];
		}
	}
	spans->n = n;
}

const char *
spans_replace(const char *text, struct spans *spans, struct arena *a)
{
	size_t mark = strlen(REDACTED), len = spans->len, from = 0;
	char *out, *p;

	settle(spans);
	for (size_t i = 0; i < spans->n; i++)
		len = len + mark - (spans->s[i].end - spans->s[i].start);
	out = p = arena_bytes(a, len + 1);
	if (out == NULL)
		return REDACTED;
	for (size_t i = 0; i < spans->n; i++) {
		memcpy(p, text + from, spans->s[i].start - from);
		p += spans->s[i].start - from;
		memcpy(p, REDACTED, mark);
		p += mark;
		from = spans->s[i].end;
	}
	memcpy(p, text + from, spans->len - from + 1);
	return out;
}
