/* SPDX-License-Identifier: Apache-2.0 */
/* stage: the path names the old or the new program at each step, and what a kill leaves is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tree.h"
#include "update/stage.h"

struct room {
	struct tree tree;
	char target[128];
	struct stage stage;
	char error[8192];
};

static void
put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static char *
in(const struct room *r, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", r->tree.root, name);
	return path;
}

static void
assert_text(const struct room *r, const char *name, const char *want)
{
	struct file_text text = { 0 };
	int error = file_read(AT_FDCWD, in(r, name), &text, 1024);

	if (want == NULL) {
		assert_int_equal(error, -ENOENT);
	} else {
		assert_int_equal(error, 0);
		assert_string_equal(text.text, want);
	}
	file_text_done(&text);
}

/* The name of the program, its previous one, and whether anything else is there. */
static void
assert_all(const struct room *r, const char *program, const char *previous)
{
	assert_text(r, "sluice", program);
	assert_text(r, "sluice.previous", previous);
	assert_text(r, ".sluice.update", NULL);
	assert_text(r, ".sluice.update.old", NULL);
	assert_text(r, ".sluice.update.lock", NULL);
}

static int
set_up(void **state)
{
	struct room *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	tree_init(&r->tree);
	assert_int_equal(chmod(r->tree.root, 0755), 0);
	snprintf(r->target, sizeof(r->target), "%s/sluice", r->tree.root);
	put(r->target, "old", 0755);
	*state = r;
	return 0;
}

static int
tear_down(void **state)
{
	struct room *r = *state;

	tree_done(&r->tree);
	free(r);
	return 0;
}

static void
begin(struct room *r)
{
	if (stage_open(r->target, &r->stage, r->error, sizeof(r->error)) < 0)
		fail_msg("%s", r->error);
}

/* What a kill does: the lock goes, everything else stays. */
static void
killed(struct room *r)
{
	close(r->stage.lock_fd);
	close(r->stage.dir);
	r->stage.dir = r->stage.lock_fd = -1;
}

static void
swap(struct room *r, const char *note)
{
	begin(r);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);
	assert_int_equal(stage_swap(&r->stage, note), 0);
}

static void
a_kept_one_leaves_the_old_as_previous(void **state)
{
	struct room *r = *state;
	struct stat st;

	begin(r);
	assert_false(r->stage.is_swapped);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);
	assert_text(r, "sluice", "old");
	assert_text(r, ".sluice.update", "new");
	assert_int_equal(stat(r->stage.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stage_swap(&r->stage, "note"), 0);
	assert_text(r, "sluice", "new");
	assert_text(r, ".sluice.update.old", "old");
	assert_int_equal(stat(r->target, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stage_keep(&r->stage), 0);
	stage_close(&r->stage);
	assert_all(r, "new", "old");
}

static void
one_that_is_taken_back_leaves_all_as_it_was(void **state)
{
	struct room *r = *state;

	put(in(r, "sluice.previous"), "older", 0755);
	swap(r, "note");
	assert_int_equal(stage_back(&r->stage), 0);
	stage_close(&r->stage);
	assert_all(r, "old", "older");
}

static void
one_that_is_given_up_leaves_all_as_it_was(void **state)
{
	struct room *r = *state;

	begin(r);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);
	stage_close(&r->stage);
	stage_close(&r->stage);
	assert_all(r, "old", NULL);
}

static void
what_a_kill_left_before_the_swap_is_removed(void **state)
{
	struct room *r = *state;

	begin(r);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);
	killed(r);
	/* Between the link and the rename. */
	assert_int_equal(link(r->target, in(r, ".sluice.update.old")), 0);
	begin(r);
	assert_false(r->stage.is_swapped);
	assert_text(r, ".sluice.update", NULL);
	assert_text(r, ".sluice.update.old", NULL);
	stage_close(&r->stage);
	assert_all(r, "old", NULL);
}

