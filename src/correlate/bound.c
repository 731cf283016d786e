/*
 * SPDX-License-Identifier: Apache-2.0
 * bound: a verdict in one word, and shares of time. The definition is in bound.h.
 */
#include "correlate/bound.h"

#include "correlate/process.h"
#include "correlate/state.h"

static double
at_most(double value, double limit)
{
	return value < limit ? value : limit;
}

/* Returns a field as a number; 0 if it is not known. */
static double
number(const struct usage *u, enum usage_field field)
{
	return usage_has(u, field) ? (double)u->value[field] : 0;
}

static struct opt_double
share_of(double part, double whole)
{
	return (struct opt_double){ .value = part / whole, .known = true };
}

/* Returns peak RSS as a share of the memory that the program could have used. */
static struct opt_double
memory_share(const struct usage *u, const struct demand_limits *limits)
{
	uint64_t limit = UINT64_MAX;

	if (limits->memory_limit_bytes.known)
		limit = limits->memory_limit_bytes.value;
	if (limits->host_memory_bytes.known && limits->host_memory_bytes.value < limit)
		limit = limits->host_memory_bytes.value;
	if (limit == 0 || limit == UINT64_MAX || !usage_has(u, USAGE_PEAK_RSS_BYTES))
		return (struct opt_double){ .known = false };
	/* A sum over programs, or the kernel's rounded batch counters, may exceed 1. */
	return share_of(at_most(number(u, USAGE_PEAK_RSS_BYTES), (double)limit), (double)limit);
}

enum bound
bound_of(const struct verdict *v)
{
	static const enum bound bounds[DEMAND_KINDS] = {
		[DEMAND_COMPUTE] = BOUND_COMPUTE,
		[DEMAND_MEMORY] = BOUND_MEMORY,
		[DEMAND_STORAGE] = BOUND_IO,
		[DEMAND_NETWORK_FS] = BOUND_IO,
		[DEMAND_NETWORK] = BOUND_NETWORK,
		[DEMAND_WAITING_FOR] = BOUND_IDLE,
		[DEMAND_MIXED] = BOUND_MIXED,
	};

	if (v->denied_share.value >= BOUND_STARVED_SHARE &&
	    (v->denied == DENIED_RUN_QUEUE || v->denied == DENIED_THROTTLED))
		return BOUND_STARVED;
	return bounds[v->demand];
}

struct bound_shares
bound_shares_of(const struct usage *u, uint64_t wall_ns, const struct demand_limits *limits)
{
	double cpu = number(u, USAGE_CPU_USER_NS) + number(u, USAGE_CPU_SYSTEM_NS);
	double run_delay = number(u, USAGE_RUN_DELAY_NS);
	double block_io = number(u, USAGE_BLOCK_IO_DELAY_NS);
	double whole = cpu + run_delay + block_io;
	struct bound_shares s = { .memory = memory_share(u, limits) };

	if (whole < (double)wall_ns)
		whole = (double)wall_ns;
	if (!usage_has(u, USAGE_CPU_USER_NS) || !usage_has(u, USAGE_CPU_SYSTEM_NS) || whole <= 0)
		return s;
	s.cpu = share_of(cpu, whole);
	if (usage_has(u, USAGE_RUN_DELAY_NS))
		s.run_delay = share_of(run_delay, whole);
	if (usage_has(u, USAGE_BLOCK_IO_DELAY_NS))
		s.block_io = share_of(block_io, whole);
	s.idle = share_of(whole - cpu - run_delay - block_io, whole);
	if (s.idle.value < 0)	/* a rounding error */
		s.idle.value = 0;
	return s;
}
