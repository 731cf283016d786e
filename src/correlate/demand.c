/*
 * SPDX-License-Identifier: Apache-2.0
 * demand: shares of a bill, and what follows from them. The definition is in demand.h.
 */
#include "correlate/demand.h"

#include <stdbool.h>
#include <stddef.h>

#include "correlate/bill.h"

#define NS_PER_S 1e9
#define MIB (1024.0 * 1024.0)
#define DEMAND_SHORT_NS UINT64_C(10000000)
#define SHARE_DECIDES 0.6
#define SHARE_OF_MEMORY 0.3
#define SHARE_IS_DENIED 0.1
#define CLOSE 0.2
#define MEMORY_IS_FULL 0.9
#define MAJOR_FAULTS 100.0		/* a cold start has fewer */
#define MAJOR_FAULTS_PER_S 100.0
#define NETWORK_BYTES_PER_S MIB
#define STORAGE_BYTES_PER_S (16 * MIB)

/* Nanoseconds of each kind, which become shares of whole. */
struct kinds {
	double of[DEMAND_KINDS];
	double denied[DENIED_KINDS];
	double guessed;		/* nanoseconds of `of` that rest on rates, or on nothing */
	bool is_a_guess;	/* most of WAITING_FOR rests on nothing */
	double whole;
};

static double
part(const struct bill *b, enum bill_part p)
{
	return (double)bill_ns(b, p);
}

static double
least(double a, double b)
{
	return a < b ? a : b;
}

/* Returns a field; 0 if it is not known. */
static double
number(const struct usage *u, enum usage_field field)
{
	return usage_has(u, field) ? (double)u->value[field] : 0;
}

/* Returns the smaller of its limits, of which one kills and one takes memory back; 0: none is known. */
static double
memory_limit(const struct demand_limits *limits)
{
	uint64_t most = limits->memory_limit_bytes.known ? limits->memory_limit_bytes.value : 0;

	if (limits->memory_high.known && (most == 0 || limits->memory_high.value < most))
		most = limits->memory_high.value;
	return (double)most;
}

/* Returns the peak as a part of what it may have; 0 if that is not known. */
static double
memory_held(const struct usage *u, const struct demand_limits *limits)
{
	double largest = number(u, USAGE_PEAK_RSS_BYTES), held = 0;
	double all = limits->peak_bytes.known ? (double)limits->peak_bytes.value : largest;
	double limited = limits->is_limit_of_each ? largest : all, limit = memory_limit(limits);

	if (limits->host_memory_bytes.known && limits->host_memory_bytes.value > 0)
		held = all / (double)limits->host_memory_bytes.value;
	return limit > 0 && limited / limit > held ? limited / limit : held;
}

static bool
reads_pages_back(const struct usage *u, double wall_s)
{
	double faults = number(u, USAGE_MAJOR_FAULTS);

	return faults >= MAJOR_FAULTS && faults >= MAJOR_FAULTS_PER_S * wall_s;
}

/*
 * Returns whether a program fills its limit with pages of files which are evicted and read anew: the kernel has counted
 * delays for such. What is read once into as much memory is only read.
 */
static bool
is_full_of_files(const struct usage *u, const struct demand_limits *limits)
{
	double largest = number(u, USAGE_PEAK_RSS_BYTES), limit = memory_limit(limits);

	return limit > 0 && largest >= MEMORY_IS_FULL * limit && number(u, USAGE_READ_BYTES) > 2 * largest &&
	    number(u, USAGE_THRASHING_DELAY_NS) > 0;
}

/*
 * Returns the CPU time in which the kernel looked for memory in its stead, and compressed or evicted pages. A delay of
 * reclaim is mostly that; of a program that holds more than it may have all time in the kernel is taken for it.
 */
static double
spent_on_memory(const struct usage *u, const struct bill *b, const struct demand_limits *limits, bool reads_back)
{
	double system = least(number(u, USAGE_CPU_SYSTEM_NS), part(b, BILL_CPU));
	double stalled = number(u, USAGE_RECLAIM_DELAY_NS) - part(b, BILL_RECLAIM);

	if (reads_back && memory_held(u, limits) > 1)
		return system;
	if (limits->group != NULL && limits->group->memory_some_ns.known) {
		double of_group = (double)limits->group->memory_some_ns.value - part(b, BILL_RECLAIM) -
		    part(b, BILL_SWAP) - (reads_back ? part(b, BILL_BLOCK_IO) : 0);

		stalled = of_group > stalled ? of_group : stalled;
	}
	return stalled > 0 ? least(stalled, system) : 0;
}

