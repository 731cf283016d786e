/* SPDX-License-Identifier: Apache-2.0 */
/* decode: the records of the kernel side, checked field by field. No root, no kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/decode.h"
#include "event.h"

#define ARGC_MAX 8
#define TEXT_SIZE 9000

/* What the last call of ops was, with its text copied. */
struct seen {
	unsigned execs, states, cgroups;
	struct exec_event exec;
	struct state_event state;
	struct cgroup_event cgroup;
	char exe[TEXT_SIZE], cwd[TEXT_SIZE], path[TEXT_SIZE];
	char argv[ARGC_MAX][64];
	size_t argv_len[ARGC_MAX];
	char names[EVENT_ENV_NAMES][64];
	char values[EVENT_ENV_NAMES][EVENT_ENV_VALUE_MAX + 1];
	const char *argv_at, *value_at;		/* the decoder's own */
};

static struct seen seen;
static struct decoder *decoder;

static void
on_exec(const struct exec_event *s, void *arg)
{
	assert_ptr_equal(arg, &seen);
	seen.execs++;
	seen.exec = *s;
	if (s->exe != NULL)
		snprintf(seen.exe, sizeof(seen.exe), "%s", s->exe);
	if (s->cwd != NULL)
		snprintf(seen.cwd, sizeof(seen.cwd), "%s", s->cwd);
	for (size_t i = 0; s->argv != NULL && i < s->argc && i < ARGC_MAX; i++) {
		snprintf(seen.argv[i], sizeof(seen.argv[i]), "%s", s->argv[i]);
		seen.argv_len[i] = s->argv_len[i];
		assert_int_equal(strlen(s->argv[i]), s->argv_len[i]);
	}
	assert_true(s->n_variables <= EVENT_ENV_NAMES);
	for (size_t i = 0; i < s->n_variables; i++) {
		assert_true(snprintf(seen.names[i], sizeof(seen.names[i]), "%s", s->variables[i].name) <= EVENT_ENV_NAME_MAX);
		assert_true(snprintf(seen.values[i], sizeof(seen.values[i]), "%s", s->variables[i].value) <= EVENT_ENV_VALUE_MAX);
	}
	seen.argv_at = s->argv != NULL && s->argc > 0 ? s->argv[0] : NULL;
	seen.value_at = s->n_variables > 0 ? s->variables[0].value : NULL;
}

static void
on_state(const struct state_event *s, void *arg)
{
	(void)arg;
	seen.states++;
	seen.state = *s;
}

static void
on_cgroup(const struct cgroup_event *s, void *arg)
{
	(void)arg;
	seen.cgroups++;
	seen.cgroup = *s;
	snprintf(seen.path, sizeof(seen.path), "%s", s->path);
}

/* A record under construction, aligned and exactly as long as its head specifies. */
struct record {
	union {
		struct event_exec exec;
		struct event_state state;
		struct event_cgroup cgroup;
		struct event_head head;
	};
	char text[3 * 65536];
};

static struct record record;

static void
numbers(struct event_counters *c, uint64_t from)
{
	uint64_t *words = (uint64_t *)c;

	for (size_t i = 0; i < sizeof(*c) / 8 - 1; i++)
		words[i] = from + i;
	c->threads = 3;
	c->threads_peak = 7;
}

static void
assert_numbers(const struct counters *c, uint64_t from)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(c->runtime_ns, from);
	assert_int_equal(c->utime, from + 1);
	assert_int_equal(c->stime, from + 2);
	assert_int_equal(c->prev_utime, from + 3);
	assert_int_equal(c->prev_stime, from + 4);
	assert_int_equal(c->voluntary_switches, from + 5);
	assert_int_equal(c->involuntary_switches, from + 6);
	assert_int_equal(c->minor_faults, from + 7);
	assert_int_equal(c->major_faults, from + 8);
	assert_int_equal(c->rchar, from + 9);
	assert_int_equal(c->wchar, from + 10);
	assert_int_equal(c->syscr, from + 11);
	assert_int_equal(c->syscw, from + 12);
	assert_int_equal(c->read_bytes, from + 13);
	assert_int_equal(c->write_bytes, from + 14);
	assert_int_equal(c->run_delay_ns, from + 15);
	assert_int_equal(c->block_io_delay_ns, from + 16);
	assert_int_equal(c->peak_rss_bytes, (from + 17) * page);
	assert_int_equal(c->rss_bytes, (from + 18) * page);
	assert_int_equal(c->tcp_rx_bytes, from + 19);
	assert_int_equal(c->tcp_tx_bytes, from + 20);
	assert_int_equal(c->udp_rx_bytes, from + 21);
	assert_int_equal(c->udp_tx_bytes, from + 22);
	assert_int_equal(c->other_rx_bytes, from + 23);
	assert_int_equal(c->other_tx_bytes, from + 24);
	assert_int_equal(c->unix_rx_bytes, from + 25);
	assert_int_equal(c->unix_tx_bytes, from + 26);
	assert_int_equal(c->cpu_migrations, from + 27);
	assert_int_equal(c->threads, 3);
	assert_int_equal(c->threads_peak, 7);
}

