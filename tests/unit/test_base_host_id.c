/*
 * SPDX-License-Identifier: Apache-2.0
 * host_id: in a simulated root directory, and on this machine.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "base/host_id.h"
#include "tree.h"

#define ID "3d1219c7c4c5404aaa1f6d2a48adfda4"
#define BOOT "0f3c2a5e-9f66-4a9b-8f6e-0d5d6f1f2a3b"

static struct tree tree;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_write(&tree, "etc/machine-id", ID "\n");
	tree_write(&tree, "proc/sys/kernel/hostname", "node7\n");
	tree_write(&tree, "proc/sys/kernel/random/boot_id", BOOT "\n");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static struct host_id
read_it(void)
{
	struct host_id h;

	assert_int_equal(host_id_read(tree.root, &h), 0);
	assert_int_equal(strspn(h.id, "0123456789abcdef"), 32);
	assert_int_equal(strlen(h.id), 32);
	return h;
}

static void
machine_id_comes_first(void **state)
{
	struct utsname uts;
	struct host_id h = read_it();

	(void)state;
	uname(&uts);
	assert_string_equal(h.id, ID);
	assert_int_equal(h.source, HOST_ID_MACHINE_ID);
	assert_string_equal(h.name, "node7");
	assert_string_equal(h.boot_id, BOOT);
	assert_string_equal(h.kernel, uts.release);
	assert_string_equal(h.architecture, uts.machine);
}

static void
the_copy_of_dbus_serves_an_image_that_never_booted(void **state)
{
	(void)state;
	tree_write(&tree, "etc/machine-id", "uninitialized\n");
	tree_write(&tree, "var/lib/dbus/machine-id", "00112233445566778899aabbccddeeff\n");
	assert_string_equal(read_it().id, "00112233445566778899aabbccddeeff");
}

static void
what_is_no_machine_id_is_not_taken(void **state)
{
	static const char *const bad[] = { "", "\n", "uninitialized\n", "3d1219c7\n",
		"3D1219C7C4C5404AAA1F6D2A48ADFDA4\n", ID "0\n", "00000000000000000000000000000000\n",
		"3d1219c7c4c5404aaa1f6d2a48adfda/\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tree_write(&tree, "etc/machine-id", bad[i]);
		assert_int_equal(read_it().source, HOST_ID_NAME);
	}
}

static void
derived_ids_are_stable_and_differ(void **state)
{
	struct host_id by_name, by_product, other_product, other_name;

	(void)state;
	remove(tree_path(&tree, "etc/machine-id"));
	by_name = read_it();
	assert_int_equal(by_name.source, HOST_ID_NAME);
	assert_int_equal(by_name.id[12], '5');	/* UUID version 5 */
	assert_string_equal(by_name.id, read_it().id);
	/* pinned: a host keeps its id when sluice is updated */
	assert_string_equal(by_name.id, "3cb719b57810587a8eaea929c5e5c844");

	tree_write(&tree, "sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8052-b4c04f463632\n");
	by_product = read_it();
	assert_int_equal(by_product.source, HOST_ID_PRODUCT);
	assert_string_not_equal(by_product.id, by_name.id);
	tree_write(&tree, "sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8052-b4c04f463633\n");
	other_product = read_it();
	assert_string_not_equal(other_product.id, by_product.id);
	tree_write(&tree, "proc/sys/kernel/hostname", "node8\n");
	other_name = read_it();
	assert_string_not_equal(other_name.id, other_product.id);
}

static void
firmware_defaults_are_no_product(void **state)
{
	static const char *const bad[] = { "00000000-0000-0000-0000-000000000000\n",
		"ffffffff-ffff-ffff-ffff-ffffffffffff\n", "03000200-0400-0500-0006-000700080009\n",
		"Not Settable\n" };

	(void)state;
	remove(tree_path(&tree, "etc/machine-id"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tree_write(&tree, "sys/class/dmi/id/product_uuid", bad[i]);
		assert_int_equal(read_it().source, HOST_ID_NAME);
	}
}

static void
without_even_a_name_there_is_no_id(void **state)
{
	struct host_id h;

	(void)state;
	remove(tree_path(&tree, "etc/machine-id"));
	remove(tree_path(&tree, "proc/sys/kernel/hostname"));
	assert_int_equal(host_id_read(tree.root, &h), -ENODATA);
}

static void
a_boot_id_that_is_none_is_left_empty(void **state)
{
	(void)state;
	tree_write(&tree, "proc/sys/kernel/random/boot_id", "yesterday\n");
	assert_string_equal(read_it().boot_id, "");
}

static void
this_machine_has_an_id(void **state)
{
	struct host_id h;

	(void)state;
	assert_int_equal(host_id_read("", &h), 0);
	assert_int_equal(strlen(h.id), 32);
	assert_int_equal(strlen(h.boot_id), 36);
	assert_true(h.name[0] != '\0');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(machine_id_comes_first),
		TEST(the_copy_of_dbus_serves_an_image_that_never_booted),
		TEST(what_is_no_machine_id_is_not_taken),
		TEST(derived_ids_are_stable_and_differ),
		TEST(firmware_defaults_are_no_product),
		TEST(without_even_a_name_there_is_no_id),
		TEST(a_boot_id_that_is_none_is_left_empty),
		TEST(this_machine_has_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
