/*
 * SPDX-License-Identifier: Apache-2.0
 * discover: processes that ran before the probes were attached, or that earlier rules excluded.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host_state.h"
#include "attach/filter.h"
#include "base/clock.h"
#include "model/user.h"

#define ADMIT_SHARE 10			/* one part in so many of the time that passes for refused processes may take */
#define READ_AHEAD (READER_QUEUE / 2)

/*
 * Begins a program that was running already, from what a reader read of it; NULL: reading it hangs, or there is no
 * reader. Then it begins without arguments, which is counted.
 */
static void
begin_discovered(struct host_agent *h, const struct state_event *s, const struct proc_texts *texts)
{
	struct agent *a = &h->agent;
	struct exec_event discovered;

	if (!proc_reader_event(h->found, s, texts, &discovered))
		return;		/* it has ended, which the ring reports */
	/* If it exec'd before its arguments were read, they are those of its next program, which the ring reports. */
	agent_drain_all(a);
	if (correlator_knows(a->correlator, &s->self))
		return;
	for (int is_v2 = 0; is_v2 < 2; is_v2++) {
		struct cgroup_event cgroup = { .is_v2 = is_v2, .path = texts != NULL ? texts->cgroup[is_v2] : NULL,
			.id = is_v2 ? s->context.cgroup_v2 : s->context.cgroup_v1 };

		if (cgroup.id != 0 && cgroup.path != NULL)
			agent_learn_cgroup(a, &cgroup);
	}
	correlator_exec(a->correlator, &discovered);
	a->counts.discovered++;
}

static void
on_discovered(const struct reader_answer *answer, void *arg)
{
	const struct unknown_process *u = arg;
	struct proc_texts texts;

	if (answer != NULL && answer->error < 0)
		return;		/* it is ending, which the ring reports */
	if (answer != NULL)
		texts = reader_answer_texts(answer);
	begin_discovered(u->h, &u->state, answer != NULL ? &texts : NULL);
}

bool
host_discover_state(struct agent *a, const struct state_event *s)
{
	struct host_agent *h = host_agent(a);
	struct unknown_process *grown;

	if (h->found == NULL)
		return false;
	if (s->kind != STATE_DISCOVERED &&
	    (s->kind != STATE_LIVE || !s->has_execed || correlator_knows(a->correlator, &s->self)))
		return false;
	/*
	 * Its exec may still be in the ring: it is checked again after a drain. Sorting puts parents first. A pass has
	 * each process of the kernel side's map once, which bounds their number.
	 */
	if (h->n_unknown % 1024 == 0) {
		grown = realloc(h->unknown, (h->n_unknown + 1024) * sizeof(*grown));
		if (grown == NULL) {
			a->counts.undiscovered++;
			return true;
		}
		h->unknown = grown;
	}
	grown = &h->unknown[h->n_unknown++];
	*grown = (struct unknown_process){ h, *s };
	grown->state.exe = s->exe != NULL ? strdup(s->exe) : NULL;
	grown->state.cwd = s->cwd != NULL ? strdup(s->cwd) : NULL;
	return true;
}

static int
by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct unknown_process *)a)->state.self.start_ns;
	uint64_t y = ((const struct unknown_process *)b)->state.self.start_ns;

	return (x > y) - (x < y);
}

/* Has a process read, and begun once it is. They are read ahead, in their order, and each is begun after a drain. */
static void
discover(struct host_agent *h, struct unknown_process *u)
{
	struct agent *a = &h->agent;

	if (correlator_knows(a->correlator, &u->state.self))
		return;
	if (reader_room(a->reader) == 0)
		reader_finish(a->reader, READ_AHEAD);
	(void)reader_ask(a->reader, READER_PROCESS, u->state.self.pid,
	    user_behind(u->state.context.uid, u->state.context.user_uid), on_discovered, u);
}

/* Begins the unknown programs that a pass over the running processes discovers. */
static void
begin_all(struct host_agent *h, int fd)
{
	struct agent *a = &h->agent;

	correlator_snapshot_begin(a->correlator, false);
	if (!agent_read_states(a, fd))
		a->counts.broken_passes++;
	if (h->n_unknown > 0)
		qsort(h->unknown, h->n_unknown, sizeof(*h->unknown), by_start);
	/* Before the drain, which may bring their ends. An exec that it brings replaces what is recorded here. */
	for (size_t i = 0; i < h->n_unknown; i++)
		correlator_discovered(a->correlator, &h->unknown[i].state);
	agent_drain_all(a);
	for (size_t i = 0; i < h->n_unknown; i++)
		discover(h, &h->unknown[i]);
	reader_finish(a->reader, 0);
	for (size_t i = 0; i < h->n_unknown; i++) {
		free((char *)h->unknown[i].state.exe);
		free((char *)h->unknown[i].state.cwd);
	}
	free(h->unknown);
	h->unknown = NULL;
	h->n_unknown = 0;
	proc_reader_free(h->found);
	h->found = NULL;
}

/* Begins those of a pass that was opened, fd or a negative errno. Returns 0 or a negative errno. */
static int
discover_by(struct host_agent *h, int fd)
{
	int r;

	if (fd < 0)
		return fd;
	r = proc_reader_new("/proc", &h->found);
	if (r < 0) {
		close(fd);
		return r;
	}
	begin_all(h, fd);
	h->agent.scope->commit(&h->agent);
	return 0;
}

int
host_discover_included(struct host_agent *h)
{
	return discover_by(h, probes_judge_open(h->agent.probes));
}

int
host_discover_missed(struct host_agent *h)
{
	h->refused_seen = probes_refused(h->agent.probes);	/* the pass counts anew for which it finds no room */
	return discover_by(h, probes_discovery_open(h->agent.probes));
}

void
host_discover_refused(struct host_agent *h, uint64_t now_ns)
{
	const struct probes *probes = h->agent.probes;

	if (probes_refused(probes) == h->refused_seen || now_ns < h->admit_after_ns || !probes_have_room(probes))
		return;
	if (host_discover_missed(h) < 0)
		h->agent.counts.broken_passes++;
	h->admit_after_ns = now_ns + ADMIT_SHARE * (clock_ns(CLOCK_BOOTTIME) - now_ns);
}

int
host_discover(struct host_agent *h)
{
	struct agent *a = &h->agent;
	int fd, r;

	if (probes_origin(a->probes) == PROBES_RESUMED || probes_origin(a->probes) == PROBES_WERE_QUIET ||
	    probes_origin(a->probes) == PROBES_MIGRATED)
		agent_drain_all(a);		/* events while no agent was reading */
	/* First, since excluded programs are not discovered. */
	r = probes_set_rules_now(a->probes, a->rules);
	h->refused_seen = probes_refused(a->probes);
	fd = r == 0 ? probes_discovery_open(a->probes) : r;
	if (fd < 0)
		return fd;
	begin_all(h, fd);
	return 0;
}
