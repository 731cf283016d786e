/*
 * SPDX-License-Identifier: Apache-2.0
 * optional_signals: the signals (attach/signals.h) that `probes.detail`, `sluice ctl attach` and `sluice ctl
 * detach` switch. All others are always on.
 */
#ifndef SLUICE_MODEL_OPTIONAL_SIGNALS_H
#define SLUICE_MODEL_OPTIONAL_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>

enum optional_signal {
#define SIGNAL_ALWAYS_ON(id)
#define SIGNAL_OPTIONAL(id) OPTIONAL_##id,
#define SIGNAL(id, name, kind, ...) SIGNAL_##kind(id)
#include "model/signals.def"
#undef SIGNAL
#undef SIGNAL_OPTIONAL
#undef SIGNAL_ALWAYS_ON
	OPTIONAL_SIGNALS,
};

extern const char *const optional_signals[OPTIONAL_SIGNALS];	/* their names */

/* Returns the optional signal of that name, or -ENOENT. */
int optional_signal_of(const char *name);
/* Writes all names, "a, b", cut at size bytes. Returns buf. */
char *optional_signal_names(char *buf, size_t size);
/*
 * Returns whether a list (probes.detail) leaves an optional signal on: "-network" switches it off, "network" on, the
 * last such word counts, and without one it is on.
 */
bool signal_is_wanted(const char *name, char *const *words, size_t n);

#endif
