/*
 * SPDX-License-Identifier: Apache-2.0
 * canary: forks them, and waits for them to come back.
 */
#include "agent/canary.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* It shares our memory until it ends, so that nothing is copied. */
static void
canary_fork(struct canary *c, struct probes *probes)
{
	pid_t pid;

	c->forked_ns = clock_ns(CLOCK_BOOTTIME);
	c->looks = 0;
	probes_adopt(probes, probes_own_pid(probes));
	pid = vfork();
	if (pid == 0)
		_exit(0);
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
