// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Defines the maps and variables of state.h once. */
#include "state.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct procs_map procs SEC(".maps");
struct ring_map ring SEC(".maps");
struct fresh_map fresh_proc SEC(".maps");
struct exited_map threads_exited SEC(".maps");
struct cpu_offsets_map cpu_offsets SEC(".maps");
struct users_map users SEC(".maps");
struct wait_classes_map wait_classes SEC(".maps");

u64 retake_ns = 0;

const volatile u32 ncpu = 1;
const volatile u64 wake_at = RING_BYTES / 4;
const volatile u32 procs_max = PROCS_MAX;
const volatile u32 exit_has_group_dead = 0;
const volatile u32 rss_slack = 0;
const volatile u32 has_on_signal = 0;
const volatile u32 has_iter_num = 0;
const volatile u32 has_rdonly_cast = 0;
const volatile u32 can_be_preempted = 0;
const volatile u64 my_epoch = 1;
const volatile u64 watchdog_ns = 0;

/* These have a section of their own, since its map is pinned with the others. */
#define SHARED SEC(".data.shared")

u64 lease SHARED = 1;
u64 network_lease SHARED = 1;
u64 network_since_ns SHARED = 0;
u32 generation SHARED = 0;
struct filter_slot filter_slots[FILTER_SLOTS] SHARED = {};
u64 heartbeat_ns SHARED = 0;
u64 quiet_since_ns SHARED = 0;
u64 canary_lost_ns SHARED = 0;
u32 follow_all SHARED = 0;
u32 own_tgid SHARED = 0;
u32 adopt_tgid SHARED = 0;
u32 kept_tgids[KEPT_TGIDS] SHARED = {};
u64 stale_ns SHARED = 0;
u32 wake_latch SHARED = 0;
s64 clock_offset SHARED = 0;
u64 lost[EVENT_PROG_COUNT][EVENT_LOSS_COUNT] SHARED = {};
u64 refused SHARED = 0;
u64 refused_from_ns SHARED = 0;
u64 refused_to_ns SHARED = 0;
u64 followed SHARED = 0;
u64 removed SHARED = 0;
u64 lost_records SHARED = 0;
u64 left_out SHARED = 0;
u64 since_ns SHARED = 0;
struct filter_table filter_tables[FILTER_SLOTS] SHARED = {};
