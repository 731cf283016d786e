/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Who ended a process by a signal: the work of on_signal as it is sent.
 */
#ifndef SLUICE_KILL_H
#define SLUICE_KILL_H

#include "share.h"

#define GROUP_EXIT 0x4		/* SIGNAL_GROUP_EXIT */

/* What the kernel passes in the place of a siginfo. */
enum { NO_INFO = 0, OF_KERNEL = 1 };

/* Codes of signals that a program sends; the kernel sends all others. */
enum { CODE_USER = 0, CODE_QUEUE = -1, CODE_TKILL = -6 };

/* Returns whether the program that runs here sent the signal. info: a number. */
static __always_inline bool
is_of_program(u64 info)
{
	int code = CODE_USER;

	if (info == OF_KERNEL)
		return false;
	if (info != NO_INFO)
		code = BPF_CORE_READ((struct kernel_siginfo *)info, si_code);
	return code == CODE_USER || code == CODE_QUEUE || code == CODE_TKILL;
}

/* Fills in the program that runs here. A function of its own, so that the object's types have the record's. */
static __noinline int
sender_fill(struct event_signal *e)
{
	struct task_struct *t = (void *)bpf_get_current_task_btf();
	struct proc *p = proc_of(t);

	e->sender_pid = bpf_get_current_pid_tgid() >> 32;
	e->sender_uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	if (!p || !p->reported)
		return 0;
	e->sender = p->self;
	e->anchor = p->anchor;
	return 0;
}

/*
 * Sends an event if the signal ends the process: the kernel has decided that already, at most once for each process. It
 * decides later where the process has blocked the signal, is traced, or will dump core: then the sender is unknown.
 */
static __always_inline int
kill_seen(int sig, u64 *info, struct task_struct *t, int result)
{
	u32 own = bpf_get_current_pid_tgid() >> 32;
	volatile u64 *wash;
	struct event_signal *e;
	bool is_scarce;
	struct proc *p;
	struct task k;

	if (result)
		return 0;		/* it was not delivered */
	task_read(&k, t);
	if (!(k.signal->flags & GROUP_EXIT) || k.signal->group_exit_code != sig)
		return 0;
	p = proc_of_task(&k);
	if (!p || p->end_ns || !p->reported)
		return 0;
	is_scarce = ring_is_scarce(p);
	e = NULL;
	if (!is_scarce || ring_room_of(p->user) < RING_NONE)
		e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		count_loss(EVENT_PROG_SIGNAL, EVENT_LOSS_RING);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	wash = &e->head.time_ns;	/* storing it in memory turns the pointer into a number */
	*wash = (u64)info;
	e->is_of_program = is_of_program(*wash);
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_SIGNAL;
	e->head.size = sizeof(*e);
	e->head.time_ns = bpf_ktime_get_boot_ns();
	e->self.start_ns = p->self.start_ns;
	e->self.pid = p->self.pid;
	e->self.index = p->self.index;
	e->signal = sig;
	if (e->is_of_program && own == p->self.pid) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);	/* it ended itself */
		return 0;
	}
	if (e->is_of_program)
		(void)sender_fill(e);
	bpf_ringbuf_submit(e, wake_flags(e->head.time_ns));
	if (is_scarce)
		ring_charge(p->user, sizeof(*e));
	return 0;
}

#endif
