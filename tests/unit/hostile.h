/*
 * SPDX-License-Identifier: Apache-2.0
 * hostile: the names of tests/fixtures/hostile_names.tsv, for every test of an output.
 */
#ifndef SLUICE_TESTS_UNIT_HOSTILE_H
#define SLUICE_TESTS_UNIT_HOSTILE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spell.h"
#include "base/text.h"

struct hostile_name {
	const char *what;
	char *name;		/* bytes, without NUL within */
	size_t len;
	char *spelt;		/* as people read it */
};

static inline char *
hostile_repeat(const char *text, size_t len, unsigned times)
{
	char *all = calloc(times, len + 1);

	if (all == NULL)
		abort();
	for (unsigned i = 0; i < times; i++)
		memcpy(all + i * len, text, len);
	return all;
}

/* Parses a line: what, the bytes in hex, and the text; "*N" behind the bytes repeats both. */
static inline void
hostile_parse(char *line, struct hostile_name *h)
{
	char *hex, *spelt, *star;
	unsigned times, byte;
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	h->what = strsep(&line, "\t");
	hex = strsep(&line, "\t");
	spelt = line;
	if (hex == NULL || spelt == NULL)
		abort();
	star = strchr(hex, '*');
	times = star != NULL ? (unsigned)atoi(star + 1) : 1;
	for (; hex[2 * n] != '\0' && hex[2 * n] != '*'; n++) {
		if (sscanf(hex + 2 * n, "%2x", &byte) != 1)
			abort();
		hex[n] = (char)byte;	/* behind what is still to be read */
	}
	h->len = n * times;
	h->name = hostile_repeat(hex, n, times);
	h->spelt = hostile_repeat(spelt, strlen(spelt), times);
}

/* Calls cb with each name. */
static inline void
hostile_each(void (*cb)(const struct hostile_name *h, void *arg), void *arg)
{
	FILE *f = fopen(SOURCE_TREE "/tests/fixtures/hostile_names.tsv", "re");
	char *line = NULL;
	size_t size = 0, n = 0;

	if (f == NULL)
		abort();
	for (; getline(&line, &size, f) > 0; n++) {
		struct hostile_name h;

		if (line[0] == '#')
			continue;
		hostile_parse(line, &h);
		cb(&h, arg);
		free(h.name);
		free(h.spelt);
	}
	if (n < 30)
		abort();	/* the file is not what it was */
	free(line);
	fclose(f);
}

static inline void
hostile_equal(const struct hostile_name *h, const char *got, const char *want)
{
	if (strcmp(got, want) != 0)
		fail_msg("%s: '%s' instead of '%s'", h->what, got, want);
}

/* Fails if anything in the output is hidden; it may have lines. */
static inline void
hostile_is_safe(const struct hostile_name *h, const char *output, bool has_lines)
{
	size_t left = strlen(output);

	for (size_t n; left > 0; output += n, left -= n) {
		n = text_char(output, left);
		if (spell_is_hidden(output, n) && !(has_lines && output[0] == '\n'))
			fail_msg("%s: byte 0x%02x of the output acts on a terminal", h->what, (unsigned char)output[0]);
	}
}

#endif
