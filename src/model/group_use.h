/*
 * SPDX-License-Identifier: Apache-2.0
 * group_use: what the kernel counted of one control group since it was made.
 */
#ifndef SLUICE_MODEL_GROUP_USE_H
#define SLUICE_MODEL_GROUP_USE_H

#include "model/opt.h"

/* Each number: X(name). Stalls are those of PSI (Documentation/accounting/psi.rst). */
#define GROUP_USE_EACH(X)	\
	X(memory_peak_bytes)	/* with page cache and kernel memory */ \
	X(oom_kills)		\
	X(throttled_ns)		/* added up over CPUs */ \
	X(cpu_some_ns)		\
	X(memory_some_ns)	\
	X(memory_full_ns)	\
	X(io_some_ns)		\
	X(io_full_ns)

struct group_use {		/* unknown: this kernel, or this hierarchy, does not count it */
#define GROUP_USE_MEMBER(name) struct opt_u64 name;
	GROUP_USE_EACH(GROUP_USE_MEMBER)
#undef GROUP_USE_MEMBER
};

#endif
