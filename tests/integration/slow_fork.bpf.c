// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * slow_fork: lifecycle.bpf.c, which sees a fork some milliseconds after the child is among all processes, as
 * where a hypervisor preempts the CPU of the parent in between. The child runs only after that.
 */
#include "exit.h"

#define TURNS 2000000	/* about 2 ns each */

static int
turn(u32 i, void *turns)
{
	(*(volatile u64 *)turns)++;
	return 0;
}

static __always_inline int
fork_seen_late(struct task_struct *parent, struct task_struct *child)
{
	u64 turns = 0;

	bpf_loop(TURNS, turn, &turns, 0);
	return fork_seen(parent, child);
}

#define fork_seen fork_seen_late
#include "lifecycle.bpf.c"
