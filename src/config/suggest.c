/*
 * SPDX-License-Identifier: Apache-2.0
 * suggest: the valid name that a wrong one was probably meant to be.
 */
#include "config/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LETTER = 2 };	/* cost of one wrong letter */

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

static unsigned
cost(char a, char b)
{
	if (a == b)
		return 0;
	/* "max-bytes" for "max_bytes" costs half, as a difference in case does. */
	if (tolower((unsigned char)a) == tolower((unsigned char)b) ||
	    (strchr("-_.", a) != NULL && strchr("-_.", b) != NULL))
		return LETTER / 2;
	return LETTER;
}

unsigned
suggest_distance(const char *a, const char *b, unsigned most)
{
	/* Only cells beside the diagonal are computed: others are as many letters more or fewer, and stay far. */
	const size_t width = most / LETTER, la = strnlen(a, SUGGEST_NAME_MAX), lb = strnlen(b, SUGGEST_NAME_MAX);
	unsigned rows[3][SUGGEST_NAME_MAX + 1];

	if (la > lb + width || lb > la + width)
		return most + 1;
	memset(rows, 0x3f, sizeof(rows));
	for (size_t j = 0; j <= lb && j <= width; j++)
		rows[0][j] = (unsigned)j * LETTER;
	for (size_t i = 1; i <= la; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two = rows[(i + 1) % 3], least;
		size_t from = i > width ? i - width : 1, to = i + width < lb ? i + width : lb;

		/* Also to the left of the band, where what is left of an earlier row may be less. */
		least = row[from - 1] = (unsigned)i * LETTER;
		for (size_t j = from; j <= to; j++) {
			row[j] = min3(above[j] + LETTER, row[j - 1] + LETTER,
			    above[j - 1] + cost(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two[j - 2] + LETTER < row[j])
				row[j] = two[j - 2] + LETTER;
			least = row[j] < least ? row[j] : least;
		}
		if (least > most)
			return most + 1;
	}
	return rows[la % 3][lb] < most + 1 ? rows[la % 3][lb] : most + 1;
}

/* Whether one begins with the other: "warn" for "warning", "urls_" for "urls". */
static bool
is_begun(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), less = la < lb ? la : lb, more = la < lb ? lb : la;

	return less >= 3 && more <= 2 * less && strncmp(a, b, less) == 0;
}

void
suggest_offer(struct suggestion *s, const char *wrong, const char *candidate)
{
	size_t len = strlen(wrong);
	/* A third of the letters may be wrong; in a short name, one. */
	unsigned most = LETTER * (unsigned)(len < 6 ? 1 : len > 12 ? 4 : len / 3);
	unsigned distance = suggest_distance(wrong, candidate, most);

	if (distance > most && is_begun(wrong, candidate))
		distance = most;
	if (distance > most || (s->name != NULL && distance >= s->distance))
		return;
	s->name = candidate;
	s->distance = distance;
}

const char *
suggest_nearest(const char *wrong, const char *const *names)
{
	struct suggestion s = { 0 };

	for (; *names != NULL; names++)
		suggest_offer(&s, wrong, *names);
	return s.name;
}

char *
suggest_list(const char *const *names, char *buf)
{
	size_t len = 0;

	buf[0] = '\0';
	for (; *names != NULL && len + strlen(*names) + 3 < SUGGEST_LIST_SIZE; names++)
		len += (size_t)sprintf(buf + len, "%s%s", len > 0 ? ", " : "", *names);
	return buf;
}

char *
suggest_hint(const char *wrong, const char *const *names, const char *quotes, char *buf)
{
	const char *near = suggest_nearest(wrong, names);
	char all[SUGGEST_LIST_SIZE];

	if (near != NULL)
		snprintf(buf, SUGGEST_LIST_SIZE, "did you mean %c%s%c?", quotes[0], near, quotes[1]);
	else
		snprintf(buf, SUGGEST_LIST_SIZE, "there are %s", names[0] != NULL ? suggest_list(names, all) : "no names");
	return buf;
}
