/*
 * SPDX-License-Identifier: Apache-2.0
 * protocol: what a reader may send, and what the agent takes of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reader/protocol.h"

static char message[READER_ANSWER_MAX];

static struct reader_answer
sample(void)
{
	static const char args[] = "tool\0-x\0";
	struct reader_answer a = { .id = 7, .start_ticks = 123 };

	a.text[READER_BYTES].at = args;
	a.text[READER_BYTES].len = sizeof(args) - 1;
	a.text[READER_EXE].at = "/opt/tool";
	a.text[READER_EXE].len = 9;
	a.text[READER_CGROUP_V2].at = "/";
	a.text[READER_CGROUP_V2].len = 1;
	return a;
}

static void
an_answer_arrives_as_it_was(void **state)
{
	const struct reader_answer sent = sample();
	struct reader_answer got;
	struct proc_texts texts;
	size_t len = reader_answer_encode(&sent, message);

	(void)state;
	assert_int_equal(reader_answer_decode(message, len, &got), 0);
	assert_int_equal(got.id, 7);
	assert_int_equal(got.error, 0);
	texts = reader_answer_texts(&got);
	assert_int_equal(texts.start_ticks, 123);
	assert_int_equal(texts.cmdline_len, 8);
	assert_memory_equal(texts.cmdline, "tool\0-x\0", 9);
	assert_string_equal(texts.exe, "/opt/tool");
	assert_null(texts.cwd);
	assert_null(texts.cgroup[0]);
	assert_string_equal(texts.cgroup[1], "/");
}

static void
facts_about_a_file_arrive(void **state)
{
	const struct reader_answer sent = { .id = 7, .is_file = true, .file = { 1 << 20, 1700000000 } };
	struct reader_answer got;

	(void)state;
	assert_int_equal(reader_answer_decode(message, reader_answer_encode(&sent, message), &got), 0);
	assert_true(got.is_file);
	assert_int_equal(got.file.size, 1 << 20);
	assert_int_equal(got.file.changed_s, 1700000000);
}

static void
an_error_has_no_texts(void **state)
{
	struct reader_answer sent = sample(), got;
	size_t len;

	(void)state;
	sent.error = -ESRCH;
	len = reader_answer_encode(&sent, message);
	assert_int_equal(len, sizeof(struct reader_head));
	assert_int_equal(reader_answer_decode(message, len, &got), 0);
	assert_int_equal(got.error, -ESRCH);
	assert_null(got.text[READER_BYTES].at);
}

static void
what_is_too_long_is_left_out(void **state)
{
	static char longer[EVENT_ARGV_MAX + 2];
	struct reader_answer sent = sample(), got;

	(void)state;
	memset(longer, 'a', sizeof(longer) - 1);
	sent.text[READER_BYTES].at = longer;
	sent.text[READER_BYTES].len = EVENT_ARGV_MAX;
	assert_int_equal(reader_answer_decode(message, reader_answer_encode(&sent, message), &got), 0);
	assert_int_equal(got.text[READER_BYTES].len, EVENT_ARGV_MAX);
	sent.text[READER_BYTES].len = EVENT_ARGV_MAX + 1;
	assert_int_equal(reader_answer_decode(message, reader_answer_encode(&sent, message), &got), 0);
	assert_null(got.text[READER_BYTES].at);
	assert_string_equal(got.text[READER_EXE].at, "/opt/tool");
}

/* Refuses a message, and leaves *ret as it was. */
static void
assert_refused(size_t len)
{
	struct reader_answer got = { .id = 99 };

	assert_int_equal(reader_answer_decode(message, len, &got), -EBADMSG);
	assert_int_equal(got.id, 99);
}

static void
no_other_length_is_taken(void **state)
{
	const struct reader_answer sent = sample();
	size_t len = reader_answer_encode(&sent, message);

	(void)state;
	message[len] = 0;
	for (size_t i = 0; i < len; i++)
		assert_refused(i);
	assert_refused(len + 1);
}

