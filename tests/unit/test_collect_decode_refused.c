/* SPDX-License-Identifier: Apache-2.0 */
/* decode: malformed records are refused, and a stream of records continues after one where it can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode_kit.h"

/* Checks that the record is refused and no callback is called. */
static void
assert_refused(void)
{
	unsigned calls = seen.execs + seen.states + seen.cgroups + seen.signals;

	assert_int_equal(decode_record(), -EBADMSG);
	assert_int_equal(seen.execs + seen.states + seen.cgroups + seen.signals, calls);
}

static void
what_is_no_variable_is_refused(void **state)
{
	static char text[EVENT_ENV_MAX + 8];

	(void)state;
	good_exec_env("A=b", 3);		/* no NUL */
	assert_refused();
	good_exec_env("A", 2);
	assert_refused();
	good_exec_env("=b", 3);
	assert_refused();
	good_exec_env("A=b\0", 5);		/* an empty one */
	assert_refused();
	good_exec_env("A=1\0B=2\0C=3\0D=4\0E=5\0F=6\0G=7\0H=8\0I=9", 36);
	assert_refused();
	memset(text, 'A', sizeof(text));	/* too long a name, and a value */
	text[EVENT_ENV_NAME_MAX + 1] = '=';
	text[EVENT_ENV_NAME_MAX + 3] = '\0';
	good_exec_env(text, EVENT_ENV_NAME_MAX + 4);
	assert_refused();
	memset(text, 'A', sizeof(text));
	text[1] = '=';
	text[EVENT_ENV_VALUE_MAX + 3] = '\0';
	good_exec_env(text, EVENT_ENV_VALUE_MAX + 4);
	assert_refused();
	memset(text, 0, sizeof(text));
	good_exec_env(text, sizeof(text));
	assert_refused();
	good_exec();
	record.exec.env_len = 4;
	assert_refused();
}

static void
other_versions_are_refused(void **state)
{
	(void)state;
	good_exec();
	record.head.version = EVENT_VERSION + 1;
	assert_refused();
	record.head.version = 0;
	assert_refused();
}

static void
unknown_kinds_are_refused(void **state)
{
	(void)state;
	good_state(0);
	assert_refused();
	good_state(EVENT_DISCOVERED + 1);
	assert_refused();
	good_state(0xffff);
	assert_refused();
	memset(&record, 0, sizeof(record));
	assert_int_equal(decode_copy(&record, sizeof(struct event_state)), -EBADMSG);
}

static void
sizes_that_differ_from_the_records_are_refused(void **state)
{
	(void)state;
	good_exec();
	record.head.size++;
	assert_int_equal(decode_copy(&record, record.head.size - 1), -EBADMSG);
	good_exec();
	assert_int_equal(decode_copy(&record, record.head.size - 1), -EBADMSG);
	assert_int_equal(decode_copy(&record, record.head.size + 1), -EBADMSG);
	for (size_t len = 0; len < sizeof(struct event_head); len++)
		assert_int_equal(decode_copy(&record, len), -EBADMSG);
	assert_int_equal(seen.execs, 0);
}

static void
records_shorter_than_their_struct_are_refused(void **state)
{
	(void)state;
	good_exec();
	record.head.size = sizeof(struct event_exec) - 8;
	assert_refused();
	good_state(EVENT_EXIT);
	record.head.size -= 8;
	assert_refused();
	good_state(EVENT_SNAPSHOT);
	record.head.size += 8;
	assert_refused();
	good_cgroup_with("", 0);
	record.head.size = sizeof(struct event_cgroup) - 8;
	assert_refused();
	record.head.size = sizeof(struct event_head);
	assert_refused();
	good_signal();
	record.head.size -= 8;
	assert_refused();
	good_signal();
	record.head.size += 8;
	assert_refused();
}

static void
signals_that_cannot_be_are_refused(void **state)
{
	(void)state;
	good_signal();
	record.signal.self.pid = 0;
	assert_refused();
	good_signal();
	record.signal.signal = 0;
	assert_refused();
	good_signal();
	record.signal.signal = 65;
	assert_refused();
	good_signal();
	memset(record.signal.comm, 'x', sizeof(record.signal.comm));
	assert_refused();
}

static void
lengths_that_do_not_add_up_are_refused(void **state)
{
	(void)state;
	good_exec();
	record.exec.argv_len--;
	assert_refused();
	good_exec();
	record.exec.cwd_len++;
	assert_refused();
	good_exec();	/* a sum that wraps around to the right one in 32 bits */
	record.exec.exe_len = UINT32_MAX;
	record.exec.cwd_len += sizeof(EXE) + 1;
	assert_refused();
	good_cgroup_with("x", 2);
	record.cgroup.path_len = 1;
	assert_refused();
	record.cgroup.path_len = UINT32_MAX;
	assert_refused();
}

static void
text_beyond_its_limit_is_refused(void **state)
{
	static char text[EVENT_ARGV_MAX + 1];

	(void)state;
	good_exec_with(text, EVENT_PATH_MAX + 1, "", 0, "", 0, 0);
	assert_refused();
	good_exec_with("", 0, text, EVENT_PATH_MAX + 1, "", 0, 0);
	assert_refused();
	good_exec_with("", 0, "", 0, text, EVENT_ARGV_MAX + 1, 1);
	assert_refused();
	good_cgroup_with(text, EVENT_PATH_MAX + 1);
	assert_refused();
	good_found(text, EVENT_PATH_MAX + 1, "", 0);
	assert_refused();
	good_found("", 0, text, EVENT_PATH_MAX + 1);
	assert_refused();
}

