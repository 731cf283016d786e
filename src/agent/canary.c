/*
 * SPDX-License-Identifier: Apache-2.0
 * canary: forks them, and waits for them to come back.
 */
#include "agent/canary.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "attach/probes.h"
#include "base/clock.h"
#include "model/event.h"

/*
 * One each two seconds, in the look nearest to that. One that the kernel does not free is found by the sweep after 5 s
 * (see probes_hurry()). So the second in which the agent is found to be blind is the ninth since the last canary that
 * came back, or the tenth if the looks are late.
 */
#define EACH_NS UINT64_C(1500000000)
#define LOOKS_MAX 6

void
canary_begin(struct canary *c, uint64_t now_ns)
{
	*c = (struct canary){ .seen_ns = now_ns };
}

void
canary_event(struct canary *c, const struct state_event *s)
{
	if (s->kind != STATE_EXIT && s->kind != STATE_STALE)
		return;		/* a pass: it does not show that ends are reported */
	if (s->self.start_ns > c->seen_ns)
		c->seen_ns = s->self.start_ns;
	if (s->self.start_ns >= c->forked_ns)
		c->forked_ns = 0;
}

static int
end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * It shares our memory until it ends, so that nothing is copied, and our files: the end of a process that has copies of
 * their descriptors waits where a file system that hangs, such as NFS, writes a file back when it is closed.
 */
static void
canary_fork(struct canary *c, struct probes *probes)
{
	static _Alignas(16) char stack[8192];
	pid_t pid;

	c->forked_ns = clock_ns(CLOCK_BOOTTIME);
	c->looks = 0;
	probes_adopt(probes, probes_own_pid(probes));
	pid = clone(end_at_once, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, NULL);
	c->error = pid < 0 ? errno : 0;
	probes_adopt(probes, 0);
	if (pid < 0)
		c->forked_ns = 0;	/* nothing is known from it */
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

bool
canary_look(struct canary *c, struct probes *probes, uint64_t now_ns)
{
	bool sees;

	if (c->forked_ns != 0 && probes_canary_lost_ns(probes) >= c->forked_ns) {
		c->seen_ns = c->forked_ns;
		c->forked_ns = 0;
	}
	sees = c->forked_ns == 0 || ++c->looks <= LOOKS_MAX;
	if (c->forked_ns == 0 ? now_ns - c->seen_ns >= EACH_NS : !sees)
		canary_fork(c, probes);
	return sees;
}
