/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * What one pass over all processes is for, and what it is made with.
 */
#ifndef SLUICE_PASS_H
#define SLUICE_PASS_H

#include "judge.h"

struct snapshot_map {		/* one reader at a time: ours */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_found);	/* of most, only the state */
};
struct snapshot_map snapshot_state SEC(".maps");

u32 snapshot_all = 0;		/* also write the processes that are not followed */
u32 snapshot_enter = 0;		/* follow those from now on, instead */
u32 snapshot_judge = FILTER_JUDGE_NOT;	/* enum filter_judging */
u32 snapshot_changes = 0;	/* FILTER_JUDGE_INSIDE: processes whose state it has changed */
u32 snapshot_left_out = 0;	/* processes that it saw and did not write */
u64 stale_sweep_ns = 0;		/* CLOCK_BOOTTIME when the sweep, or the pass that judges, began: its number */

#endif
