/* SPDX-License-Identifier: Apache-2.0 */
/* lake: its size, the age of its files, and the floor of its disk. */
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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lake_kit.h"
#include "lake/folders.h"

#define DAY_US INT64_C(86400000000)
#define RECORD 10000
#define HOST_FILES "sluice.*/date=*/host=" SAMPLE_HOST "/"

static int
put(struct lake_appender *a, int64_t time_us, uint64_t seq)
{
	static char data[RECORD];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)rand();		/* nothing that compresses */
	return lake_appender_put(a, &(struct encoded_record){ TOPIC_PROGRAM, time_us, seq, "h:r", data, sizeof(data) });
}

/* Puts n records of a time, from a seq on, and closes their files. */
static void
fill(struct lake_appender *a, int64_t time_us, uint64_t seq, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(put(a, time_us, seq + i), 0);
	assert_int_equal(lake_appender_flush(a, time_us), 0);
}

/* Files that match, below the lake, and their bytes in *ret. */
static size_t
find(const char *pattern, uint64_t *ret)
{
	char full[PATH_MAX];
	size_t n = 0;
	struct stat st;
	glob_t g;

	snprintf(full, sizeof(full), "%s/%s", lake, pattern);
	if (ret != NULL)
		*ret = 0;
	if (glob(full, GLOB_PERIOD, NULL, &g) != 0)
		return 0;
	n = g.gl_pathc;
	for (size_t i = 0; i < n && ret != NULL; i++)
		*ret += stat(g.gl_pathv[i], &st) == 0 ? (uint64_t)st.st_size : 0;
	globfree(&g);
	return n;
}

/* Makes a file of a day. */
static void
make(const char *day, const char *host, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/sluice.program/date=%s/host=%s", lake, day, host);
	assert_int_equal(lake_make(path, &(struct lake_owner){ 0 }), 0);
	strcat(path, "/");
	strcat(path, name);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
}

static const struct lake_removed *
removed(const struct lake_appender *a, enum lake_removal reason)
{
	return &lake_appender_retention(a)->removed[reason];
}

static void
the_oldest_files_give_way_to_the_limit(void **state)
{
	struct lake_appender *a = lake_open((struct lake_limits){ .max_bytes = 4 * MIB });
	struct lake_appender_counts counts[LAKE_SERIES];
	struct lake_removed gone;
	uint64_t bytes, indices, left;

	(void)state;
	make("2026-11-01", "other", SAMPLE_AGENT "-1.avro");
	make("2026-11-01", SAMPLE_HOST, "notes.txt");
	make("2026-11-01", SAMPLE_HOST, SAMPLE_AGENT "-1.avro");	/* the name of a file, but not its contents */
	make("2026-11-01", SAMPLE_HOST, "." SAMPLE_AGENT "-2.avro.part");
	for (unsigned i = 0; i < 200; i++) {
		fill(a, SAMPLE_TIME, 10 * i, 10);
		find(HOST_FILES "*", &bytes);
		/* The limit holds but for one file that becomes complete between two looks. */
		assert_in_range(bytes, 0, 4 * MIB + 4 * MIB / 16 + 2 * 64 * 1024);
	}
	gone = *removed(a, LAKE_FULL);
	assert_true(gone.files > 30);
	assert_int_equal(removed(a, LAKE_TOO_OLD)->files + removed(a, LAKE_DISK_FLOOR)->files, 0);
	assert_int_equal(lake_appender_close(a, counts, NULL, NULL), 0);
	/* What is left is the newest, with as many indices as files. */
	left = 2000 - gone.records;
	assert_in_range(left * RECORD, 3 * MIB, 4 * MIB);
	assert_int_equal(find(HOST_FILES "[!.]*.avro", &bytes), find(HOST_FILES ".*.runs", &indices) + 1);
	/* Headers take less than a tenth. */
	assert_in_range(gone.bytes + bytes + indices, 2000 * RECORD, 2000 * RECORD / 100 * 110);
	assert_int_equal(find("sluice.program/date=2026-11-21/host=" SAMPLE_HOST "/" SAMPLE_AGENT "-0.avro", NULL), 0);
	/* Nothing else was touched. */
	assert_int_equal(find("sluice.program/date=2026-11-01/host=*/" SAMPLE_AGENT "-1.avro", NULL), 2);
	assert_int_equal(find("sluice.program/date=2026-11-01/host=" SAMPLE_HOST "/notes.txt", NULL), 1);
	assert_int_equal(find("sluice.program/date=2026-11-01/host=" SAMPLE_HOST "/.*.part", NULL), 1);
}

