/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "samples.h"
#include "lake/appender.h"
#include "lake/folders.h"
#include "lake/repair.h"
#include "codec/ocf.h"

#define DAY_US INT64_C(86400000000)

static char lake[64];

static int
setup(void **state)
{
	(void)state;
	return sample_folder(lake) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	sample_remove(lake);
	return 0;
}

static struct lake_appender_options
options(void)
{
	return (struct lake_appender_options){ .lake = lake, .host_id = SAMPLE_HOST,
	    .agent_id = SAMPLE_AGENT };
}

static struct lake_appender *
open_appender(struct lake_appender_options o, struct lake_repair *repair)
{
	struct lake_repair unused;
	struct lake_appender *s = NULL;

	assert_int_equal(lake_appender_new(&o, &s), 0);
	assert_int_equal(lake_appender_open(s), 0);
	assert_int_equal(lake_repair(o.lake, o.host_id, repair != NULL ? repair : &unused), 0);
	return s;
}

static int
close_appender(struct lake_appender *s)
{
	return lake_appender_close(s, NULL, NULL, NULL);
}

static const struct lake_appender_counts *
counts(const struct lake_appender *s)
{
	return lake_appender_counts(s, TOPIC_PROGRAM);
}

/* Any bytes will do: an output does not read records. */
static int
put(struct lake_appender *s, int64_t time_us, uint64_t seq, size_t len)
{
	static char data[200000];

	for (size_t i = 0; i < len; i++)
		data[i] = (char)rand();		/* nothing that compresses */
	return lake_appender_put(s, &(struct encoded_record){ TOPIC_PROGRAM, time_us, seq, "key", data, len });
}

/* Files that match, below the lake; the first one's path in path. */
static size_t
find(const char *pattern, char *path)
{
	char full[PATH_MAX];
	size_t n = 0;
	glob_t g;

	snprintf(full, sizeof(full), "%s/%s", lake, pattern);
	if (glob(full, GLOB_PERIOD, NULL, &g) == 0) {
		n = g.gl_pathc;
		if (path != NULL)
			snprintf(path, PATH_MAX, "%s", g.gl_pathv[0]);
		globfree(&g);
	}
	return n;
}

#define DONE "sluice.*/date=*/host=" SAMPLE_HOST "/[!.]*.avro"
#define OPEN "sluice.*/date=*/host=" SAMPLE_HOST "/.*.avro.part"
#define INDEX "sluice.*/date=*/host=" SAMPLE_HOST "/.*.runs"

/* Records and bytes of a file that must be whole. */
static uint64_t
count(const char *path)
{
	int fd = open(path, O_RDONLY), r;
	struct ocf_reader *reader = NULL;
	struct ocf_error err;
	struct ocf_block b;
	uint64_t n = 0;

	assert_true(fd >= 0);
	assert_int_equal(ocf_reader_open(fd, &reader, &err), 0);
	while ((r = ocf_reader_next(reader, &b, &err)) == 1)
		n += b.count;
	assert_int_equal(r, 0);
	ocf_reader_close(reader);
	close(fd);
	return n;
}

/* Puts a record of a run; keys are as a stream makes them. */
static void
put_of_run(struct lake_appender *s, uint64_t seq, const char *key, size_t len)
{
	static char data[200000];

	for (size_t i = 0; i < len; i++)
		data[i] = (char)rand();
	assert_int_equal(lake_appender_put(s,
	    &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME, seq, key, data, len }), 0);
}

