/*
 * SPDX-License-Identifier: Apache-2.0
 * optional_signals: the signals that can be switched, which are the OPTIONAL rows of signals.def.
 */
#include "model/optional_signals.h"

#include <stdio.h>
#include <string.h>

#define SIGNAL_ALWAYS_ON(name)
#define SIGNAL_OPTIONAL(name) name,
#define SIGNAL(id, name, kind, ...) SIGNAL_##kind(name)

const char *const optional_signals[] = {
#include "model/signals.def"
	NULL
};

bool
signal_is_optional(const char *name)
{
	const char *const *s = optional_signals;

	while (*s != NULL && strcmp(*s, name) != 0)
		s++;
	return *s != NULL;
}

char *
optional_signal_names(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const char *const *s = optional_signals; *s != NULL && used < size; s++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used > 0 ? ", " : "", *s);
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
