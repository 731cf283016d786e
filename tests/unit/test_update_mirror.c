/* SPDX-License-Identifier: Apache-2.0 */
/* mirror: what may be one, and the files of a folder. A server is asked by the integration test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"
#include "update/mirror.h"

static struct tree tree;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_write(&tree, "latest/file", "text");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static int
read_it(const char *where, const char *name, size_t max, struct bytes *out, char *error)
{
	struct mirror *m = NULL;
	int r = mirror_open(where, &m, error, 8192);

	if (r == 0)
		r = mirror_read(m, name, max, out, NULL, NULL, error, 8192);
	mirror_close(m);
	return r;
}

static void
a_url_or_an_absolute_path_is_one(void **state)
{
	static const char *const good[] = { "http://a", "https://a/b/", "HTTPS://[::1]:8080/x", "/a", "/" };
	static const char *const bad[] = { "", "a", "./a", "ftp://a", "file:///a", "http://", "http:///a", "https://u:p@h/",
		"http://h/?q", "http://h/#f", "http://h h", "http:/a" };
	char error[8192];
	struct mirror *m;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(mirror_open(good[i], &m, error, sizeof(error)), 0);
		mirror_close(m);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (mirror_open(bad[i], &m, error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' is accepted", bad[i]);
	}
}

static void
files_of_a_folder_are_read_whole_or_not(void **state)
{
	struct bytes out = { 0 };
	char error[8192];

	(void)state;
	assert_int_equal(read_it(tree.root, "file", 4, &out, error), 0);
	assert_int_equal(out.len, 4);
	assert_memory_equal(out.data, "text", 4);
	bytes_done(&out);
	assert_int_equal(read_it(tree.root, "file", 3, &out, error), -EFBIG);
	assert_null(out.data);
	assert_int_equal(read_it(tree.root, "none", 3, &out, error), -ENOENT);
	assert_non_null(strstr(error, "latest/none"));
}

static void
what_is_no_file_is_refused(void **state)
{
	struct bytes out = { 0 };
	char error[8192];

	(void)state;
	assert_int_equal(mkfifo(tree_path(&tree, "latest/fifo"), 0600), 0);
	assert_int_equal(read_it(tree.root, "fifo", 100, &out, error), -EINVAL);
	tree_mkdir(&tree, "latest/folder");
	assert_int_equal(read_it(tree.root, "folder", 100, &out, error), -EINVAL);
	assert_non_null(strstr(error, "not a regular file"));
}

static void
what_others_may_change_is_refused(void **state)
{
	struct bytes out = { 0 };
	char error[8192];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(tree_path(&tree, "latest/file"), 0666), 0);
	assert_int_equal(read_it(tree.root, "file", 100, &out, error), -EPERM);
	assert_int_equal(chmod(tree_path(&tree, "latest/file"), 0644), 0);
	assert_int_equal(chmod(tree_path(&tree, "latest"), 0777), 0);
	assert_int_equal(read_it(tree.root, "file", 100, &out, error), -EPERM);
	assert_non_null(strstr(error, "world-writable"));
	assert_int_equal(chmod(tree_path(&tree, "latest"), 0755), 0);
	/* A link of another user, who may lead it elsewhere. */
	assert_int_equal(symlink("file", tree_path(&tree, "latest/link")), 0);
	assert_int_equal(read_it(tree.root, "link", 100, &out, error), 0);
	bytes_done(&out);
	assert_int_equal(lchown(tree_path(&tree, "latest/link"), 65534, 65534), 0);
	assert_int_equal(read_it(tree.root, "link", 100, &out, error), -EPERM);
	bytes_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_url_or_an_absolute_path_is_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_a_folder_are_read_whole_or_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_others_may_change_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
