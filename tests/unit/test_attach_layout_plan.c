/* SPDX-License-Identifier: Apache-2.0 */
/* layout_plan: what becomes of a value when another version takes it over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#include "attach/layout_plan.h"

/* A struct "inner" of two numbers, and "value" with some of: first, inner, list of n, last; in that order. */
struct shape {
	bool has_first;
	bool has_inner;
	unsigned n;			/* elements of list; 0: it has none */
	bool has_last;
	unsigned last_bytes;
};

static const struct shape usual = { true, true, 2, true, 4 };

static struct btf *
types_of(const struct shape *v)
{
	struct btf *btf = btf__new_empty();
	uint32_t size = v->has_first * 8 + v->has_inner * 8 + v->n * 8 + v->has_last * v->last_bytes, at = 0;
	int number = btf__add_int(btf, "unsigned int", 4, 0), wide = btf__add_int(btf, "unsigned long", 8, 0);
	int inner = btf__add_struct(btf, "inner", 8), list;

	btf__add_field(btf, "a", number, 0, 0);
	btf__add_field(btf, "b", number, 32, 0);
	list = v->n > 0 ? btf__add_array(btf, number, inner, v->n) : 0;
	assert_true(btf__add_struct(btf, "value", size) > 0);
	if (v->has_first) {
		btf__add_field(btf, "first", wide, at, 0);
		at += 64;
	}
	if (v->has_inner) {
		btf__add_field(btf, "inner", inner, at, 0);
		at += 64;
	}
	if (v->n > 0) {
		btf__add_field(btf, "list", list, at, 0);
		at += v->n * 64;
	}
	if (v->has_last)
		btf__add_field(btf, "last", v->last_bytes == 4 ? number : wide, at, 0);
	return btf;
}

static int
plan_of(const struct shape *from, const struct shape *to, struct layout_plan *ret)
{
	struct btf *old = types_of(from), *new = types_of(to);
	int r = layout_plan_struct(old, new, "value", ret);

	btf__free(old);
	btf__free(new);
	return r;
}

static void
the_same_types_are_copied_as_they_are(void **state)
{
	struct layout_plan p = { 0 };

	(void)state;
	assert_int_equal(plan_of(&usual, &usual, &p), 0);
	assert_true(layout_plan_is_same(&p));
	layout_plan_done(&p);
}

static void
members_are_found_by_name_and_new_ones_stay(void **state)
{
	const uint32_t from[] = { 1, 2, 3, 4, 5, 6, 7 };	/* inner, list, last */
	uint32_t to[9] = { 91, 92, 93, 94, 95, 96, 97, 98, 99 };
	struct shape less = usual;
	struct layout_plan p = { 0 };

	(void)state;
	less.has_first = false;
	assert_int_equal(plan_of(&less, &usual, &p), 0);
	assert_false(layout_plan_is_same(&p));
	layout_plan_apply(&p, from, to);
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(to[i], i < 2 ? 91 + i : i - 1);
	layout_plan_done(&p);
}

static void
members_that_the_other_lacks_are_left_out(void **state)
{
	const uint32_t from[] = { 1, 0, 3, 4, 5, 6, 7, 8, 9 };
	uint32_t to[6] = { 0 };
	struct shape less = usual;
	struct layout_plan p = { 0 };

	(void)state;
	less.has_inner = false;
	less.has_last = false;
	assert_int_equal(plan_of(&usual, &less, &p), 0);
	layout_plan_apply(&p, from, to);
	assert_memory_equal(to, ((uint32_t[]){ 1, 0, 5, 6, 7, 8 }), sizeof(to));
	layout_plan_done(&p);
}

static void
a_member_of_another_type_is_no_plan(void **state)
{
	struct layout_plan p = { 0 };
	struct shape other = usual;

	(void)state;
	other.last_bytes = 8;
	assert_int_equal(plan_of(&usual, &other, &p), -ENOTSUP);
	assert_null(p.moves);
}

static void
elements_that_both_have_are_copied(void **state)
{
	const uint32_t from[] = { 1, 0, 3, 4, 5, 6, 7, 8, 9 };	/* first, inner, list, last */
	uint32_t to[11] = { 0 }, back[9] = { 0 };
	struct shape more = usual;
	struct layout_plan p = { 0 };

	(void)state;
	more.n = 3;
	assert_int_equal(plan_of(&usual, &more, &p), 0);
	layout_plan_apply(&p, from, to);
	assert_memory_equal(to, ((uint32_t[]){ 1, 0, 3, 4, 5, 6, 7, 8, 0, 0, 9 }), sizeof(to));
	layout_plan_done(&p);
	assert_int_equal(plan_of(&more, &usual, &p), 0);
	layout_plan_apply(&p, to, back);
	assert_memory_equal(back, from, sizeof(back));
	layout_plan_done(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_types_are_copied_as_they_are),
		cmocka_unit_test(members_are_found_by_name_and_new_ones_stay),
		cmocka_unit_test(members_that_the_other_lacks_are_left_out),
		cmocka_unit_test(a_member_of_another_type_is_no_plan),
		cmocka_unit_test(elements_that_both_have_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
