/*
 * SPDX-License-Identifier: Apache-2.0
 * usage: what a program used, as an array of numbers in the order of the Avro record Resources.
 */
#ifndef SLUICE_MODEL_USAGE_H
#define SLUICE_MODEL_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The fields of Resources, in the order of bpf/resources.h and schemas/avro. */
enum usage_field {
#define RESOURCE(NAME, name, unit, kind, when, since, doc) USAGE_##NAME,
#include "resources.h"
	USAGE_FIELDS,
};

/* How the values of two programs make one, see usage_add(). */
enum usage_kind {
	USAGE_SUM,
	USAGE_LEVEL,
	USAGE_PEAK,
};

#define USAGE_BIT(field) (UINT64_C(1) << (field))
#define USAGE_ALL (USAGE_BIT(USAGE_FIELDS) - 1)
_Static_assert(USAGE_FIELDS < 64, "struct usage has 64 bits for what is known");

struct usage {
	uint64_t value[USAGE_FIELDS];
	uint64_t known;		/* USAGE_BIT(i): value[i] is known, else Avro's null */
};

/* Returns the name of a field as records have it: a static string. */
const char *usage_name(enum usage_field field);

/* Returns true if the field is known. */
static inline bool
usage_has(const struct usage *u, enum usage_field field)
{
	return u->known >> field & 1;
}

/* Sets a field, which is known from then on. */
static inline void
usage_set(struct usage *u, enum usage_field field, uint64_t value)
{
	u->value[field] = value;
	u->known |= USAGE_BIT(field);
}

/* Adds part to sum: sums and levels add up; of peaks the larger counts. */
void usage_add(struct usage *sum, const struct usage *part);
/* Returns later - earlier for sums (0 where that would be negative), and later's own levels and peaks. */
struct usage usage_since(const struct usage *later, const struct usage *earlier);
/* Returns user and system CPU time together, in nanoseconds. */
uint64_t usage_cpu_ns(const struct usage *u);

#endif
