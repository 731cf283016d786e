/* SPDX-License-Identifier: Apache-2.0 */
/* lake: a user who floods it makes its own records leave it, and none of another's. */
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lake_kit.h"
#include "codec/ocf.h"
#include "lake/folders.h"
#include "lake/repair.h"

#define RECORD 10000
#define HEADERS (128 * 1024)	/* more than those of some files: each has the schema */
#define SHARES ".shares-" SAMPLE_HOST
#define SYSTEM 0
#define LIGHT 1001
#define HEAVY 1002
#define HEAVY_TOO 1003

static uint64_t next_seq;
static uint64_t over[LAKE_OVER_SIZE];

/* What each user has in the lake. */
struct found {
	unsigned records;
	uint64_t last;		/* seq */
};

static int
setup(void **state)
{
	next_seq = 0;
	return lake_setup(state);
}

static struct lake_appender *
open_with(struct lake_limits limits)
{
	struct lake_appender *a = lake_open(limits);

	lake_appender_over(a, over);
	return a;
}

static struct lake_appender *
open_appender(void)
{
	return open_with((struct lake_limits){ .max_bytes = 4 * MIB });
}

static bool
is_over(uint32_t uid)
{
	const int i = user_bytes_index(&(struct opt_u64){ uid, uid != SYSTEM });

	return i >= 0 && (over[i / 64] & UINT64_C(1) << i % 64) != 0;
}

/* Puts n records of a user, as the writer does, with a flush after every tenth. */
static void
put(struct lake_appender *a, uint32_t uid, unsigned n)
{
	static char data[RECORD];

	for (unsigned i = 0; i < n; i++) {
		struct encoded_record r = { .topic = TOPIC_PROGRAM, .time_us = SAMPLE_TIME, .seq = next_seq++,
			.key = "h:r", .data = data, .len = sizeof(data), .user = { uid, uid != SYSTEM },
			.is_over = is_over(uid) };

		for (size_t k = 0; k < sizeof(data); k++)
			data[k] = (char)rand();		/* nothing that compresses */
		memcpy(data, &uid, sizeof(uid));
		memcpy(data + 8, &r.seq, sizeof(r.seq));
		assert_int_equal(lake_appender_put(a, &r), 0);
		if (i % 10 < 9 && i + 1 < n)
			continue;
		assert_int_equal(lake_appender_flush(a, SAMPLE_TIME), 0);
		lake_appender_over(a, over);
	}
}

static void
add_file(const char *path, uint32_t uid, struct found *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ocf_reader *reader = NULL;
	struct ocf_error error;
	struct ocf_block block;

	assert_true(fd >= 0);
	assert_int_equal(ocf_reader_open(fd, &reader, &error), 0);
	while (ocf_reader_next(reader, &block, &error) == 1) {
		for (size_t at = 0; at < block.len; at += RECORD) {
			uint32_t whose;
			uint64_t seq;

			memcpy(&whose, block.data + at, sizeof(whose));
			memcpy(&seq, block.data + at + 8, sizeof(seq));
			if (whose != uid)
				continue;
			ret->records++;
			ret->last = seq > ret->last ? seq : ret->last;
		}
	}
	ocf_reader_close(reader);
	close(fd);
}

/* Returns what a user has in files whose names match. */
static struct found
find_in(const char *names, uint32_t uid)
{
	struct found found = { 0 };
	char pattern[PATH_MAX];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/sluice.*/date=*/host=*/%s", lake, names);
	if (glob(pattern, GLOB_PERIOD, NULL, &g) != 0)
		return found;
	for (size_t i = 0; i < g.gl_pathc; i++)
		add_file(g.gl_pathv[i], uid, &found);
	globfree(&g);
	return found;
}

static struct found
find(uint32_t uid)
{
	return find_in("*.avro*", uid);
}

static const struct lake_retention_stats *
stats(const struct lake_appender *a)
{
	return lake_appender_retention(a);
}

static void
one_who_floods_it_loses_its_own_records(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, SYSTEM, 50);
	put(a, LIGHT, 20);
	put(a, HEAVY, 3000);
	assert_int_equal(find(SYSTEM).records, 50);
	assert_int_equal(find(LIGHT).records, 20);
	put(a, LIGHT, 1);
	put(a, SYSTEM, 1);
	put(a, HEAVY, 1000);
	assert_int_equal(find(SYSTEM).records, 51);
	assert_int_equal(find(LIGHT).records, 21);
	/* Its newest are there, in files of their own, and those that are gone are counted as such. */
	assert_int_equal(find(HEAVY).last, next_seq - 1);
	assert_in_range(find(HEAVY).records * RECORD, 2 * MIB, 4 * MIB);
	assert_int_equal(find_in("*.over.avro*", LIGHT).records, 0);
	assert_in_range(find_in("*[0-9].avro*", HEAVY).records * RECORD, MIB / 4, MIB / 2);
	assert_int_equal(stats(a)->removed[LAKE_FULL].files, 0);
	assert_int_equal(stats(a)->removed[LAKE_OVER_SHARE].records + find(HEAVY).records, 4000);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
