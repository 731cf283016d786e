/* SPDX-License-Identifier: Apache-2.0 */
/* decode: the records of the kernel side, checked field by field. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode_kit.h"

static void
exec_carries_every_field(void **state)
{
	const struct exec_event *s = &seen.exec;

	(void)state;
	good_exec();
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(s->time_ns, 99);
	assert_true(s->self.start_ns == 10 && s->self.pid == 11 && s->self.index == 2);
	assert_true(s->parent.start_ns == 20 && s->parent.pid == 21 && s->parent.index == 3);
	assert_true(s->anchor.start_ns == 30 && s->anchor.pid == 31 && s->anchor.index == 4);
	assert_int_equal(s->ppid, 41);
	assert_int_equal(s->context.uid, 42);
	assert_int_equal(s->context.gid, 43);
	assert_int_equal(s->context.cgroup_v2, 44);
	assert_int_equal(s->context.cgroup_v1, 45);
	assert_int_equal(s->context.pid_ns, 46);
	assert_int_equal(s->context.mnt_ns, 47);
	assert_int_equal(s->context.net_ns, 48);
	assert_int_equal(s->context.user_uid, 49);
	assert_string_equal(s->comm, "bwa");
	assert_string_equal(seen.exe, "/usr/bin/bwa");
	assert_string_equal(seen.cwd, "/w/a");
	assert_int_equal(s->argc, 3);
	assert_string_equal(seen.argv[0], "bwa");
	assert_string_equal(seen.argv[1], "mem");
	assert_string_equal(seen.argv[2], "-");
	assert_false(s->argv_truncated);
	assert_false(s->has_replaced);
}

static void
exec_carries_what_it_replaced(void **state)
{
	(void)state;
	good_exec();
	record.exec.flags |= EVENT_REPLACED | EVENT_HAS_PEAK | EVENT_HAS_BLOCK_IO | EVENT_HAS_COMPACT;
	assert_int_equal(decode_record(), 0);
	assert_true(seen.exec.has_replaced);
	assert_numbers(&seen.exec.replaced, 1000);
	assert_true(seen.exec.replaced.has_peak);
	assert_true(seen.exec.replaced.has_block_io);
	assert_true(seen.exec.replaced.has_compact);
	assert_false(seen.exec.replaced.has_thrashing);
	assert_false(seen.exec.replaced.has_odd_block_io);
	assert_true(seen.exec.replaced.is_complete);
	assert_false(seen.exec.replaced.is_reaped);
	record.exec.flags = EVENT_EXECED | EVENT_REPLACED;
	assert_int_equal(decode_record(), 0);
	assert_false(seen.exec.replaced.has_peak);
	assert_false(seen.exec.replaced.has_block_io);
}

static void
state_carries_every_field(void **state)
{
	const struct state_event *s = &seen.state;

	(void)state;
	good_state(EVENT_EXIT);
	record.state.flags = EVENT_EXECED | EVENT_OOM | EVENT_HAS_PEAK;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.states, 1);
	assert_int_equal(s->kind, STATE_EXIT);
	assert_int_equal(s->time_ns, 99);
	assert_true(s->self.start_ns == 10 && s->self.pid == 11 && s->self.index == 2);
	assert_true(s->parent.start_ns == 20 && s->parent.pid == 21 && s->parent.index == 3);
	assert_true(s->anchor.start_ns == 30 && s->anchor.pid == 31 && s->anchor.index == 4);
	assert_int_equal(s->program_start_ns, 50);
	assert_int_equal(s->end_ns, 51);
	assert_int_equal(s->status, 0x86);
	assert_int_equal(s->ppid, 41);
	assert_true(s->has_execed);
	assert_true(s->oom_killed);
	assert_true(s->has_context);
	assert_int_equal(s->context.uid, 42);
	assert_int_equal(s->context.gid, 43);
	assert_int_equal(s->context.cgroup_v2, 44);
	assert_int_equal(s->context.cgroup_v1, 45);
	assert_int_equal(s->context.pid_ns, 46);
	assert_int_equal(s->context.mnt_ns, 47);
	assert_int_equal(s->context.net_ns, 48);
	assert_int_equal(s->context.user_uid, 49);
	assert_string_equal(s->comm, "fifteen_letters");
	assert_numbers(&s->counters, 2000);
	assert_true(s->counters.has_peak);
	assert_true(s->counters.is_complete);
	assert_true(s->counters.is_reaped);
}

static void
flags_of_a_state_are_distinguished(void **state)
{
	(void)state;
	good_state(EVENT_SNAPSHOT);
	record.state.flags = EVENT_NO_CREDENTIALS | EVENT_THREADS_CUT | EVENT_HAS_BLOCK_IO | EVENT_HAS_THRASHING |
	    EVENT_ODD_BLOCK_IO;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_LIVE);
	assert_false(seen.state.has_execed);
	assert_false(seen.state.has_context);
	assert_false(seen.state.oom_killed);
	assert_false(seen.state.counters.is_complete);
	assert_false(seen.state.counters.has_peak);
	assert_true(seen.state.counters.has_block_io);
	assert_true(seen.state.counters.has_odd_block_io);
	assert_true(seen.state.counters.has_thrashing);
	assert_false(seen.state.counters.has_compact);
	assert_false(seen.state.counters.is_reaped);
	record.state.flags = EVENT_ENDED;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_ZOMBIE);
	good_state(EVENT_ALIVE);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_UNTRACKED);
	assert_false(seen.state.is_canary);
	good_state(EVENT_EXIT);
	record.state.flags = EVENT_CANARY;
	assert_int_equal(decode_record(), 0);
	assert_true(seen.state.is_canary);
}

static void
who_is_discovered_has_paths(void **state)
{
	(void)state;
	good_found(EXE, sizeof(EXE), CWD, sizeof(CWD));
	record.state.flags = EVENT_EXECED;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_DISCOVERED);
	assert_true(seen.state.has_context);
	assert_string_equal(seen.exe, "/usr/bin/bwa");
	assert_string_equal(seen.cwd, "/w/a");
	for (int flag = 0; flag < 2; flag++) {
		record.state.flags = flag == 0 ? EVENT_EXE_CUT : EVENT_CWD_CUT;
		assert_int_equal(decode_record(), 0);
		assert_int_equal(seen.state.exe == NULL, flag == 0);
		assert_int_equal(seen.state.cwd == NULL, flag == 1);
	}
	good_found("", 0, "", 0);	/* of no file, in the root */
	assert_int_equal(decode_record(), 0);
	assert_null(seen.state.exe);
	assert_string_equal(seen.cwd, "/");
}

