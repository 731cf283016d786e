/*
 * SPDX-License-Identifier: Apache-2.0
 * shares: the table of uids.
 */
#include "control/shares.h"

#include <stddef.h>

#define ONE 100				/* times what it took: 1 % of a CPU for a uid ... */
#define TOGETHER 50			/* ... and 2 % for all of them */
#define BURST_NS UINT64_C(10000000000)	/* 0.1 s of CPU time at once, after a rest */

/* Returns whether a share is as good as none: no client is connected, and everything is paid for. */
static bool
is_free(const struct share *s, uint64_t now_ns)
{
	return !s->is_used || (s->connections == 0 && s->pace.paid_ns <= now_ns);
}

struct share *
shares_of(struct shares *s, uint32_t uid, uint64_t now_ns)
{
	struct share *unused = NULL;

	for (struct share *one = s->list; one < s->list + SHARES; one++) {
		if (one->is_used && one->uid == uid)
			return one;
		if (unused == NULL && is_free(one, now_ns))
			unused = one;
	}
	if (unused != NULL)
		*unused = (struct share){ .uid = uid, .is_used = true };
	return unused;
}

void
shares_charge(struct shares *s, struct share *of, uint64_t cpu_ns, uint64_t now_ns)
{
	pace_charge(&of->pace, ONE * cpu_ns, now_ns);
	pace_charge(&s->all, TOGETHER * cpu_ns, now_ns);
}

uint64_t
shares_wait_ns(const struct shares *s, const struct share *of, uint64_t now_ns)
{
	uint64_t one = pace_wait_ns(&of->pace, BURST_NS, now_ns), all = pace_wait_ns(&s->all, BURST_NS, now_ns);

	return one > all ? one : all;
}
