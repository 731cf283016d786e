/*
 * SPDX-License-Identifier: Apache-2.0
 * usage: what a program used, as an array of numbers in the order of the Avro record Resources.
 */
#ifndef SLUICE_MODEL_USAGE_H
#define SLUICE_MODEL_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Order and names are those of the fields of Resources in schemas/avro; see usage_name(). */
enum usage_field {
	USAGE_CPU_USER_NS,
	USAGE_CPU_SYSTEM_NS,
	USAGE_RUN_DELAY_NS,
	USAGE_VOLUNTARY_SWITCHES,
	USAGE_INVOLUNTARY_SWITCHES,
	USAGE_MINOR_FAULTS,
	USAGE_MAJOR_FAULTS,
	USAGE_PEAK_RSS_BYTES,		/* level: the largest counts */
	USAGE_RSS_BYTES,		/* level */
	USAGE_READ_BYTES,		/* storage */
	USAGE_WRITE_BYTES,
	USAGE_RCHAR,
	USAGE_WCHAR,
	USAGE_SYSCR,
	USAGE_SYSCW,
	USAGE_NET_RX_BYTES,		/* TCP + UDP + other internet sockets */
	USAGE_NET_TX_BYTES,
	USAGE_BLOCK_IO_DELAY_NS,
	USAGE_THREADS_PEAK,		/* level: the largest counts */
	USAGE_TCP_RX_BYTES,
	USAGE_TCP_TX_BYTES,
	USAGE_UDP_RX_BYTES,
	USAGE_UDP_TX_BYTES,
	USAGE_UNIX_RX_BYTES,
	USAGE_UNIX_TX_BYTES,
	USAGE_FIELDS,
};

struct usage {
	uint64_t value[USAGE_FIELDS];
	uint32_t known;		/* bit i: value[i] is known, else Avro's null */
	uint32_t pad;		/* 0: usages are compared as bytes, so none may be hidden */
};

const char *usage_name(enum usage_field field);

static inline bool
usage_has(const struct usage *u, enum usage_field field)
{
	return u->known >> field & 1;
}

static inline void
usage_set(struct usage *u, enum usage_field field, uint64_t value)
{
	u->value[field] = value;
	u->known |= UINT32_C(1) << field;
}

/* Adds part to sum: counters add up; peak_rss and threads_peak take the larger, rss adds up. */
void usage_add(struct usage *sum, const struct usage *part);
/* later - earlier for counters (0 where that would be negative), later's own levels. */
struct usage usage_since(const struct usage *later, const struct usage *earlier);
/* User and system CPU time together. */
uint64_t usage_cpu_ns(const struct usage *u);

#endif
