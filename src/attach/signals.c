/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: defines the table, from the rows of model/signals.def.
 */
#include "attach/signals.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "model/optional_signals.h"

#define PROGRAMS(...) (const char *const[]){ __VA_ARGS__, NULL }

const struct signal signals[SIGNALS] = {
#define SIGNAL(id, text, kind, ...) [SIGNAL_##id] = { .name = (text), __VA_ARGS__ },
#include "model/signals.def"
#undef SIGNAL
};

int
signal_optional(const char *name)
{
	for (int i = 0; i < SIGNALS; i++) {
		if (strcmp(signals[i].name, name) == 0)
			return signal_is_optional(name) ? i : -ENOENT;
	}
	return -ENOENT;
}
