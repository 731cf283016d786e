/* SPDX-License-Identifier: Apache-2.0 */
/* settling: real clients at a real socket, which wait for what the test sets as pending. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <jansson.h>

#include "base/clock.h"
#include "control/control.h"
#include "daemon/settling.h"
#include "tree.h"

static struct tree tree;
static struct event_base *base;
static struct control *c;
static struct settle *s;
static char error[512];

/* The state of the simulated agent. */
static struct {
	uint64_t ring_end;
	uint64_t ring_at;
	uint64_t end_ns[4];		/* of processes whose last is still to come */
	size_t n_ends;
	struct correlator_held held;
	bool is_broken;			/* passes break off */
	unsigned looks;
	unsigned marks;
	bool is_kept;
	struct settle_rest rest;
} now;

static uint64_t
ring_end(void *arg)
{
	(void)arg;
	return now.ring_end;
}

static bool
look(struct agent_settling *settling, size_t n, void *arg)
{
	(void)arg;
	assert_in_range(n, 1, SETTLE_CLIENTS);
	now.looks++;
	for (size_t i = 0; i < n; i++) {
		settling[i].ends = 0;
		for (size_t e = 0; e < now.n_ends; e++)
			settling[i].ends += now.end_ns[e] <= settling[i].since_ns;
		settling[i].is_read = now.ring_at >= settling[i].ring_end;
		settling[i].held = now.held;
	}
	return !now.is_broken;
}

static void
mark(struct spool_mark *ret, void *arg)
{
	(void)arg;
	*ret = (struct spool_mark){ .number = { ++now.marks } };
}

static bool
keep(const struct spool_mark *m, bool delivered, struct settle_rest *ret, void *arg)
{
	(void)arg;
	assert_in_range(m->number[0], 1, now.marks);
	*ret = now.rest;
	ret->is_waiting = delivered && !now.is_kept;
	return now.is_kept;
}

static int
setup(void **state)
{
	static const struct settle_ops ops = { ring_end, look, mark, keep };
	struct control_options o = { .idle_ms = 100 };	/* of clients who wait for no answer */

	(void)state;
	memset(&now, 0, sizeof(now));
	now.is_kept = true;
	tree_init(&tree);
	base = event_base_new();
	o.path = tree_path(&tree, "control.sock");
	assert_int_equal(control_open(base, &o, &c, error, sizeof(error)), 0);
	assert_int_equal(settle_open(base, &ops, NULL, &s), 0);
	assert_int_equal(control_handle(c, "settle", "waits", CONTROL_ADMIN, settle_on_request, s), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	settle_close(s);
	control_close(c);
	event_base_free(base);
	tree_done(&tree);
	return 0;
}

static int
client(const char *args)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[256];

	strcpy(a.sun_path, tree_path(&tree, "control.sock"));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	snprintf(line, sizeof(line), "{\"command\":\"settle\",\"args\":%s}\n", args);
	assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), strlen(line));
	return fd;
}

/* Runs the loop for so long. */
static void
run_ms(unsigned ms)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000;

	do {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(500);
	} while (clock_ns(CLOCK_MONOTONIC) < until);
}

/* The line that it gets within some seconds; "" when there is none by now. */
static const char *
heard(int fd, bool waits)
{
	static char line[4096];
	size_t len = 0;

	for (int i = 0; i < (waits ? 20000 : 1); i++) {
		ssize_t n = recv(fd, line + len, sizeof(line) - 1 - len, MSG_DONTWAIT);

		len += n > 0 ? (size_t)n : 0;
		line[len] = '\0';
		if (len > 0 && line[len - 1] == '\n')
			return line;
		if (n == 0)
			fail_msg("cut off");
		run_ms(1);
	}
	if (waits)
		fail_msg("no answer");
	return line;
}

static void
assert_done(int fd)
{
	const char *line = heard(fd, true);

	if (strstr(line, "\"ok\":true") == NULL)
		fail_msg("%s", line);
	close(fd);
}

static void
assert_says(int fd, const char *text)
{
	const char *line = heard(fd, true);

	if (strstr(line, "\"ok\":false") == NULL || strstr(line, text) == NULL)
		fail_msg("%s", line);
	close(fd);
}

