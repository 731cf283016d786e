/* SPDX-License-Identifier: Apache-2.0 */
/* spool: its folder is made, refused, removed and made again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "faults.h"
#include "one_spool.h"

static void
a_folder_that_cannot_be_made_says_why(void **state)
{
	struct spool *other = NULL;
	char error[256];
	int r;

	(void)state;
	k.options.dir = "/sys/sluice-test/deep/spool";
	r = spool_open(&k.options, &other, NULL, error, sizeof(error));
	/* Why the first could not be made; of the last one would hear only that its parent is not there. */
	assert_true(r == -EPERM || r == -EACCES || r == -EROFS);
	assert_null(other);
	assert_non_null(strstr(error, strerror(-r)));
}

static void
a_new_folder_wants_a_checkpoint_and_leaves_no_file_open(void **state)
{
	unsigned files;

	(void)state;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 200000);
	kit_commit(&k);
	kit_tick(&k);
	assert_int_equal(spool_close(k.spool), 0);	/* nothing is in flight to the disk */
	kit_open(&k);
	kit_tick(&k);
	KIT_UNTIL(&k, kit_stats(&k).syncs > 0);
	assert_false(spool_wants_checkpoint(k.spool));
	files = kit_open_files();
	tree_done(&k.tree);
	kit_tick(&k);
	assert_int_equal(access(k.dir, F_OK), 0);
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(kit_open_files(), files);
}

/* Descriptor 0 is one as any other: it is the folder's, and free once the folder was made anew. */
static void
use_without_standard_input(struct kit *at)
{
	unsigned files = kit_open_files();

	for (int i = 0; i < 3; i++) {
		struct tree again = at->tree;

		kit_batch(at, TOPIC_PROGRAM, 5);
		kit_expect(kit_drain(at) == 5, "what was put comes");
		tree_done(&again);
		kit_tick(at);
		kit_expect(access(at->dir, F_OK) == 0, "the folder is there again");
		kit_batch(at, TOPIC_USAGE, 5);
		kit_expect(kit_drain(at) == 5, "what was put comes");
	}
	/* A segment of each queue; those of the folders that went are reaped when their syncs have come back. */
	KIT_UNTIL(at, kit_open_files() <= files + 2);
}

static void
close_standard_input(struct kit *at)
{
	kit_expect(spool_close(at->spool) == 0, "it closes");
	close(0);
	kit_open(at);
	use_without_standard_input(at);
	kit_expect(spool_close(at->spool) == 0, "it closes");
	kit_open(at);
	kit_expect(at->seq[TOPIC_PROGRAM] == 15 && at->seq[TOPIC_USAGE] == 15, "numbering goes on");
}

static void
it_works_where_standard_input_is_closed(void **state)
{
	(void)state;
	kit_crash(&k, close_standard_input);
}

static void
a_folder_beside_us_is_made_and_a_second_owner_leaves_nothing_open(void **state)
{
	struct spool *other = NULL;
	char error[256], before[512];
	unsigned files;

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(k.tree.root), 0);
	k.options.dir = "beside";
	kit_open(&k);
	files = kit_open_files();
	assert_int_equal(spool_open(&k.options, &other, NULL, error, sizeof(error)), -EBUSY);
	assert_int_equal(kit_open_files(), files);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(chdir(before), 0);
}

static void
expect_mode(const char *path, unsigned mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

/* Whatever is made above it may be looked into. */
static void
the_folders_above_it_are_made_by_a_relative_path_too(void **state)
{
	char before[512];
	mode_t mask = umask(0);

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(k.tree.root), 0);
	k.options.dir = "a/b/spool";
	kit_open(&k);
	umask(mask);
	expect_mode("a", 0755);
	expect_mode("a/b", 0755);
	expect_mode("a/b/spool", 0700);
	assert_int_equal(chdir(before), 0);
}

static void
open_without_rights(struct kit *at)
{
	struct spool *spool = NULL;
	char error[512] = "";

	if (geteuid() == 0 && seteuid(65534) < 0)
		abort();
	kit_expect(spool_open(&at->options, &spool, NULL, error, sizeof(error)) == -EACCES, "it is refused");
	kit_expect(strstr(error, "no permission to write in the spool's directory") != NULL, error);
	kit_expect(strstr(error, at->dir) != NULL, "the folder is named");
}

static void
a_folder_that_is_not_ours_says_so(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	snprintf(k.dir, sizeof(k.dir), "%s/others", k.tree.root);
	assert_int_equal(chmod(k.tree.root, 0755), 0);
	assert_int_equal(mkdir(k.dir, 0555), 0);
	pid = fork();
	if (pid == 0) {
		open_without_rights(&k);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_folder_that_cannot_be_made_says_why),
		T(a_new_folder_wants_a_checkpoint_and_leaves_no_file_open),
		T(it_works_where_standard_input_is_closed),
		T(a_folder_beside_us_is_made_and_a_second_owner_leaves_nothing_open),
		T(the_folders_above_it_are_made_by_a_relative_path_too),
		T(a_folder_that_is_not_ours_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
