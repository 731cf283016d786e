/* SPDX-License-Identifier: Apache-2.0 */
/* layout: what the name of the pinned maps depends on, and the layout that is kept beside the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/object.h"
#include "attach/probes_state.h"

#define KEPT SOURCE_TREE "/tests/fixtures/layout.txt"

/* The types of a small object with all pinned maps, and what a test changes in it. */
struct variant {
	const char *struct_name;	/* of the value of procs */
	const char *second;		/* name of its second member; NULL: it has one */
	unsigned second_at;		/* its offset in bytes */
	bool is_typedef;		/* of the first member's type */
	unsigned max_entries;
	unsigned flags;
	bool lacks_ring;
};

static const struct variant usual = { .struct_name = "proc", .second = "second", .second_at = 8, .max_entries = 10 };

static int
pointer_to_array(struct btf *btf, int number, unsigned n)
{
	return btf__add_ptr(btf, btf__add_array(btf, number, number, n));
}

static void
add_map(struct btf *btf, int *section_at, const char *name, int number, int key, int value, const struct variant *v)
{
	unsigned members = key != 0 ? 5 : 3;
	int type = pointer_to_array(btf, number, 1), entries = pointer_to_array(btf, number, v->max_entries);
	int flags = pointer_to_array(btf, number, v->flags);
	int keys = key != 0 ? btf__add_ptr(btf, key) : 0, values = value != 0 ? btf__add_ptr(btf, value) : 0;
	int definition = btf__add_struct(btf, "", members * 8);

	btf__add_field(btf, "type", type, 0, 0);
	btf__add_field(btf, "max_entries", entries, 64, 0);
	btf__add_field(btf, "map_flags", flags, 128, 0);
	if (key != 0) {
		btf__add_field(btf, "key", keys, 192, 0);
		btf__add_field(btf, "value", values, 256, 0);
	}
	*section_at = btf__add_var(btf, name, BTF_VAR_GLOBAL_ALLOCATED, definition);
	assert_true(*section_at > 0);
}

/* Returns the description, which the caller frees; NULL: it failed with *error. */
static char *
described(const struct variant *v, int *error)
{
	static const char *const names[] = { "procs", "cgroups_sent", "threads_exited", "filter_rules", "users", "ring" };
	struct btf *btf = btf__new_empty();
	struct bytes text = { 0 };
	int number, first, value, vars[7], n = v->lacks_ring ? 5 : 6;

	assert_non_null(btf);
	number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	first = btf__add_int(btf, "unsigned long long", 8, 0);
	if (v->is_typedef)
		first = btf__add_const(btf, btf__add_typedef(btf, "u64", first));
	value = btf__add_struct(btf, v->struct_name, 16);
	btf__add_field(btf, "first", first, 0, 0);
	if (v->second != NULL)
		btf__add_field(btf, v->second, number, v->second_at * 8, 0);
	for (int i = 0; i < n; i++)
		add_map(btf, &vars[i], names[i], number, i < 5 ? first : 0, i < 5 ? value : 0, v);
	vars[n] = btf__add_var(btf, "lease", BTF_VAR_GLOBAL_ALLOCATED, first);
	btf__add_datasec(btf, ".data.shared", 8);
	btf__add_datasec_var_info(btf, vars[n], 0, 8);
	btf__add_datasec(btf, ".maps", 40 * (unsigned)n);
	for (int i = 0; i < n; i++)
		btf__add_datasec_var_info(btf, vars[i], 40 * (unsigned)i, 40);
	for (int i = 0; i < 4; i++) {
		static const char *const records[] = { "event_exec", "event_state", "event_cgroup", "event_signal" };

		btf__add_struct(btf, records[i], 8);
		btf__add_field(btf, "head", first, 0, 0);
	}
	*error = layout_describe(btf, &text);
	btf__free(btf);
	assert_int_equal(bytes_append(&text, "", 1), 0);
	return (char *)text.data;
}

static bool
is_like_usual(const struct variant *v)
{
	int error;
	char *a = described(&usual, &error), *b = described(v, &error);
	bool is_like = strcmp(a, b) == 0;

	assert_int_equal(error, 0);
	free(a);
	free(b);
	return is_like;
}