static void
args_are_parsed(void **state)
{
	static const struct {
		const char *args;
		struct settle_want want;
		const char *error;	/* a part of it; NULL: it is right */
	} cases[] = {
		{ "{}", { false, false, SETTLE_DEFAULT_MS }, NULL },
		{ "{\"delivered\":true}", { true, false, SETTLE_DEFAULT_MS }, NULL },
		{ "{\"delivered\":\"true\",\"tasks\":\"false\"}", { true, false, SETTLE_DEFAULT_MS }, NULL },
		{ "{\"tasks\":true,\"timeout\":600}", { false, true, SETTLE_MAX_MS }, NULL },
		{ "{\"timeout\":0.25}", { false, false, 250 }, NULL },
		{ "{\"timeout\":600.1}", { 0 }, "at most 600" },
		{ "{\"timeout\":0}", { 0 }, "at most 600" },
		{ "{\"timeout\":-1}", { 0 }, "at most 600" },
		{ "{\"timeout\":\"30s\"}", { 0 }, "a number of seconds" },
		{ "{\"timeout\":null}", { 0 }, "a number of seconds" },
		{ "{\"delivered\":1}", { 0 }, "true or false" },
		{ "{\"tasks\":\"yes\"}", { 0 }, "true or false" },
		{ "{\"words\":[\"x\"]}", { 0 }, "no other word" },
		{ "{\"deliver\":true}", { 0 }, "no other option" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *args = json_loads(cases[i].args, 0, NULL);
		struct settle_want want = { .timeout_ms = 7 };
		int r = settle_parse(args, &want, error, sizeof(error));

		json_decref(args);
		assert_int_equal(r, cases[i].error != NULL ? -EINVAL : 0);
		if (cases[i].error != NULL) {
			assert_non_null(strstr(error, cases[i].error));
			assert_int_equal(want.timeout_ms, 7);
			continue;
		}
		assert_int_equal(want.delivered, cases[i].want.delivered);
		assert_int_equal(want.tasks, cases[i].want.tasks);
		assert_int_equal(want.timeout_ms, cases[i].want.timeout_ms);
	}
}

static void
nothing_pending_is_answered_at_once(void **state)
{
	(void)state;
	assert_done(client("{}"));
	assert_int_equal(now.looks, 1);
	assert_int_equal(now.marks, 1);
}

static void
an_end_before_the_call_is_waited_for_and_a_later_one_is_not(void **state)
{
	int fd;

	(void)state;
	now.end_ns[0] = clock_ns(CLOCK_BOOTTIME);
	now.n_ends = 1;
	fd = client("{}");
	run_ms(100);
	assert_string_equal(heard(fd, false), "");
	assert_in_range(now.looks, 2, 20);	/* and no busy loop */
	now.end_ns[0] = clock_ns(CLOCK_BOOTTIME);	/* it is reported, and another one ends */
	assert_done(fd);
}

static void
the_ring_is_read_up_to_the_call(void **state)
{
	int fd;

	(void)state;
	now.ring_end = 800;
	now.ring_at = 799;
	fd = client("{\"timeout\":0.05}");
	run_ms(20);
	now.ring_end = 900;	/* later events */
	assert_says(fd, "not settled within 0.05 s: the kernel's ring is not read up to the request");
	now.ring_end = 800;
	fd = client("{}");
	run_ms(50);
	assert_string_equal(heard(fd, false), "");
	now.ring_end = 900;
	now.ring_at = 800;
	assert_done(fd);
}

static void
what_is_pending_is_named(void **state)
{
	(void)state;
	now.end_ns[0] = now.end_ns[1] = 1;
	now.n_ends = 2;
	assert_says(client("{\"timeout\":0.03}"), "within 0.03 s: 2 ended processes are not reported by the kernel\"");
	now.n_ends = 1;
	assert_says(client("{\"timeout\":0.03}"), "within 0.03 s: 1 ended process is not reported by the kernel\"");
	now.n_ends = 0;
	now.held = (struct correlator_held){ 1, 2, 1 };
	assert_done(client("{}"));
	assert_says(client("{\"tasks\":true,\"timeout\":0.03}"),
	    "within 0.03 s: 1 task without a program may continue; "
	    "2 runs without a program may continue; 1 failure is not recorded\"");
	now.held = (struct correlator_held){ 0 };
	now.is_broken = true;
	assert_says(client("{\"timeout\":0.03}"), "the processes could not be read");
	now.is_broken = false;
	now.is_kept = false;
	now.rest = (struct settle_rest){ .unsynced = 12, .disk_error = -ENOSPC };
	assert_says(client("{\"timeout\":0.03}"),
	    "within 0.03 s: 12 records are not synced to the spool's disk, "
	    "which refuses writes: No space left on device\"");
	now.rest = (struct settle_rest){ .output = "the broker", .error = "it is away" };
	now.rest.waiting[TOPIC_USAGE] = 3;
	assert_says(client("{\"delivered\":true,\"timeout\":0.03}"),
	    "within 0.03 s: 3 records of sluice.usage wait for the broker: it is away\"");
	now.rest.waiting[TOPIC_PROGRAM] = 1;
	now.rest.error[0] = '\0';
	assert_says(client("{\"delivered\":true,\"timeout\":0.03}"),
	    "within 0.03 s: 1 record of sluice.program, 3 records of sluice.usage wait for the broker\"");
	now.rest = (struct settle_rest){ .output = "the lake" };
	assert_says(client("{\"delivered\":true,\"timeout\":0.03}"), "within 0.03 s: records wait for the lake\"");
}

static void
its_own_timeout_is_honoured_beyond_that_of_silent_clients(void **state)
{
	int fd;

	(void)state;
	now.is_kept = false;
	fd = client("{}");
	run_ms(500);		/* of 100 ms */
	assert_string_equal(heard(fd, false), "");
	now.is_kept = true;
	assert_done(fd);
}

static void
one_that_leaves_is_forgotten(void **state)
{
	struct control_stats stats;

	(void)state;
	now.is_kept = false;
	for (int i = 0; i < 3 * SETTLE_CLIENTS; i++) {
		close(client("{\"timeout\":600}"));
		run_ms(30);
	}
	control_stats(c, &stats);
	assert_int_equal(stats.clients, 0);
	now.looks = 0;
	run_ms(60);
	assert_int_equal(now.looks, 0);		/* no client waits */
	now.is_kept = true;
	assert_done(client("{}"));
}

static void
those_who_have_left_before_the_next_look_take_no_room(void **state)
{
	(void)state;
	for (int i = 0; i < SETTLE_CLIENTS; i++)
		close(client("{\"timeout\":600}"));
	assert_done(client("{}"));	/* the loop finds all of them at once */
}

static void
one_that_only_sends_no_more_is_answered(void **state)
{
	int fd;

	(void)state;
	now.is_kept = false;
	fd = client("{}");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	run_ms(100);
	now.is_kept = true;
	assert_done(fd);
}

static void
one_too_many_is_refused_and_the_others_get_their_answers(void **state)
{
	int fds[SETTLE_CLIENTS];

	(void)state;
	now.is_kept = false;
	for (int i = 0; i < SETTLE_CLIENTS; i++)
		fds[i] = client("{}");
	run_ms(30);
	assert_says(client("{}"), "8 clients wait for this already");
	now.is_kept = true;
	for (int i = 0; i < SETTLE_CLIENTS; i++)
		assert_done(fds[i]);
}

static void
each_waits_for_its_own_moment(void **state)
{
	int early, late;

	(void)state;
	now.end_ns[0] = UINT64_MAX;
	now.n_ends = 1;
	now.is_kept = false;
	early = client("{}");
	run_ms(30);
	now.end_ns[0] = clock_ns(CLOCK_BOOTTIME);
	run_ms(2);
	late = client("{}");
	run_ms(30);
	now.is_kept = true;
	assert_done(early);
	assert_string_equal(heard(late, false), "");
	now.n_ends = 0;
	assert_done(late);
}

static void
clients_that_wait_as_the_agent_stops_are_answered(void **state)
{
	int fd;

	(void)state;
	now.is_kept = false;
	fd = client("{}");
	run_ms(30);
	settle_close(s);
	s = NULL;
	assert_says(fd, "the agent stops");
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args_are_parsed),
		TEST(nothing_pending_is_answered_at_once),
		TEST(an_end_before_the_call_is_waited_for_and_a_later_one_is_not),
		TEST(the_ring_is_read_up_to_the_call),
		TEST(what_is_pending_is_named),
		TEST(its_own_timeout_is_honoured_beyond_that_of_silent_clients),
		TEST(one_that_leaves_is_forgotten),
		TEST(those_who_have_left_before_the_next_look_take_no_room),
		TEST(one_that_only_sends_no_more_is_answered),
		TEST(one_too_many_is_refused_and_the_others_get_their_answers),
		TEST(each_waits_for_its_own_moment),
		TEST(clients_that_wait_as_the_agent_stops_are_answered),
	};

	signal(SIGPIPE, SIG_IGN);	/* as the daemon does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
