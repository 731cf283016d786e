/*
 * SPDX-License-Identifier: Apache-2.0
 * bill: the parts of threads' time. The definition is in bill.h.
 */
#include "correlate/bill.h"

#include <stddef.h>

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
