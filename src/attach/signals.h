/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: the table of signals (signals.def). A row has the hooks that can serve the signal, the best first, what
 * each of them asks of the kernel, and the BPF programs that are attached to it. Loading, `sluice doctor` and the
 * status loop over the table.
 */
#ifndef SLUICE_ATTACH_SIGNALS_H
#define SLUICE_ATTACH_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/kernel.h"
#include "model/health.h"

enum signal_id {
#define SIGNAL(id, ...) SIGNAL_##id,
#include "attach/signals.def"
#undef SIGNAL
	SIGNALS,
};

enum {
	SIGNAL_HOOKS = 2,	/* that can serve one */
	SIGNAL_TESTS = 2,	/* of the kernel, for one hook */
};

struct signal_hook {
	const char *name;		/* "tp_btf/sched_prepare_exec"; NULL: no more hooks */
	enum signal_state state;	/* of a signal that it serves */
	const char *detail;		/* what differs from the first hook; NULL: nothing */
	struct kernel_test tests[SIGNAL_TESTS];	/* all must hold */
	bool is_fentry;			/* a locked-down kernel refuses it */
	/*
	 * NULL-terminated; NULL: none of its own. Loaded only where this hook serves the signal. One that has
	 * copies for preemptible tracepoints ("on_exec_7") gives way to them there; one on a kernel function
	 * that is not there is left out.
	 */
	const char *const *programs;
};

struct signal {
	const char *name;
	const char *fields;		/* of the records; null without it */
	const char *missing;		/* why no hook serves it, and what can be done */
	struct signal_hook hooks[SIGNAL_HOOKS];
	bool is_optional;		/* `sluice ctl attach` and `detach` switch it; see probes_switch() */
};

extern const struct signal signals[SIGNALS];

/* The optional signal of that name, or -ENOENT. */
int signal_optional(const char *name);
/* The names of all optional signals: "network". Returns buf. */
char *signal_optional_names(char *buf, size_t size);
/*
 * Whether an optional signal is wanted by a list (probes.detail): without a word on it, it is; "-network" leaves
 * it out, "network" asks for it, and the last word on it counts.
 */
bool signal_is_wanted(enum signal_id id, char *const *words, size_t n);

#endif
