/*
 * SPDX-License-Identifier: Apache-2.0
 * bound: what limited a program, task or run. The definition is in bound.h.
 */
#include "correlate/bound.h"

#include "correlate/process.h"
#include "correlate/state.h"

#define NS_PER_S 1e9

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
memory_share(const struct usage *u, const struct bound_limits *limits)
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

static enum bound
decide(const struct usage *u, double wall_s, const struct bound_shares *s)
{
	double waiting = 1 - s->cpu.value - s->run_delay.value;
	double storage = number(u, USAGE_READ_BYTES) + number(u, USAGE_WRITE_BYTES);
	double faults = number(u, USAGE_MAJOR_FAULTS);
	double net = number(u, USAGE_NET_RX_BYTES) + number(u, USAGE_NET_TX_BYTES);

	if (s->run_delay.value >= BOUND_STARVED_SHARE)
		return BOUND_STARVED;
	if (s->memory.known && s->memory.value >= BOUND_MEMORY_SHARE)
		return BOUND_MEMORY;
	if (s->cpu.value >= BOUND_COMPUTE_SHARE)
		return BOUND_COMPUTE;
	if (faults >= BOUND_MAJOR_FAULTS && faults >= BOUND_MAJOR_FAULTS_PER_S * wall_s)
		return BOUND_MEMORY;
	if (s->block_io.known && s->block_io.value >= BOUND_IO_SHARE)
		return BOUND_IO;
	if (waiting >= BOUND_WAITING_SHARE) {
		if (!s->block_io.known && storage > 0 &&
		    storage >= BOUND_STORAGE_BYTES_PER_S * wall_s)
			return BOUND_IO;
		if (net > 0 && net >= BOUND_NETWORK_BYTES_PER_S * wall_s)
			return BOUND_NETWORK;
	}
	if (s->cpu.value < BOUND_IDLE_SHARE)
		return BOUND_IDLE;
	return BOUND_MIXED;
}

enum bound
bound_decide(const struct usage *u, uint64_t wall_ns, const struct bound_limits *limits,
    struct bound_shares *ret_shares)
{
	double cpu = number(u, USAGE_CPU_USER_NS) + number(u, USAGE_CPU_SYSTEM_NS);
	double run_delay = number(u, USAGE_RUN_DELAY_NS);
	double block_io = number(u, USAGE_BLOCK_IO_DELAY_NS);
	double whole = cpu + run_delay + block_io;
	struct bound_shares s = { .memory = memory_share(u, limits) };
	enum bound bound = BOUND_NONE;

	if (whole < (double)wall_ns)
		whole = (double)wall_ns;
	if (!usage_has(u, USAGE_CPU_USER_NS) || !usage_has(u, USAGE_CPU_SYSTEM_NS) || whole <= 0)
		goto out;

	s.cpu = share_of(cpu, whole);
	if (usage_has(u, USAGE_RUN_DELAY_NS))
		s.run_delay = share_of(run_delay, whole);
	if (usage_has(u, USAGE_BLOCK_IO_DELAY_NS))
		s.block_io = share_of(block_io, whole);
	s.idle = share_of(whole - cpu - run_delay - block_io, whole);
	if (s.idle.value < 0)	/* a rounding error */
		s.idle.value = 0;

	if (wall_ns >= BOUND_SHORT_NS || cpu >= (double)BOUND_SHORT_NS)
		bound = decide(u, (double)wall_ns / NS_PER_S, &s);
out:
	if (ret_shares != NULL)
		*ret_shares = s;
	return bound;
}
