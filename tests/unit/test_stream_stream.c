/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "samples.h"
#include "stream/stream.h"

/* An output that remembers the last put. */
struct fake {
	int result;
	unsigned puts;
	enum topic topic;
	int64_t time_us;
	uint64_t seq;
	char key[256];
	size_t len;
};

static int
on_put(void *to, const struct encoded_record *r)
{
	struct fake *f = to;

	f->puts++;
	f->topic = r->topic;
	f->time_us = r->time_us;
	f->seq = r->seq;
	f->len = r->len;
	strncpy(f->key, r->key, sizeof(f->key) - 1);
	return f->result;
}

static struct stream *
open_on(struct fake *f)
{
	struct agent_identity id = sample_identity();
	struct stream *s = NULL;

	*f = (struct fake){ 0 };
	assert_int_equal(stream_open(&id, (struct record_writer){ on_put, f }, &s), 0);
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
	assert_int_equal(f.puts, 3);
	stream_close(s);
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
	stream_close(s);
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
	stream_close(s);
}

static void
an_open_that_fails_says_why(void **state)
{
	struct agent_identity id = sample_identity();
	struct fake f = { 0 };
	struct stream *s = NULL;

	(void)state;
	id.boot_id = NULL;
	assert_int_equal(stream_open(&id, (struct record_writer){ on_put, &f }, &s), -EINVAL);
	assert_null(s);
	assert_non_null(strstr(stream_open_error(), "boot"));
	stream_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_topic_counts_from_0_with_the_key_of_host_and_run),
		cmocka_unit_test(a_lost_record_leaves_a_hole_and_is_counted),
		cmocka_unit_test(a_long_run_id_makes_a_whole_key),
		cmocka_unit_test(an_open_that_fails_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