static void
days_that_are_too_old_go_with_their_folders(void **state)
{
	struct lake_appender *a = lake_open((struct lake_limits){ 0 });

	(void)state;
	fill(a, SAMPLE_TIME - 31 * DAY_US, 0, 30);
	fill(a, SAMPLE_TIME - 30 * DAY_US, 30, 10);	/* its day ended less than 30 days ago */
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
	make("2026-10-22", "other", SAMPLE_AGENT "-1.avro");
	assert_int_equal(find(HOST_FILES "[!.]*.avro", NULL), 2);
	a = lake_open((struct lake_limits){ .keep_us = 30 * DAY_US });
	fill(a, SAMPLE_TIME, 40, 1);
	assert_int_equal(removed(a, LAKE_TOO_OLD)->files, 1);
	assert_int_equal(removed(a, LAKE_TOO_OLD)->records, 30);
	assert_int_equal(find(HOST_FILES "[!.]*.avro", NULL), 1);
	assert_int_equal(find("sluice.program/date=2026-10-21", NULL), 0);
	assert_int_equal(find("sluice.program/date=2026-10-22/host=other/*.avro", NULL), 1);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
nothing_is_removed_while_old_days_are_compacted(void **state)
{
	struct lake_appender *a = lake_open((struct lake_limits){ 0 });
	char path[PATH_MAX];
	int fd;

	(void)state;
	fill(a, SAMPLE_TIME - 100 * DAY_US, 0, 10);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
	snprintf(path, sizeof(path), "%s/compact", lake);
	assert_int_equal(mkdir(path, 0755), 0);
	strcat(path, "/.lock");
	fd = open(path, O_RDWR | O_CREAT, 0644);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	a = lake_open((struct lake_limits){ .keep_us = DAY_US });
	fill(a, SAMPLE_TIME, 10, 1);
	assert_int_equal(removed(a, LAKE_TOO_OLD)->files, 0);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
	close(fd);
	a = lake_open((struct lake_limits){ .keep_us = DAY_US });
	fill(a, SAMPLE_TIME, 11, 1);
	assert_int_equal(removed(a, LAKE_TOO_OLD)->files, 1);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
old_files_give_way_before_the_floor_and_then_nothing_is_written(void **state)
{
	const uint64_t floor = 32 * MIB / 20;
	struct lake_appender_counts counts[LAKE_SERIES];
	struct lake_appender *a;
	uint64_t seq = 0, left;
	int r = 0;

	(void)state;
	full_disk.total = 32 * MIB;
	a = lake_open((struct lake_limits){ .max_bytes = 1024 * MIB, .free_min = 1024 * MIB });
	for (; seq < 1000; seq += 10)
		fill(a, SAMPLE_TIME, seq, 10);
	assert_int_equal(removed(a, LAKE_DISK_FLOOR)->files, 0);
	assert_int_equal(lake_appender_retention(a)->floor_bytes, floor);
	/* Others take the disk, little by little. */
	while (r == 0 && full_disk.others < full_disk.total) {
		full_disk.others += MIB / 4;
		r = put(a, SAMPLE_TIME, seq++);
		if (r == 0)
			r = lake_appender_flush(a, SAMPLE_TIME);
		assert_true(r < 0 || full_disk_free() >= floor);
	}
	assert_int_equal(r, -ENOSPC);
	assert_true(lake_appender_retention(a)->is_at_floor);
	assert_true(removed(a, LAKE_DISK_FLOOR)->files > 0);
	/* The newest tenth of the disk stays. */
	assert_in_range(lake_appender_retention(a)->bytes, 2 * MIB, 4 * MIB);
	/* Writing continues by itself once there is room. */
	full_disk.others = 0;
	usleep(2);
	assert_int_equal(lake_appender_flush(a, SAMPLE_TIME), 0);
	assert_false(lake_appender_retention(a)->is_at_floor);
	left = seq - removed(a, LAKE_DISK_FLOOR)->records;
	assert_int_equal(lake_appender_close(a, counts, NULL, NULL), 0);
	assert_int_equal(counts[TOPIC_PROGRAM].written, seq);
	assert_in_range(left, 200, 500);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lake_setup, lake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_oldest_files_give_way_to_the_limit),
		T(days_that_are_too_old_go_with_their_folders),
		T(nothing_is_removed_while_old_days_are_compacted),
		T(old_files_give_way_before_the_floor_and_then_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