static void
the_index_describes_each_block(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);
	struct ocf_reader *reader = NULL;
	char path[PATH_MAX], line[256];
	struct ocf_error err;
	struct ocf_block b;
	unsigned n = 0;
	FILE *f;
	int fd;

	(void)state;
	put_of_run(s, 7, "host:run-1", 1000);
	lake_appender_flush(s, SAMPLE_TIME);
	assert_int_equal(find(INDEX, NULL), 0);
	put_of_run(s, 8, "host:run-1", 30000);
	put_of_run(s, 9, "host:", 30000);
	put_of_run(s, 10, "host:run-2", 30000);
	assert_int_equal(find(INDEX, NULL), 1);	/* beside an open file too */
	put_of_run(s, 11, "host:run-2", 30000);
	assert_int_equal(close_appender(s), 0);

	assert_int_equal(find(DONE, path), 1);
	fd = open(path, O_RDONLY);
	assert_int_equal(ocf_reader_open(fd, &reader, &err), 0);
	assert_int_equal(find(INDEX, path), 1);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	while (ocf_reader_next(reader, &b, &err) == 1) {
		static const char *const runs[] = { "2a6ca8e3", "2a6ca8e3 b365f959", "b365f959" };
		char want[128];
		int len;

		assert_non_null(fgets(line, sizeof(line), f));
		len = snprintf(want, sizeof(want), "%" PRIu64 " %" PRIu64 " %s ", ocf_reader_offset(reader), b.count,
		    runs[n++]);
		assert_memory_equal(line, want, len);
		assert_int_equal(strlen(line), len + 9);
	}
	assert_int_equal(n, 3);
	assert_null(fgets(line, sizeof(line), f));
	fclose(f);
	ocf_reader_close(reader);
	close(fd);
}

static void
a_file_has_a_hidden_name_until_it_is_closed(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);
	char path[PATH_MAX], want[PATH_MAX];
	struct stat st;

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 7, 100), 0);
	assert_int_equal(find(DONE, NULL), 0);
	assert_int_equal(find(OPEN, path), 1);
	snprintf(want, sizeof(want), "%s/sluice.program/date=2026-11-21/host=" SAMPLE_HOST "/."
	    SAMPLE_AGENT "-7.avro.part", lake);
	assert_string_equal(path, want);
	assert_int_equal(counts(s)->written, 0);
	lake_appender_flush(s, SAMPLE_TIME);
	assert_int_equal(counts(s)->written, 1);
	assert_int_equal(count(path), 1);
	assert_int_equal(put(s, SAMPLE_TIME, 8, 100), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find(OPEN, NULL), 0);
	assert_int_equal(find(DONE, path), 1);
	assert_int_equal(count(path), 2);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644, 0);
}

static void
an_appender_without_records_leaves_no_file(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);

	(void)state;
	lake_appender_flush(s, SAMPLE_TIME);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find("*", NULL), 2);	/* . and .. */
}

static void
files_end_at_their_size(void **state)
{
	struct lake_appender_options o = options();
	char path[PATH_MAX];
	struct lake_appender *s;
	struct stat st;

	(void)state;
	o.rotate_bytes = 200 * 1024;
	s = open_appender(o, NULL);
	for (uint64_t seq = 0; seq < 100; seq++)
		assert_int_equal(put(s, SAMPLE_TIME, seq, 10000), 0);
	assert_int_equal(find(DONE, path), 4);	/* 1 MB of random bytes, a bit above 200 KiB each */
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 200 * 1024, 300 * 1024);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find(DONE, NULL), 5);
}

static void
files_end_at_their_age(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender *s;

	(void)state;
	o.rotate_us = 5000000;
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 10), 0);
	lake_appender_flush(s, SAMPLE_TIME);
	lake_appender_flush(s, SAMPLE_TIME + 4999999);
	assert_int_equal(find(DONE, NULL), 0);
	lake_appender_flush(s, SAMPLE_TIME + 5000000);
	assert_int_equal(find(DONE, NULL), 1);
	assert_int_equal(find(OPEN, NULL), 0);
	assert_int_equal(close_appender(s), 0);
}

static void
a_new_day_is_a_new_folder_and_a_late_record_keeps_its_place(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 0, 10), 0);
	assert_int_equal(put(s, SAMPLE_TIME + DAY_US, 1, 10), 0);
	assert_int_equal(find("sluice.program/date=2026-11-21/*/[!.]*", path), 1);
	assert_int_equal(count(path), 1);
	/* 00:00 of the 22nd is 13 h 25 min before: 23:59 of the 21st follows a record of 00:10 */
	assert_int_equal(put(s, SAMPLE_TIME - SAMPLE_TIME % DAY_US + DAY_US + 600000000, 2, 10), 0);
	assert_int_equal(put(s, SAMPLE_TIME - SAMPLE_TIME % DAY_US + DAY_US - 60000000, 3, 10), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find(DONE, NULL), 2);
	assert_int_equal(find("sluice.program/date=2026-11-22/*/[!.]*", path), 1);
	assert_int_equal(count(path), 3);
}

