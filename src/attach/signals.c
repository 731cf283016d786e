/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: the table.
 */
#include "attach/signals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PROGRAMS(...) (const char *const[]){ __VA_ARGS__, NULL }

/* clang-format off */
const struct signal signals[SIGNALS] = {
	[SIGNAL_LIFECYCLE] = {
		.name = "lifecycle",
		.fields = "every program, its argv, cwd, cgroup, namespaces, counters and exit status",
		.hooks = {
			{ .name = "tp_btf/sched_process_{fork,exec,exit,free}",
			    .programs = PROGRAMS("on_fork", "on_exec", "on_exit", "on_free") },
		},
	},
	[SIGNAL_REPLACED_PEAK] = {
		.name = "replaced_peak",
		.fields = "peak_rss_bytes of a program that exec replaced",
		.missing = "no sched_prepare_exec (6.10) and fentry is refused: null for replaced programs; "
		    "use a newer kernel, or boot without lockdown",
		.hooks = {
			{ .name = "tp_btf/sched_prepare_exec",
			    .tests = { { KERNEL_TRACEPOINT, "sched_prepare_exec" } },
			    .programs = PROGRAMS("on_prepare_exec") },
			{ .name = "fentry/begin_new_exec", .state = SIGNAL_FALLBACK,
			    .detail = "kernels before 6.10 lack sched_prepare_exec; as exact",
			    .tests = { { KERNEL_FUNCTION, "begin_new_exec" } }, .is_fentry = true,
			    .programs = PROGRAMS("on_begin_new_exec") },
		},
	},
	[SIGNAL_PEAK_RSS] = {
		.name = "peak_rss",
		.fields = "peak_rss_bytes, rss_bytes",
		.missing = "the exit tracepoint comes too late for memory before 6.16 and fentry is refused: "
		    "null; use a newer kernel, or boot without lockdown",
		.hooks = {
			/* With a second argument the tracepoint comes while there is memory: on_exit reads it. */
			{ .name = "tp_btf/sched_process_exit",
			    .tests = { { KERNEL_TRACEPOINT, "sched_process_exit", .arguments = 2 } } },
			{ .name = "fentry/taskstats_exit", .state = SIGNAL_FALLBACK,
			    .detail = "before 6.16 the exit tracepoint comes too late for memory; as exact",
			    .tests = { { KERNEL_FUNCTION, "taskstats_exit" } }, .is_fentry = true,
			    .programs = PROGRAMS("on_taskstats_exit") },
		},
	},
	[SIGNAL_NETWORK] = {
		.name = "network",
		.is_optional = true,
		.fields = "net_*, tcp_*, udp_*, unix_* bytes",
		.missing = "no sock_send_length (6.3) and fexit is refused: null; use a newer kernel, or boot "
		    "without lockdown",
		.hooks = {
			{ .name = "tp_btf/sock_{send,recv}_length",
			    .tests = { { KERNEL_TRACEPOINT, "sock_send_length" },
			    { KERNEL_TRACEPOINT, "sock_recv_length" } },
			    .programs = PROGRAMS("on_send_length", "on_recv_length") },
			{ .name = "fexit/{inet,inet6,unix}_{send,recv}msg", .state = SIGNAL_FALLBACK,
			    .detail = "kernels before 6.3 lack sock_send_length",
			    .tests = { { KERNEL_FUNCTION, "inet_sendmsg" }, { KERNEL_FUNCTION, "inet_recvmsg" } },
			    .is_fentry = true,
			    .programs = PROGRAMS("on_inet_sendmsg", "on_inet6_sendmsg", "on_unix_stream_sendmsg",
			    "on_unix_dgram_sendmsg", "on_unix_seqpacket_sendmsg", "on_inet_recvmsg",
			    "on_inet6_recvmsg", "on_unix_stream_recvmsg", "on_unix_dgram_recvmsg",
			    "on_unix_seqpacket_recvmsg", "on_inet_sendpage", "on_unix_stream_sendpage") },
		},
	},
	[SIGNAL_BLOCK_IO_DELAY] = {
		.name = "block_io_delay",
		.fields = "block_io_delay_ns",
		.missing = "delay accounting is off: null; `sysctl kernel.task_delayacct=1` turns it on for "
		    "programs that start afterwards",
		.hooks = { { .name = "task_struct.delays", .tests = { { KERNEL_DELAY_ACCOUNTING } } } },
	},
	[SIGNAL_CPU_SPLIT] = {
		.name = "cpu_split",
		.fields = "CPU time of each of the programs that one process ran",
		.hooks = {
			{ .name = "run queue clock", .tests = { { KERNEL_MEMBER, "sched_entity", "cfs_rq" } } },
			{ .name = "sum_exec_runtime", .state = SIGNAL_FALLBACK,
			    .detail = "no CONFIG_FAIR_GROUP_SCHED: the CPU time of programs that replace one another is "
			    "split to a tick (their sum is exact)" },
		},
	},
	[SIGNAL_SNAPSHOT] = {
		.name = "snapshot",
		.fields = "sluice.usage",
		.hooks = {
			{ .name = "iter/task", .tests = { { KERNEL_FUNCTION, "bpf_loop" } }, .programs = PROGRAMS("on_task") },
			{ .name = "iter/task", .programs = PROGRAMS("on_task_until_5_16") },	/* walks fewer threads */
		},
	},
};
/* clang-format on */

int
signal_optional(const char *name)
{
	for (int i = 0; i < SIGNALS; i++) {
		if (signals[i].is_optional && strcmp(signals[i].name, name) == 0)
			return i;
	}
	return -ENOENT;
}

char *
signal_optional_names(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < SIGNALS && used < size; i++) {
		if (signals[i].is_optional)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used > 0 ? ", " : "", signals[i].name);
	}
	return buf;
}

bool
signal_is_wanted(enum signal_id id, char *const *words, size_t n)
{
	bool is_wanted = true;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i] + (words[i][0] == '-'), signals[id].name) == 0)
			is_wanted = words[i][0] != '-';
	}
	return is_wanted;
}