/* "bwa mem -" in /w/a, from /usr/bin/bwa. */
static void
good_exec_with(const void *exe, size_t exe_len, const void *cwd, size_t cwd_len, const void *argv,
    size_t argv_len, uint32_t argc)
{
	struct event_exec *e = &record.exec;
	char *text = (char *)(e + 1);

	memset(&record, 0, sizeof(record));
	memcpy(text, exe, exe_len);
	memcpy(text + exe_len, cwd, cwd_len);
	memcpy(text + exe_len + cwd_len, argv, argv_len);
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_EXEC;
	e->head.size = (uint32_t)(sizeof(*e) + exe_len + cwd_len + argv_len);
	e->head.time_ns = 99;
	e->self = (struct event_id){ 10, 11, 2 };
	e->parent = (struct event_id){ 20, 21, 3 };
	e->anchor = (struct event_id){ 30, 31, 4 };
	e->flags = EVENT_EXECED;
	e->ppid = 41;
	e->uid = 42;
	e->gid = 43;
	e->cgroup_v2 = 44;
	e->cgroup_v1 = 45;
	e->pid_ns = 46;
	e->mnt_ns = 47;
	e->net_ns = 48;
	e->argc = argc;
	strcpy(e->comm, "bwa");
	e->exe_len = (uint32_t)exe_len;
	e->cwd_len = (uint32_t)cwd_len;
	e->argv_len = (uint32_t)argv_len;
	numbers(&e->prev, 1000);
}

#define EXE "bwa\0bin\0usr"
#define CWD "a\0w"
#define ARGV "bwa\0mem\0-"

static void
good_exec(void)
{
	good_exec_with(EXE, sizeof(EXE), CWD, sizeof(CWD), ARGV, sizeof(ARGV), 3);
}

static void
good_state(uint16_t kind)
{
	struct event_state *e = &record.state;

	memset(&record, 0, sizeof(record));
	e->head.version = EVENT_VERSION;
	e->head.kind = kind;
	e->head.size = sizeof(*e);
	e->head.time_ns = 99;
	e->self = (struct event_id){ 10, 11, 2 };
	e->parent = (struct event_id){ 20, 21, 3 };
	e->anchor = (struct event_id){ 30, 31, 4 };
	e->program_start_ns = 50;
	e->end_ns = 51;
	e->status = 0x86;
	e->ppid = 41;
	e->uid = 42;
	e->gid = 43;
	e->pid_ns = 46;
	e->mnt_ns = 47;
	e->net_ns = 48;
	e->cgroup_v2 = 44;
	e->cgroup_v1 = 45;
	strcpy(e->comm, "fifteen_letters");
	numbers(&e->counters, 2000);
}

static void
good_cgroup_with(const void *path, size_t len)
{
	struct event_cgroup *e = &record.cgroup;

	memset(&record, 0, sizeof(record));
	memcpy(e + 1, path, len);
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_CGROUP;
	e->head.size = (uint32_t)(sizeof(*e) + len);
	e->id = UINT64_C(0x1234567890);
	e->is_v2 = 1;
	e->path_len = (uint32_t)len;
}

/* Decodes a copy of exactly len bytes, so that ASan sees each byte too far. */
static int
decode_copy(const void *data, size_t len)
{
	void *copy = malloc(len > 0 ? len : 1);
	int r;

	memcpy(copy, data, len);
	r = decode(decoder, copy, len);
	free(copy);
	return r;
}

