/* SPDX-License-Identifier: Apache-2.0 */
/* subscription: what a subscriber gets of which program, and how much of the agent one user has. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "agent/host.h"
#include "agent/state.h"
#include "event.h"

#define RUN "r"
#define ALICE 1000
#define BOB 1001

static struct agent agent;
static struct event_base *base;
static struct belongings belongings;	/* of every process, as the correlator knows them now */
static _Alignas(8) char record[EVENT_ARGV_MAX + sizeof(struct event_exec)];
static size_t record_len;
static long silent_s;
static unsigned n_kept;			/* processes that are kept */
static bool is_hurried;
static bool is_silence_short;
static bool has_waited;			/* ten seconds are over at once */
static unsigned n_settles;
static size_t n_settling;		/* in the last of them */
static uint64_t n_ending;		/* processes whose last event is yet to arrive */

/* What the agent's other stages would do. */

bool
correlator_belongings(struct correlator *c, const struct program_key *key, struct belongings *ret)
{
	(void)c;
	(void)key;
	*ret = belongings;
	return true;
}

const char *
correlator_cgroup_path(struct correlator *c, uint64_t id, bool is_v2)
{
	(void)c;
	return id == 7 && is_v2 ? "/of/alice" : NULL;
}

const void *
decoder_record(const struct decoder *d, size_t *ret_len)
{
	(void)d;
	*ret_len = record_len;
	return record;
}

int
probes_keep(struct probes *p, uint32_t pid, bool on)
{
	(void)p;
	(void)pid;
	n_kept += on ? 1 : -1U;
	return 0;
}

void
probes_hurry(struct probes *p, bool on)
{
	(void)p;
	is_hurried = on;
}

uint64_t
probes_known_since_ns(const struct probes *p, enum optional_signal signal)
{
	(void)p;
	(void)signal;
	return 0;
}

uint64_t
ring_end(const struct ring *r)
{
	(void)r;
	return 0;
}

/* The time after which a silent subscriber is cut off is asked for, and is over soon where a test waits for it. */
int __real_bufferevent_set_timeouts(struct bufferevent *bev, const struct timeval *r, const struct timeval *w);
int __wrap_bufferevent_set_timeouts(struct bufferevent *bev, const struct timeval *r, const struct timeval *w);
int
__wrap_bufferevent_set_timeouts(struct bufferevent *bev, const struct timeval *r, const struct timeval *w)
{
	silent_s = w->tv_sec;
	return __real_bufferevent_set_timeouts(bev, r, is_silence_short ? &(struct timeval){ 0, 100000 } : w);
}

int __real_event_add(struct event *ev, const struct timeval *tv);
int __wrap_event_add(struct event *ev, const struct timeval *tv);
int
__wrap_event_add(struct event *ev, const struct timeval *tv)
{
	static const struct timeval now;

	return __real_event_add(ev, has_waited && tv != NULL && tv->tv_sec == 10 ? &now : tv);
}

static bool
on_settle(struct agent *a, struct agent_settling *settling, size_t n)
{
	(void)a;
	n_settles++;
	n_settling = n;
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(settling[i].run_id, RUN);
		settling[i].is_read = true;
		settling[i].ends = n_ending;
	}
	return true;
}

static int
setup(void **state)
{
	static const struct agent_scope scope = { .settle = on_settle };

	(void)state;
	base = event_base_new();
	agent = (struct agent){ .base = base, .scope = &scope };
	n_kept = n_settles = 0;
	n_ending = 0;
	is_hurried = has_waited = is_silence_short = false;
	belongings = (struct belongings){ 0 };
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	agent_unsubscribe_all(&agent);
	event_base_free(base);
	return 0;
}

/* Returns the end of a new subscriber with that id, which is one of this user's. */
static int
subscriber_of(uint32_t user, uint32_t uid)
{
	struct bufferevent *bev;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	bev = bufferevent_socket_new(base, fds[0], BEV_OPT_CLOSE_ON_FREE);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	assert_int_equal(agent_subscribe(&agent, RUN, 42, uid, user, bev), 0);
	return fds[1];
}