/* Returns the time for which its threads waited because a quota was used up. */
static double
throttled(const struct bill *b, const struct demand_limits *limits)
{
	double sampled = part(b, BILL_THROTTLED), of_group = 0;

	if (limits->group != NULL && limits->group->throttled_ns.known)
		of_group = least((double)limits->group->throttled_ns.value, sampled + part(b, BILL_RUN_QUEUE));
	return of_group > sampled ? of_group : sampled;
}

/* Returns the time for which its threads waited for a CPU that others had, not they themselves, and no quota. */
static double
taken_by_others(const struct bill *b, double wall, const struct demand_limits *limits)
{
	double queue = part(b, BILL_RUN_QUEUE) + part(b, BILL_THROTTLED) - throttled(b, limits), own = 0;

	if (limits->own_queue_ns.known && part(b, BILL_RUN_QUEUE) > 0)
		own = (double)limits->own_queue_ns.value * queue / part(b, BILL_RUN_QUEUE);
	else if (limits->cpus.known)
		own = part(b, BILL_CPU) + queue - limits->cpus.value * wall;
	if (own > 0)
		queue = own < queue ? queue - own : 0;
	return limits->others_cpu_ns.known ? least(queue, (double)limits->others_cpu_ns.value) : queue;
}

/* Returns what of the time in which nothing is known to have worked is unknown; the rest of it are waits. */
static double
unknown_of(const struct bill *b, double rest)
{
	double unknown = part(b, BILL_UNKNOWN), waited = 0;

	for (enum bill_part p = BILL_PIPE; p < BILL_UNKNOWN; p++)
		waited += part(b, p);
	return unknown + waited > 0 ? rest * unknown / (unknown + waited) : rest;
}

/* Divides the time in which nothing is known to have worked. */
static void
divide_rest(struct kinds *k, const struct usage *u, double waits, double unknown, double wall_s)
{
	double net = number(u, USAGE_NET_RX_BYTES) + number(u, USAGE_NET_TX_BYTES);
	double storage = number(u, USAGE_READ_BYTES) + number(u, USAGE_WRITE_BYTES);
	enum demand guess = DEMAND_WAITING_FOR;

	k->guessed = unknown;
	k->of[DEMAND_WAITING_FOR] = waits;
	if (net > 0 && net >= NETWORK_BYTES_PER_S * wall_s)
		guess = DEMAND_NETWORK;
	else if (storage > 0 && storage >= STORAGE_BYTES_PER_S * wall_s)
		guess = DEMAND_STORAGE;
	k->of[guess] += k->guessed;
	k->is_a_guess = guess == DEMAND_WAITING_FOR && 2 * k->guessed > k->of[guess];
}

static struct kinds
kinds_of(const struct usage *u, const struct bill *b, double wall, const struct demand_limits *limits)
{
	struct kinds k = { .of = { 0 } };
	double work, denied, rest, waits = 0, unknown = 0;
	double wall_s = wall / NS_PER_S;
	bool is_full = memory_held(u, limits) >= MEMORY_IS_FULL || is_full_of_files(u, limits);
	bool reads_back = is_full && reads_pages_back(u, wall_s);
	double spent = is_full ? spent_on_memory(u, b, limits, reads_back) : 0;

	k.of[DEMAND_COMPUTE] = part(b, BILL_CPU) - spent;
	k.of[DEMAND_STORAGE] = part(b, BILL_BLOCK_IO);
	k.of[DEMAND_NETWORK_FS] = part(b, BILL_NETWORK_FS);
	k.of[DEMAND_NETWORK] = part(b, BILL_NETWORK);
	k.denied[DENIED_RUN_QUEUE] = taken_by_others(b, wall, limits);
	k.denied[DENIED_THROTTLED] = throttled(b, limits);
	k.denied[DENIED_RECLAIM] = part(b, BILL_SWAP) + part(b, BILL_RECLAIM) + spent;
	if (reads_back) {
		k.denied[DENIED_RECLAIM] += k.of[DEMAND_STORAGE];
		k.of[DEMAND_STORAGE] = 0;
	}
	k.denied[DENIED_IO] = limits->others_io.known ? k.of[DEMAND_STORAGE] * limits->others_io.value : 0;
	k.of[DEMAND_STORAGE] -= k.denied[DENIED_IO];
	work = k.of[DEMAND_COMPUTE] + k.of[DEMAND_STORAGE] + k.of[DEMAND_NETWORK_FS] + k.of[DEMAND_NETWORK];
	if (is_full)
		k.of[DEMAND_MEMORY] = k.denied[DENIED_RECLAIM];
	denied = k.denied[DENIED_RUN_QUEUE] + k.denied[DENIED_THROTTLED] + k.denied[DENIED_RECLAIM] +
	    k.denied[DENIED_IO];
	rest = wall - denied - work;
	/* What is unknown beside waits for a disk is most likely another such wait, with the same part of others. */
	if (rest > 0) {
		unknown = unknown_of(b, rest);
		waits = rest - unknown;
		if (k.denied[DENIED_IO] > 0)
			unknown *= work / (work + k.denied[DENIED_IO]);
		divide_rest(&k, u, waits, unknown, wall_s);
	}
	k.whole = work + waits + unknown;
	return k;
}

