/*
 * SPDX-License-Identifier: Apache-2.0
 * manifest: which version a signed release is of, and the checksum of one of its files.
 */
#include "update/manifest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COMMENT "sluice "
#define DIGITS "0123456789"
#define REFUSE(...) (snprintf(why, why_size, __VA_ARGS__), -EINVAL)

enum {
	NUMBER_DIGITS_MAX = 6,
	HEX_LEN = 2 * MANIFEST_SHA256_SIZE,
	NAME_AT = HEX_LEN + 2,
};

int
version_parse(const char *text, struct version *ret)
{
	struct version v = { 0 };
	const char *at = text;

	for (int i = 0; i < 3; i++) {
		size_t len = strspn(at, DIGITS);

		if (len == 0 || len > NUMBER_DIGITS_MAX || (len > 1 && *at == '0') || at[len] != (i < 2 ? '.' : '\0'))
			return -EINVAL;
		for (size_t j = 0; j < len; j++)
			v.numbers[i] = v.numbers[i] * 10 + (uint32_t)(at[j] - '0');
		at += len + (i < 2);
	}
	snprintf(v.text, sizeof(v.text), "%s", text);
	*ret = v;
	return 0;
}

int
version_compare(const struct version *a, const struct version *b)
{
	for (int i = 0; i < 3; i++) {
		if (a->numbers[i] != b->numbers[i])
			return a->numbers[i] < b->numbers[i] ? -1 : 1;
	}
	return 0;
}

int
manifest_version(const char *comment, struct version *ret, char *why, size_t why_size)
{
	if (strncmp(comment, COMMENT, strlen(COMMENT)) != 0 || version_parse(comment + strlen(COMMENT), ret) < 0)
		return REFUSE("its trusted comment is not `sluice VERSION`: it is no release of sluice");
	return 0;
}

/* Returns the value of a lower-case hexadecimal digit, or -1. */
static int
digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
parse_hex(const char *text, uint8_t ret[MANIFEST_SHA256_SIZE])
{
	for (size_t i = 0; i < MANIFEST_SHA256_SIZE; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* Returns whether a name is that of a file of the same folder, in characters that need no escape. */
static bool
is_name(const char *name, size_t len)
{
	if (len == 0 || len > MANIFEST_NAME_MAX || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/' || name[i] == '\\')
			return false;
	}
	return true;
}

int
manifest_find(const char *text, size_t len, const char *name, uint8_t ret[MANIFEST_SHA256_SIZE], char *why,
    size_t why_size)
{
	uint8_t found[MANIFEST_SHA256_SIZE], sha256[MANIFEST_SHA256_SIZE];
	unsigned line = 0, at_line = 0;
	size_t at = 0;

	if (len > MANIFEST_BYTES_MAX)
		return REFUSE("it is longer than %d KiB", MANIFEST_BYTES_MAX >> 10);
	while (at < len) {
		const char *start = text + at, *end = memchr(start, '\n', len - at);
		size_t n = end != NULL ? (size_t)(end - start) : len - at;

		if (++line > MANIFEST_LINES_MAX)
			return REFUSE("it has more than %d lines", MANIFEST_LINES_MAX);
		if (end == NULL)
			return REFUSE("line %u does not end: the rest is missing", line);
		if (n <= NAME_AT || !parse_hex(start, sha256) || start[HEX_LEN] != ' ' ||
		    (start[HEX_LEN + 1] != ' ' && start[HEX_LEN + 1] != '*') || !is_name(start + NAME_AT, n - NAME_AT))
			return REFUSE("line %u is not `SHA256  NAME`", line);
		if (n - NAME_AT == strlen(name) && memcmp(start + NAME_AT, name, n - NAME_AT) == 0) {
			if (at_line > 0)
				return REFUSE("lines %u and %u are of the same file", at_line, line);
			at_line = line;
			memcpy(found, sha256, sizeof(found));
		}
		at += n + 1;
	}
	if (at_line == 0) {
		snprintf(why, why_size, "it has no %s", name);
		return -ENOENT;
	}
	memcpy(ret, found, sizeof(found));
	return 0;
}
