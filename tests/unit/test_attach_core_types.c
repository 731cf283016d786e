/* SPDX-License-Identifier: Apache-2.0 */
/* core_types and kernel_types: of made types. That libbpf relocates alike is what core_types_alike tests. */
#include <bpf/btf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/core_types.h"
#include "attach/probes_state.h"

/* A kernel's types in the making, and what is copied of them. */
struct world {
	struct btf *made;
	struct kernel_types *kernel;
	struct btf *copy;
};

static void
setup(struct world *w)
{
	*w = (struct world){ .made = btf__new_empty() };
	assert_non_null(w->made);
	assert_int_equal(btf__add_int(w->made, "int", 4, BTF_INT_SIGNED), 1);
}

/* Indexes what was made and copies what the roots need. */
static void
copy(struct world *w, const struct core_root *roots, size_t n)
{
	struct bytes bytes = { 0 };
	uint32_t size;
	const void *data = btf__raw_data(w->made, &size);

	assert_int_equal(kernel_types_read(data, size, &w->kernel), 0);
	assert_int_equal(core_types_of(w->kernel, roots, n, &bytes), 0);
	w->copy = btf__new(bytes.data, (uint32_t)bytes.len);
	assert_non_null(w->copy);
	bytes_done(&bytes);
}

static void
teardown(struct world *w)
{
	btf__free(w->copy);
	kernel_types_free(w->kernel);
	btf__free(w->made);
}

/* Returns the copied type of a member, and checks the member's name and offset. */
static const struct btf_type *
member(const struct world *w, const struct btf_type *t, unsigned i, const char *name, unsigned bit)
{
	const struct btf_member *m = btf_members(t) + i;

	assert_true(i < btf_vlen(t));
	assert_string_equal(btf__name_by_offset(w->copy, m->name_off), name);
	assert_int_equal(m->offset, bit);
	return btf__type_by_id(w->copy, m->type);
}

static const struct btf_type *
copied(const struct world *w, const char *name, unsigned kind)
{
	int id = btf__find_by_name_kind(w->copy, name, kind);

	assert_true(id > 0);
	return btf__type_by_id(w->copy, (uint32_t)id);
}

static void
what_a_root_contains_is_copied_and_what_it_points_to_is_not(void **state)
{
	static const struct core_root root = { "list___old", BTF_KIND_STRUCT, false };
	const struct btf_type *t, *inner;
	struct world w;

	(void)state;
	setup(&w);
	btf__add_ptr(w.made, 3);				/* 2 */
	btf__add_struct(w.made, "list", 40);			/* 3: points to itself */
	btf__add_field(w.made, "next", 2, 0, 0);
	btf__add_field(w.made, "", 4, 64, 0);
	btf__add_field(w.made, "numbers", 6, 128, 0);
	btf__add_field(w.made, "bits", 1, 224, 3);
	btf__add_union(w.made, "", 8);				/* 4 */
	btf__add_field(w.made, "payload", 5, 0, 0);
	btf__add_volatile(w.made, 7);				/* 5 */
	btf__add_array(w.made, 1, 1, 3);			/* 6 */
	btf__add_typedef(w.made, "payload_t", 8);		/* 7 */
	btf__add_ptr(w.made, 9);				/* 8 */
	btf__add_struct(w.made, "elsewhere", 8);		/* 9 */
	copy(&w, &root, 1);
	t = copied(&w, "list", BTF_KIND_STRUCT);
	assert_int_equal(t->size, 40);
	assert_int_equal(btf_vlen(t), 4);
	inner = member(&w, t, 0, "next", 0);
	assert_int_equal(btf_kind(inner), BTF_KIND_PTR);
	assert_int_equal(inner->type, 0);
	inner = member(&w, t, 2, "numbers", 128);
	assert_int_equal(btf_kind(inner), BTF_KIND_ARRAY);
	assert_int_equal(btf_array(inner)->nelems, 3);
	assert_int_equal(btf__resolve_size(w.copy, btf_members(t)[2].type), 12);
	assert_int_equal(btf_member_bitfield_size(t, 3), 3);
	inner = member(&w, t, 1, "", 64);
	assert_int_equal(btf_kind(inner), BTF_KIND_UNION);
	inner = member(&w, inner, 0, "payload", 0);
	assert_int_equal(btf_kind(inner), BTF_KIND_VOLATILE);
	inner = btf__type_by_id(w.copy, inner->type);
	assert_string_equal(btf__name_by_offset(w.copy, inner->name_off), "payload_t");
	assert_true(btf__find_by_name(w.copy, "elsewhere") < 0);
	teardown(&w);
}

