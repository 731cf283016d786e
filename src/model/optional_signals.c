/*
 * SPDX-License-Identifier: Apache-2.0
 * optional_signals: the signals that can be switched, which are the OPTIONAL rows of signals.def.
 */
#include "model/optional_signals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL_ALWAYS_ON(id, name)
#define SIGNAL_OPTIONAL(id, name) [OPTIONAL_##id] = (name),
#define SIGNAL(id, name, kind, ...) SIGNAL_##kind(id, name)

const char *const optional_signals[OPTIONAL_SIGNALS] = {
#include "model/signals.def"
};

int
optional_signal_of(const char *name)
{
	for (int i = 0; i < OPTIONAL_SIGNALS; i++) {
		if (strcmp(optional_signals[i], name) == 0)
			return i;
	}
	return -ENOENT;
}

char *
optional_signal_names(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < OPTIONAL_SIGNALS && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used > 0 ? ", " : "", optional_signals[i]);
	return buf;
}

bool
signal_is_wanted(const char *name, char *const *words, size_t n)
{
	bool is_wanted = true;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i] + (words[i][0] == '-'), name) == 0)
			is_wanted = words[i][0] != '-';
	}
	return is_wanted;
}