static int
decode_record(void)
{
	return decode_copy(&record, record.head.size);
}

/* Checks that the record is refused and no callback is called. */
static void
assert_refused(void)
{
	unsigned calls = seen.execs + seen.states + seen.cgroups;

	assert_int_equal(decode_record(), -EBADMSG);
	assert_int_equal(seen.execs + seen.states + seen.cgroups, calls);
}

static int
setup(void **state)
{
	static const struct decode_ops ops = { on_exec, on_state, on_cgroup };

	(void)state;
	memset(&seen, 0, sizeof(seen));
	return decoder_new(&ops, &seen, &decoder);
}

static int
teardown(void **state)
{
	(void)state;
	decoder_free(decoder);
	return 0;
}

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
	record.exec.flags |= EVENT_REPLACED | EVENT_HAS_PEAK | EVENT_HAS_BLOCK_IO;
	assert_int_equal(decode_record(), 0);
	assert_true(seen.exec.has_replaced);
	assert_numbers(&seen.exec.replaced, 1000);
	assert_true(seen.exec.replaced.has_peak);
	assert_true(seen.exec.replaced.has_block_io);
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
	assert_string_equal(s->comm, "fifteen_letters");
	assert_numbers(&s->counters, 2000);
	assert_true(s->counters.has_peak);
	assert_true(s->counters.is_complete);
	assert_true(s->counters.is_reaped);
}

static void
flags_of_a_state_are_told_apart(void **state)
{
	(void)state;
	good_state(EVENT_SNAPSHOT);
	record.state.flags = EVENT_NO_CREDENTIALS | EVENT_THREADS_CUT | EVENT_HAS_BLOCK_IO;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_LIVE);
	assert_false(seen.state.has_execed);
	assert_false(seen.state.has_context);
	assert_false(seen.state.oom_killed);
	assert_false(seen.state.counters.is_complete);
	assert_false(seen.state.counters.has_peak);
	assert_true(seen.state.counters.has_block_io);
	assert_false(seen.state.counters.is_reaped);
	record.state.flags = EVENT_ENDED;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_ZOMBIE);
	good_state(EVENT_ALIVE);
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_UNTRACKED);
	good_state(EVENT_DISCOVERED);
	record.state.flags = EVENT_EXECED;
	assert_int_equal(decode_record(), 0);
	assert_int_equal(seen.state.kind, STATE_DISCOVERED);
	assert_true(seen.state.has_context);
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

/* The good exec, with these variables behind its arguments. */
static void
good_exec_env(const void *env, size_t len)
{
	good_exec();
	memcpy((char *)&record + record.head.size, env, len);
	record.head.size += (uint32_t)len;
	record.exec.env_len = (uint32_t)len;
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(exec_carries_every_field),
		TEST(exec_carries_what_it_replaced),
		TEST(state_carries_every_field),
		TEST(flags_of_a_state_are_told_apart),
		TEST(cgroup_carries_every_field),
		TEST(arguments_are_cut_where_the_owner_says),
		TEST(paths_are_joined),
		TEST(exe_and_cwd_have_their_own_edges),
		TEST(arguments_are_split),
		TEST(cut_arguments_are_kept_and_said_to_be_cut),
		TEST(arguments_that_could_not_be_read_are_unknown),
		TEST(as_many_arguments_as_fit_are_taken),
		TEST(variables_are_split),
		TEST(what_is_no_variable_is_refused),
		TEST(arguments_and_variables_do_not_outlive_their_signal),
		TEST(no_signal_keeps_anything_of_the_one_before),
		TEST(other_versions_are_refused),
		TEST(unknown_kinds_are_refused),
		TEST(sizes_that_differ_from_the_records_are_refused),
		TEST(records_shorter_than_their_struct_are_refused),
		TEST(lengths_that_do_not_add_up_are_refused),
		TEST(text_beyond_its_limit_is_refused),
		TEST(paths_without_their_last_nul_are_refused),
		TEST(unterminated_comm_is_refused),
		TEST(pid_zero_is_refused),
		TEST(misaligned_data_is_refused),
		TEST(a_stream_may_be_cut_anywhere),
		TEST(a_stream_steps_over_a_record_that_does_not_hold),
		TEST(a_stream_gives_up_at_a_head_that_cannot_be_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
