/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "samples.h"
#include "stream/sink.h"

/* A sink that remembers the last put. */
struct fake {
	struct sink sink;
	int result;
	unsigned puts, ticks, closes;
	enum topic topic;
	int64_t time_us;
	uint64_t seq;
	char key[256];
	size_t len;
};

static int
on_put(struct sink *s, enum topic topic, int64_t time_us, uint64_t seq, const char *key,
    const void *data, size_t len)
{
	struct fake *f = (struct fake *)s;

	(void)data;
	f->puts++;
	f->topic = topic;
	f->time_us = time_us;
	f->seq = seq;
	f->len = len;
	strncpy(f->key, key, sizeof(f->key) - 1);
	return f->result;
}

static void
on_tick(struct sink *s, int64_t now_us)
{
	(void)now_us;
	((struct fake *)s)->ticks++;
}

static uint64_t
on_delivered(const struct sink *s)
{
	return ((const struct fake *)s)->puts;
}

static int
on_close(struct sink *s)
{
	((struct fake *)s)->closes++;
	return ((struct fake *)s)->result;
}

static const struct sink_ops ops = { on_put, on_tick, on_delivered, on_close };

static struct stream *
open_on(struct fake *f)
{
	struct agent_identity id = sample_identity();
	struct stream *s = NULL;

	*f = (struct fake){ .sink = { &ops } };
	assert_int_equal(stream_open(&id, &f->sink, &s), 0);
	return s;
}

static void
each_topic_counts_from_0_with_the_key_of_host_and_run(void **state)
{
	struct program_record p = sample_program_start();
	struct host_record h = sample_host();
	struct fake f;
	struct stream *s = open_on(&f);

	(void)state;
	assert_int_equal(stream_program(s, &p), 0);
	assert_int_equal(f.seq, 0);
	assert_string_equal(f.key, SAMPLE_HOST ":run-1");
	assert_true(f.time_us == SAMPLE_TIME);
	assert_int_equal(stream_program(s, &p), 0);
	assert_int_equal(f.seq, 1);
	assert_int_equal(stream_host(s, &h), 0);
	assert_int_equal(f.seq, 0);
	assert_int_equal(f.topic, TOPIC_HOST);
	assert_string_equal(f.key, SAMPLE_HOST ":");
	assert_int_equal(stream_written(s, TOPIC_PROGRAM), 2);
	stream_tick(s, 1);
	assert_int_equal(f.ticks, 1);
	assert_int_equal(stream_delivered(s), 3);
	assert_int_equal(stream_close(s), 0);
	assert_int_equal(f.closes, 1);
}

static void
a_lost_record_leaves_a_hole_and_is_counted(void **state)
{
	struct program_record p = sample_program_start();
	struct fake f;
	struct stream *s = open_on(&f);

	(void)state;
	f.result = -ENOSPC;
	assert_int_equal(stream_program(s, &p), -ENOSPC);
	f.result = 0;
	p.id.program_id = NULL;
	assert_int_equal(stream_program(s, &p), -EINVAL);
	p.id.program_id = "x";
	assert_int_equal(stream_program(s, &p), 0);
	assert_int_equal(f.seq, 2);
	stream_skip(s, TOPIC_PROGRAM, 10);
	assert_int_equal(stream_program(s, &p), 0);
	assert_int_equal(f.seq, 13);
	assert_int_equal(stream_lost(s, TOPIC_PROGRAM), 2);
	assert_int_equal(stream_written(s, TOPIC_PROGRAM), 2);
	assert_int_equal(stream_close(s), 0);
}

static void
a_long_run_id_makes_a_whole_key(void **state)
{
	struct program_record p = sample_program_start();
	struct fake f;
	struct stream *s = open_on(&f);
	char run[201];

	(void)state;
	memset(run, 'r', 200);
	run[200] = '\0';
	p.head.run_id = run;
	assert_int_equal(stream_program(s, &p), 0);
	assert_int_equal(strlen(f.key), strlen(SAMPLE_HOST) + 1 + 200);
	assert_int_equal(stream_close(s), 0);
}

static void
an_open_that_fails_says_why_and_closes_the_sink(void **state)
{
	struct agent_identity id = sample_identity();
	struct fake f = { .sink = { &ops } };
	struct stream *s = NULL;

	(void)state;
	id.boot_id = NULL;
	assert_int_equal(stream_open(&id, &f.sink, &s), -EINVAL);
	assert_null(s);
	assert_int_equal(f.closes, 1);
	assert_non_null(strstr(stream_open_error(), "boot"));
}

static void
close_passes_on_the_error_of_the_sink(void **state)
{
	struct fake f;
	struct stream *s = open_on(&f);

	(void)state;
	f.result = -EIO;
	assert_int_equal(stream_close(s), -EIO);
	assert_int_equal(stream_close(NULL), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_topic_counts_from_0_with_the_key_of_host_and_run),
		cmocka_unit_test(a_lost_record_leaves_a_hole_and_is_counted),
		cmocka_unit_test(a_long_run_id_makes_a_whole_key),
		cmocka_unit_test(an_open_that_fails_says_why_and_closes_the_sink),
		cmocka_unit_test(close_passes_on_the_error_of_the_sink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
