/*
 * SPDX-License-Identifier: Apache-2.0
 * incarnation: what tells a machine and a folder from copies, in a simulated root directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/incarnation.h"
#include "tree.h"

#define ID "3d1219c7c4c5404aaa1f6d2a48adfda4"
#define PRODUCT "4c4c4544-0051-3510-8052-b4c04f4e3132"

static struct tree tree;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_write(&tree, "etc/machine-id", ID "\n");
	tree_write(&tree, "proc/sys/kernel/hostname", "node7\n");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static struct incarnation
machine(void)
{
	struct incarnation i = { 0 };

	incarnation_read_machine(tree.root, &i);
	return i;
}

/* What differs, in words; "": nothing. */
static const char *
difference(const struct incarnation *before, const struct incarnation *now)
{
	static char why[256];

	why[0] = '\0';
	assert_int_equal(incarnation_differs(before, now, why, sizeof(why)), why[0] != '\0');
	return why;
}

static void
expect_same(const struct incarnation *before, const struct incarnation *now)
{
	assert_string_equal(difference(before, now), "");
	assert_string_equal(difference(now, before), "");
}

static void
expect_other(const struct incarnation *before, const struct incarnation *now, const char *what)
{
	assert_non_null(strstr(difference(before, now), what));
	assert_non_null(strstr(difference(now, before), what));
}

static void
another_machine_id_is_another_machine(void **state)
{
	struct incarnation before = machine(), now;

	(void)state;
	assert_string_equal(before.machine_id, ID);
	now = machine();
	expect_same(&before, &now);
	tree_write(&tree, "etc/machine-id", "4d1219c7c4c5404aaa1f6d2a48adfda4\n");
	now = machine();
	expect_other(&before, &now, "machine-id");
}

static void
a_clone_that_keeps_the_machine_id_has_other_hardware(void **state)
{
	struct incarnation before, now;

	(void)state;
	tree_write(&tree, "sys/class/dmi/id/product_uuid", PRODUCT "\n");
	before = machine();
	assert_null(strstr(before.hardware, "4c4c"));	/* only root may read it: not as it is */
	tree_write(&tree, "sys/class/dmi/id/product_uuid", "4C4C4544-0051-3510-8052-B4C04F4E3132\n");
	now = machine();
	expect_same(&before, &now);
	tree_write(&tree, "sys/class/dmi/id/product_uuid", "5c4c4544-0051-3510-8052-b4c04f4e3132\n");
	now = machine();
	expect_other(&before, &now, "hardware");
}

static void
an_id_that_many_boards_have_is_none(void **state)
{
	static const char *const bad[] = { "00000000-0000-0000-0000-000000000000\n",
		"03000200-0400-0500-0006-000700080009\n", "not settable\n", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tree_write(&tree, "sys/class/dmi/id/product_uuid", bad[i]);
		assert_string_equal(machine().hardware, "");
	}
	tree_write(&tree, "proc/device-tree/serial-number", "10000000c2a1b3d4");
	assert_int_equal(strlen(machine().hardware), 32);
}

static void
a_name_counts_only_without_hardware(void **state)
{
	struct incarnation before = machine(), now;

	(void)state;
	tree_write(&tree, "proc/sys/kernel/hostname", "node8\n");
	now = machine();
	expect_other(&before, &now, "name of the host");
	tree_write(&tree, "sys/class/dmi/id/product_uuid", PRODUCT "\n");
	now = machine();
	expect_same(&before, &now);	/* the hardware's id can be read now, or has been lost */
}

static void
what_is_unknown_is_no_difference_and_is_kept(void **state)
{
	struct incarnation before = { .machine_id = ID, .hardware = "a" }, now = { .folder = "made 1.000000000" };

	(void)state;
	expect_same(&before, &now);
	incarnation_keep(&now, &before);
	assert_string_equal(now.machine_id, ID);
	assert_string_equal(now.hardware, "a");
	assert_string_equal(now.folder, "made 1.000000000");
}

static void
a_folder_is_that_which_was_made_then(void **state)
{
	struct incarnation a = { .folder = "made 1.000000001" }, b = { .folder = "made 1.000000002" };
	struct incarnation c = { .folder = "inode 7" }, d = { .folder = "inode 8" };

	(void)state;
	expect_other(&a, &b, "folder");
	expect_other(&c, &d, "folder");
	expect_same(&a, &c);	/* of two kinds: a newer kernel, or another version of NFS */
	expect_same(&a, &a);
}

static void
a_folder_that_is_moved_stays_and_a_copy_is_another(void **state)
{
	char one[300], two[300];
	struct incarnation before = { 0 }, moved = { 0 }, copy = { 0 };

	(void)state;
	snprintf(one, sizeof(one), "%s/one", tree.root);
	snprintf(two, sizeof(two), "%s/two", tree.root);
	assert_int_equal(mkdir(one, 0700), 0);
	incarnation_read_folder(one, &before);
	assert_true(before.folder[0] != '\0');
	assert_int_equal(rename(one, two), 0);
	incarnation_read_folder(two, &moved);
	expect_same(&before, &moved);
	/* File systems take the time from a clock that moves each few milliseconds; a copy takes longer. */
	for (int i = 0; i < 10000 && (i == 0 || strcmp(copy.folder, before.folder) == 0); i++) {
		(void)rmdir(one);
		assert_int_equal(mkdir(one, 0700), 0);
		incarnation_read_folder(one, &copy);
		usleep(1000);
	}
	expect_other(&before, &copy, "folder");
	incarnation_read_folder("/no/such/folder", &copy);
	assert_string_equal(copy.folder, "");
}

static void
text_is_read_as_it_was_written(void **state)
{
	struct incarnation i = { .machine_id = ID, .host_name = "node 7", .folder = "made 1.000000001" }, back;
	char text[INCARNATION_TEXT_MAX], long_line[1000];

	(void)state;
	incarnation_unpack(incarnation_pack(&i, text), &back);
	assert_memory_equal(&i, &back, sizeof(i));
	incarnation_unpack("", &back);
	assert_string_equal(back.machine_id, "");
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, "folder ", 7);
	long_line[sizeof(long_line) - 1] = '\0';
	incarnation_unpack(long_line, &back);
	assert_string_equal(back.folder, "");
	incarnation_unpack("\n\nunknown 1\nfolder\nfolder \nhardware 5", &back);
	assert_string_equal(back.folder, "");
	assert_string_equal(back.hardware, "5");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(another_machine_id_is_another_machine),
		T(a_clone_that_keeps_the_machine_id_has_other_hardware),
		T(an_id_that_many_boards_have_is_none),
		T(a_name_counts_only_without_hardware),
		T(what_is_unknown_is_no_difference_and_is_kept),
		T(a_folder_is_that_which_was_made_then),
		T(a_folder_that_is_moved_stays_and_a_copy_is_another),
		T(text_is_read_as_it_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
