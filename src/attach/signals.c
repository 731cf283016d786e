/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: defines the table, from the rows of signals.def.
 */
#include "attach/signals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PROGRAMS(...) (const char *const[]){ __VA_ARGS__, NULL }

const struct signal signals[SIGNALS] = {
#define SIGNAL(id, ...) [SIGNAL_##id] = { __VA_ARGS__ },
#include "attach/signals.def"
#undef SIGNAL
};

int
signal_optional(const char *name)
{
	for (int i = 0; i < SIGNALS; i++) {
		if (signals[i].is_optional && strcmp(signals[i].name, name) == 0)
			return i;
	}
	return -ENOENT;
}

char *
signal_optional_names(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < SIGNALS && used < size; i++) {
		if (signals[i].is_optional)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used > 0 ? ", " : "", signals[i].name);
	}
	return buf;
}

bool
signal_is_wanted(enum signal_id id, char *const *words, size_t n)
{
	bool is_wanted = true;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i] + (words[i][0] == '-'), signals[id].name) == 0)
			is_wanted = words[i][0] != '-';
	}
	return is_wanted;
}