static void
arguments_are_cut_where_the_owner_says(void **state)
{
	(void)state;
	good_exec_with("bwa\0bin", 8, "w", 2, "bwa\0mem\0reference.fa", 21, 3);
	decoder_set_argv_max(decoder, 12);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 3);
	assert_string_equal(seen.argv[2], "refe");
	assert_true(seen.exec.argv_truncated);
	decoder_set_argv_max(decoder, 1 << 30);
	assert_int_equal(decode_record(), 0);
	assert_string_equal(seen.argv[2], "reference.fa");
	assert_false(seen.exec.argv_truncated);
}

static void
signal_carries_every_field(void **state)
{
	struct event_signal *e = &record.signal;

	(void)state;
	good_signal();
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.signals, 1);
	assert_true(seen.signal.time_ns == 77 && seen.signal.signal == 15 && seen.signal.is_of_program);
	assert_true(seen.signal.self.start_ns == 5 && seen.signal.self.pid == 6 && seen.signal.self.index == 1);
	assert_true(seen.signal.sender.start_ns == 2 && seen.signal.sender.pid == 3 && seen.signal.sender.index == 0);
	assert_true(seen.signal.anchor.start_ns == 1 && seen.signal.anchor.pid == 2 && seen.signal.anchor.index == 4);
	assert_true(seen.signal.sender_pid == 3 && seen.signal.sender_uid == 1000);
	assert_string_equal(seen.signal.comm, "fifteen bytes..");
	e->is_of_program = 0;
	assert_int_equal(decode_record(), 0);
	assert_false(seen.signal.is_of_program);
}

static void
cgroup_carries_every_field(void **state)
{
	(void)state;
	good_cgroup_with("task_0\0job_2", 13);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.cgroup.id, UINT64_C(0x1234567890));
	assert_true(seen.cgroup.is_v2);
	assert_string_equal(seen.path, "/job_2/task_0");
	record.cgroup.is_v2 = 0;
	assert_int_equal(decode_record(), 0);
	assert_false(seen.cgroup.is_v2);
}

