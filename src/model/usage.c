/*
 * SPDX-License-Identifier: Apache-2.0
 * usage: sums and differences of what programs used, with "unknown" kept apart from 0.
 */
#include "model/usage.h"

#include <stddef.h>

static const char *const names[USAGE_FIELDS] = {
#define RESOURCE(NAME, name, unit, kind, when, since, doc) #name,
#include "resources.h"
};

/* The fields of that kind, as bits: a constant where kind is one. */
static inline uint64_t
fields_of(enum usage_kind wanted)
{
	uint64_t fields = 0;

#define RESOURCE(NAME, name, unit, kind, when, since, doc) \
	if (USAGE_##kind == wanted) \
		fields |= USAGE_BIT(USAGE_##NAME);
#include "resources.h"
	return fields;
}

const char *
usage_name(enum usage_field field)
{
	return (unsigned)field < USAGE_FIELDS ? names[field] : NULL;
}

void
usage_add(struct usage *sum, const struct usage *part)
{
	const uint64_t peaks = fields_of(USAGE_PEAK);

	for (int i = 0; i < USAGE_FIELDS; i++) {
		uint64_t had, more = part->value[i];

		/* An unknown part leaves the sum as it is: the known values of the others are kept. */
		if (!usage_has(part, i))
			continue;
		had = usage_has(sum, i) ? sum->value[i] : 0;
		/* Programs that ran one after the other never held the sum of their peaks. */
		if (peaks >> i & 1)
			usage_set(sum, i, more > had ? more : had);
		else
			usage_set(sum, i, more > UINT64_MAX - had ? UINT64_MAX : had + more);
	}
}

struct usage
usage_since(const struct usage *later, const struct usage *earlier)
{
	const uint64_t sums = fields_of(USAGE_SUM);
	struct usage diff = { .known = later->known & (earlier->known | ~sums) };

	for (int i = 0; i < USAGE_FIELDS; i++) {
		uint64_t now = later->value[i], then = sums >> i & 1 ? earlier->value[i] : 0;

		if (usage_has(&diff, i))
			diff.value[i] = now > then ? now - then : 0;
	}
	/* The kernel guesses the split anew each time, and a part may run backwards; the sum does not. */
	if (usage_has(&diff, USAGE_CPU_USER_NS) && usage_has(&diff, USAGE_CPU_SYSTEM_NS)) {
		uint64_t now = usage_cpu_ns(later), then = usage_cpu_ns(earlier), total = now > then ? now - then : 0;

		if (diff.value[USAGE_CPU_USER_NS] > total)
			diff.value[USAGE_CPU_USER_NS] = total;
		diff.value[USAGE_CPU_SYSTEM_NS] = total - diff.value[USAGE_CPU_USER_NS];
	}
	return diff;
}

uint64_t
usage_cpu_ns(const struct usage *u)
{
	uint64_t sum = 0;

	if (usage_has(u, USAGE_CPU_USER_NS))
		sum += u->value[USAGE_CPU_USER_NS];
	if (usage_has(u, USAGE_CPU_SYSTEM_NS))
		sum += u->value[USAGE_CPU_SYSTEM_NS];
	return sum;
}
