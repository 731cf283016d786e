/* SPDX-License-Identifier: Apache-2.0 */
/* spool_put_again: records that were in a spool before keep their seq, time and schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

static const char old[] = "an older schema";

static uint64_t
id_of(const char *text)
{
	return spool_fingerprint(text, strlen(text));
}

/* Has the spool know a schema that no topic has now. */
static void
know(const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/schemas/%016" PRIx64 ".avsc", k.dir, id_of(text));
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
put_again(enum topic topic, uint64_t seq, const char *schema)
{
	static uint8_t data[200];
	char key[64];

	snprintf(key, sizeof(key), "host:run-%" PRIu64, seq);
	return spool_put_again(k.spool, &(struct spool_record){ .topic = topic, .schema = id_of(schema), .seq = seq,
	    .time_us = KIT_TIME + (int64_t)seq, .key = key, .data = data, .len = kit_data(topic, seq, 99, data) });
}

static void
expect_next(enum topic topic, uint64_t seq, const char *schema)
{
	struct spool_record r = kit_next(&k);

	assert_int_equal(r.topic, topic);
	assert_int_equal(r.seq, seq);
	assert_int_equal(r.schema, id_of(schema));
	assert_false(r.is_again);
	spool_ack(k.spool, r.id);
}

static void
seq_and_time_stay_and_the_next_seq_too(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(put_again(TOPIC_PROGRAM, 1, topic_name(TOPIC_PROGRAM)), 0);
	assert_int_equal(put_again(TOPIC_PROGRAM, 1000, topic_name(TOPIC_PROGRAM)), 0);
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_files(&k, "main-", ".seg", (char[512]){ 0 }), 1);
	kit_reopen(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 4);
	for (uint64_t seq = 0; seq < 3; seq++)
		expect_next(TOPIC_PROGRAM, seq, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 1, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 1000, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 3, topic_name(TOPIC_PROGRAM));
	kit_expect_none(&k);
}

static void
old_schemas_stay_over_a_restart(void **state)
{
	(void)state;
	kit_open(&k);
	know(old);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(put_again(TOPIC_PROGRAM, 10, old), 0);
	assert_int_equal(put_again(TOPIC_PROGRAM, 11, topic_name(TOPIC_PROGRAM)), -EAGAIN);
	assert_int_equal(put_again(TOPIC_USAGE, 12, topic_name(TOPIC_USAGE)), 0);
	assert_int_equal(put_again(TOPIC_AGENT, 13, old), 0);
	kit_commit(&k);
	assert_int_equal(put_again(TOPIC_PROGRAM, 11, topic_name(TOPIC_PROGRAM)), 0);
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	expect_next(TOPIC_PROGRAM, 0, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 10, old);
	expect_next(TOPIC_AGENT, 13, old);
	expect_next(TOPIC_PROGRAM, 11, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 1, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 2, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_USAGE, 12, topic_name(TOPIC_USAGE));
	kit_expect_none(&k);
}

static void
old_schemas_stay_without_a_disk(void **state)
{
	(void)state;
	kit_open(&k);
	know(old);
	k.spool->failed = -EIO;		/* as after a failed write */
	k.spool->retry_ns = UINT64_MAX;
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(put_again(TOPIC_PROGRAM, 10, old), 0);
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	expect_next(TOPIC_PROGRAM, 0, topic_name(TOPIC_PROGRAM));
	expect_next(TOPIC_PROGRAM, 10, old);
	expect_next(TOPIC_PROGRAM, 1, topic_name(TOPIC_PROGRAM));
}

static void
what_cannot_be_put_leaves_the_batch_as_it_was(void **state)
{
	static uint8_t large[(16 << 20) + 1];
	struct spool_record r = { .topic = TOPIC_PROGRAM, .key = "k", .data = large, .len = sizeof(large) };

	(void)state;
	kit_open(&k);
	know(old);
	r.schema = id_of(old);
	assert_int_equal(spool_put_again(k.spool, &r), -EMSGSIZE);
	r.schema = id_of("unknown");
	assert_int_equal(spool_put_again(k.spool, &r), -ENOKEY);
	kit_batch(&k, TOPIC_PROGRAM, 1);	/* with the schema of today */
	expect_next(TOPIC_PROGRAM, 0, topic_name(TOPIC_PROGRAM));
	kit_expect_none(&k);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(seq_and_time_stay_and_the_next_seq_too),
		T(old_schemas_stay_over_a_restart),
		T(old_schemas_stay_without_a_disk),
		T(what_cannot_be_put_leaves_the_batch_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
