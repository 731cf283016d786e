// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * slow_look: lifecycle.bpf.c, whose iterator has a delay of a millisecond between the state of a process
 * and its counters, as where a hypervisor preempts the CPU there. The process may end meanwhile on another CPU.
 */
#include "exit.h"

#define TURNS 300000	/* about 2 ns each */

static int
turn(u32 i, void *turns)
{
	(*(volatile u64 *)turns)++;
	return 0;
}

static __always_inline void
counters_add_thread_slowly(struct event_counters *c, struct task_struct *t)
{
	u64 turns = 0;

	bpf_loop(TURNS, turn, &turns, 0);
	counters_add_thread(c, t);
}

#define counters_add_thread counters_add_thread_slowly
#include "lifecycle.bpf.c"
