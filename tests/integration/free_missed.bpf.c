// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * free_missed: free.bpf.c, which is not run as the kernel frees a child of sleepers.c, whose name is "exe": as where the
 * kernel frees it in an interrupt of a thread for which it runs no BPF program.
 */
#include "entry.h"

static __always_inline bool
is_missed(const struct task_struct *t)
{
	return t->comm[0] == 'e' && t->comm[1] == 'x' && t->comm[2] == 'e' && !t->comm[3];
}

#define has_lease() (!is_missed(t) && has_lease())
#include "free.bpf.c"
