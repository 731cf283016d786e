/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: defines the table, from the rows of model/signals.def.
 */
#include "attach/signals.h"

#include <stddef.h>

#include "attach/probes_state.h"

#define PROGRAMS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define SHARED(variable) offsetof(struct sluice_bpf__data_shared, variable)

const struct signal signals[SIGNALS] = {
#define SIGNAL(id, text, kind, ...) [SIGNAL_##id] = { .name = (text), __VA_ARGS__ },
#include "model/signals.def"
#undef SIGNAL
};

const enum signal_id optional_ids[OPTIONAL_SIGNALS] = {
#define SIGNAL_ALWAYS_ON(id)
#define SIGNAL_OPTIONAL(id) [OPTIONAL_##id] = SIGNAL_##id,
#define SIGNAL(id, name, kind, ...) SIGNAL_##kind(id)
#include "model/signals.def"
};