so_it_is_after_a_restart(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, LIGHT, 20);
	put(a, HEAVY, 500);
	for (int i = 0; i < 5; i++) {
		unsigned within = find_in("*[0-9].avro*", HEAVY).records;

		assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
		a = open_appender();
		assert_true(is_over(HEAVY));
		assert_false(is_over(LIGHT));
		put(a, HEAVY, 500);
		assert_int_equal(find_in("*[0-9].avro*", HEAVY).records, within);
	}
	assert_int_equal(find(LIGHT).records, 20);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
two_who_flood_it_share_what_others_leave(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, SYSTEM, 50);
	put(a, LIGHT, 20);
	for (int i = 0; i < 100; i++) {
		put(a, HEAVY, 20);
		put(a, HEAVY_TOO, 20);
	}
	assert_int_equal(find(SYSTEM).records, 50);
	assert_int_equal(find(LIGHT).records, 20);
	assert_in_range(find(HEAVY).records * RECORD, MIB, 2 * MIB);
	assert_in_range(find(HEAVY_TOO).records * RECORD, MIB, 2 * MIB);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
one_alone_has_all_of_it(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, HEAVY, 2000);
	assert_in_range(find(HEAVY).records * RECORD, 3 * MIB + MIB / 2, 4 * MIB + MIB / 2);
	assert_int_equal(find(HEAVY).last, next_seq - 1);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
users_of_the_system_have_no_share(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, SYSTEM, 2000);
	assert_int_equal(find_in("*.over.avro*", SYSTEM).records, 0);
	assert_true(stats(a)->removed[LAKE_FULL].files > 0);
	assert_int_equal(stats(a)->removed[LAKE_OVER_SHARE].files, 0);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

/* As much as half of the lake is kept for all others: beyond that, the oldest goes first, of any user. */
static void
others_have_half_of_it_at_least(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, SYSTEM, 350);
	put(a, HEAVY, 3000);
	assert_in_range(find(SYSTEM).records * RECORD, MIB + MIB / 4, 2 * MIB);
	assert_true(stats(a)->removed[LAKE_FULL].files > 0);
	assert_in_range(find(HEAVY).records * RECORD, MIB + MIB / 2, 3 * MIB);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
