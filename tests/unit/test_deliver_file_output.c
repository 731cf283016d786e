/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "samples.h"
#include "base/clock.h"
#include "codec/encode.h"
#include "deliver/file_output.h"
#include "codec/ocf.h"

/* The next calls of fdatasync(2) that fail; the linker redirects it here (CMakeLists.txt). */
static atomic_int failing;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int
__wrap_fdatasync(int fd)
{
	if (failing > 0) {
		failing--;
		errno = EIO;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* A call of the writer's thread begins whenever its state is read; so is lake_writer_state() redirected, too. */
static bool is_beginning;

void __real_lake_writer_state(struct lake_writer *w, struct lake_writer_state *ret);
void __wrap_lake_writer_state(struct lake_writer *w, struct lake_writer_state *ret);

void
__wrap_lake_writer_state(struct lake_writer *w, struct lake_writer_state *ret)
{
	__real_lake_writer_state(w, ret);
	if (is_beginning) {
		ret->waits_for = "writing";
		ret->waits_since_ns = clock_ns(CLOCK_MONOTONIC);
	}
}

#define OLD_SCHEMA "{\"type\": \"string\", \"doc\": \"as it was\"}"

static char lake[64];
static struct event_base *base;
static struct output *output;
static uint64_t reported[1000];	/* ids, in order; those that failed with the top bit */
static size_t n_reported;
static unsigned ready;
static uint64_t queue_bytes;	/* of the output that is opened next, as the next two */
static struct lake_limits limits;
static struct opt_u64 user;	/* of the record that is put next */

#define FAILED (UINT64_C(1) << 63)

static void
on_delivered(enum topic topic, uint64_t id, void *arg)
{
	(void)arg;
	assert_true(topic == TOPIC_PROGRAM || topic == TOPIC_USAGE);
	reported[n_reported++] = id;
}

static void
on_failed(const struct spool_record *r, enum output_failure failure, const char *reason,
    const char *detail, void *arg)
{
	(void)arg;
	(void)detail;
	assert_int_equal(failure, OUTPUT_AGAIN);
	assert_non_null(reason);
	reported[n_reported++] = r->id | FAILED;
}

static void
on_ready(void *arg)
{
	(void)arg;
	ready++;
}

static const char *
schema_text(void *arg, uint64_t fingerprint)
{
	(void)arg;
	errno = fingerprint == 4 ? EMFILE : ENOENT;
	return fingerprint == 1 ? encode_schema(TOPIC_PROGRAM, NULL) : fingerprint == 2 ? OLD_SCHEMA : NULL;
}

static int
open_output(const char *where)
{
	struct file_output_options o = {
		.writer = { .appender = { .lake = where, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT,
		    .retry_us = 100000, .limits = limits }, .queue_bytes = queue_bytes },
		.schema = schema_text,
	};
	struct output_events events = { on_delivered, on_failed, on_ready, NULL };

	return file_output_open(base, &o, &events, &output);
}

static int
setup(void **state)
{
	(void)state;
	n_reported = ready = 0;
	failing = 0;
	limits = (struct lake_limits){ 0 };
	user = (struct opt_u64){ 0 };
	output = NULL;
	base = event_base_new();
	return sample_folder(lake) == NULL || open_output(lake) < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (output != NULL)
		output->ops->close(output);
	event_base_free(base);
	umount2(lake, MNT_DETACH);
	sample_remove(lake);
	return 0;
}

static int
put_with(uint64_t id, uint64_t schema, size_t len, const char **reason)
{
	static char data[100000];
	struct spool_record r = { .id = id, .topic = TOPIC_PROGRAM, .schema = schema, .seq = id,
	    .time_us = SAMPLE_TIME, .user = user, .key = "k", .data = data, .len = len };

	for (size_t i = 0; i < len; i++)
		data[i] = (char)rand();
	return output->ops->put(output, &r, reason);
}

static int
put(uint64_t id, size_t len)
{
	const char *reason = NULL;

	return put_with(id, 1, len, &reason);
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Turns the loop until so many ids are reported; the thread of the writer takes its time. */
static void
wait_reported(size_t n)
{
	for (int i = 0; i < 30000 && n_reported < n; i++) {
		turn();
		usleep(1000);
	}
	assert_int_equal(n_reported, n);
}

static struct output_status
status(void)
{
	struct output_status s;

	output->ops->status(output, &s);
	return s;
}

static size_t
files(glob_t *g)
{
	char pattern[PATH_MAX];

	snprintf(pattern, sizeof(pattern), "%s/sluice.program/date=*/host=*/[!.]*.avro", lake);
	return glob(pattern, 0, NULL, g) == 0 ? g->gl_pathc : 0;
}

static void
a_record_is_delivered_once_it_is_on_the_disk(void **state)
{
	(void)state;
	for (uint64_t id = 10; id < 13; id++)
		assert_int_equal(put(id, 100), 0);
	turn();
	assert_int_equal(n_reported, 0);
	assert_int_equal(status().in_flight, 3);
	output->ops->tick(output, SAMPLE_TIME);
	wait_reported(3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(reported[i], 10 + i);
	assert_int_equal(status().in_flight, 0);
	output->ops->tick(output, SAMPLE_TIME);
	assert_int_equal(status().state, OUTPUT_UP);
}

static void
closing_tells_what_it_writes(void **state)
{
	(void)state;
	assert_int_equal(put(5, 100), 0);
	output->ops->close(output);
	output = NULL;
	assert_int_equal(n_reported, 1);
	assert_int_equal(reported[0], 5);
}

static void
a_full_disk_delays_and_loses_nothing(void **state)
{
	uint64_t id = 0;
	int tries;

	(void)state;
	if (geteuid() != 0)
		skip();
	output->ops->close(output);
	output = NULL;
	assert_int_equal(mount("tmpfs", lake, "tmpfs", 0, "size=256k"), 0);
	assert_int_equal(open_output(lake), 0);
	for (; id < 900; id++)
		assert_int_equal(put(id, 1000), 0);
	for (tries = 0; tries < 5000 && status().state != OUTPUT_DOWN; tries++) {
		output->ops->tick(output, SAMPLE_TIME + tries * 1000000);
		turn();
		usleep(2000);
	}
	assert_int_equal(status().state, OUTPUT_DOWN);
	assert_non_null(strstr(status().error, "No space left on device"));
	assert_true(n_reported < id);
	assert_int_equal(mount("tmpfs", lake, "tmpfs", MS_REMOUNT, "size=4m"), 0);
	for (tries = 0; tries < 5000 && n_reported < id; tries++) {
		usleep(2000);
		output->ops->tick(output, SAMPLE_TIME + tries * 1000000);
		turn();
	}
	assert_int_equal(n_reported, id);
	for (uint64_t i = 0; i < id; i++)
		assert_int_equal(reported[i], i);
	output->ops->tick(output, SAMPLE_TIME);
	assert_int_equal(status().state, OUTPUT_UP);
	assert_int_equal(put(id, 1000), 0);
}

static void
a_failed_sync_is_down_until_one_succeeds(void **state)
{
	int64_t now = SAMPLE_TIME;

	(void)state;
	assert_int_equal(put(1, 100), 0);
	output->ops->tick(output, now);
	wait_reported(1);
	output->ops->tick(output, now);
	assert_int_equal(status().state, OUTPUT_UP);
	assert_int_equal(put(2, 100), 0);
	failing = 1;
	output->ops->tick(output, now += 1000000);
	wait_reported(2);
	assert_int_equal(reported[1], 2 | FAILED);
	assert_int_equal(status().state, OUTPUT_DOWN);
	assert_non_null(strstr(status().error, "Input/output error"));
	/* As delivery does with all that is not on the disk. */
	output->ops->recall(output);
	for (int i = 0; i < 30000 && put(2, 100) != 0; i++, usleep(1000)) {
		output->ops->tick(output, now);
		turn();
		assert_int_equal(status().state, OUTPUT_DOWN);
	}
	output->ops->tick(output, now += 1000000);
	for (int i = 0; i < 30000 && n_reported < 3; i++, usleep(1000)) {
		output->ops->tick(output, now += 1000000);
		turn();
	}
	assert_int_equal(n_reported, 3);
	assert_int_equal(reported[2], 2);
	output->ops->tick(output, now);
	assert_int_equal(status().state, OUTPUT_UP);
}

static void
a_full_queue_says_when_there_is_room(void **state)
{
	uint64_t id = 0;

	(void)state;
	output->ops->close(output);
	queue_bytes = 4096;
	assert_int_equal(open_output(lake), 0);
	queue_bytes = 0;
	while (put(id, 500) == 0)
		assert_true(++id < 10);
	assert_true(id >= 3);		/* in half of it, and what the writer has taken meanwhile */
	output->ops->flush(output);	/* a tick would have the output tried again, too */
	for (int i = 0; i < 30000; i++) {
		unsigned before = ready;

		turn();
		if (ready > before && put(id, 500) == 0)
			break;
		usleep(1000);
	}
	assert_true(ready > 0);
	wait_reported((unsigned)id);
	assert_int_equal(status().in_flight, 1);
}

static void
what_is_recalled_is_not_written(void **state)
{
	glob_t g;

	(void)state;
	assert_int_equal(put(1, 100), 0);
	assert_int_equal(put(2, 100), 0);
	output->ops->recall(output);
	assert_int_equal(put(3, 100), -EAGAIN);
	wait_reported(2);
	assert_int_equal(reported[0], 1 | FAILED);
	assert_int_equal(reported[1], 2 | FAILED);
	assert_true(ready >= 1);
	output->ops->close(output);
	output = NULL;
	assert_int_equal(n_reported, 2);
	assert_int_equal(files(&g), 0);
}

static void
records_of_an_older_schema_get_a_file_of_theirs(void **state)
{
	const char *reason = NULL;
	bool has_old = false, has_new = false;
	glob_t g;

	(void)state;
	assert_int_equal(put_with(1, 2, 10, &reason), 0);
	assert_int_equal(put_with(2, 2, 10, &reason), 0);
	assert_int_equal(put_with(3, 1, 10, &reason), 0);
	assert_int_equal(put_with(4, 4, 10, &reason), -EAGAIN);	/* it cannot be read now */
	assert_int_equal(put_with(4, 9, 10, &reason), -ENOKEY);
	assert_string_equal(reason, "schema_unknown");
	output->ops->close(output);
	output = NULL;
	assert_int_equal(files(&g), 2);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		int fd = open(g.gl_pathv[i], O_RDONLY);
		struct ocf_reader *r = NULL;
		struct ocf_block b;
		struct ocf_error e;
		const char *text;
		size_t len;

		assert_int_equal(ocf_reader_open(fd, &r, &e), 0);
		text = ocf_reader_schema(r, &len);
		assert_int_equal(ocf_reader_next(r, &b, &e), 1);
		if (len == strlen(OLD_SCHEMA) && memcmp(text, OLD_SCHEMA, len) == 0) {
			has_old = true;
			assert_int_equal(b.count, 2);
		} else {
			has_new = true;
			assert_int_equal(b.count, 1);
		}
		ocf_reader_close(r);
		close(fd);
	}
	assert_true(has_old && has_new);
	globfree(&g);
}

/* Puts records of a user, with odd ids, and as many of no user, with even ones. */
static void
put_pairs(uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		user = (struct opt_u64){ 1001, true };
		assert_int_equal(put(first + 2 * i + 1, 10000), 0);
		user = (struct opt_u64){ 0 };
		assert_int_equal(put(first + 2 * i, 10000), 0);
	}
}

static bool
has_open(const char *name)
{
	char pattern[PATH_MAX];
	glob_t g;
	bool is_there;

	snprintf(pattern, sizeof(pattern), "%s/sluice.program/date=*/host=*/%s", lake, name);
	is_there = glob(pattern, GLOB_PERIOD, NULL, &g) == 0;
	if (is_there)
		globfree(&g);
	return is_there;
}

static void
what_is_beyond_a_share_is_delivered_for_itself(void **state)
{
	bool is_again[2] = { false, false };
	unsigned n[2] = { 0, 0 };

	(void)state;
	output->ops->close(output);
	limits.max_bytes = 1 << 20;		/* 64 KiB are a share */
	assert_int_equal(open_output(lake), 0);
	put_pairs(0, 6);
	output->ops->tick(output, SAMPLE_TIME);
	wait_reported(12);
	n_reported = 0;
	put_pairs(12, 1);			/* with which it has its share, once that is written */
	output->ops->tick(output, SAMPLE_TIME + 1000000);
	wait_reported(2);
	assert_false(has_open(".*.over.avro.part"));
	n_reported = 0;
	put_pairs(16, 8);
	output->ops->tick(output, SAMPLE_TIME + 2000000);
	wait_reported(16);
	assert_true(has_open(".*.over.avro.part"));
	/* A sync that fails gives those back that it was for, ... */
	n_reported = 0;
	failing = 1;
	put_pairs(32, 3);
	output->ops->tick(output, SAMPLE_TIME + 3000000);
	wait_reported(6);
	for (size_t i = 0; i < n_reported; i++) {
		const uint64_t id = reported[i] & ~FAILED;

		assert_in_range(id, 32, 37);
		if (n[id % 2]++ > 0)
			assert_true(is_again[id % 2] == ((reported[i] & FAILED) != 0));
		is_again[id % 2] = (reported[i] & FAILED) != 0;
	}
	/* ... all of a series or none, and not the others, whose sync succeeded. */
	assert_int_equal(n[0], 3);
	assert_int_equal(n[1], 3);
	assert_true(is_again[0] != is_again[1]);
}

static void
a_call_that_begins_just_now_does_not_hang(void **state)
{
	(void)state;
	assert_int_equal(put(1, 100), 0);
	output->ops->tick(output, SAMPLE_TIME);
	wait_reported(1);
	is_beginning = true;
	output->ops->tick(output, SAMPLE_TIME);
	is_beginning = false;
	assert_int_equal(status().state, OUTPUT_UP);
	assert_string_equal(status().error, "");
}

static void
a_lake_that_cannot_be_made_is_an_error(void **state)
{
	struct output *before = output;

	(void)state;
	assert_int_equal(open_output("/proc/no/lake"), -ENOENT);
	assert_ptr_equal(output, before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_is_delivered_once_it_is_on_the_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failed_sync_is_down_until_one_succeeds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_queue_says_when_there_is_room, setup, teardown),
		cmocka_unit_test_setup_teardown(closing_tells_what_it_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_delays_and_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_recalled_is_not_written, setup, teardown),
		cmocka_unit_test_setup_teardown(records_of_an_older_schema_get_a_file_of_theirs, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_beyond_a_share_is_delivered_for_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_begins_just_now_does_not_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lake_that_cannot_be_made_is_an_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
