/*
 * SPDX-License-Identifier: Apache-2.0
 * What the probes say of themselves: which hook serves each signal, what was lost, what each cost.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "attach/probes_state.h"

static bool
delay_accounting_is_on(void)
{
	char c = '0';
	FILE *f = fopen("/proc/sys/kernel/task_delayacct", "re");

	if (f == NULL)
		return true;	/* before 5.14 it is on unless booted with nodelayacct */
	if (fread(&c, 1, 1, f) != 1)
		c = '0';
	fclose(f);
	return c == '1';
}

static void
signal_add(struct probes *p, const char *name, const char *hook, enum signal_state state,
    const char *detail, const char *fields)
{
	if (p->n_signals < SIGNALS_MAX) {
		p->signals[p->n_signals++] = (struct signal_status){ name, hook, state, detail, fields };
	}
}

void
probes_describe(struct probes *p, const struct kernel_hooks *h, bool with_fentry)
{
	p->n_signals = 0;
	signal_add(p, "lifecycle", "tp_btf/sched_process_{fork,exec,exit,free}", SIGNAL_OK, "",
	    "every program, its argv, cwd, cgroup, namespaces, counters and exit status");
	if (h->has_prepare_exec)
		signal_add(p, "replaced_peak", "tp_btf/sched_prepare_exec", SIGNAL_OK, "",
		    "peak_rss_bytes of a program that exec replaced");
	else if (h->has_begin_new_exec && with_fentry)
		signal_add(p, "replaced_peak", "fentry/begin_new_exec", SIGNAL_FALLBACK,
		    "kernels before 6.10 lack sched_prepare_exec; as exact",
		    "peak_rss_bytes of a program that exec replaced");
	else
		signal_add(p, "replaced_peak", "", SIGNAL_MISSING,
		    "no sched_prepare_exec (6.10) and fentry is refused: null for replaced programs; "
		    "use a newer kernel, or boot without lockdown", "peak_rss_bytes of a program that exec replaced");
	if (h->exit_has_group_dead)
		signal_add(p, "peak_rss", "tp_btf/sched_process_exit", SIGNAL_OK, "",
		    "peak_rss_bytes, rss_bytes");
	else if (h->has_taskstats_exit && with_fentry)
		signal_add(p, "peak_rss", "fentry/taskstats_exit", SIGNAL_FALLBACK,
		    "before 6.16 the exit tracepoint comes too late for memory; as exact",
		    "peak_rss_bytes, rss_bytes");
	else
		signal_add(p, "peak_rss", "", SIGNAL_MISSING,
		    "the exit tracepoint comes too late for memory before 6.16 and fentry is refused: "
		    "null; use a newer kernel, or boot without lockdown", "peak_rss_bytes, rss_bytes");
	if (h->has_sock_length)
		signal_add(p, "network", "tp_btf/sock_{send,recv}_length", SIGNAL_OK, "",
		    "net_*, tcp_*, udp_*, unix_* bytes");
	else if (h->has_old_net && with_fentry)
		signal_add(p, "network", "fexit/{inet,inet6,unix}_{send,recv}msg", SIGNAL_FALLBACK,
		    "kernels before 6.3 lack sock_send_length", "net_*, tcp_*, udp_*, unix_* bytes");
	else
		signal_add(p, "network", "", SIGNAL_MISSING,
		    "no sock_send_length (6.3) and fexit is refused: null; use a newer kernel, or boot "
		    "without lockdown", "net_*, tcp_*, udp_*, unix_* bytes");
	if (delay_accounting_is_on())
		signal_add(p, "block_io_delay", "task_struct.delays", SIGNAL_OK, "", "block_io_delay_ns");
	else
		signal_add(p, "block_io_delay", "", SIGNAL_MISSING,
		    "delay accounting is off: null; `sysctl kernel.task_delayacct=1` turns it on for "
		    "programs that start afterwards", "block_io_delay_ns");
	if (h->has_cfs_rq)
		signal_add(p, "cpu_split", "run queue clock", SIGNAL_OK, "",
		    "CPU time of each of the programs that one process ran");
	else
		signal_add(p, "cpu_split", "sum_exec_runtime", SIGNAL_FALLBACK,
		    "no CONFIG_FAIR_GROUP_SCHED: the CPU time of programs that replace one another is "
		    "split to a tick (their sum is exact)",
		    "CPU time of each of the programs that one process ran");
	signal_add(p, "snapshot", "iter/task", SIGNAL_OK, "", "sluice.usage");
}

const struct signal_status *
probes_signals(const struct probes *p, size_t *ret_n)
{
	*ret_n = p->n_signals;
	return p->signals;
}

bool
probes_have(const struct probes *p, const char *signal)
{
	for (size_t i = 0; i < p->n_signals; i++) {
		if (strcmp(p->signals[i].name, signal) == 0)
			return p->signals[i].state != SIGNAL_MISSING;
	}
	return false;
}

uint64_t
probes_lost(const struct probes *p, unsigned program, unsigned reason)
{
	return __atomic_load_n(&p->skel->data_shared->lost[program * EVENT_LOSS_COUNT + reason], __ATOMIC_RELAXED);
}

uint64_t
probes_lost_records(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->lost_records, __ATOMIC_RELAXED);
}

/* How often the kernel did not run a program because it was under way on that CPU. */
static uint64_t
skipped(const struct probes *p, const char *program)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(p->skel->obj, program);
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (prog == NULL || bpf_program__fd(prog) < 0 ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len) < 0)
		return 0;
	return info.recursion_misses;
}

uint64_t
probes_skipped(const struct probes *p, const char **ret_program, unsigned i)
{
	/*
	 * Those whose misses leave no other trace. Exec and exit are told by what they left undone; so is
	 * fork where it has copies, and there is no program of that name to ask.
	 */
	static const char *const programs[] = { "on_fork", "on_free", "on_send_length", "on_recv_length" };

	if (i >= sizeof(programs) / sizeof(programs[0]))
		return UINT64_MAX;
	*ret_program = programs[i];
	return skipped(p, programs[i]);
}

const char *
probes_program_name(unsigned program)
{
	static const char *const names[EVENT_PROG_COUNT] = {
		[EVENT_PROG_FORK] = "on_fork",
		[EVENT_PROG_EXEC] = "on_exec",
		[EVENT_PROG_EXIT] = "on_exit",
		[EVENT_PROG_FREE] = "on_free",
		[EVENT_PROG_ITER] = "on_task",
		[EVENT_PROG_CGROUP] = "cgroup_announce",
	};

	return program < EVENT_PROG_COUNT ? names[program] : "?";
}

const char *
probes_loss_name(unsigned reason)
{
	static const char *const names[EVENT_LOSS_COUNT] = {
		[EVENT_LOSS_RING] = "ring_full",
		[EVENT_LOSS_MAP] = "map_full",
		[EVENT_LOSS_READ] = "read_failed",
		[EVENT_LOSS_CUT] = "cut",
		[EVENT_LOSS_SKIPPED] = "skipped",
	};

	return reason < EVENT_LOSS_COUNT ? names[reason] : "?";
}

size_t
probes_costs(const struct probes *p, struct probe_cost ret[PROBES_PROGRAMS])
{
	struct bpf_program *prog;
	size_t n = 0;

	_Static_assert(sizeof(p->skel->progs) <= PROBES_PROGRAMS * sizeof(prog), "PROBES_PROGRAMS is too small");
	bpf_object__for_each_program(prog, p->skel->obj) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0)
			ret[n++] = (struct probe_cost){ bpf_program__name(prog), info.run_cnt, info.run_time_ns };
	}
	return n;
}
