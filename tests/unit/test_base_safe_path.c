/* SPDX-License-Identifier: Apache-2.0 */
/* safe_path: each component that another user could have written is refused, and named with its remedy. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/safe_path.h"
#include "tree.h"

#define OTHER 54321u

static struct tree tree;
static struct safe_path_fault fault;

static int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_write(&tree, "etc/sluice/sluice.yaml", "interval: 1s\n");
	assert_int_equal(chmod(tree_path(&tree, "etc/sluice/sluice.yaml"), 0644), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static int
opens_for(const char *path, int flags, uid_t owner)
{
	int fd = safe_path_open(path, flags, owner, &fault);

	assert_int_equal(fd == -EPERM, fault.path[0] != '\0');
	if (fd < 0)
		return fd;
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return 0;
}

/* As the user who made the files, root or not. */
static int
opens(const char *path)
{
	return opens_for(tree_path(&tree, path), O_RDONLY, geteuid());
}

static void
refused(const char *path, const char *wrong, const char *want)
{
	char text[2 * PATH_MAX], expected[2 * PATH_MAX];

	assert_int_equal(opens(path), -EPERM);
	assert_string_equal(fault.path, tree_path(&tree, wrong));
	safe_path_text(&fault, "become root", text, sizeof(text));
	snprintf(expected, sizeof(expected), want, fault.path, fault.path);
	assert_string_equal(text, expected);
}

/* Makes one thing wrong, checks that it is refused, and repairs it. */
static void
mode_is_refused(const char *wrong, mode_t mode, const char *want)
{
	const char *path = tree_path(&tree, wrong);
	struct stat st;

	assert_int_equal(opens("etc/sluice/sluice.yaml"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(chmod(path, mode), 0);
	refused("etc/sluice/sluice.yaml", wrong, want);
	assert_int_equal(chmod(tree_path(&tree, wrong), st.st_mode & 07777), 0);
	assert_int_equal(opens("etc/sluice/sluice.yaml"), 0);
}

static void
what_others_may_write_is_refused(void **state)
{
	(void)state;
	mode_is_refused("etc/sluice/sluice.yaml", 0646, "is world-writable, so any user could become root: run `chmod o-w %1$s`");
	mode_is_refused("etc/sluice/sluice.yaml", 0666, "is world-writable, so any user could become root: run `chmod go-w %1$s`");
	mode_is_refused("etc/sluice/sluice.yaml", 0664, "is writable by its group (mode 664), so a member of it could become "
	    "root: run `chmod g-w %1$s`");
	mode_is_refused("etc/sluice", 0775, "its folder %1$s is writable by its group (mode 775), so a member of it could become "
	    "root: run `chmod g-w %1$s`");
	mode_is_refused("etc", 0757, "its folder %1$s is world-writable, so any user could become root: run `chmod o-w %1$s`");
	mode_is_refused("etc", 0777, "its folder %1$s is world-writable, so any user could become root: run `chmod go-w %1$s`");
}

static void
owner_is_refused(const char *wrong, const char *want)
{
	assert_int_equal(lchown(tree_path(&tree, wrong), OTHER, (gid_t)-1), 0);
	refused("etc/sluice/sluice.yaml", wrong, want);
	assert_int_equal(lchown(tree_path(&tree, wrong), geteuid(), (gid_t)-1), 0);
	assert_int_equal(opens("etc/sluice/sluice.yaml"), 0);
}

static void
what_others_own_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();		/* only root gives files away */
	owner_is_refused("etc/sluice/sluice.yaml", "belongs to uid 54321, who could become root: run `chown root %1$s`");
	owner_is_refused("etc/sluice", "its folder %1$s belongs to uid 54321, who could become root: run `chown root %1$s`");
	owner_is_refused("etc", "its folder %1$s belongs to uid 54321, who could become root: run `chown root %1$s`");
}

static void
the_user_who_is_named_may_own_it(void **state)
{
	const char *path = tree_path(&tree, "etc/sluice");

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, OTHER, (gid_t)-1), 0);
	path = tree_path(&tree, "etc/sluice/sluice.yaml");
	assert_int_equal(opens_for(path, O_RDONLY, OTHER), 0);
	assert_int_equal(opens_for(path, O_RDONLY, OTHER + 1), -EPERM);
	assert_int_equal(opens_for(path, O_RDONLY, 0), -EPERM);
	assert_int_equal(chown(tree_path(&tree, "etc/sluice"), 0, (gid_t)-1), 0);
}