static int
subscriber(uint32_t uid)
{
	return subscriber_of(uid, uid);
}

static void
turn(void)
{
	for (int i = 0; i < 5; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static void
of(const char *run, uint32_t uid, bool is_known)
{
	belongings = (struct belongings){ .run_id = run, .uid = { uid, is_known }, .cgroup_v2 = 7, .cgroup_v1 = 8 };
}

static struct event_exec *
exec_record(uint32_t flags)
{
	struct event_exec *e = (void *)record;

	record_len = sizeof(*e) + 8;
	memset(record, 0, record_len);
	*e = (struct event_exec){ .head = { .version = EVENT_VERSION, .kind = EVENT_EXEC, .size = (uint32_t)record_len,
		.time_ns = 5 }, .self = { 9, 42, 1 }, .flags = flags, .argv_len = 7, .argc = 1, .uid = 3 };
	strcpy(record + sizeof(*e), "secret");
	return e;
}

static void
state_record(uint16_t kind, uint32_t flags)
{
	record_len = sizeof(struct event_state);
	*(struct event_state *)(void *)record = (struct event_state){ .head = { .version = EVENT_VERSION, .kind = kind,
		.size = (uint32_t)record_len }, .self = { 9, 42, 1 }, .flags = flags };
}

static void
pass(void)
{
	subscriptions_after(&agent, &(struct program_key){ 9, 42, 1 });
}

/* Handles the record, before which the process had what the argument says. */
static void
event(struct belongings before)
{
	struct belongings after = belongings;

	belongings = before;
	subscriptions_before(&agent, &(struct program_key){ 9, 42, 1 });
	belongings = after;
	pass();
}

static struct {
	unsigned events, cgroups;
	uint64_t withheld, lost;
	unsigned settled;
	struct event_exec last;
	char path[16];
	bool is_over;
} got;

static void
hear(int fd)
{
	static _Alignas(8) char buf[1 << 20];
	const struct subscription_head *h = (const void *)buf;
	size_t have = 0, before, size;
	unsigned idle = 0;	/* turns in which nothing came */
	bool is_any;
	ssize_t n = 0;

	memset(&got, 0, sizeof(got));
	do {
		turn();
		before = have;
		is_any = false;
		while (have < sizeof(buf) && (n = read(fd, buf + have, sizeof(buf) - have)) > 0)
			have += (size_t)n;
		got.is_over = n == 0;
		while (have >= sizeof(*h) && h->size + sizeof(*h) <= have) {
			const void *body = h + 1;
			uint64_t n_more = ((const struct subscription_count *)body)->n;

			got.events += h->kind == SUBSCRIPTION_EVENT;
			got.settled += h->kind == SUBSCRIPTION_SETTLED;
			got.cgroups += h->kind == SUBSCRIPTION_CGROUP;
			got.withheld += h->kind == SUBSCRIPTION_WITHHELD ? n_more : 0;
			got.lost += h->kind == SUBSCRIPTION_LOST ? n_more : 0;
			if (h->kind == SUBSCRIPTION_EVENT && h->size >= sizeof(got.last))
				memcpy(&got.last, body, sizeof(got.last));
			if (h->kind == SUBSCRIPTION_CGROUP)
				snprintf(got.path, sizeof(got.path), "%s",
				    (const char *)body + sizeof(struct subscription_cgroup));
			size = sizeof(*h) + h->size;
			have -= size;
			memmove(buf, buf + size, have);
			is_any = true;
		}
		idle = have == before && !is_any ? idle + 1 : 0;
	} while (idle < 3 && !got.is_over);
}

static void
a_user_has_own_programs_alone(void **state)
{
	const struct {
		const char *run;
		uint32_t uid;
		bool is_known;
		unsigned alice, root;	/* events */
		unsigned withheld;	/* programs, of alice */
	} cases[] = {
		{ RUN, ALICE, true, 1, 1, 0 },
		{ RUN, ALICE, false, 0, 1, 1 },		/* elevated, or unknown */
		{ RUN, BOB, true, 0, 1, 1 },
		{ RUN, 0, true, 0, 1, 1 },
		{ "of another", ALICE, true, 0, 0, 0 },
		{ NULL, ALICE, true, 0, 0, 0 },
	};
	int alice = subscriber(ALICE), root = subscriber(0);

	(void)state;
	hear(alice);
	hear(root);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		exec_record(EVENT_EXECED);
		of(cases[i].run, cases[i].uid, cases[i].is_known);
		event((struct belongings){ 0 });
		subscriptions_passed(&agent);
		hear(alice);
		assert_int_equal(got.events, cases[i].alice);
		assert_int_equal(got.withheld, cases[i].withheld);
		hear(root);
		assert_int_equal(got.events, cases[i].root);
		assert_int_equal(got.withheld, 0);
	}
	close(alice);
	close(root);
}

/* One that never exec'd counts at its end, and any other at its exec. */
static void
a_withheld_program_counts_once(void **state)
{
	int fd = subscriber(ALICE);

	(void)state;
	of(RUN, ALICE, false);
	exec_record(EVENT_EXECED);
	event(belongings);
	state_record(EVENT_SNAPSHOT, EVENT_EXECED);
	event(belongings);
	state_record(EVENT_EXIT, EVENT_EXECED);
	event(belongings);
	state_record(EVENT_SNAPSHOT, 0);
	event(belongings);
	state_record(EVENT_EXIT, 0);
	event(belongings);
	subscriptions_passed(&agent);
	hear(fd);
	assert_int_equal(got.withheld, 2);
	assert_int_equal(got.events, 0);
	close(fd);
}

static void
an_own_program_that_a_withheld_one_replaces_ends(void **state)
{
	int fd = subscriber(ALICE);
	struct belongings own;
	struct event_exec *e;

	(void)state;
	of(RUN, ALICE, true);
	own = belongings;
	of(RUN, ALICE, false);
	e = exec_record(EVENT_EXECED | EVENT_REPLACED | EVENT_HAS_PEAK | EVENT_ARGV_CUT);
	e->prev.threads = 6;
	event(own);
	hear(fd);
	assert_int_equal(got.events, 1);
	assert_int_equal(got.last.head.size, sizeof(struct event_exec));
	assert_int_equal(got.last.flags, EVENT_EXECED | EVENT_REPLACED | EVENT_EXCLUDED | EVENT_HAS_PEAK);
	assert_int_equal(got.last.self.pid, 42);
	assert_int_equal(got.last.prev.threads, 6);
	assert_int_equal(got.last.argv_len + got.last.argc + got.last.uid, 0);
	/* It was seen before its first exec, as which it has no totals. */
	e = exec_record(EVENT_EXECED);
	e->prev.threads = 6;
	event(own);
	hear(fd);
	assert_int_equal(got.events, 1);
	assert_int_equal(got.last.flags, EVENT_EXECED | EVENT_REPLACED | EVENT_EXCLUDED);
	assert_int_equal(got.last.prev.threads, 0);
	close(fd);
}

/* A sweep passes ends on of which nothing was looked up before. */
static void
an_event_of_another_run_does_not_follow_an_own_one(void **state)
{
	int fd = subscriber(ALICE);

	(void)state;
	of(RUN, ALICE, true);
	state_record(EVENT_SNAPSHOT, EVENT_EXECED);
	event(belongings);
	of("of another", BOB, true);
	state_record(EVENT_STALE, EVENT_EXECED);
	pass();
	hear(fd);
	assert_int_equal(got.events, 1);
	close(fd);
}

static void
paths_of_cgroups_are_those_of_own_programs(void **state)
{
	int fd = subscriber(ALICE);

	(void)state;
	hear(fd);
	assert_int_equal(got.cgroups, 0);
	exec_record(EVENT_EXECED);
	of(RUN, BOB, true);
	event(belongings);
	hear(fd);
	assert_int_equal(got.cgroups, 0);
	of(RUN, ALICE, true);
	event(belongings);
	event(belongings);
	hear(fd);
	assert_int_equal(got.cgroups, 1);
	assert_string_equal(got.path, "/of/alice");
	close(fd);
}

static void
ids_of_a_user_have_the_runs_of_one(void **state)
{
	int fds[SUBSCRIPTIONS_MAX], n = 0;

	(void)state;
	while (agent_may_subscribe(&agent, ALICE) && n < SUBSCRIPTIONS_MAX) {
		fds[n] = subscriber_of(ALICE, 100000 + (uint32_t)n);
		n++;
	}
	assert_int_equal(n, (SUBSCRIPTIONS_BEGINNING - SUBSCRIPTIONS_KEPT) / 2);
	assert_true(agent_may_subscribe(&agent, BOB));
	while (n > 0)
		close(fds[--n]);
	turn();
}

static void
the_next_user_has_a_run_whatever_one_has(void **state)
{
	int fds[SUBSCRIPTIONS_MAX], n = 0, more;

	(void)state;
	while (agent_may_subscribe(&agent, ALICE) && n < SUBSCRIPTIONS_MAX)
		fds[n++] = subscriber(ALICE);
	assert_int_equal(n, (SUBSCRIPTIONS_BEGINNING - SUBSCRIPTIONS_KEPT) / 2);
	assert_true(agent_may_subscribe(&agent, BOB));
	/* Their commands begin: a run that has begun takes less. */
	exec_record(EVENT_EXECED);
	of(RUN, ALICE, true);
	event(belongings);
	while (agent_may_subscribe(&agent, ALICE) && n < SUBSCRIPTIONS_MAX) {
		fds[n++] = subscriber(ALICE);
		event(belongings);
	}
	assert_int_equal(n, (SUBSCRIPTIONS_MAX - SUBSCRIPTIONS_KEPT) / 2);
	more = subscriber(BOB);
	assert_true(agent_may_subscribe(&agent, BOB));
	assert_true(agent_may_subscribe(&agent, BOB + 1));
	assert_true(agent_may_subscribe(&agent, 0));
	assert_int_equal(agent.subscription_stats.crowded, 2);
	close(more);
	while (n > 0)
		close(fds[--n]);
}

static void
who_does_not_read_leaves_room_to_others(void **state)
{
	int alice[2] = { subscriber(ALICE), subscriber(ALICE) }, bob = subscriber(BOB);
	uint64_t passed;

	(void)state;
	hear(bob);
	of(RUN, ALICE, true);
	exec_record(EVENT_EXECED);
	record_len = 32768;
	for (int i = 0; i < 600; i++)		/* 19 MiB for each */
		event(belongings);
	of(RUN, BOB, true);
	event(belongings);
	hear(bob);
	assert_int_equal(got.events, 1);
	assert_int_equal(got.lost, 0);
	assert_true(got.withheld >= 600);
	of(RUN, ALICE, true);
	hear(alice[0]);
	assert_true(got.events > 0 && got.events < 600);
	passed = got.events + got.lost;
	subscriptions_passed(&agent);
	hear(alice[0]);
	assert_int_equal(passed + got.lost, 600);
	close(bob);
	close(alice[0]);
	close(alice[1]);
}

static void
who_never_reads_is_cut_off(void **state)
{
	int fd;

	(void)state;
	is_silence_short = true;
	fd = subscriber(ALICE);
	assert_int_equal(silent_s, 600);
	of(RUN, ALICE, true);
	exec_record(EVENT_EXECED);
	record_len = 32768;
	for (int i = 0; i < 20; i++)		/* more than the kernel takes */
		event(belongings);
	for (int i = 0; i < 500 && agent.subscriptions != NULL; i++) {
		usleep(10000);
		turn();
	}
	assert_null(agent.subscriptions);
	assert_int_equal(agent.subscription_stats.slow, 1);
	hear(fd);
	assert_true(got.is_over);
	close(fd);
}

/* It may be another process's afterwards. */
static void
a_pid_is_kept_until_its_exec_or_its_end(void **state)
{
	int fds[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		fds[i] = subscriber(ALICE);
	assert_int_equal(n_kept, 4);
	of(RUN, ALICE, true);
	state_record(EVENT_SNAPSHOT, 0);
	event(belongings);
	assert_int_equal(n_kept, 4);
	state_record(EVENT_EXIT, 0);
	event(belongings);
	assert_int_equal(n_kept, 0);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

static void
who_never_begins_is_cut_off(void **state)
{
	int begun = subscriber(ALICE), late;

	(void)state;
	exec_record(EVENT_EXECED);
	of(RUN, ALICE, true);
	event(belongings);
	has_waited = true;
	late = subscriber(ALICE);
	hear(late);
	assert_true(got.is_over);
	assert_int_equal(agent.subscription_stats.slow, 1);
	assert_int_equal(n_kept, 0);
	hear(begun);
	assert_false(got.is_over);
	close(begun);
	close(late);
}

/* As a subscriber does at the end of its COMMAND, which then reads until the other side closes. */
static void
ends(int fd)
{
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	turn();
}

static void
await_settles(unsigned n)
{
	for (int i = 0; i < 500 && n_settles < n; i++) {
		usleep(1000);
		turn();
	}
	assert_true(n_settles >= n);
}

static void
one_pass_is_for_all_that_end(void **state)
{
	int a = subscriber(ALICE), b = subscriber(BOB), c = subscriber(ALICE);

	(void)state;
	n_ending = 1;
	ends(a);
	await_settles(1);
	assert_int_equal(n_settling, 1);
	ends(b);
	await_settles(n_settles + 1);
	assert_int_equal(n_settling, 2);
	n_ending = 0;
	await_settles(n_settles + 1);
	assert_int_equal(n_settling, 2);
	hear(a);
	assert_true(got.is_over && got.settled == 1);
	hear(b);
	assert_true(got.is_over && got.settled == 1);
	hear(c);
	assert_false(got.is_over || got.settled > 0);
	ends(c);
	close(c);
	await_settles(n_settles + 1);
	assert_int_equal(n_settling, 1);
}

static void
root_alone_has_the_last_ends_hurried_while_it_waits(void **state)
{
	int alice = subscriber(ALICE), root = subscriber(0);

	(void)state;
	n_ending = 1;
	ends(alice);
	assert_false(is_hurried);
	ends(root);
	assert_true(is_hurried);
	n_ending = 0;
	await_settles(n_settles + 1);
	assert_false(is_hurried);
	close(alice);
	close(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_user_has_own_programs_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_withheld_program_counts_once, setup, teardown),
		cmocka_unit_test_setup_teardown(an_own_program_that_a_withheld_one_replaces_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(an_event_of_another_run_does_not_follow_an_own_one, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_of_cgroups_are_those_of_own_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_of_a_user_have_the_runs_of_one, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_user_has_a_run_whatever_one_has, setup, teardown),
		cmocka_unit_test_setup_teardown(who_does_not_read_leaves_room_to_others, setup, teardown),
		cmocka_unit_test_setup_teardown(who_never_reads_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pid_is_kept_until_its_exec_or_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(who_never_begins_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(one_pass_is_for_all_that_end, setup, teardown),
		cmocka_unit_test_setup_teardown(root_alone_has_the_last_ends_hurried_while_it_waits, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
