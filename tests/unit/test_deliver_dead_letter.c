/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "full_disk.h"
#include "samples.h"
#include "codec/avro_json.h"
#include "deliver/dead_letter.h"
#include "codec/ocf.h"

static char root[64];
static char dir[80];

static int
setup(void **state)
{
	(void)state;
	if (sample_folder(root) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%s/a/dead", root);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	sample_remove(root);
	return 0;
}

static struct spool_record
record(uint64_t seq)
{
	return (struct spool_record){ .id = 7, .topic = TOPIC_PROGRAM, .schema = 0xabc, .seq = seq,
	    .time_us = SAMPLE_TIME, .key = "h:run-1", .data = "\0\1\xff", .len = 3 };
}

static struct dead_letters *
open_letters(uint64_t max)
{
	struct dead_letters *d = NULL;

	assert_int_equal(dead_letters_open(dir, max, 0, &d), 0);
	return d;
}

static int
put(struct dead_letters *d, uint64_t seq)
{
	struct spool_record r = record(seq);
	int error = dead_letters_put(d, &r, "msg_size_too_large", "Broker: Message size too large");

	for (int i = 0; i < 10000 && error == 0 && !dead_letters_next(d, &error); i++)
		usleep(1000);
	return error;
}

/* The only file; how many files there are. */
static size_t
find(char path[PATH_MAX])
{
	char pattern[PATH_MAX];
	size_t n = 0;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/sluice.program-20*.avro", dir);
	if (glob(pattern, 0, NULL, &g) == 0) {
		n = g.gl_pathc;
		snprintf(path, PATH_MAX, "%s", g.gl_pathv[n - 1]);
		globfree(&g);
	}
	return n;
}

/* The file's records as lines of JSON; the file must be whole. */
static char *
lines(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY), r;
	struct ocf_reader *reader = NULL;
	struct avro_json *json = NULL;
	struct bytes out = { 0 };
	struct ocf_block block;
	struct ocf_error error;
	const char *schema;
	char why[160];
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(ocf_reader_open(fd, &reader, &error), 0);
	schema = ocf_reader_schema(reader, &len);
	assert_int_equal(avro_json_open(schema, len, &json, why, sizeof(why)), 0);
	while ((r = ocf_reader_next(reader, &block, &error)) == 1) {
		struct avro_json_input in = { .data = block.data, .len = block.len, .is_raw = true };

		assert_int_equal(block.count, 1);
		assert_int_equal(avro_json_line(json, &in, &out), 0);
		assert_int_equal(in.at, block.len);
	}
	assert_int_equal(r, 0);
	assert_true(out.len < size);
	memcpy(text, out.data, out.len);
	text[out.len] = '\0';
	bytes_done(&out);
	avro_json_close(json);
	ocf_reader_close(reader);
	close(fd);
	return text;
}

static size_t
count_lines(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n')) != NULL) {
		n++;
		text++;
	}
	return n;
}