static void
a_clock_that_was_days_ahead_does_not_keep_its_file(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME + 30 * DAY_US, 0, 10), 0);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 10), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find("sluice.program/date=2026-12-21/*/*-0.avro", NULL), 1);
	assert_int_equal(find("sluice.program/date=2026-11-21/*/*-1.avro", NULL), 1);
}

/* Leaves an open file of blocks whole blocks, two records each, as a crash does. */
static void
crash(int blocks)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct lake_appender_options o = options();
		struct lake_appender *s = NULL;
		int r = lake_appender_new(&o, &s);

		r = r == 0 ? lake_appender_open(s) : r;
		for (int i = 0; i < blocks && r == 0; i++) {
			r = put(s, SAMPLE_TIME, (uint64_t)(2 * i), 20);
			if (r == 0)
				r = put(s, SAMPLE_TIME, (uint64_t)(2 * i + 1), 20);
			lake_appender_flush(s, SAMPLE_TIME);
		}
		_exit(r == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static size_t
read_file(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, data, size);

	assert_true(n >= 0 && (size_t)n < size);
	close(fd);
	return (size_t)n;
}

static void
write_file(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static void
a_crashed_file_cut_anywhere_is_repaired_to_its_last_whole_block(void **state)
{
	static char data[65536];
	char part[PATH_MAX], done[PATH_MAX];
	size_t len, ends[4], n_ends = 0;
	struct ocf_reader *reader = NULL;
	struct ocf_error err;
	struct ocf_block b;
	int fd;

	(void)state;
	crash(3);
	assert_int_equal(find(OPEN, part), 1);
	len = read_file(part, data, sizeof(data));
	fd = open(part, O_RDONLY);
	assert_int_equal(ocf_reader_open(fd, &reader, &err), 0);
	do {
		ends[n_ends++] = ocf_reader_offset(reader);
	} while (ocf_reader_next(reader, &b, &err) == 1);
	assert_int_equal(n_ends, 4);
	ocf_reader_close(reader);
	close(fd);

	for (size_t cut = 0; cut <= len; cut++) {
		struct lake_repair repair;
		size_t whole = 0;

		while (whole < 3 && cut >= ends[whole + 1])
			whole++;
		if (whole == 0 && cut > 300 && cut < ends[0] - 20)
			continue;	/* within the schema text: all alike */
		write_file(part, data, cut);
		assert_int_equal(lake_repair(lake, SAMPLE_HOST, &repair), 0);
		assert_int_equal(repair.failed, 0);
		assert_int_equal(find(OPEN, NULL), 0);
		assert_int_equal(repair.records, 2 * whole);
		assert_int_equal(repair.torn_bytes, whole > 0 ? cut - ends[whole] : cut);
		assert_int_equal(repair.files, whole > 0);
		assert_int_equal(repair.empty, whole == 0);
		if (whole > 0) {
			assert_int_equal(find(DONE, done), 1);
			assert_int_equal(count(done), 2 * whole);
			assert_int_equal(unlink(done), 0);
		}
	}
}

static void
a_crash_is_repaired_at_the_next_open(void **state)
{
	struct lake_repair repair;
	struct lake_appender *s;
	char path[PATH_MAX];

	(void)state;
	crash(2);
	s = open_appender(options(), &repair);
	assert_int_equal(repair.files, 1);
	assert_int_equal(repair.records, 4);
	assert_int_equal(repair.torn_bytes, 0);
	assert_int_equal(find(DONE, path), 1);
	/* the same agent continues, and even the same first seq overwrites nothing, also while the file is open */
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	lake_appender_flush(s, SAMPLE_TIME);
	assert_int_equal(find("*/*/*/." SAMPLE_AGENT "-0.2.avro.part", NULL), 1);
	assert_int_equal(find("*/*/*/." SAMPLE_AGENT "-0.avro.part", NULL), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find(DONE, NULL), 2);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-0.2.avro", path), 1);
	assert_int_equal(count(path), 1);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-0.avro", path), 1);
	assert_int_equal(count(path), 4);
}

static void
a_file_without_a_header_is_set_aside_and_named(void **state)
{
	struct lake_repair repair;
	char part[PATH_MAX + 8];
	struct stat st;

	(void)state;
	crash(1);
	assert_int_equal(find(OPEN, part), 1);
	write_file(part, "something else", 14);
	assert_int_equal(lake_repair(lake, SAMPLE_HOST, &repair), 0);
	assert_int_equal(repair.failed, 1);
	assert_int_equal(repair.error, -EBADMSG);
	assert_non_null(strstr(repair.failed_path, ".avro.part"));
	assert_int_equal(stat(part, &st), -1);
	strcat(part, ".bad");
	assert_int_equal(stat(part, &st), 0);
	assert_int_equal(st.st_size, 14);
	assert_int_equal(lake_repair(lake, SAMPLE_HOST, &repair), 0);
	assert_int_equal(repair.failed, 0);	/* once */
}

static void
another_hosts_file_is_left_alone(void **state)
{
	struct lake_repair repair;

	(void)state;
	crash(1);
	assert_int_equal(lake_repair(lake, "another", &repair), 0);
	assert_int_equal(repair.files + repair.empty + repair.live + repair.failed, 0);
	assert_int_equal(find(OPEN, NULL), 1);
}

static void
two_writers_do_not_repair_each_other(void **state)
{
	struct lake_appender_options o = options();
	struct lake_repair repair;
	struct lake_appender *first = open_appender(o, NULL), *second;
	char path[PATH_MAX];
	int fd;

	(void)state;
	assert_int_equal(put(first, SAMPLE_TIME, 0, 20), 0);
	lake_appender_flush(first, SAMPLE_TIME);
	o.agent_id = "11111111-2222-3333-4444-555555555555";
	second = open_appender(o, &repair);
	assert_int_equal(repair.live, 1);
	assert_int_equal(repair.files + repair.empty + repair.failed, 0);
	assert_int_equal(find(OPEN, path), 1);
	fd = open(path, O_RDONLY);
	assert_true(lake_is_open(fd));
	assert_int_equal(put(second, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(put(first, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(close_appender(first), 0);
	assert_false(lake_is_open(fd));
	close(fd);
	assert_int_equal(close_appender(second), 0);
	assert_int_equal(find(DONE, NULL), 2);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-0.avro", path), 1);
	assert_int_equal(count(path), 2);
}

static void
a_lake_that_was_removed_is_made_again(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	assert_int_equal(lake_appender_sync(s), 0);
	sample_remove(lake);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	assert_int_equal(find(OPEN, path), 1);
	assert_int_equal(put(s, SAMPLE_TIME, 2, 20), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-1.avro", path), 1);
	assert_int_equal(count(path), 2);
}

static void
what_was_removed_before_its_sync_is_lost_before_anything_follows(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	sample_remove(lake);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), -ENOENT);
	assert_int_equal(counts(s)->lost, 1);
	assert_int_equal(counts(s)->written, 1);	/* the second is still in the block */
	assert_int_equal(lake_appender_discard(s, TOPIC_PROGRAM), 1);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find(DONE, NULL), 0);
}

static void
a_record_is_synced_with_its_file_and_the_names_that_lead_there(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender *s;

	(void)state;
	o.syncs_folders = true;
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_sync(s), 0);
	assert_int_equal(counts(s)->synced, 0);		/* it is in no block */
	fault = (struct fault){ .calls = FAULT_SYNC };	/* fails nothing, and counts */
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	assert_int_equal(fault.count, 0);
	assert_int_equal(counts(s)->written, 1);
	assert_int_equal(counts(s)->synced, 0);
	assert_int_equal(lake_appender_sync(s), 0);
	assert_int_equal(fault.count, 5);		/* file, host=, date=, topic, lake */
	assert_int_equal(counts(s)->synced, 1);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	assert_int_equal(lake_appender_sync(s), 0);
	assert_int_equal(fault.count, 6);		/* the file */
	assert_int_equal(lake_appender_sync(s), 0);
	assert_int_equal(fault.count, 6);
	assert_int_equal(counts(s)->synced, 2);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(fault.count, 7);		/* the folder, for the final name */
	fault = (struct fault){ 0 };
}

static void
a_failed_sync_cuts_off_what_may_not_be_on_the_disk(void **state)
{
	struct lake_appender_options o = options();
	char path[PATH_MAX];
	struct lake_appender *s;

	(void)state;
	o.retry_us = 1;
	s = open_appender(o, NULL);
	for (uint64_t seq = 0; seq < 2; seq++) {
		assert_int_equal(put(s, SAMPLE_TIME, seq, 20), 0);
		assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
		if (seq == 0)
			assert_int_equal(lake_appender_sync(s), 0);
	}
	fault = (struct fault){ .calls = FAULT_SYNC, .times = 1, .error = EIO };
	assert_int_equal(lake_appender_sync(s), -EIO);
	fault = (struct fault){ 0 };
	assert_int_equal(counts(s)->synced, 1);
	assert_int_equal(counts(s)->lost, 1);
	assert_int_equal(find(OPEN, path), 1);
	assert_int_equal(count(path), 1);
	/* Put again, it comes into a new file. */
	usleep(1000);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-1.avro", path), 1);
	assert_int_equal(count(path), 1);
	/* The one whose sync failed is repaired at the next start. */
	assert_int_equal(close_appender(open_appender(o, NULL)), 0);
	assert_int_equal(find("*/*/*/" SAMPLE_AGENT "-0.avro", path), 1);
	assert_int_equal(count(path), 1);
}

static void
a_file_of_which_nothing_was_synced_is_removed_after_a_failed_sync(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	fault = (struct fault){ .calls = FAULT_SYNC, .times = 1, .error = EIO };
	assert_int_equal(lake_appender_sync(s), -EIO);
	fault = (struct fault){ 0 };
	assert_int_equal(counts(s)->lost, 1);
	assert_int_equal(find(OPEN, NULL), 0);
	assert_int_equal(close_appender(s), 0);
}

static void
a_folder_whose_sync_fails_has_lost_its_new_names(void **state)
{
	struct lake_appender *s = open_appender(options(), NULL);

	(void)state;
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	fault = (struct fault){ .calls = FAULT_SYNC, .skip = 1, .times = 1, .error = EIO };
	assert_int_equal(lake_appender_sync(s), -EIO);
	assert_int_equal(counts(s)->synced, 0);
	assert_int_equal(counts(s)->lost, 1);
	/* A file system that syncs no folder is none that fails. */
	lake_appender_end_pause(s);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	fault = (struct fault){ .calls = FAULT_SYNC, .skip = 1, .times = 1, .error = EINVAL };
	assert_int_equal(lake_appender_sync(s), 0);
	fault = (struct fault){ 0 };
	assert_int_equal(counts(s)->synced, 1);
	assert_int_equal(close_appender(s), 0);
}

static void
names_of_folders_whose_sync_failed_are_synced_with_the_next_file(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender *s;

	(void)state;
	o.syncs_folders = true;
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	fault = (struct fault){ .calls = FAULT_SYNC, .skip = 3, .times = 1, .error = EIO };	/* the topic's folder */
	assert_int_equal(lake_appender_sync(s), -EIO);
	assert_int_equal(counts(s)->lost, 1);
	lake_appender_end_pause(s);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	fault = (struct fault){ .calls = FAULT_SYNC };
	assert_int_equal(lake_appender_sync(s), 0);
	assert_int_equal(fault.count, 5);		/* file, host=, date=, topic, lake */
	fault = (struct fault){ 0 };
	assert_int_equal(counts(s)->synced, 1);
	assert_int_equal(close_appender(s), 0);
}

static void
a_block_that_was_written_in_part_is_written_again(void **state)
{
	struct lake_appender_options o = options();
	char path[PATH_MAX];
	struct lake_appender *s;

	(void)state;
	o.retry_us = 1;
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 1000), 0);
	/* A short write, and then no room. */
	fault = (struct fault){ .calls = FAULT_REWRITE | FAULT_WRITE, .times = 1, .then = ENOSPC };
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), -ENOSPC);
	fault = (struct fault){ 0 };
	assert_int_equal(counts(s)->written, 0);
	usleep(1000);
	assert_int_equal(lake_appender_flush(s, SAMPLE_TIME), 0);
	assert_int_equal(counts(s)->written, 1);
	assert_int_equal(find(OPEN, path), 1);
	assert_int_equal(count(path), 1);
	assert_int_equal(close_appender(s), 0);
}