static void
a_kill_after_the_swap_leaves_the_verdict(void **state)
{
	struct room *r = *state;

	swap(r, "restart 1 2");
	killed(r);
	for (int i = 0; i < 2; i++) {
		begin(r);
		assert_true(r->stage.is_swapped);
		assert_string_equal(r->stage.note, "restart 1 2");
		stage_close(&r->stage);		/* without a verdict it stays as it is */
	}
	begin(r);
	assert_int_equal(stage_back(&r->stage), 0);
	stage_close(&r->stage);
	assert_all(r, "old", NULL);
}

static void
a_second_one_is_refused(void **state)
{
	struct room *r = *state;
	struct stage second;

	begin(r);
	assert_int_equal(stage_open(r->target, &second, r->error, sizeof(r->error)), -EBUSY);
	assert_non_null(strstr(r->error, "another update"));
	assert_int_equal(second.dir, -1);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);	/* the second has removed nothing */
	assert_text(r, ".sluice.update", "new");
	stage_close(&r->stage);
	begin(r);
	stage_close(&r->stage);
	assert_all(r, "old", NULL);
}

static void
a_folder_that_others_may_write_is_refused(void **state)
{
	struct room *r = *state;

	assert_int_equal(chmod(r->tree.root, 0777), 0);
	assert_int_equal(stage_open(r->target, &r->stage, r->error, sizeof(r->error)), -EPERM);
	assert_non_null(strstr(r->error, "world-writable"));
	/* As /tmp: others could add a name that is used here. */
	assert_int_equal(chmod(r->tree.root, 01777), 0);
	assert_int_equal(stage_open(r->target, &r->stage, r->error, sizeof(r->error)), -EPERM);
	assert_int_equal(chmod(r->tree.root, 0755), 0);
	assert_int_equal(chmod(r->target, 0775), 0);
	assert_int_equal(stage_open(r->target, &r->stage, r->error, sizeof(r->error)), -EPERM);
	assert_non_null(strstr(r->error, "group"));
	assert_int_equal(chmod(r->target, 0755), 0);
	begin(r);
	stage_close(&r->stage);
}

static void
a_link_is_not_followed(void **state)
{
	struct room *r = *state;

	/* At the program's name. */
	assert_int_equal(rename(r->target, in(r, "elsewhere")), 0);
	assert_int_equal(symlink("elsewhere", r->target), 0);
	assert_true(stage_open(r->target, &r->stage, r->error, sizeof(r->error)) < 0);
	assert_int_equal(unlink(r->target), 0);
	put(r->target, "old", 0755);
	/* At the names that are written. */
	assert_int_equal(symlink("elsewhere", in(r, ".sluice.update.lock")), 0);
	assert_int_equal(stage_open(r->target, &r->stage, r->error, sizeof(r->error)), -ELOOP);
	assert_int_equal(unlink(in(r, ".sluice.update.lock")), 0);
	assert_int_equal(symlink("elsewhere", in(r, ".sluice.update")), 0);
	begin(r);
	assert_int_equal(stage_write(&r->stage, "new", 3), 0);
	assert_text(r, "elsewhere", "old");
	assert_int_equal(stage_swap(&r->stage, ""), 0);
	assert_int_equal(stage_keep(&r->stage), 0);
	stage_close(&r->stage);
	assert_text(r, "elsewhere", "old");
}

static void
a_path_that_is_too_long_is_refused(void **state)
{
	struct room *r = *state;
	char path[512];

	snprintf(path, sizeof(path), "%s/%0*d", r->tree.root, NAME_MAX - 5, 0);
	assert_int_equal(stage_open(path, &r->stage, r->error, sizeof(r->error)), -ENAMETOOLONG);
	assert_int_equal(stage_open("sluice", &r->stage, r->error, sizeof(r->error)), -ENAMETOOLONG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kept_one_leaves_the_old_as_previous, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_taken_back_leaves_all_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_given_up_leaves_all_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_kill_left_before_the_swap_is_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_kill_after_the_swap_leaves_the_verdict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_second_one_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_that_others_may_write_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_is_not_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
