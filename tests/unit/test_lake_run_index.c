/* SPDX-License-Identifier: Apache-2.0 */
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

#include "base/file.h"
#include "lake/run_index.h"
#include "samples.h"

#define PART ".agent-7.avro.part"
#define INDEX ".agent-7.runs"

static const uint8_t sync_marker[OCF_SYNC_SIZE] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255 };
static const struct lake_owner nobody;

static char folder[64];
static int dir_fd;
static struct file_text text;

static int
setup(void **state)
{
	(void)state;
	if (sample_folder(folder) == NULL)
		return -1;
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	file_text_done(&text);
	close(dir_fd);
	sample_remove(folder);
	return 0;
}

static const char *
index_text(void)
{
	assert_int_equal(file_read(dir_fd, INDEX, &text, 1 << 20), 0);
	return text.text;
}

static bool
has_index(void)
{
	return faccessat(dir_fd, INDEX, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
add_records(struct run_index *x, const char *const *keys, size_t n)
{
	run_index_clear_block(x);
	for (size_t i = 0; i < n; i++)
		run_index_add_record(x, keys[i]);
}

/* The text is also in analytics/tests/test_lake_run_index.py: what is written here is read there. */
static void
a_line_for_each_block_names_its_runs(void **state)
{
	static const char *const first[] = { "host:run-1", "host:run-1", "host:", "host", "host:run-2", "host:run-1" };
	static const char *const second[] = { "host:" };
	static const char *const third[] = { "host:a:b" };
	struct run_index x = { 0 };

	(void)state;
	run_index_begin(&x, sync_marker, 100);
	add_records(&x, first, 6);
	run_index_add_block(&x, dir_fd, PART, &nobody, 5000, 6);
	add_records(&x, second, 1);
	run_index_add_block(&x, dir_fd, PART, &nobody, RUN_INDEX_FROM - 1, 1);
	assert_false(has_index());
	add_records(&x, third, 1);
	run_index_add_block(&x, dir_fd, PART, &nobody, RUN_INDEX_FROM, 1);
	assert_string_equal(index_text(),
	    "sluice-runs 1 000102030405060708090a0b0c0d0eff 100 b0c4f40b\n"
	    "5000 6 2a6ca8e3 b365f959 60a64210\n"
	    "32767 1 58c36ece\n"
	    "32768 1 3041a608 0829b525\n");
	run_index_done(&x);
}

static void
a_block_of_too_many_runs_can_have_any(void **state)
{
	struct run_index x = { 0 };
	char key[64];

	(void)state;
	run_index_begin(&x, sync_marker, 100);
	for (int more = 0; more < 2; more++) {
		run_index_clear_block(&x);
		for (int i = 0; i < RUN_INDEX_RUNS_MAX + more; i++) {
			snprintf(key, sizeof(key), "host:run-%d", i);
			run_index_add_record(&x, key);
		}
		run_index_add_block(&x, dir_fd, PART, &nobody, (uint64_t)RUN_INDEX_FROM + (uint64_t)more, 70);
	}
	assert_null(strstr(strtok((char *)index_text(), "\n"), "*"));
	assert_null(strstr(strtok(NULL, "\n"), "*"));
	assert_non_null(strstr(strtok(NULL, "\n"), "32769 70 * "));
	run_index_done(&x);
}

/* A key that is too long to be kept is hashed for each record. */
static void
a_long_run_id_is_one_run(void **state)
{
	char key[4 * RUN_INDEX_KEY_MAX];
	struct run_index x = { 0 };

	(void)state;
	memset(key, 'r', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	key[4] = ':';
	run_index_add_record(&x, key);
	run_index_add_record(&x, key);
	assert_int_equal(x.n_runs, 1);
	run_index_done(&x);
}

static void
what_an_earlier_file_left_is_replaced(void **state)
{
	static const char *const keys[] = { "host:run-1" };
	struct run_index x = { 0 };

	(void)state;
	assert_int_equal(symlinkat("/dev/null", dir_fd, INDEX), 0);
	for (int i = 0; i < 2; i++) {
		run_index_begin(&x, sync_marker, 100);
		add_records(&x, keys, 1);
		run_index_add_block(&x, dir_fd, PART, &nobody, RUN_INDEX_FROM, 1);
		assert_memory_equal(index_text(), "sluice-runs 1 ", 14);
		assert_string_equal(strchr(text.text, '\n') + 1, "32768 1 2a6ca8e3 89b1f358\n");
	}
	run_index_done(&x);
}

static void
an_index_that_cannot_be_written_ends(void **state)
{
	static const char *const keys[] = { "host:run-1" };
	struct run_index x = { 0 };

	(void)state;
	assert_int_equal(mkdirat(dir_fd, INDEX, 0755), 0);
	run_index_begin(&x, sync_marker, 100);
	add_records(&x, keys, 1);
	run_index_add_block(&x, dir_fd, PART, &nobody, RUN_INDEX_FROM, 1);
	assert_false(x.is_on);
	assert_int_equal(unlinkat(dir_fd, INDEX, AT_REMOVEDIR), 0);
	run_index_add_block(&x, dir_fd, PART, &nobody, RUN_INDEX_FROM + 1, 1);
	assert_false(has_index());
	run_index_done(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_for_each_block_names_its_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(a_block_of_too_many_runs_can_have_any, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_run_id_is_one_run, setup, teardown),
		cmocka_unit_test_setup_teardown(what_an_earlier_file_left_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(an_index_that_cannot_be_written_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