static void
a_discovered_process_is_as_long_as_its_paths(void **state)
{
	(void)state;
	good_state(EVENT_DISCOVERED);	/* without paths */
	assert_refused();
	good_found(EXE, sizeof(EXE), CWD, sizeof(CWD));
	record.found.cwd_len += 8;
	assert_refused();
	record.found.cwd_len = UINT32_MAX - 7;
	assert_refused();
	good_found(EXE, sizeof(EXE) - 1, CWD, sizeof(CWD));
	assert_refused();
}

static void
paths_without_their_last_nul_are_refused(void **state)
{
	(void)state;
	good_exec_with(EXE, sizeof(EXE) - 1, CWD, sizeof(CWD), "", 0, 0);
	assert_refused();
	good_exec_with(EXE, sizeof(EXE), CWD, sizeof(CWD) - 1, "", 0, 0);
	assert_refused();
	good_cgroup_with("ab", 2);
	assert_refused();
}

static void
unterminated_comm_is_refused(void **state)
{
	(void)state;
	good_exec();
	memset(record.exec.comm, 'x', sizeof(record.exec.comm));
	assert_refused();
	good_state(EVENT_EXIT);
	memset(record.state.comm, 'x', sizeof(record.state.comm));
	assert_refused();
}

static void
pid_zero_is_refused(void **state)
{
	(void)state;
	good_exec();
	record.exec.self.pid = 0;
	assert_refused();
	good_state(EVENT_SNAPSHOT);
	record.state.self.pid = 0;
	assert_refused();
}

static void
misaligned_data_is_refused(void **state)
{
	uint64_t malformed = 0;
	char *copy;

	(void)state;
	good_state(EVENT_EXIT);
	copy = malloc(record.head.size + 8);
	for (size_t off = 1; off < 8; off++) {
		memcpy(copy + off, &record, record.head.size);
		assert_int_equal(decode(decoder, copy + off, record.head.size), -EBADMSG);
		assert_int_equal(decode_stream(decoder, copy + off, record.head.size, &malformed),
		    record.head.size);
		assert_int_equal(malformed, off);
	}
	free(copy);
	assert_int_equal(seen.states, 0);
}

/* Three states and a cgroup in a row. */
static size_t
stream(char *buffer)
{
	size_t len = 0;

	for (int i = 0; i < 3; i++) {
		good_state(EVENT_SNAPSHOT);
		memcpy(buffer + len, &record, record.head.size);
		len += record.head.size;
	}
	good_cgroup_with("abcdefg", 8);
	memcpy(buffer + len, &record, record.head.size);
	return len + record.head.size;
}

static void
a_stream_may_be_cut_anywhere(void **state)
{
	_Alignas(8) char buffer[4096];
	size_t len = stream(buffer), one = sizeof(struct event_state);
	uint64_t malformed = 0;

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		size_t used, whole = cut == len ? len : cut / one * one;
		char *copy = malloc(cut > 0 ? cut : 1);

		memcpy(copy, buffer, cut);
		memset(&seen, 0, sizeof(seen));
		used = decode_stream(decoder, copy, cut, &malformed);
		assert_int_equal(used, whole);
		assert_int_equal(seen.states, cut / one > 3 ? 3 : cut / one);
		assert_int_equal(seen.cgroups, cut == len);
		free(copy);
	}
	assert_int_equal(malformed, 0);
}

static void
a_stream_steps_over_a_record_that_does_not_hold(void **state)
{
	_Alignas(8) char buffer[4096];
	size_t len = stream(buffer);
	uint64_t malformed = 5;

	(void)state;
	((struct event_state *)(buffer + sizeof(struct event_state)))->self.pid = 0;
	assert_int_equal(decode_stream(decoder, buffer, len, &malformed), len);
	assert_int_equal(malformed, 6);
	assert_int_equal(seen.states, 2);
	assert_int_equal(seen.cgroups, 1);
}

static void
a_stream_gives_up_at_a_head_that_cannot_be_trusted(void **state)
{
	static const uint32_t sizes[] = { 0, 8, 15, 17, sizeof(struct event_state) + 4 };

	(void)state;
	for (size_t i = 0; i <= sizeof(sizes) / sizeof(sizes[0]); i++) {
		_Alignas(8) char buffer[4096];
		size_t len = stream(buffer);
		uint64_t malformed = 0;
		struct event_head *second = (void *)(buffer + sizeof(struct event_state));

		memset(&seen, 0, sizeof(seen));
		if (i < sizeof(sizes) / sizeof(sizes[0]))
			second->size = sizes[i];
		else
			second->version = 9;
		assert_int_equal(decode_stream(decoder, buffer, len, &malformed), len);
		assert_int_equal(malformed, 1);
		assert_int_equal(seen.states, 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_no_variable_is_refused),
		T(other_versions_are_refused),
		T(unknown_kinds_are_refused),
		T(sizes_that_differ_from_the_records_are_refused),
		T(records_shorter_than_their_struct_are_refused),
		T(signals_that_cannot_be_are_refused),
		T(lengths_that_do_not_add_up_are_refused),
		T(text_beyond_its_limit_is_refused),
		T(a_discovered_process_is_as_long_as_its_paths),
		T(paths_without_their_last_nul_are_refused),
		T(unterminated_comm_is_refused),
		T(pid_zero_is_refused),
		T(misaligned_data_is_refused),
		T(a_stream_may_be_cut_anywhere),
		T(a_stream_steps_over_a_record_that_does_not_hold),
		T(a_stream_gives_up_at_a_head_that_cannot_be_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
