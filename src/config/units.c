/*
 * SPDX-License-Identifier: Apache-2.0
 * units: durations and sizes as people write them.
 */
#include "config/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/errors.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }, { 0 },
};

static const struct unit sizes[] = {
	{ "TiB", UINT64_C(1) << 40 }, { "GiB", 1 << 30 }, { "MiB", 1 << 20 }, { "KiB", 1 << 10 },
	{ "B", 1 }, { "TB", UINT64_C(1000000000000) }, { "GB", 1000000000 }, { "MB", 1000000 },
	{ "kB", 1000 }, { 0 },
};

/* Units that are often written instead of the right ones. */
static const struct { const char *wrong, *right; } meant[] = {
	{ "sec", "s" }, { "secs", "s" }, { "second", "s" }, { "seconds", "s" }, { "min", "m" },
	{ "mins", "m" }, { "minute", "m" }, { "minutes", "m" }, { "hour", "h" }, { "hours", "h" },
	{ "hr", "h" }, { "day", "d" }, { "days", "d" }, { "msec", "ms" }, { "millis", "ms" },
	{ "byte", "B" }, { "bytes", "B" }, { "K", "KiB" }, { "KB", "KiB" }, { "M", "MiB" },
	{ "G", "GiB" }, { "T", "TiB" }, { "Ki", "KiB" }, { "Mi", "MiB" }, { "Gi", "GiB" },
	{ "Ti", "TiB" },
};

static const char *
unit_meant(const struct unit *units, const char *name)
{
	for (const struct unit *u = units; u->name != NULL; u++) {
		if (strcasecmp(u->name, name) == 0)
			return u->name;
	}
	for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
		for (const struct unit *u = units; u->name != NULL; u++) {
			if (strcasecmp(meant[i].wrong, name) == 0 && strcmp(meant[i].right, u->name) == 0)
				return u->name;
		}
	}
	return NULL;
}

/* Parses digits, and up to nine more behind a point. Returns the rest of the text; NULL: it is no such number. */
static const char *
number_parse(const char *p, uint64_t *ret_whole, uint64_t *ret_part, uint64_t *ret_scale)
{
	*ret_whole = *ret_part = 0;
	*ret_scale = 1;
	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(*ret_whole, 10, ret_whole) ||
		    __builtin_add_overflow(*ret_whole, (uint64_t)(*p - '0'), ret_whole))
			return NULL;
	}
	if (*p != '.')
		return p;
	p++;
	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (*ret_scale >= 1000000000)
			return NULL;
		*ret_part = *ret_part * 10 + (uint64_t)(*p - '0');
		*ret_scale *= 10;
	}
	return p;
}

static bool
parse(const struct unit *units, const char *what, const char *names, const char *text,
    uint64_t *ret, char *why, size_t why_size)
{
	uint64_t whole, part, scale, product;
	const char *end = number_parse(text, &whole, &part, &scale), *right;
	char show[SHOWN_SIZE];
	const struct unit *u;

	if (end == NULL) {
		snprintf(why, why_size, "'%s' is not a %s: write a number and a unit (%s)",
		    shown(text, show), what, names);
		return false;
	}
	if (*end == '\0' && whole == 0 && part == 0) {
		*ret = 0;
		return true;
	}
	end += strspn(end, " ");
	if (*end == '\0') {
		snprintf(why, why_size, "'%s' has no unit: add one of %s", shown(text, show), names);
		return false;
	}
	for (u = units; u->name != NULL && strcmp(u->name, end) != 0; u++)
		;
	if (u->name == NULL) {
		right = unit_meant(units, end);
		if (right != NULL)
			snprintf(why, why_size, "'%s' has no such unit: write %.*s%s", shown(text, show),
			    (int)strspn(text, "0123456789."), text, right);
		else
			snprintf(why, why_size, "'%s' has no such unit: it is one of %s",
			    shown(text, show), names);
		return false;
	}
	if (__builtin_mul_overflow(whole, u->factor, &whole) ||
	    __builtin_mul_overflow(part, u->factor, &product) ||
	    __builtin_add_overflow(whole, product / scale, ret)) {
		snprintf(why, why_size, "'%s' is too large", shown(text, show));
		return false;
	}
	if (product % scale != 0) {
		snprintf(why, why_size, "'%s' is not a whole number of %s: use a smaller unit",
		    shown(text, show), units == times ? "milliseconds" : "bytes");
		return false;
	}
	return true;
}

bool
duration_parse(const char *text, uint64_t *ret_ms, char *why, size_t why_size)
{
	return parse(times, "duration", "ms, s, m, h, d", text, ret_ms, why, why_size);
}

bool
size_parse(const char *text, uint64_t *ret_bytes, char *why, size_t why_size)
{
	return parse(sizes, "size", "B, KiB, MiB, GiB, TiB", text, ret_bytes, why, why_size);
}

static char *
text_of(const struct unit *units, uint64_t value, char *buf)
{
	const struct unit *u = units;

	if (value == 0)
		return strcpy(buf, "0");
	while (value % u->factor != 0)	/* the last one of each table before those of 1000 is 1 */
		u++;
	snprintf(buf, UNITS_TEXT_SIZE, "%" PRIu64 "%s", value / u->factor, u->name);
	return buf;
}

char *
duration_text(uint64_t ms, char *buf)
{
	return text_of(times, ms, buf);
}

char *
size_text(uint64_t bytes, char *buf)
{
	return text_of(sizes, bytes, buf);
}