static void
no_wrong_head_is_taken(void **state)
{
	const struct reader_answer sent = sample();
	size_t len = reader_answer_encode(&sent, message);
	struct reader_head head, wrong;

	(void)state;
	memcpy(&head, message, sizeof(head));
#define REFUSED(change)						\
	do {							\
		wrong = head;					\
		change;						\
		memcpy(message, &wrong, sizeof(wrong));		\
		assert_refused(len);				\
	} while (0)
	REFUSED(wrong.error = 1);
	REFUSED(wrong.error = -4096);
	REFUSED(wrong.error = -1);		/* with texts */
	REFUSED(wrong.known |= 1u << READER_TEXTS);
	REFUSED(wrong.known |= 1u << READER_CWD);
	REFUSED(wrong.len[READER_CWD] = 1);
	REFUSED(wrong.len[READER_EXE]++);
	REFUSED(wrong.len[READER_EXE]--);
	REFUSED(wrong.len[READER_BYTES] = UINT32_MAX);
	REFUSED(wrong.is_file = 2);
	REFUSED(wrong.size = 1);		/* of no file, as the next two */
	REFUSED(wrong.changed_s = 1);
	REFUSED(wrong.pad = 1);
}

static void
paths_are_paths(void **state)
{
	struct reader_answer sent = sample(), got;
	size_t len;

	(void)state;
	sent.text[READER_EXE].at = "/opt\0tool";
	len = reader_answer_encode(&sent, message);
	assert_refused(len);
	sent.text[READER_EXE].at = "opt//tool";
	len = reader_answer_encode(&sent, message);
	assert_refused(len);
	sent.text[READER_EXE].len = 0;
	len = reader_answer_encode(&sent, message);
	assert_refused(len);
	sent.text[READER_EXE].at = NULL;
	assert_int_equal(reader_answer_decode(message, reader_answer_encode(&sent, message), &got), 0);
}

static void
requests_are_checked(void **state)
{
	static struct reader_request q = { .kind = READER_FILE, .limit = 10, .path = "/a/b" };
	size_t len = reader_request_len(&q);

	(void)state;
	assert_int_equal(len, READER_REQUEST_HEAD + 5);
	assert_int_equal(reader_request_check(&q, len), 0);
	assert_int_equal(reader_request_check(&q, len - 1), -EBADMSG);
	assert_int_equal(reader_request_check(&q, len + 1), -EBADMSG);
	assert_int_equal(reader_request_check(&q, READER_REQUEST_HEAD), -EBADMSG);
	assert_int_equal(reader_request_check(&q, 3), -EBADMSG);
	q.kind = READER_FOLDER;
	assert_int_equal(reader_request_check(&q, reader_request_len(&q)), 0);
	q.offset = (uint64_t)INT64_MAX + 1;
	assert_int_equal(reader_request_check(&q, len), -EBADMSG);
	q.offset = 0;
	q.is_resolved = 2;
	assert_int_equal(reader_request_check(&q, len), -EBADMSG);
	q.is_resolved = 1;
	assert_int_equal(reader_request_check(&q, len), 0);
	q.limit = READER_FILE_MAX + 1;
	assert_int_equal(reader_request_check(&q, len), -EBADMSG);
	q = (struct reader_request){ .kind = READER_TITLE, .pid = 5, .limit = 1 };
	assert_int_equal(reader_request_check(&q, reader_request_len(&q)), 0);
	assert_int_equal(reader_request_check(&q, len), -EBADMSG);
	q.pid = 0;
	assert_int_equal(reader_request_check(&q, reader_request_len(&q)), -EBADMSG);
	q = (struct reader_request){ .kind = 9, .pid = 5 };
	assert_int_equal(reader_request_check(&q, reader_request_len(&q)), -EBADMSG);
	q.kind = READER_FILE;
	memset(q.path, 'a', sizeof(q.path));
	assert_int_equal(reader_request_len(&q), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_arrives_as_it_was),
		cmocka_unit_test(facts_about_a_file_arrive),
		cmocka_unit_test(an_error_has_no_texts),
		cmocka_unit_test(what_is_too_long_is_left_out),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(no_wrong_head_is_taken),
		cmocka_unit_test(paths_are_paths),
		cmocka_unit_test(requests_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