static void
names_of_types_and_sizes_of_maps_do_not_count(void **state)
{
	struct variant v = usual;

	(void)state;
	v.struct_name = "process";
	assert_true(is_like_usual(&v));
	v = usual;
	v.is_typedef = true;
	assert_true(is_like_usual(&v));
	v = usual;
	v.max_entries = 20;
	assert_true(is_like_usual(&v));
}

static void
each_member_and_its_place_count(void **state)
{
	struct variant v = usual;

	(void)state;
	v.second = NULL;
	assert_false(is_like_usual(&v));
	v = usual;
	v.second = "other";
	assert_false(is_like_usual(&v));
	v = usual;
	v.second_at = 12;
	assert_false(is_like_usual(&v));
	v = usual;
	v.flags = 1;
	assert_false(is_like_usual(&v));
}

static void
the_text_has_a_line_for_each_member(void **state)
{
	int error;
	char *text = described(&usual, &error);

	(void)state;
	assert_non_null(strstr(text, "procs type 1 flags 0\nprocs.key 0 unsigned 8\nprocs.value 0 struct 16\n"
	    "procs.value.first 0 unsigned 8\nprocs.value.second 8 signed 4\n"));
	assert_non_null(strstr(text, "ring type 1 flags 0\ncgroups_sent type 1 flags 0\n"));
	assert_non_null(strstr(text, ".data.shared size 8\n.data.shared.lease 0 unsigned 8\n"));
	assert_non_null(strstr(text, "event_cgroup 0 struct 8\nevent_cgroup.head 0 unsigned 8\n"));
	free(text);
}

static void
an_object_that_lacks_a_map_has_no_layout(void **state)
{
	struct variant v = usual;
	char name[LAYOUT_NAME_SIZE];
	int error;

	(void)state;
	v.lacks_ring = true;
	free(described(&v, &error));
	assert_int_equal(error, -ENOENT);
	assert_int_equal(layout_name("no object", 9, name), -EINVAL);
}

/* Writes both to the standard error as far as they differ, line by line from the first difference on. */
static void
show(const char *kept, const char *now)
{
	while (*kept != '\0' && *kept == *now) {
		kept++;
		now++;
	}
	fprintf(stderr, "kept, from the first difference on: %.200s\nnow: %.200s\n", kept, now);
}

/*
 * A change of the layout makes an upgrade a gap, in which threads that ended are not counted, so that none is made
 * unnoticed. SLUICE_KEEP_LAYOUT=1 in the environment writes the file anew.
 */
static void
the_layout_is_the_one_that_is_kept(void **state)
{
	struct slice elf, types;
	struct bytes text = { 0 };
	char kept[65536] = "";
	struct btf *btf;
	FILE *file;

	(void)state;
	elf.data = sluice_bpf__elf_bytes(&elf.len);
	assert_true(object_section(elf, ".BTF", &types));
	btf = btf__new(types.data, (uint32_t)types.len);
	assert_non_null(btf);
	assert_int_equal(layout_describe(btf, &text), 0);
	assert_int_equal(bytes_append(&text, "", 1), 0);
	btf__free(btf);
	if (getenv("SLUICE_KEEP_LAYOUT") != NULL) {
		file = fopen(KEPT, "we");
		assert_non_null(file);
		assert_int_equal(fwrite(text.data, 1, text.len - 1, file), text.len - 1);
		assert_int_equal(fclose(file), 0);
	}
	file = fopen(KEPT, "re");
	assert_non_null(file);
	assert_true(fread(kept, 1, sizeof(kept) - 1, file) > 0);
	fclose(file);
	if (strcmp(kept, (const char *)text.data) != 0) {
		show(kept, (const char *)text.data);
		fail_msg("the types of the pinned maps or of the ring's records changed: an agent of this version cannot use the "
		    "maps of the version before, and an upgrade is a gap. If that is intended, keep the new layout: "
		    "SLUICE_KEEP_LAYOUT=1 %s", "build/dev/tests/test_attach_layout");
	}
	bytes_done(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_types_and_sizes_of_maps_do_not_count),
		cmocka_unit_test(each_member_and_its_place_count),
		cmocka_unit_test(the_text_has_a_line_for_each_member),
		cmocka_unit_test(an_object_that_lacks_a_map_has_no_layout),
		cmocka_unit_test(the_layout_is_the_one_that_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