static void
where_no_folder_can_be_made_put_says_so_and_tries_again(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender_counts final[LAKE_SERIES];
	struct lake_appender_stats stats;
	char blocker[PATH_MAX];
	struct lake_appender *s;
	uint64_t dropped;

	(void)state;
	o.retry_us = 500000;		/* more than a busy machine takes for the two that must fail */
	s = open_appender(o, NULL);
	snprintf(blocker, sizeof(blocker), "%s/sluice.program", lake);
	write_file(blocker, "x", 1);	/* a file where a folder should be: for root as well */
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), -ENOTDIR);
	assert_int_equal(unlink(blocker), 0);
	assert_int_equal(put(s, SAMPLE_TIME, 1, 20), -ENOTDIR);	/* it pauses */
	usleep(600000);
	assert_int_equal(put(s, SAMPLE_TIME, 2, 20), 0);
	assert_int_equal(lake_appender_close(s, final, &stats, &dropped), 0);
	assert_int_equal(final[TOPIC_PROGRAM].written, 1);
	assert_int_equal(final[TOPIC_PROGRAM].synced, 1);
	assert_int_equal(dropped, 0);
	assert_int_equal(stats.errors, 1);
	assert_int_equal(stats.files, 1);
}

static void
a_full_disk_loses_only_what_put_refused(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender_counts final[LAKE_SERIES];
	char small[PATH_MAX], filler[PATH_MAX], path[PATH_MAX];
	uint64_t seq = 0, taken = 0, dropped;
	struct lake_appender *s;
	int fd, r = 0;

	(void)state;
	snprintf(small, sizeof(small), "%s/disk", lake);
	assert_int_equal(mkdir(small, 0755), 0);
	if (geteuid() != 0 || mount("tmpfs", small, "tmpfs", 0, "size=512k") < 0) {
		print_message("skipped: mounting a small tmpfs needs root\n");
		skip();
	}
	o.lake = small;
	o.retry_us = 1;
	s = open_appender(o, NULL);
	for (; seq < 300 && r == 0; seq++) {
		r = put(s, SAMPLE_TIME, seq, 10000);
		taken += r == 0;
	}
	assert_int_equal(r, -ENOSPC);
	assert_in_range(taken, 30, 60);
	assert_int_equal(put(s, SAMPLE_TIME, seq++, 10000), -ENOSPC);
	/* room again: records accepted before are written first, then new ones */
	assert_int_equal(mount("tmpfs", small, "tmpfs", MS_REMOUNT, "size=8m"), 0);
	usleep(1000);
	assert_int_equal(put(s, SAMPLE_TIME, seq, 10000), 0);
	taken++;
	assert_int_equal(lake_appender_close(s, final, NULL, &dropped), 0);
	assert_int_equal(final[TOPIC_PROGRAM].synced, taken);
	assert_int_equal(dropped, 0);
	assert_int_equal(find("disk/" DONE, path), 1);
	assert_int_equal(count(path), taken);

	/* full until the end: close returns an error, and counts the dropped records */
	snprintf(filler, sizeof(filler), "%s/filler", small);
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, ++seq, 20), 0);
	taken = 1;
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(fallocate(fd, 0, 0, 4096), 0);
	for (off_t at = 4096; fallocate(fd, 0, at, 4096) == 0; at += 4096)
		;
	for (int i = 0; i < 12; i++)
		taken += put(s, SAMPLE_TIME, ++seq, 10000) == 0;
	r = lake_appender_close(s, final, NULL, &dropped);
	close(fd);
	assert_int_equal(umount(small), 0);
	assert_int_equal(r, -ENOSPC);
	assert_true(dropped > 0);
	assert_int_equal(taken, final[TOPIC_PROGRAM].synced + dropped);
}

