/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: the table of signals (model/signals.def). A signal is a group of kernel hooks that fill some fields of the
 * records. Its row has the hooks that can serve it, best first, the tests of the kernel that each of them needs, and
 * the BPF programs that are attached to it. Loading, `sluice doctor` and the status loop over the table.
 */
#ifndef SLUICE_ATTACH_SIGNALS_H
#define SLUICE_ATTACH_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/kernel.h"
#include "model/health.h"
#include "model/optional_signals.h"

enum signal_id {
#define SIGNAL(id, ...) SIGNAL_##id,
#include "model/signals.def"
#undef SIGNAL
	SIGNALS,
};

enum {
	SIGNAL_HOOKS = 2,	/* hooks that can serve one signal */
	SIGNAL_TESTS = 2,	/* tests of the kernel for one hook */
};

struct signal_hook {
	const char *name;		/* "tp_btf/sched_prepare_exec"; NULL: no more hooks */
	enum signal_state state;	/* of a signal that it serves */
	const char *detail;		/* difference from the first hook; NULL: none */
	struct kernel_test tests[SIGNAL_TESTS];	/* all must hold */
	bool is_fentry;			/* a locked-down kernel refuses it */
	/*
	 * NULL-terminated; NULL: it has none of its own. Loaded only if this hook serves the signal. A program that
	 * has copies for preemptible tracepoints ("on_exec_7") is replaced by them there; one on a kernel function
	 * that does not exist is left out.
	 */
	const char *const *programs;
};

struct signal {
	const char *name;
	const char *fields;		/* fields of the records that are null without the signal */
	const char *missing;		/* why no hook serves it, and what can be done about it */
	/* Of an optional signal: offsets in struct sluice_bpf__data_shared of two variables; 0: it is always on. */
	size_t lease;			/* epoch of the load whose hooks report; 0 there: they are off */
	size_t since_ns;		/* since when they report without a break, CLOCK_BOOTTIME */
	struct signal_hook hooks[SIGNAL_HOOKS];
};

extern const struct signal signals[SIGNALS];

extern const enum signal_id optional_ids[OPTIONAL_SIGNALS];

#endif