static void
a_sticky_folder_is_safe_above_a_file_alone(void **state)
{
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s", tree_path(&tree, "etc"));
	assert_int_equal(chmod(path, 01777), 0);
	assert_int_equal(opens("etc/sluice/sluice.yaml"), 0);
	/* Whose files are all read. */
	assert_int_equal(opens_for(path, O_RDONLY | O_DIRECTORY, geteuid()), -EPERM);
	assert_false(fault.is_above);
	if (geteuid() == 0) {
		/* In it, the owner of a file decides. */
		assert_int_equal(chown(path, OTHER, (gid_t)-1), 0);
		refused("etc/sluice/sluice.yaml", "etc", "its folder %1$s belongs to uid 54321, who could become root: run "
		    "`chown root %1$s`");
		assert_int_equal(chown(path, 0, (gid_t)-1), 0);
	}
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(opens_for(path, O_RDONLY | O_DIRECTORY, geteuid()), 0);
}

static void
a_link_counts_with_its_folder_and_with_that_of_its_target(void **state)
{
	(void)state;
	tree_write(&tree, "real/a/target.yaml", "x");
	assert_int_equal(chmod(tree_path(&tree, "real/a/target.yaml"), 0644), 0);
	tree_mkdir(&tree, "links");
	assert_int_equal(symlink("../real/a", tree_path(&tree, "links/a")), 0);
	assert_int_equal(symlink(tree_path(&tree, "links/a/target.yaml"), tree_path(&tree, "links/abs.yaml")), 0);
	assert_int_equal(opens("links/abs.yaml"), 0);
	assert_int_equal(opens("links/a/../a/./target.yaml"), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const wrong[] = { "links", "real", "real/a" };

		assert_int_equal(chmod(tree_path(&tree, wrong[i]), 0775), 0);
		refused("links/abs.yaml", wrong[i], "its folder %1$s is writable by its group (mode 775), so a member of it could "
		    "become root: run `chmod g-w %1$s`");
		assert_int_equal(chmod(tree_path(&tree, wrong[i]), 0755), 0);
	}
	if (geteuid() == 0) {
		assert_int_equal(lchown(tree_path(&tree, "links/a"), OTHER, (gid_t)-1), 0);
		refused("links/abs.yaml", "links/a", "its symbolic link %1$s belongs to uid 54321, who could become root: run "
		    "`chown -h root %1$s`");
		assert_int_equal(lchown(tree_path(&tree, "links/a"), 0, (gid_t)-1), 0);
	}
	assert_int_equal(opens("links/abs.yaml"), 0);
}

static void
errors_are_those_of_the_kernel(void **state)
{
	char longest[NAME_MAX + 3];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(symlink("loop", tree_path(&tree, "loop")), 0);
	assert_int_equal(opens("loop"), -ELOOP);
	assert_int_equal(opens("etc/nothing"), -ENOENT);
	assert_int_equal(opens("nothing/etc"), -ENOENT);
	assert_int_equal(opens("etc/sluice/sluice.yaml/x"), -ENOTDIR);
	assert_int_equal(opens(longest), -ENAMETOOLONG);
	assert_int_equal(opens_for("", O_RDONLY, 0), -ENOENT);
	assert_int_equal(opens_for(tree_path(&tree, "etc/sluice/sluice.yaml"), O_RDONLY | O_DIRECTORY, geteuid()), -ENOTDIR);
	assert_int_equal(opens_for("/", O_RDONLY | O_DIRECTORY, 0), 0);
	assert_int_equal(opens_for("/dev/null", O_RDONLY, 0), 0);
}

static void
a_relative_path_counts_from_the_root_too(void **state)
{
	char before[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(tree_path(&tree, "etc/sluice")), 0);
	assert_int_equal(opens_for("sluice.yaml", O_RDONLY, geteuid()), 0);
	assert_int_equal(opens_for("../sluice/sluice.yaml", O_RDONLY, geteuid()), 0);
	assert_int_equal(chmod(tree_path(&tree, "etc"), 0775), 0);
	assert_int_equal(opens_for("sluice.yaml", O_RDONLY, geteuid()), -EPERM);
	assert_int_equal(chmod(tree_path(&tree, "etc"), 0755), 0);
	assert_int_equal(chdir(before), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_others_may_write_is_refused),
		cmocka_unit_test(what_others_own_is_refused),
		cmocka_unit_test(the_user_who_is_named_may_own_it),
		cmocka_unit_test(a_sticky_folder_is_safe_above_a_file_alone),
		cmocka_unit_test(a_link_counts_with_its_folder_and_with_that_of_its_target),
		cmocka_unit_test(errors_are_those_of_the_kernel),
		cmocka_unit_test(a_relative_path_counts_from_the_root_too),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