static void
files_and_folders_go_to_the_owner(void **state)
{
	struct lake_appender_options o = options();
	char path[PATH_MAX], nested[PATH_MAX];
	struct stat st;
	struct lake_appender *s;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: giving files away needs root\n");
		skip();
	}
	snprintf(nested, sizeof(nested), "%s/new", lake);
	o.lake = nested;
	o.has_owner = true;
	o.owner = 12345;
	o.group = 12346;
	s = open_appender(o, NULL);
	assert_int_equal(put(s, SAMPLE_TIME, 0, 20), 0);
	assert_int_equal(close_appender(s), 0);
	assert_int_equal(find("new/" DONE, path), 1);
	while (strcmp(path, lake) != 0) {
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_gid, 12346);
		*strrchr(path, '/') = '\0';
	}
}

static void
an_unusable_lake_is_refused_at_open(void **state)
{
	struct lake_appender_options o = options();
	struct lake_appender *s = NULL;
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/file", lake);
	write_file(path, "x", 1);
	o.lake = path;
	assert_int_equal(lake_appender_new(&o, &s), 0);
	assert_int_equal(lake_appender_open(s), -ENOTDIR);
	/* It may become usable. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(lake_appender_open(s), 0);
	assert_string_equal(lake_appender_lake(s), path);
	assert_int_equal(close_appender(s), 0);
	o.lake = "/proc/nowhere/lake";
	assert_int_equal(lake_appender_new(&o, &s), 0);
	assert_true(lake_appender_open(s) < 0);
	assert_int_equal(close_appender(s), 0);
	s = NULL;
	o.lake = lake;
	o.host_id = "../x/y";
	assert_int_equal(lake_appender_new(&o, &s), -EINVAL);
	assert_null(s);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_file_has_a_hidden_name_until_it_is_closed),
		TEST(the_index_describes_each_block),
		TEST(an_appender_without_records_leaves_no_file),
		TEST(files_end_at_their_size),
		TEST(files_end_at_their_age),
		TEST(a_new_day_is_a_new_folder_and_a_late_record_keeps_its_place),
		TEST(a_clock_that_was_days_ahead_does_not_keep_its_file),
		TEST(a_crashed_file_cut_anywhere_is_repaired_to_its_last_whole_block),
		TEST(a_crash_is_repaired_at_the_next_open),
		TEST(a_file_without_a_header_is_set_aside_and_named),
		TEST(another_hosts_file_is_left_alone),
		TEST(two_writers_do_not_repair_each_other),
		TEST(a_lake_that_was_removed_is_made_again),
		TEST(what_was_removed_before_its_sync_is_lost_before_anything_follows),
		TEST(a_record_is_synced_with_its_file_and_the_names_that_lead_there),
		TEST(a_failed_sync_cuts_off_what_may_not_be_on_the_disk),
		TEST(a_file_of_which_nothing_was_synced_is_removed_after_a_failed_sync),
		TEST(a_folder_whose_sync_fails_has_lost_its_new_names),
		TEST(names_of_folders_whose_sync_failed_are_synced_with_the_next_file),
		TEST(a_block_that_was_written_in_part_is_written_again),
		TEST(where_no_folder_can_be_made_put_says_so_and_tries_again),
		TEST(a_full_disk_loses_only_what_put_refused),
		TEST(files_and_folders_go_to_the_owner),
		TEST(an_unusable_lake_is_refused_at_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
