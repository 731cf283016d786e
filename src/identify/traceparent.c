/*
 * SPDX-License-Identifier: Apache-2.0
 * traceparent: parses 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 strictly.
 */
#include "identify/traceparent.h"

#include <stddef.h>
#include <string.h>

enum {
	TRACE_AT = 3,		/* after the version and its dash */
	SPAN_AT = TRACE_AT + 33,
	FLAGS_AT = SPAN_AT + 17,
	LENGTH = FLAGS_AT + 2,
};

/* Returns whether s begins with n lower-case hex digits. *ret_zero: all of them are 0. */
static bool
is_hex(const char *s, size_t n, bool *ret_zero)
{
	*ret_zero = true;
	for (size_t i = 0; i < n; i++) {
		if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
			return false;
		*ret_zero &= s[i] == '0';
	}
	return true;
}

static uint8_t
digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

bool
traceparent_parse(const char *text, struct traceparent *ret)
{
	bool is_first, is_zero;

	if (strnlen(text, LENGTH) < LENGTH || text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
	    text[FLAGS_AT - 1] != '-')
		return false;
	if (!is_hex(text, 2, &is_first) || memcmp(text, "ff", 2) == 0)	/* ff is forbidden */
		return false;
	if (!is_hex(text + TRACE_AT, 32, &is_zero) || is_zero)
		return false;
	if (!is_hex(text + SPAN_AT, 16, &is_zero) || is_zero)
		return false;
	if (!is_hex(text + FLAGS_AT, 2, &is_zero))
		return false;
	if (text[LENGTH] != '\0' && (is_first || text[LENGTH] != '-'))
		return false;
	memcpy(ret->trace_id, text + TRACE_AT, 32);
	ret->trace_id[32] = '\0';
	memcpy(ret->span_id, text + SPAN_AT, 16);
	ret->span_id[16] = '\0';
	ret->flags = (uint8_t)(digit(text[FLAGS_AT]) << 4 | digit(text[FLAGS_AT + 1]));
	return true;
}
