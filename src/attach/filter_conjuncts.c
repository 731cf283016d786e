/*
 * SPDX-License-Identifier: Apache-2.0
 * Disjunctive form, but not below a condition that looks at one dimension only: "any of these twenty names"
 * stays one literal.
 */
#include "attach/filter_conjuncts.h"

#include <stdlib.h>

static void
set_outside(struct conjuncts *ret)
{
	ret->n = 1;
	ret->of[0].n = 0;
	ret->of[0].is_outside = true;
}

/*
 * Returns true if c holds for a set of cgroups whenever it holds for one, so that two hierarchies can be judged
 * one by one.
 */
static bool
is_plain(const struct condition *c)
{
	if (c->kind == CONDITION_NOT || (c->kind == CONDITION_ALL && c->first != NULL && c->first->next != NULL))
		return false;
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		if (!is_plain(child))
			return false;
	}
	return true;
}

static bool
is_literal(const struct condition *c, uint32_t dims, enum filter_dim *ret)
{
	if (dims == 0 || (dims & (dims - 1)) != 0 || dims == FILTER_DIM_NONE)
		return false;
	*ret = (enum filter_dim)__builtin_ctz(dims);
	return *ret != FILTER_DIM_CGROUP || is_plain(c);
}

static void
conjuncts_or(struct conjuncts *sum, const struct conjuncts *more)
{
	if (sum->n + more->n > CONJUNCTS_MAX) {
		set_outside(sum);
		return;
	}
	for (unsigned i = 0; i < more->n; i++)
		sum->of[sum->n++] = more->of[i];
}

/* The product is outside if either of them is. */
static bool
conjunct_and(struct conjunct *product, const struct conjunct *a, const struct conjunct *b)
{
	if (a->n + b->n > LITERALS_MAX)
		return false;
	*product = *a;
	product->is_outside |= b->is_outside;
	for (unsigned i = 0; i < b->n; i++)
		product->literals[product->n++] = b->literals[i];
	return true;
}

static void
conjuncts_and(struct conjuncts *all, const struct conjuncts *more)
{
	struct conjuncts *product;

	if (more->n == 1 && more->of[0].n == 0 && !more->of[0].is_outside)
		return;		/* it always holds */
	product = calloc(1, sizeof(*product));
	if (product == NULL || all->n * more->n > CONJUNCTS_MAX)
		goto outside;
	for (unsigned i = 0; i < all->n; i++) {
		for (unsigned k = 0; k < more->n; k++) {
			if (!conjunct_and(&product->of[product->n++], &all->of[i], &more->of[k]))
				goto outside;
		}
	}
	*all = *product;
	free(product);
	return;

outside:
	free(product);
	set_outside(all);
}

static void
expand(const struct condition *c, bool is_not, struct conjuncts *ret)
{
	static const struct filter_view nothing = { .exe = "", .path = "", .cgroup = "" };
	uint32_t dims = filter_dims_of(c);
	struct conjuncts *part;
	enum filter_dim dim;
	bool is_or;

	ret->n = 0;
	if (c->kind == CONDITION_NOT) {
		expand(c->first, !is_not, ret);
		return;
	}
	if (dims == 0) {
		ret->n = filter_holds(c, &nothing) != is_not;
		ret->of[0] = (struct conjunct){ 0 };
		return;
	}
	if (is_literal(c, dims, &dim)) {
		ret->n = 1;
		ret->of[0] = (struct conjunct){ .n = 1, .literals = { { c, dim, is_not } } };
		return;
	}
	if (c->kind != CONDITION_ALL && c->kind != CONDITION_ANY) {
		set_outside(ret);
		return;
	}
	part = malloc(sizeof(*part));
	if (part == NULL) {
		set_outside(ret);
		return;
	}
	is_or = (c->kind == CONDITION_ANY) != is_not;
	if (!is_or) {
		ret->n = 1;
		ret->of[0] = (struct conjunct){ 0 };
	}
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		expand(child, is_not, part);
		if (is_or)
			conjuncts_or(ret, part);
		else
			conjuncts_and(ret, part);
	}
	free(part);
}

/* Returns true if the kernel can judge two hierarchies one by one: only NOTs, or a single literal that is not one. */
static bool
cgroups_can_be_asked(const struct conjunct *c)
{
	unsigned positive = 0, negative = 0;

	for (unsigned i = 0; i < c->n; i++) {
		if (c->literals[i].dim != FILTER_DIM_CGROUP)
			continue;
		if (c->literals[i].is_not)
			negative++;
		else
			positive++;
	}
	return positive == 0 || (positive == 1 && negative == 0);
}

void
conjuncts_of(const struct condition *c, struct conjuncts *ret)
{
	expand(c, false, ret);
	for (unsigned i = 0; i < ret->n; i++)
		ret->of[i].is_outside |= !cgroups_can_be_asked(&ret->of[i]);
}

bool
conjunct_holds(const struct conjunct *c, enum filter_dim dim, const struct filter_view *v)
{
	for (unsigned i = 0; i < c->n; i++) {
		const struct literal *l = &c->literals[i];

		if (l->dim != dim)
			continue;
		/* denied cgroups are checked in each hierarchy: NOT (a or b) is not a and not b */
		if (filter_holds(l->condition, v) == l->is_not)
			return false;
	}
	return true;
}

bool
conjunct_looks_at(const struct conjunct *c, enum filter_dim dim)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (c->literals[i].dim == dim)
			return true;
	}
	return false;
}

bool
conjunct_denies_cgroup(const struct conjunct *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (c->literals[i].dim == FILTER_DIM_CGROUP && c->literals[i].is_not)
			return true;
	}
	return false;
}
