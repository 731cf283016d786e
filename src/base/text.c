/*
 * SPDX-License-Identifier: Apache-2.0
 * text: any bytes as valid UTF-8, reversibly.
 */
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int
hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Returns true if an escape, in either case of hex, starts at p. */
static bool
is_escape(const char *p, size_t len)
{
	return len >= 4 && p[0] == '\\' && p[1] == 'x' && hex_value((unsigned char)p[2]) >= 0 &&
	    hex_value((unsigned char)p[3]) >= 0;
}

static bool
is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t
text_char(const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf;	/* range of the second byte */
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;		/* 0xc0 and 0xc1 would be overlong */
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		if (p[0] == 0xe0)
			low = 0xa0;	/* overlong below */
		else if (p[0] == 0xed)
			high = 0x9f;	/* surrogates above */
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		if (p[0] == 0xf0)
			low = 0x90;
		else if (p[0] == 0xf4)
			high = 0x8f;	/* beyond U+10FFFF above */
	} else {
		return 0;
	}
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (!is_tail(p[i]))
			return 0;
	}
	return n;
}

/* Returns how many leading bytes are ASCII that text_escape() copies unchanged: no NUL, no backslash. */
static size_t
plain_prefix(const char *bytes, size_t len)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
	size_t i = 0;

	/* Eight bytes at a time: x has a bit 7 set if any byte is above 0x7f, NUL or a backslash. */
	for (; len - i >= 8; i += 8) {
		uint64_t w, slash, x;

		memcpy(&w, bytes + i, 8);
		slash = w ^ ones * '\\';
		x = w | ((w - ones) & ~w) | ((slash - ones) & ~slash);
		if (x & tops)
			break;
	}
	while (i < len && bytes[i] > 0 && bytes[i] != '\\' && (unsigned char)bytes[i] < 0x80)
		i++;
	return i;
}

/* Returns the length of the unit that starts at p, and whether it is copied or escaped. */
static size_t
next_unit(const char *p, size_t len, bool *ret_escape)
{
	size_t n = text_char(p, len);

	*ret_escape = n == 0 || p[0] == '\0' || is_escape(p, len);
	return *ret_escape ? 1 : n;
}

size_t
text_escape(const char *bytes, size_t len, char *out, size_t out_size, size_t *ret_used)
{
	static const char hex[] = "0123456789abcdef";
	size_t i = 0, o = 0, room;

	if (ret_used != NULL)
		*ret_used = 0;
	if (out_size == 0)
		return 0;
	room = out_size - 1;
	while (i < len) {
		size_t n = plain_prefix(bytes + i, len - i);
		bool escape = false;

		if (n > room - o)
			n = room - o;
		if (n > 0) {
			memcpy(out + o, bytes + i, n);
			i += n;
			o += n;
			if (i == len)
				break;
		}
		n = next_unit(bytes + i, len - i, &escape);
		if ((escape ? 4 : n) > room - o)
			break;
		if (escape) {
			unsigned char c = (unsigned char)bytes[i];

			out[o++] = '\\';
			out[o++] = 'x';
			out[o++] = hex[c >> 4];
			out[o++] = hex[c & 15];
		} else {
			memcpy(out + o, bytes + i, n);
			o += n;
		}
		i += n;
	}
	out[o] = '\0';
	if (ret_used != NULL)
		*ret_used = i;
	return o;
}

size_t
text_unescape(const char *text, size_t len, char *out)
{
	size_t o = 0;

	for (size_t i = 0; i < len;) {
		if (is_escape(text + i, len - i)) {
			out[o++] = (char)(hex_value((unsigned char)text[i + 2]) << 4 |
			    hex_value((unsigned char)text[i + 3]));
			i += 4;
		} else {
			out[o++] = text[i++];
		}
	}
	return o;
}

bool
text_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	/* strtoull(3) would take a sign and blanks. */
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *ret <= max;
}

bool
text_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

bool
text_is_plain(const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len) {
		bool escape;

		i += plain_prefix(bytes + i, len - i);
		if (i == len)
			break;
		i += next_unit(bytes + i, len - i, &escape);
		if (escape)
			return false;
	}
	return true;
}

size_t
text_join(const char *const *words, size_t n, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words[i]);

		if (used + (i > 0) + len + 1 > size)
			break;
		if (i > 0)
			out[used++] = ' ';
		memcpy(out + used, words[i], len);
		used += len;
	}
	if (size > 0)
		out[used] = '\0';
	return used;
}