static void
paths_are_joined(void **state)
{
	char deep[EVENT_PATH_MAX];

	(void)state;
	good_cgroup_with("", 0);
	assert_int_equal(decode_record(), 0);
	assert_string_equal(seen.path, "/");
	good_cgroup_with("x", 2);
	assert_int_equal(decode_record(), 0);
	assert_string_equal(seen.path, "/x");
	/* 2,048 components: the longest that there can be */
	for (size_t i = 0; i < sizeof(deep); i += 2)
		memcpy(deep + i, i == 0 ? "z" : "a", 2);
	good_cgroup_with(deep, sizeof(deep));
	assert_int_equal(decode_record(), 0);
	assert_int_equal(strlen(seen.path), sizeof(deep));
	assert_memory_equal(seen.path, "/a/a/", 5);
	assert_string_equal(seen.path + sizeof(deep) - 4, "/a/z");
	/* one name, as long */
	memset(deep, 'n', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	good_cgroup_with(deep, sizeof(deep));
	assert_int_equal(decode_record(), 0);
	assert_int_equal(strlen(seen.path), sizeof(deep));
}

static void
exe_and_cwd_have_their_own_edges(void **state)
{
	(void)state;
	/* a memfd is outside every root */
	good_exec_with("memfd:x (deleted)", 18, "", 0, "", 1, 1);
	assert_int_equal(decode_record(), 0);
	assert_string_equal(seen.exe, "/memfd:x (deleted)");
	assert_string_equal(seen.cwd, "/");
	good_exec_with("", 0, CWD, sizeof(CWD), "", 1, 1);
	assert_int_equal(decode_record(), 0);
	assert_null(seen.exec.exe);
	assert_string_equal(seen.cwd, "/w/a");
	good_exec();
	record.exec.flags |= EVENT_EXE_CUT;
	assert_int_equal(decode_record(), 0);
	assert_null(seen.exec.exe);
	assert_non_null(seen.exec.cwd);
	good_exec();
	record.exec.flags |= EVENT_CWD_CUT;
	assert_int_equal(decode_record(), 0);
	assert_non_null(seen.exec.exe);
	assert_null(seen.exec.cwd);
}

static void
arguments_are_split(void **state)
{
	(void)state;
	/* empty ones count */
	good_exec_with("", 0, "", 0, "\0a\0\0b\n\"\0", 9, 5);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 5);
	assert_string_equal(seen.argv[0], "");
	assert_string_equal(seen.argv[1], "a");
	assert_string_equal(seen.argv[2], "");
	assert_string_equal(seen.argv[3], "b\n\"");
	assert_string_equal(seen.argv[4], "");
	assert_false(seen.exec.argv_truncated);
	/* what the kernel makes of argc 0: one empty argument, or on old kernels none */
	good_exec_with("", 0, "", 0, "", 1, 1);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 1);
	assert_string_equal(seen.argv[0], "");
	good_exec_with("", 0, "", 0, "", 0, 0);
	assert_int_equal(decode_record(), 0);
	assert_non_null(seen.exec.argv);
	assert_int_equal(seen.exec.argc, 0);
	assert_false(seen.exec.argv_truncated);
	/* words behind the last argument are the environment's: not ours */
	good_exec_with("", 0, "", 0, "a\0b\0SECRET=1", 13, 2);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 2);
}

static void
cut_arguments_are_kept_and_said_to_be_cut(void **state)
{
	(void)state;
	good_exec_with("", 0, "", 0, "abc\0de", 6, 9);
	record.exec.flags |= EVENT_ARGV_CUT;
	assert_int_equal(decode_record(), 0);
	assert_true(seen.exec.argv_truncated);
	assert_int_equal(seen.exec.argc, 2);
	assert_string_equal(seen.argv[1], "de");
	assert_int_equal(seen.argv_len[1], 2);
	/* fewer arguments than the count is truncation, for any flags */
	good_exec_with("", 0, "", 0, "abc", 4, 3);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 1);
	assert_true(seen.exec.argv_truncated);
}

static void
arguments_that_could_not_be_read_are_unknown(void **state)
{
	(void)state;
	good_exec_with("", 0, "", 0, "", 0, 3);
	record.exec.flags |= EVENT_ARGV_FAULT | EVENT_ARGV_CUT;
	assert_int_equal(decode_record(), 0);
	assert_null(seen.exec.argv);
	assert_int_equal(seen.exec.argc, 0);
	good_exec_with("", 0, "", 0, "", 0, 3);	/* there were three, and none came */
	assert_int_equal(decode_record(), 0);
	assert_null(seen.exec.argv);
	assert_true(seen.exec.argv_truncated);
	good_exec_with("", 0, "", 0, "ab\0c", 4, 3);
	record.exec.flags |= EVENT_ARGV_FAULT | EVENT_ARGV_CUT;
	assert_int_equal(decode_record(), 0);
	assert_non_null(seen.exec.argv);
	assert_int_equal(seen.exec.argc, 2);
	assert_true(seen.exec.argv_truncated);
}

