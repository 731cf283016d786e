/*
 * SPDX-License-Identifier: Apache-2.0
 * pace: limits work to a rate. Work is paid for in time: at ten pieces a second each costs 100 ms, and a uid that may
 * have 1 % of a CPU pays a hundred times what its request took. Who was quiet may have a burst, which is paid for
 * afterwards.
 */
#ifndef SLUICE_CONTROL_PACE_H
#define SLUICE_CONTROL_PACE_H

#include <stdint.h>

/* Zeroed: nothing is owed. Times are of CLOCK_MONOTONIC. */
struct pace {
	uint64_t paid_ns;	/* when all work until now is paid for */
};

/* Returns for how long no work is due, since more than the burst is owed; 0: some is due now. */
static inline uint64_t
pace_wait_ns(const struct pace *p, uint64_t burst_ns, uint64_t now_ns)
{
	return p->paid_ns > now_ns + burst_ns ? p->paid_ns - burst_ns - now_ns : 0;
}

static inline void
pace_charge(struct pace *p, uint64_t cost_ns, uint64_t now_ns)
{
	p->paid_ns = (p->paid_ns > now_ns ? p->paid_ns : now_ns) + cost_ns;
}

#endif