a_user_has_a_share_again_once_its_records_have_left(void **state)
{
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, HEAVY, 100);
	assert_true(is_over(HEAVY));
	put(a, SYSTEM, 2000);
	assert_false(is_over(HEAVY));
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
a_disk_that_others_fill_is_shared_as_well(void **state)
{
	struct lake_appender *a;

	(void)state;
	full_disk.total = 2048 * MIB;
	/* The floor and its margins (base/space.h). */
	full_disk.others = 2048 * MIB - 100 * MIB - 256 * MIB - 4 * MIB;
	a = open_with((struct lake_limits){ .max_bytes = 20 * MIB, .free_min = 100 * MIB });
	put(a, LIGHT, 20);
	assert_false(is_over(LIGHT));
	put(a, HEAVY, 3000);
	assert_true(is_over(HEAVY));
	assert_int_equal(find(LIGHT).records, 20);
	assert_true(stats(a)->removed[LAKE_OVER_SHARE].files > 0);
	assert_int_equal(stats(a)->removed[LAKE_FULL].files + stats(a)->removed[LAKE_DISK_FLOOR].files, 0);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

/* Replaces the counts. */
static void
write_shares(const char *text)
{
	char path[PATH_MAX];
	FILE *to;

	snprintf(path, sizeof(path), "%s/" SHARES, lake);
	to = fopen(path, "w");
	assert_non_null(to);
	fputs(text, to);
	fclose(to);
}

static void
damaged_counts_begin_anew(void **state)
{
	static const char *const damaged[] = { "", "end ", "end 0\n", "sluice-shares 1 5\n", "sluice-shares 1 5\nend 00000000\n",
		"sluice-shares 2 5\n1 1\nend 12345678\n" };
	struct lake_appender *a = open_appender();

	(void)state;
	put(a, LIGHT, 20);
	put(a, HEAVY, 500);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
		write_shares(damaged[i]);
		a = open_appender();
		assert_false(is_over(HEAVY));
		put(a, HEAVY, 100);
		assert_true(is_over(HEAVY));
		if (i == 0)		/* later, it has had so many shares that this is most of half the lake */
			assert_int_equal(find(LIGHT).records, 20);
	}
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
counts_that_are_not_damaged_come_back(void **state)
{
	static struct lake_shares s, back;
	const struct lake_owner owner = { 0 };

	(void)state;
	s.users.of[0] = INT64_MAX;
	s.users.of[USERS_APART - 1] = 1;
	s.bytes = 12345;
	s.is_changed = true;
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	assert_false(s.is_changed);
	lake_shares_read(&back, lake, SAMPLE_HOST, &owner);
	assert_memory_equal(&back, &s, sizeof(s));
	/* All users there can be fit in. */
	for (size_t i = 0; i < USERS_APART; i++)
		s.users.of[i] = INT64_MAX - i;
	s.is_changed = true;
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	memset(&back, 0, sizeof(back));
	lake_shares_read(&back, lake, SAMPLE_HOST, &owner);
	assert_memory_equal(&back, &s, sizeof(s));
	/* None that could overflow, and none of another user. */
	s.users.of[1] = (uint64_t)INT64_MAX + 1;
	s.is_changed = true;
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	lake_shares_read(&back, lake, SAMPLE_HOST, &owner);
	assert_int_equal(back.users.of[0] + back.bytes, 0);
	s.users.of[1] = 1;
	s.is_changed = true;
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	lake_shares_read(&back, lake, SAMPLE_HOST, &(struct lake_owner){ true, geteuid() + 1, getegid() });
	assert_int_equal(back.users.of[0] + back.bytes, 0);
}

static void
counts_that_could_not_be_written_are_written_later(void **state)
{
	static struct lake_shares s = { .is_changed = true };
	const struct lake_owner owner = { 0 };
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/" SHARES, lake);
	assert_int_equal(mkdir(path, 0755), 0);		/* no file takes its name */
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	assert_true(s.is_changed);
	assert_int_equal(rmdir(path), 0);
	lake_shares_write(&s, lake, SAMPLE_HOST, &owner);
	assert_false(s.is_changed);
	assert_int_equal(access(path, F_OK), 0);
}

static void
what_a_killed_agent_leaves_is_still_beyond_its_share(void **state)
{
	static struct lake_shares s = { .is_changed = true };
	struct lake_repair repair;
	struct lake_appender *a;
	unsigned within;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		put(open_appender(), HEAVY, 40);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	within = find_in("*[0-9].avro*", HEAVY).records;
	assert_in_range(within, 26, 35);
	/* As it does once a minute. */
	s.bytes = s.users.of[HEAVY] = within * RECORD;
	lake_shares_write(&s, lake, SAMPLE_HOST, &(struct lake_owner){ 0 });
	a = open_appender();
	assert_true(is_over(HEAVY));
	assert_in_range(stats(a)->bytes, 40 * RECORD, 40 * RECORD + HEADERS);
	assert_int_equal(lake_repair(lake, SAMPLE_HOST, &repair), 0);
	assert_true(repair.files > 0);
	assert_int_equal(find_in("[!.]*.avro", HEAVY).records, 40);
	assert_int_equal(find_in("[!.]*.over.avro", HEAVY).records, 40 - within);
	put(a, LIGHT, 1);
	assert_true(is_over(HEAVY));
	assert_in_range(stats(a)->over_bytes, (40 - within) * RECORD, (40 - within) * RECORD + HEADERS);
	assert_int_equal(lake_appender_close(a, NULL, NULL, NULL), 0);
}

static void
names_tell_whose_records_are_beyond_their_shares(void **state)
{
	(void)state;
	assert_true(lake_is_complete(SAMPLE_AGENT "-7.over.avro"));
	assert_true(lake_is_complete(SAMPLE_AGENT "-7.over.2.avro"));
	assert_false(lake_is_complete(SAMPLE_AGENT "-7.2.over.avro"));
	assert_false(lake_is_complete(SAMPLE_AGENT "-7.over.avro.part"));
	assert_true(lake_is_over(SAMPLE_AGENT "-7.over.avro"));
	assert_true(lake_is_over(SAMPLE_AGENT "-7.over.2.avro"));
	assert_false(lake_is_over(SAMPLE_AGENT "-7.avro"));
	assert_false(lake_is_over(SAMPLE_AGENT "-7.2.avro"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, lake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_who_floods_it_loses_its_own_records),
		T(so_it_is_after_a_restart),
		T(two_who_flood_it_share_what_others_leave),
		T(one_alone_has_all_of_it),
		T(users_of_the_system_have_no_share),
		T(others_have_half_of_it_at_least),
		T(a_user_has_a_share_again_once_its_records_have_left),
		T(a_disk_that_others_fill_is_shared_as_well),
		T(damaged_counts_begin_anew),
		T(counts_that_are_not_damaged_come_back),
		T(counts_that_could_not_be_written_are_written_later),
		T(what_a_killed_agent_leaves_is_still_beyond_its_share),
		T(names_tell_whose_records_are_beyond_their_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
