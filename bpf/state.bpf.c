// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* state.h's maps and variables, defined once. */
#include "state.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct procs_map procs SEC(".maps");
struct ring_map ring SEC(".maps");

const volatile u32 ncpu = 1;
const volatile u64 wake_at = RING_BYTES / 4;
const volatile u32 exit_has_group_dead = 0;
const volatile u32 rss_slack = 0;
const volatile u32 has_on_signal = 0;
const volatile u32 can_be_preempted = 0;

u32 adopt_tgid = 0;
u32 wake_latch = 0;
s64 clock_offset = 0;
u64 cpu_offset[256] = {};
u64 lost[EVENT_PROG_COUNT * EVENT_LOSS_COUNT] = {};
u64 followed = 0;
u64 let_go = 0;
u64 lost_records = 0;
