/*
 * SPDX-License-Identifier: Apache-2.0
 * decode_kit: valid records of the kernel side, which a test changes, and what the decoder made of them.
 */
#ifndef SLUICE_TESTS_UNIT_DECODE_KIT_H
#define SLUICE_TESTS_UNIT_DECODE_KIT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/decode.h"
#include "event.h"

#define ARGC_MAX 8
#define TEXT_SIZE 9000

/* What the last call of ops was, with its text copied. */
struct seen {
	unsigned execs, states, cgroups, signals;
	struct exec_event exec;
	struct state_event state;
	struct cgroup_event cgroup;
	struct signal_event signal;
	char exe[TEXT_SIZE], cwd[TEXT_SIZE], path[TEXT_SIZE];
	char argv[ARGC_MAX][64];
	size_t argv_len[ARGC_MAX];
	char names[EVENT_ENV_NAMES][64];
	char values[EVENT_ENV_NAMES][EVENT_ENV_VALUE_MAX + 1];
	const char *argv_at, *value_at;		/* the decoder's own */
};

static struct seen seen;
static struct decoder *decoder;

static inline void
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

static inline void
on_state(const struct state_event *s, void *arg)
{
	(void)arg;
	seen.states++;
	seen.state = *s;
	if (s->exe != NULL)
		snprintf(seen.exe, sizeof(seen.exe), "%s", s->exe);
	if (s->cwd != NULL)
		snprintf(seen.cwd, sizeof(seen.cwd), "%s", s->cwd);
}

static inline void
on_cgroup(const struct cgroup_event *s, void *arg)
{
	(void)arg;
	seen.cgroups++;
	seen.cgroup = *s;
	snprintf(seen.path, sizeof(seen.path), "%s", s->path);
}

static inline void
on_signal(const struct signal_event *s, void *arg)
{
	(void)arg;
	seen.signals++;
	seen.signal = *s;
}

/* A record under construction, aligned and exactly as long as its head specifies. */
struct record {
	union {
		struct event_exec exec;
		struct event_state state;
		struct event_found found;
		struct event_cgroup cgroup;
		struct event_signal signal;
		struct event_head head;
	};
	char text[3 * 65536];
};

static struct record record;

static inline void
numbers(struct event_counters *c, uint64_t from)
{
	uint64_t *words = (uint64_t *)c;

	for (size_t i = 0; i < sizeof(*c) / 8 - 1; i++)
		words[i] = from + i;
	c->threads = 3;
	c->threads_peak = 7;
}

static inline void
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
	assert_int_equal(c->thread_ns, from + 28);
	assert_int_equal(c->swapin_delay_ns, from + 29);
	assert_int_equal(c->reclaim_delay_ns, from + 30);
	assert_int_equal(c->thrashing_delay_ns, from + 31);
	assert_int_equal(c->compact_delay_ns, from + 32);
	assert_int_equal(c->wait_samples, from + 33);
	assert_int_equal(c->wait_uninterruptible_ns, from + 34);
	assert_int_equal(c->wait_stopped_ns, from + 35);
	assert_int_equal(c->wait_network_fs_ns, from + 36);
	assert_int_equal(c->wait_swap_ns, from + 37);
	assert_int_equal(c->wait_reclaim_ns, from + 38);
	assert_int_equal(c->wait_block_ns, from + 39);
	assert_int_equal(c->wait_network_ns, from + 40);
	assert_int_equal(c->wait_pipe_ns, from + 41);
	assert_int_equal(c->wait_lock_ns, from + 42);
	assert_int_equal(c->wait_child_ns, from + 43);
	assert_int_equal(c->wait_timer_ns, from + 44);
	assert_int_equal(c->wait_poll_ns, from + 45);
	assert_int_equal(c->wait_other_ns, from + 46);
	assert_int_equal(c->wait_throttled_ns, from + 47);
	assert_int_equal(c->anon_bytes, (from + 48) * page);
	assert_int_equal(c->shmem_bytes, (from + 49) * page);
	assert_int_equal(c->swap_bytes, (from + 50) * page);
	assert_int_equal(c->threads, 3);
	assert_int_equal(c->threads_peak, 7);
}

/* "bwa mem -" in /w/a, from /usr/bin/bwa. */
static inline void
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
	e->user_uid = 49;
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

static inline void
good_exec(void)
{
	good_exec_with(EXE, sizeof(EXE), CWD, sizeof(CWD), ARGV, sizeof(ARGV), 3);
}

static inline void
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
	e->user_uid = 49;
	e->cgroup_v2 = 44;
	e->cgroup_v1 = 45;
	strcpy(e->comm, "fifteen_letters");
	numbers(&e->counters, 2000);
}

/* A discovered process with these paths, as components; each with its last NUL. */
static inline void
good_found(const void *exe, size_t exe_len, const void *cwd, size_t cwd_len)
{
	char *text = (char *)(&record.found + 1);

	good_state(EVENT_DISCOVERED);
	record.found.exe_len = (uint32_t)exe_len;
	record.found.cwd_len = (uint32_t)cwd_len;
	record.head.size = (uint32_t)(sizeof(record.found) + ((exe_len + cwd_len + 7) & ~(size_t)7));
	memcpy(text, exe, exe_len);
	memcpy(text + exe_len, cwd, cwd_len);
	memset(text + exe_len + cwd_len, 'x', 7);	/* has no meaning */
}

static inline void
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

static inline void
good_signal(void)
{
	record.signal = (struct event_signal){ { EVENT_VERSION, EVENT_SIGNAL, sizeof(record.signal), 77 }, { 5, 6, 1 },
		{ 2, 3, 0 }, { 1, 2, 4 }, 15, 1, 3, 1000, "fifteen bytes.." };
}

/* Decodes a copy of exactly len bytes, so that ASan sees each byte too far. */
static inline int
decode_copy(const void *data, size_t len)
{
	void *copy = malloc(len > 0 ? len : 1);
	int r;

	memcpy(copy, data, len);
	r = decode(decoder, copy, len);
	free(copy);
	return r;
}

static inline int
decode_record(void)
{
	return decode_copy(&record, record.head.size);
}

static inline int
setup(void **state)
{
	static const struct decode_ops ops = { on_exec, on_state, on_cgroup, on_signal };

	(void)state;
	memset(&seen, 0, sizeof(seen));
	return decoder_new(&ops, &seen, &decoder);
}

static inline int
teardown(void **state)
{
	(void)state;
	decoder_free(decoder);
	return 0;
}

/* The good exec, with these variables behind its arguments. */
static inline void
good_exec_env(const void *env, size_t len)
{
	good_exec();
	memcpy((char *)&record + record.head.size, env, len);
	record.head.size += (uint32_t)len;
	record.exec.env_len = (uint32_t)len;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