static void
as_many_arguments_as_fit_are_taken(void **state)
{
	static char nothing[EVENT_ARGV_MAX];

	(void)state;
	good_exec_with("", 0, "", 0, nothing, sizeof(nothing), UINT32_MAX);
	record.exec.flags |= EVENT_ARGV_CUT;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, EVENT_ARGV_MAX);
	memset(nothing, 'x', sizeof(nothing));
	good_exec_with("", 0, "", 0, nothing, sizeof(nothing), 1);
	memset(nothing, 0, sizeof(nothing));
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.argc, 1);
	assert_int_equal(seen.argv_len[0], EVENT_ARGV_MAX);
}

static void
variables_are_split(void **state)
{
	static char most[EVENT_ENV_MAX + 1];
	size_t len = 0;

	(void)state;
	good_exec();
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.n_variables, 0);
	good_exec_env("A=b=c\0TRACEPARENT=\0X=\xff\n", 24);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.n_variables, 3);
	assert_string_equal(seen.names[0], "A");
	assert_string_equal(seen.values[0], "b=c");
	assert_string_equal(seen.names[1], "TRACEPARENT");
	assert_string_equal(seen.values[1], "");
	assert_string_equal(seen.names[2], "X");
	assert_string_equal(seen.values[2], "\xff\n");
	assert_int_equal(seen.exec.argc, 3);
	assert_string_equal(seen.argv[2], "-");
	/* as many as there can be, as long as they can be */
	for (int i = 0; i < EVENT_ENV_NAMES; i++) {
		memset(most + len, 'N', EVENT_ENV_NAME_MAX);
		most[len + EVENT_ENV_NAME_MAX] = '=';
		memset(most + len + EVENT_ENV_NAME_MAX + 1, '0' + i, EVENT_ENV_VALUE_MAX);
		len += EVENT_ENV_NAME_MAX + 1 + EVENT_ENV_VALUE_MAX + 1;
	}
	assert_int_equal(len, EVENT_ENV_MAX);
	good_exec_env(most, len);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.exec.n_variables, EVENT_ENV_NAMES);
	assert_int_equal(strlen(seen.values[7]), EVENT_ENV_VALUE_MAX);
	assert_int_equal(seen.values[7][0], '7');
}

/* The decoder lives long, and its memory may end in a core file. */
static void
arguments_and_variables_do_not_outlive_their_signal(void **state)
{
	(void)state;
	good_exec_env("A=canary", 9);
	assert_int_equal(decode_record(), 0);
	assert_non_null(seen.argv_at);
	for (size_t i = 0; i < sizeof(ARGV); i++)
		assert_int_equal(seen.argv_at[i], 0);
	for (size_t i = 0; i < sizeof("canary"); i++)
		assert_int_equal(seen.value_at[i], 0);
}

static void
no_signal_keeps_anything_of_the_one_before(void **state)
{
	(void)state;
	good_exec();
	assert_int_equal(decode_record(), 0);
	good_exec_with("sh\0bin", 7, "", 0, "sh", 3, 1);
	assert_int_equal(decode_record(), 0);
	assert_string_equal(seen.exe, "/bin/sh");
	assert_string_equal(seen.cwd, "/");
	assert_int_equal(seen.exec.argc, 1);
	assert_string_equal(seen.argv[0], "sh");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(exec_carries_every_field),
		T(exec_carries_what_it_replaced),
		T(state_carries_every_field),
		T(flags_of_a_state_are_distinguished),
		T(who_is_discovered_has_paths),
		T(signal_carries_every_field),
		T(cgroup_carries_every_field),
		T(arguments_are_cut_where_the_owner_says),
		T(paths_are_joined),
		T(exe_and_cwd_have_their_own_edges),
		T(arguments_are_split),
		T(cut_arguments_are_kept_and_said_to_be_cut),
		T(arguments_that_could_not_be_read_are_unknown),
		T(as_many_arguments_as_fit_are_taken),
		T(variables_are_split),
		T(arguments_and_variables_do_not_outlive_their_signal),
		T(no_signal_keeps_anything_of_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
