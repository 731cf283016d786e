/* SPDX-License-Identifier: Apache-2.0 */
/* owner: a program of a package of dpkg or rpm is recognised, by dpkg's lists and rpm's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"
#include "update/owner.h"

#define NONE "/nonexistent"

static struct tree tree;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_mkdir(&tree, "info");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

/* A program in place of rpm. */
static const char *
rpm(const char *script)
{
	tree_write(&tree, "rpm", script);
	assert_int_equal(chmod(tree_path(&tree, "rpm"), 0755), 0);
	return tree_path(&tree, "rpm");
}

static void
a_host_without_package_managers_has_no_packages(void **state)
{
	char command[256];

	(void)state;
	assert_int_equal(owner_find("/usr/bin/sluice", NONE, NONE, command, sizeof(command)), 0);
	assert_int_equal(owner_find("/usr/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)), 0);
}

static void
dpkg_owns_what_its_list_has(void **state)
{
	static const char *const names[] = { "info/sluice-agent.list", "info/sluice-agent:amd64.list" };
	char command[256] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		tree_write(&tree, names[i], "/.\n/usr\n/usr/bin\n/usr/bin/sluice\n/usr/share/doc/sluice\n");
		assert_int_equal(owner_find("/usr/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)), 1);
		assert_string_equal(command, "apt-get install --only-upgrade sluice-agent");
		assert_int_equal(owner_find("/usr/local/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)), 0);
		assert_int_equal(owner_find("/usr/bin/sluic", tree_path(&tree, "info"), NONE, command, sizeof(command)), 0);
		assert_int_equal(owner_find("/usr/bin/sluice2", tree_path(&tree, "info"), NONE, command, sizeof(command)), 0);
		unlink(tree_path(&tree, names[i]));
	}
	/* From before /bin became a link. */
	tree_write(&tree, "info/sluice-agent.list", "/bin/sluice");
	assert_int_equal(owner_find("/usr/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)), 1);
}

static void
other_packages_lists_are_not_read(void **state)
{
	char command[256];

	(void)state;
	tree_write(&tree, "info/other.list", "/usr/bin/sluice\n");
	tree_write(&tree, "info/sluice-agents.list", "/usr/bin/sluice\n");
	tree_write(&tree, "info/sluice-agent.postinst", "/usr/bin/sluice\n");
	tree_write(&tree, "info/sluice.list", "/usr/bin/sluice\n");	/* Debian has another program of that name */
	assert_int_equal(owner_find("/usr/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)), 0);
}

static void
a_list_that_cannot_be_read_is_an_error(void **state)
{
	char command[256] = "";

	(void)state;
	tree_mkdir(&tree, "info/sluice-agent.list");
	assert_true(owner_find("/usr/bin/sluice", tree_path(&tree, "info"), NONE, command, sizeof(command)) < 0);
	assert_non_null(strstr(command, "cannot be read"));
}

static void
rpm_owns_what_it_says(void **state)
{
	const char *yes = rpm("#!/bin/sh\n[ \"$1\" = -qf ] && [ \"$4\" = /usr/bin/sluice ] && printf sluice\n");
	char command[256] = "";

	(void)state;
	assert_int_equal(owner_find("/usr/bin/sluice", NONE, yes, command, sizeof(command)), 1);
	assert_string_equal(command, "dnf upgrade sluice-agent");
	assert_int_equal(owner_find("/opt/sluice", NONE, yes, command, sizeof(command)), 0);
	assert_int_equal(owner_find("/usr/bin/sluice", NONE, rpm("#!/bin/sh\necho not owned\nexit 1\n"), command,
	    sizeof(command)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_host_without_package_managers_has_no_packages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dpkg_owns_what_its_list_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_packages_lists_are_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_list_that_cannot_be_read_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rpm_owns_what_it_says, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
