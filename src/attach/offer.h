/*
 * SPDX-License-Identifier: Apache-2.0
 * offer: what a kernel offers, by its types alone, and which BPF programs are loaded for it. Nothing of it needs to run
 * on that kernel: tests/kernels/offered.c asks the same of the types of others.
 */
#ifndef SLUICE_ATTACH_OFFER_H
#define SLUICE_ATTACH_OFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/signals.h"

struct kernel_types;
struct sluice_bpf;

/* The facts that decide the load, read once: which hooks of the signals this kernel has, and some more. */
struct offer {
	struct kernel_types *types;	/* owned */
	int core_types;			/* owned file of those that relocations need; negative: libbpf is given all */
	const char *lacks;		/* a member of task_struct that it lacks and each load needs; NULL: none */
	bool has[SIGNALS][SIGNAL_HOOKS];
	bool has_current_task_btf;	/* the helper, from 5.11 */
	bool has_loop;			/* the helper bpf_loop(), from 5.17 */
	bool has_syscall;		/* programs that user space calls, and a loop over a map for them, from 5.14 */
	bool has_iter_num;		/* the kernel's function for programs, from 6.4 */
	bool has_rdonly_cast;		/* the kernel's function for programs, from 6.2 */
	bool runs_fentry;		/* not switched off by kernel.ftrace_enabled, when it attaches and never runs */
	bool can_be_preempted;		/* programs on tracepoints can be preempted */
	bool lacks_functions;		/* one of those that programs call only if it is there */
};

/* Reads the offer of the running kernel. Returns 0, or a negative errno with a sentence in error. */
int offer_of_kernel(struct offer *o, char *error, size_t error_size);
/* The same of the types of a kernel, which become the offer's. */
void offer_of_types(struct offer *o, struct kernel_types *types);
void offer_done(struct offer *o);

/*
 * Chooses for each signal the first of its hooks that can serve it; NULL: none can. Returns true if any is fentry,
 * which is only chosen if with_fentry.
 */
bool offer_choose(const struct offer *o, bool with_fentry, const struct signal_hook *hooks[SIGNALS]);

/* Switches on those programs of an object that is not loaded yet which this kernel needs with these hooks. */
void offer_switch(const struct offer *o, const struct signal_hook *const hooks[SIGNALS], struct sluice_bpf *skel);

#endif
