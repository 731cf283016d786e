/*
 * SPDX-License-Identifier: Apache-2.0
 * Reports of the probes: which hook serves each signal, what was lost, what each program cost.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "attach/probes_state.h"

void
probes_describe(struct probes *p)
{
	for (int i = 0; i < SIGNALS; i++) {
		const struct signal *s = &signals[i];
		const struct signal_hook *h = p->hooks[i];

		if (h == NULL)
			p->signals[i] = (struct signal_status){ s->name, "", SIGNAL_MISSING, s->missing, s->fields };
		else if (p->is_off[i])
			p->signals[i] = (struct signal_status){ s->name, "", SIGNAL_DETACHED,
				"switched off: its fields are null", s->fields };
		else
			p->signals[i] = (struct signal_status){ s->name, h->name, h->state,
				h->detail != NULL ? h->detail : "", s->fields };
	}
}

const struct signal_status *
probes_signals(const struct probes *p, size_t *ret_n)
{
	*ret_n = SIGNALS;
	return p->signals;
}

bool
probes_have(const struct probes *p, const char *signal)
{
	for (int i = 0; i < SIGNALS; i++) {
		if (strcmp(p->signals[i].name, signal) == 0)
			return p->hooks[i] != NULL;
	}
	return false;
}

uint64_t
probes_lost(const struct probes *p, unsigned program, unsigned reason)
{
	return __atomic_load_n(&p->skel->data_shared->lost[program][reason], __ATOMIC_RELAXED);
}

uint64_t
probes_lost_records(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->lost_records, __ATOMIC_RELAXED);
}

/* Returns how often the kernel did not run a program because it was already running on that CPU. */
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
	 * Programs whose skipped runs leave no other trace. Skipped exec and exit show in state that they did not
	 * update; so does fork where it has copies, and then there is no program of this name.
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
#define EVENT_PROGRAM(id, name) name,
		EVENT_PROGRAMS(EVENT_PROGRAM)
#undef EVENT_PROGRAM
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
