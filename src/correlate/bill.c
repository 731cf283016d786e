/*
 * SPDX-License-Identifier: Apache-2.0
 * bill: the parts of threads' time. The definition is in bill.h.
 */
#include "correlate/bill.h"

#include <stddef.h>

/* A sample stands for a second: by so much more than the delays say, a few of them are not wrong by chance. */
#define SAMPLES_COUNT_NS UINT64_C(5000000000)

/* The parts that are sampled, and their fields. */
static const struct {
	enum bill_part part;
	enum usage_field field;
} sampled[] = {
	{ BILL_BLOCK_IO, USAGE_WAIT_BLOCK_NS },
	{ BILL_SWAP, USAGE_WAIT_SWAP_NS },
	{ BILL_RECLAIM, USAGE_WAIT_RECLAIM_NS },
	{ BILL_NETWORK_FS, USAGE_WAIT_NETWORK_FS_NS },
	{ BILL_NETWORK, USAGE_WAIT_NETWORK_NS },
	{ BILL_PIPE, USAGE_WAIT_PIPE_NS },
	{ BILL_LOCK, USAGE_WAIT_LOCK_NS },
	{ BILL_CHILD, USAGE_WAIT_CHILD_NS },
	{ BILL_TIMER, USAGE_WAIT_TIMER_NS },
	{ BILL_POLL, USAGE_WAIT_POLL_NS },
	{ BILL_STOPPED, USAGE_WAIT_STOPPED_NS },
	{ BILL_OTHER, USAGE_WAIT_OTHER_NS },
};

static uint64_t
at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

/* Returns a field; 0 if it is not known. */
static uint64_t
number(const struct usage *u, enum usage_field field)
{
	return usage_has(u, field) ? u->value[field] : 0;
}

/* Returns value * part / whole, rounded down; whole is not 0. */
static uint64_t
share(uint64_t value, uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)value * part / whole);
}

/* What is still to be divided. */
struct division {
	struct bill *bill;
	uint64_t left;
};

/* Adds ns to a part, or what is left if that is less. */
static void
take(struct division *d, enum bill_part part, uint64_t ns)
{
	ns = at_most(ns, d->left);
	d->bill->part[part].value += ns;
	d->left -= ns;
}

/* Adds the delays that the kernel counted exactly. Returns the parts, as bits, that need no sample then. */
static unsigned
take_delays(struct division *d, const struct usage *u)
{
	uint64_t block = number(u, USAGE_BLOCK_IO_DELAY_NS);
	uint64_t swap = number(u, USAGE_SWAPIN_DELAY_NS) + number(u, USAGE_THRASHING_DELAY_NS);
	uint64_t on_disk = number(u, USAGE_WAIT_BLOCK_NS), elsewhere = number(u, USAGE_WAIT_NETWORK_FS_NS);

	if (!usage_has(u, USAGE_BLOCK_IO_DELAY_NS))
		return 0;
	/* Since 5.17 waits for swap are in both; the delay of compaction exists since 5.18. */
	if (usage_has(u, USAGE_COMPACT_DELAY_NS))
		block -= at_most(swap, block);
	if (elsewhere > 0)
		block = share(block, on_disk, on_disk + elsewhere);
	/* Of a program whose delay is no possible one a sum has only the samples: they are much more then, and many. */
	if (block < on_disk / 2 && on_disk - block > SAMPLES_COUNT_NS)
		block = on_disk;
	take(d, BILL_BLOCK_IO, block);
	take(d, BILL_SWAP, swap);
	return 1u << BILL_BLOCK_IO | 1u << BILL_SWAP;
}

/* Divides what is left as the samples are, but no more than they stand for. */
static void
take_samples(struct division *d, const struct usage *u, unsigned exact)
{
	uint64_t sum = 0, whole = d->left;

	for (size_t i = 0; i < sizeof(sampled) / sizeof(sampled[0]); i++) {
		if (!(exact >> sampled[i].part & 1))
			sum += number(u, sampled[i].field);
	}
	for (size_t i = 0; i < sizeof(sampled) / sizeof(sampled[0]); i++) {
		uint64_t ns = number(u, sampled[i].field);

		if (!(exact >> sampled[i].part & 1))
			take(d, sampled[i].part, sum > whole ? share(whole, ns, sum) : ns);
	}
}