static void
all_types_of_a_name_and_kind_are_candidates(void **state)
{
	static const struct core_root roots[] = {
		{ "a", BTF_KIND_STRUCT, false }, { .name = NULL }, { "color", BTF_KIND_ENUM, false },
		{ "missing", BTF_KIND_STRUCT, true }, { "a___other", BTF_KIND_STRUCT, false },
	};
	const struct btf_type *t;
	struct world w;

	(void)state;
	setup(&w);
	btf__add_struct(w.made, "a", 4);
	btf__add_struct(w.made, "a___v2", 8);
	btf__add_struct(w.made, "a____b", 8);			/* no flavour */
	btf__add_struct(w.made, "ab", 8);
	btf__add_typedef(w.made, "a", 1);
	btf__add_enum64(w.made, "color", 8, false);
	btf__add_enum64_value(w.made, "RED", UINT64_C(1) << 40);
	btf__add_struct(w.made, "a", 16);
	copy(&w, roots, sizeof(roots) / sizeof(roots[0]));
	assert_int_equal(btf__type_cnt(w.copy) - 1, 4);
	assert_int_equal(copied(&w, "a", BTF_KIND_STRUCT)->size, 4);
	assert_int_equal(btf__type_by_id(w.copy, 3)->size, 16);
	assert_int_equal(copied(&w, "a___v2", BTF_KIND_STRUCT)->size, 8);
	t = copied(&w, "color", BTF_KIND_ENUM64);
	assert_string_equal(btf__name_by_offset(w.copy, btf_enum64(t)->name_off), "RED");
	assert_int_equal(btf_enum64_value(btf_enum64(t)), UINT64_C(1) << 40);
	teardown(&w);
}

static void
an_id_that_a_relocation_needs_is_kept(void **state)
{
	static const struct core_root roots[] = {
		{ "last", BTF_KIND_STRUCT, true }, { "first", BTF_KIND_ENUM, false },
	};
	struct world w;

	(void)state;
	setup(&w);
	for (int i = 0; i < 10; i++)
		btf__add_const(w.made, 1);
	btf__add_enum(w.made, "first", 4);
	btf__add_enum_value(w.made, "ONE", 1);
	btf__add_struct(w.made, "last", 4);			/* 13 */
	btf__add_field(w.made, "x", 14, 0, 0);
	btf__add_typedef(w.made, "x_t", 1);
	copy(&w, roots, 2);
	assert_int_equal(btf__find_by_name_kind(w.copy, "last", BTF_KIND_STRUCT), 13);
	assert_int_equal(btf__find_by_name_kind(w.copy, "first", BTF_KIND_ENUM), 1);
	assert_int_equal(btf__find_by_name_kind(w.copy, "x_t", BTF_KIND_TYPEDEF), 14);
	assert_string_equal(btf__name_by_offset(w.copy, btf__type_by_id(w.copy, 15)->name_off), "int");
	assert_int_equal(btf__type_cnt(w.copy) - 1, 15);
	teardown(&w);
}

static void
no_root_makes_no_types(void **state)
{
	struct world w;

	(void)state;
	setup(&w);
	copy(&w, NULL, 0);
	assert_int_equal(btf__type_cnt(w.copy), 1);
	teardown(&w);
}

static void
a_type_that_is_not_of_values_is_refused(void **state)
{
	static const struct core_root root = { "callback", BTF_KIND_TYPEDEF, false };
	struct bytes bytes = { 0 };
	struct world w;
	const void *data;
	uint32_t size;

	(void)state;
	setup(&w);
	btf__add_typedef(w.made, "callback", 3);
	btf__add_func_proto(w.made, 1);
	data = btf__raw_data(w.made, &size);
	assert_int_equal(kernel_types_read(data, size, &w.kernel), 0);
	assert_int_equal(core_types_of(w.kernel, &root, 1, &bytes), -ENOTSUP);
	bytes_done(&bytes);
	teardown(&w);
}