static void
a_letter_says_what_and_why_and_has_the_record(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[4096];
	struct stat st;

	(void)state;
	assert_int_equal(put(d, 42), 0);
	dead_letters_close(d);
	assert_int_equal(find(path), 1);
	lines(path, text, sizeof(text));
	assert_non_null(strstr(text, "\"topic\":\"sluice.program\""));
	assert_non_null(strstr(text, "\"reason\":\"msg_size_too_large\""));
	assert_non_null(strstr(text, "\"detail\":\"Broker: Message size too large\""));
	assert_non_null(strstr(text, "\"record_time\":1795257300123456"));
	assert_non_null(strstr(text, "\"seq\":42"));
	assert_non_null(strstr(text, "\"key\":\"h:run-1\""));
	assert_non_null(strstr(text, "\"schema\":\"0000000000000abc\""));
	assert_non_null(strstr(text, "\"data\":"));
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void
no_letter_leaves_no_folder(void **state)
{
	struct stat st;

	(void)state;
	dead_letters_close(open_letters(0));
	assert_int_equal(stat(dir, &st), -1);
}

static void
the_next_agent_goes_on_in_the_same_file(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[4096];

	(void)state;
	assert_int_equal(put(d, 1), 0);
	dead_letters_close(d);
	d = open_letters(0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
	assert_int_equal(find(path), 1);
	assert_int_equal(count_lines(lines(path, text, sizeof(text))), 2);
}

static void
a_torn_end_is_cut_off(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[4096];
	struct stat st;

	(void)state;
	assert_int_equal(put(d, 1), 0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
	find(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 5), 0);
	d = open_letters(0);
	assert_int_equal(put(d, 3), 0);
	dead_letters_close(d);
	assert_int_equal(count_lines(lines(path, text, sizeof(text))), 2);
	assert_null(strstr(text, "\"seq\":2"));
	assert_non_null(strstr(text, "\"seq\":3"));
}

static void
a_torn_header_is_begun_anew(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[4096];

	(void)state;
	assert_int_equal(put(d, 1), 0);
	dead_letters_close(d);
	find(path);
	assert_int_equal(truncate(path, 20), 0);
	d = open_letters(0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
	assert_int_equal(find(path), 1);
	assert_int_equal(count_lines(lines(path, text, sizeof(text))), 1);
}

static void
a_file_that_is_not_ours_stays(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], other[PATH_MAX], text[4096];
	int fd;

	(void)state;
	assert_int_equal(put(d, 1), 0);
	dead_letters_close(d);
	find(path);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "something else altogether", 25), 25);
	close(fd);
	d = open_letters(0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
	assert_int_equal(find(other), 2);
	snprintf(other, sizeof(other), "%.*s.2.avro", (int)strlen(path) - 5, path);
	assert_int_equal(count_lines(lines(other, text, sizeof(text))), 1);
}

static void
a_full_folder_takes_no_more(void **state)
{
	struct dead_letters *d = open_letters(8192);
	char path[PATH_MAX];
	struct stat st;
	uint64_t n = 0;
	int r;

	(void)state;
	while ((r = put(d, n)) == 0)
		assert_true(++n < 10000);
	assert_int_equal(r, -EDQUOT);
	assert_true(n > 10);
	find(path);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 7000 && st.st_size <= 8192 + 512);
	dead_letters_close(d);
	d = open_letters(8192);	/* and it stays full */
	assert_int_equal(put(d, n), -EDQUOT);
	dead_letters_close(d);
}

/* What others leave of the disk is not taken, and letters are written again once there is room. */
static void
the_floor_of_the_disk_stays_free(void **state)
{
	const uint64_t mib = 1 << 20;
	struct dead_letters *d;
	char path[PATH_MAX];

	(void)state;
	full_disk.folder = root;
	full_disk.total = 1000 * mib;
	full_disk.others = 991 * mib;
	assert_int_equal(dead_letters_open(dir, 0, 10 * mib, &d), 0);
	assert_int_equal(put(d, 1), -ENOSPC);
	assert_int_equal(find(path), 0);
	full_disk.others = 989 * mib;
	assert_int_equal(put(d, 1), 0);
	full_disk.others = 990 * mib;
	assert_int_equal(put(d, 2), -ENOSPC);
	dead_letters_close(d);
	/* Without a floor all of it may be used. */
	d = open_letters(0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
}

static void
what_was_put_is_written_at_the_end(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[1 << 16];

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct spool_record r = record(i);

		assert_int_equal(dead_letters_put(d, &r, "a", "b"), 0);
	}
	dead_letters_close(d);
	assert_int_equal(find(path), 1);
	assert_int_equal(count_lines(lines(path, text, sizeof(text))), 100);
}

static void
a_file_that_is_taken_away_is_made_again(void **state)
{
	struct dead_letters *d = open_letters(0);
	char path[PATH_MAX], text[4096];

	(void)state;
	assert_int_equal(put(d, 1), 0);
	find(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(put(d, 2), 0);
	dead_letters_close(d);
	assert_int_equal(count_lines(lines(path, text, sizeof(text))), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_letter_says_what_and_why_and_has_the_record, setup, teardown),
		cmocka_unit_test_setup_teardown(no_letter_leaves_no_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_agent_goes_on_in_the_same_file, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_end_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_header_is_begun_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_not_ours_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_folder_takes_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(the_floor_of_the_disk_stays_free, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_put_is_written_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_taken_away_is_made_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