struct bill
bill_of_threads(const struct usage *u)
{
	struct bill b = { 0 };
	struct division d = { &b, number(u, USAGE_THREAD_NS) };
	uint64_t delay = number(u, USAGE_RUN_DELAY_NS);
	uint64_t throttled = at_most(number(u, USAGE_WAIT_THROTTLED_NS), delay);

	if (!usage_has(u, USAGE_THREAD_NS) || !usage_has(u, USAGE_CPU_USER_NS) || !usage_has(u, USAGE_CPU_SYSTEM_NS))
		return b;
	for (int i = 0; i < BILL_PARTS; i++)
		b.part[i].known = true;
	take(&d, BILL_CPU, usage_cpu_ns(u));
	take(&d, BILL_THROTTLED, throttled);
	take(&d, BILL_RUN_QUEUE, delay - throttled);
	take_samples(&d, u, take_delays(&d, u));
	take(&d, BILL_UNKNOWN, d.left);
	return b;
}

/* Kinds of parts of which all have their time before the next kind has any. */
static const unsigned kinds[] = {
	1u << BILL_CPU,
	1u << BILL_RUN_QUEUE | 1u << BILL_THROTTLED,
	1u << BILL_BLOCK_IO | 1u << BILL_SWAP | 1u << BILL_RECLAIM | 1u << BILL_NETWORK_FS | 1u << BILL_NETWORK,
	1u << BILL_PIPE | 1u << BILL_LOCK | 1u << BILL_TIMER | 1u << BILL_POLL | 1u << BILL_STOPPED | 1u << BILL_OTHER,
	1u << BILL_CHILD,
};

/* Adds to own what threads of this kind had, reduced in proportion to what is left. Returns what is left then. */
static uint64_t
divide(uint64_t own_ns[BILL_PARTS], const uint64_t more_ns[BILL_PARTS], unsigned kind, uint64_t left)
{
	uint64_t sum = 0, whole = left;

	for (int i = 0; i < BILL_PARTS; i++)
		sum += kind >> i & 1 ? more_ns[i] : 0;
	for (int i = 0; i < BILL_PARTS; i++) {
		uint64_t ns = kind >> i & 1 ? more_ns[i] : 0;

		if (sum > whole)
			ns = share(whole, ns, sum);
		own_ns[i] += ns;
		left -= ns;
	}
	return left;
}

/* Returns what of their time in a queue threads took from one another: they wanted more CPUs than they may use. */
static uint64_t
took_from_each_other(const uint64_t more_ns[BILL_PARTS], uint64_t wall_ns, struct opt_double cpus)
{
	double wanted = (double)more_ns[BILL_CPU] + (double)more_ns[BILL_RUN_QUEUE];
	double beyond = wanted - cpus.value * (double)wall_ns;

	return cpus.known && beyond > 0 ? at_most((uint64_t)beyond, more_ns[BILL_RUN_QUEUE]) : 0;
}

void
own_bill_add(struct own_bill *o, const struct bill *threads, uint64_t start_ns, uint64_t until_ns,
    struct opt_double cpus)
{
	uint64_t since_ns = o->until_ns > start_ns ? o->until_ns : start_ns, more_ns[BILL_PARTS], left;
	bool has_left;			/* a program whose usage was lost, or that is another task's now */

	if (!threads->part[BILL_CPU].known || until_ns <= since_ns)
		return;
	has_left = threads->part[BILL_CPU].value < o->threads_ns[BILL_CPU];
	for (int i = 0; i < BILL_PARTS; i++) {
		uint64_t now = threads->part[i].value, then = o->threads_ns[i];

		more_ns[i] = now > then ? now - then : 0;	/* what was unknown may have become known */
		o->threads_ns[i] = now > then || has_left ? now : then;
	}
	left = until_ns - since_ns;
	o->queue_ns += took_from_each_other(more_ns, left, cpus);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		left = divide(o->own_ns, more_ns, kinds[i], left);
	o->own_ns[BILL_UNKNOWN] += left;
	o->until_ns = until_ns;
}

void
own_bill_merge(struct own_bill *to, const struct own_bill *from, uint64_t more_ns)
{
	for (int i = 0; i < BILL_PARTS; i++) {
		to->own_ns[i] += from->own_ns[i];
		to->threads_ns[i] += from->threads_ns[i];
	}
	to->queue_ns += from->queue_ns;
	to->until_ns += more_ns;
}

void
own_bill_assume(struct own_bill *o, uint64_t start_ns, struct opt_double cpus)
{
	o->queue_ns = took_from_each_other(o->threads_ns, o->until_ns > start_ns ? o->until_ns - start_ns : 0, cpus);
}

struct bill
own_bill_of(const struct own_bill *o, uint64_t wall_ns)
{
	struct bill b = { 0 };
	struct division d = { &b, wall_ns };

	if (o->until_ns == 0)
		return b;
	for (int i = 0; i < BILL_PARTS; i++) {
		b.part[i].known = true;
		take(&d, i, o->own_ns[i]);	/* its last program may have ended before the last record */
	}
	take(&d, BILL_UNKNOWN, d.left);
	return b;
}
