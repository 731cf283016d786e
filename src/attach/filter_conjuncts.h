/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_conjuncts: a condition as a list of alternatives. An alternative holds if all its literals do, and each
 * literal looks at one dimension only.
 */
#ifndef SLUICE_ATTACH_FILTER_CONJUNCTS_H
#define SLUICE_ATTACH_FILTER_CONJUNCTS_H

#include "attach/filter_holds.h"

#define CONJUNCTS_MAX FILTER_IDS
#define LITERALS_MAX 16

struct literal {
	const struct condition *condition;
	enum filter_dim dim;
	bool is_not;
};

struct conjunct {
	struct literal literals[LITERALS_MAX];
	unsigned n;
	bool is_outside;		/* the kernel cannot judge it */
};

struct conjuncts {
	struct conjunct of[CONJUNCTS_MAX];
	unsigned n;
};

/* Splits c; if it has too many alternatives, ret has one that is outside. */
void conjuncts_of(const struct condition *c, struct conjuncts *ret);

/* Returns true if the literals of one dimension hold, or if there are none. */
bool conjunct_holds(const struct conjunct *c, enum filter_dim dim, const struct filter_view *v);
/* Returns true if c has a literal of that dimension. */
bool conjunct_looks_at(const struct conjunct *c, enum filter_dim dim);
/* Returns true if all its literals on cgroups are NOTs. */
bool conjunct_denies_cgroup(const struct conjunct *c);

#endif