static void
types_are_found_by_name_and_kind(void **state)
{
	const void *data;
	struct world w;
	uint32_t size;

	(void)state;
	setup(&w);
	btf__add_typedef(w.made, "same", 1);			/* 2 */
	btf__add_struct(w.made, "same", 4);			/* 3 */
	btf__add_struct(w.made, "same", 8);			/* 4 */
	btf__add_struct(w.made, "same___v2", 8);		/* 5 */
	btf__add_struct(w.made, "a_name_with_a_long_beginning", 8);	/* 6 */
	btf__add_struct(w.made, "a_name_with_a_long_end", 8);	/* 7 */
	data = btf__raw_data(w.made, &size);
	assert_int_equal(kernel_types_read(data, size, &w.kernel), 0);
	assert_int_equal(kernel_types_count(w.kernel), 7);
	assert_int_equal(kernel_types_find(w.kernel, "same", BTF_KIND_STRUCT), 3);
	assert_int_equal(kernel_types_find(w.kernel, "same___v2", BTF_KIND_STRUCT), 5);
	assert_int_equal(kernel_types_find(w.kernel, "same", BTF_KIND_UNION), 0);
	assert_int_equal(kernel_types_find(w.kernel, "sam", BTF_KIND_STRUCT), 0);
	assert_int_equal(kernel_types_find(w.kernel, "a_name_with_a_long_end", BTF_KIND_STRUCT), 7);
	assert_int_equal(kernel_types_next(w.kernel, "same___x", 0), 2);
	assert_int_equal(kernel_types_next(w.kernel, "same", 4), 5);
	assert_int_equal(kernel_types_next(w.kernel, "same", 5), 0);
	assert_int_equal(kernel_types_next(w.kernel, "a_name_with_a_long_e", 0), 0);
	teardown(&w);
}

static void
what_is_no_btf_is_refused(void **state)
{
	struct kernel_types *kernel;
	struct btf_header h;
	struct world w;
	uint8_t data[256];
	const void *raw;
	uint32_t size;

	(void)state;
	setup(&w);
	raw = btf__raw_data(w.made, &size);
	assert_true(size <= sizeof(data));
	for (uint32_t len = 0; len < size; len++) {
		memcpy(data, raw, size);
		assert_int_equal(kernel_types_read(data, len, &kernel), -EINVAL);
	}
	memcpy(&h, data, sizeof(h));
	data[h.hdr_len + offsetof(struct btf_type, info) + 3] = 31;	/* a kind that there is not */
	assert_int_equal(kernel_types_read(data, size, &kernel), -EINVAL);
	teardown(&w);
}

static void
a_member_has_its_newer_name_in_its_type_alone(void **state)
{
	const struct core_root roots[] = { { .name = "task_struct", .kind = BTF_KIND_STRUCT },
		{ .name = "other", .kind = BTF_KIND_STRUCT } };
	struct world w;

	(void)state;
	setup(&w);
	btf__add_struct(w.made, "task_struct", 8);
	btf__add_field(w.made, "start_time", 1, 0, 0);
	btf__add_field(w.made, "real_start_time", 1, 32, 0);
	btf__add_struct(w.made, "other", 4);
	btf__add_field(w.made, "real_start_time", 1, 0, 0);
	copy(&w, roots, 2);
	member(&w, copied(&w, "task_struct", BTF_KIND_STRUCT), 0, "start_time", 0);
	member(&w, copied(&w, "task_struct", BTF_KIND_STRUCT), 1, "start_boottime", 32);
	member(&w, copied(&w, "other", BTF_KIND_STRUCT), 0, "real_start_time", 0);
	teardown(&w);
}

static void
the_roots_are_those_of_the_relocations(void **state)
{
	struct core_roots roots = { 0 };
	bool has_id = false, has_flavour = false;
	const void *object;
	size_t size, n = 0;

	(void)state;
	object = sluice_bpf__elf_bytes(&size);
	assert_int_equal(core_roots_read(object, size, &roots), 0);
	for (size_t i = 0; i < roots.n; i++) {
		const struct core_root *r = &roots.roots[i];

		if (r->name == NULL)
			continue;
		n++;
		has_id |= r->keeps_id && strcmp(r->name, "task_struct") == 0;
		has_flavour |= strcmp(r->name, "mm_struct___until_6_1") == 0;
		assert_int_not_equal(strncmp(r->name, "event", 5), 0);	/* ours */
	}
	assert_true(has_id && has_flavour && n > 20);
	core_roots_done(&roots);
	core_roots_done(&roots);
	assert_int_equal(core_roots_read(object, 100, &roots), -EINVAL);
	assert_int_equal(core_roots_read("", 0, &roots), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_root_contains_is_copied_and_what_it_points_to_is_not),
		cmocka_unit_test(all_types_of_a_name_and_kind_are_candidates),
		cmocka_unit_test(an_id_that_a_relocation_needs_is_kept),
		cmocka_unit_test(no_root_makes_no_types),
		cmocka_unit_test(a_type_that_is_not_of_values_is_refused),
		cmocka_unit_test(a_member_has_its_newer_name_in_its_type_alone),
		cmocka_unit_test(types_are_found_by_name_and_kind),
		cmocka_unit_test(what_is_no_btf_is_refused),
		cmocka_unit_test(the_roots_are_those_of_the_relocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