/*
 * Returns the largest of the parts that are waits, and neither work nor denied. A parent waits for a child, which waits
 * for something else: that counts.
 */
static enum bill_part
largest_wait(const struct bill *b)
{
	enum bill_part largest = BILL_CHILD;

	for (enum bill_part p = BILL_PIPE; p < BILL_UNKNOWN; p++) {
		if (p != BILL_CHILD && part(b, p) > (largest == BILL_CHILD ? 0 : part(b, largest)))
			largest = p;
	}
	return largest;
}

static void
decide_demand(struct verdict *v, const struct kinds *k, const struct bill *b)
{
	double top = 0, away;

	v->demand = DEMAND_MIXED;
	for (enum demand d = DEMAND_COMPUTE; d < DEMAND_KINDS; d++) {
		if (d == DEMAND_MEMORY || d == DEMAND_MIXED || k->of[d] <= top * k->whole)
			continue;
		top = k->of[d] / k->whole;
		if (top >= SHARE_DECIDES)
			v->demand = d;
	}
	away = top > SHARE_DECIDES ? top - SHARE_DECIDES : SHARE_DECIDES - top;
	if (k->of[DEMAND_MEMORY] >= SHARE_OF_MEMORY * (k->whole + k->of[DEMAND_MEMORY])) {
		v->demand = DEMAND_MEMORY;
		away = k->of[DEMAND_MEMORY] / (k->whole + k->of[DEMAND_MEMORY]) - SHARE_OF_MEMORY;
	}
	if (v->demand == DEMAND_WAITING_FOR && k->is_a_guess) {
		v->demand = DEMAND_NONE;
		return;
	}
	if (v->demand == DEMAND_WAITING_FOR)
		v->waiting_for = bill_part_name(largest_wait(b));
	v->confidence = (struct opt_double){ 0.5 + 0.5 * (away < CLOSE ? away / CLOSE : 1), true };
	v->confidence.value *= 1 - k->guessed / k->whole;
}

static void
decide_denied(struct verdict *v, const struct kinds *k)
{
	double all = k->whole, top = 0;

	for (enum denied d = DENIED_RUN_QUEUE; d < DENIED_KINDS; d++)
		all += k->denied[d];
	v->denied = DENIED_NOTHING;
	v->denied_share = (struct opt_double){ all > 0 ? (all - k->whole) / all : 0, true };
	for (enum denied d = DENIED_RUN_QUEUE; d < DENIED_KINDS; d++) {
		if (k->denied[d] <= top)
			continue;
		top = k->denied[d];
		if (top >= SHARE_IS_DENIED * all)
			v->denied = d;
	}
}

struct verdict
demand_decide(const struct usage *u, const struct bill *b, uint64_t wall_ns, const struct demand_limits *limits)
{
	struct verdict v = { .demand = DEMAND_NONE, .denied = DENIED_NONE };
	struct kinds k;

	if (!b->part[BILL_CPU].known || (wall_ns < DEMAND_SHORT_NS && bill_ns(b, BILL_CPU) < DEMAND_SHORT_NS))
		return v;
	k = kinds_of(u, b, (double)wall_ns, limits);
	if (k.whole > 0)		/* else there is nothing but what was denied */
		decide_demand(&v, &k, b);
	decide_denied(&v, &k);
	return v;
}
