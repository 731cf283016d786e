/* SPDX-License-Identifier: Apache-2.0 */
/* control: clients of several users, as the kernel reports them here, and a clock that the test moves. */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "control_kit.h"
#include "timers.h"

#define UID 1000
#define OWNER getegid()		/* whose members may send every command */
#define READERS "daemon"
#define READERS_GID 1		/* of daemon, on every Linux */

static struct {
	bool is_set;
	struct ucred peer;
	gid_t groups[2];
	unsigned n_groups;
} who;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (who.is_set && level == SOL_SOCKET && name == SO_PEERCRED) {
		memcpy(value, &who.peer, sizeof(who.peer));
		return 0;
	}
	if (who.is_set && level == SOL_SOCKET && name == SO_PEERGROUPS) {
		*len = (socklen_t)(who.n_groups * sizeof(gid_t));
		memcpy(value, who.groups, *len);
		return 0;
	}
	return __real_getsockopt(fd, level, name, value, len);
}

static struct control_stats
stats(void)
{
	struct control_stats got;

	control_stats(c, &got);
	return got;
}

static int
setup_limits(void **state)
{
	memset(&who, 0, sizeof(who));
	memset(&timers, 0, sizeof(timers));
	read_group = READERS;
	is_public = false;
	return setup(state);
}

/* Connects as that user, with that group. */
static int
client_as(uid_t uid, gid_t group)
{
	int fd;

	who.is_set = true;
	who.peer = (struct ucred){ .pid = 1, .uid = uid, .gid = 4242 };
	who.groups[0] = group;
	who.n_groups = 1;
	fd = client();
	turn();
	return fd;
}

static void
open_for_groups(uint32_t idle_ms)
{
	struct group *g = getgrgid(OWNER);
	char own[64];

	assert_non_null(g);
	snprintf(own, sizeof(own), "%s", g->gr_name);
	open_it(own, idle_ms);
	assert_string_equal(error, "");
}

static const char *
is_refused(int fd)
{
	return refused(hear(fd));
}

static void
is_answered(int fd)
{
	json_t *answer = hear(fd);

	assert_non_null(answer);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
}

/* Their number if they have some. */
static unsigned
answers(int fd)
{
	static char buf[1 << 16];
	unsigned n = 0;
	ssize_t got;

	while ((got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		for (ssize_t i = 0; i < got; i++)
			n += buf[i] == '\n';
	}
	return n;
}

static void
readers_read_and_change_nothing(void **state)
{
	int fd;

	(void)state;
	if (OWNER == READERS_GID)
		skip();
	open_for_groups(0);
	fd = client_as(UID, READERS_GID);
	say(fd, "{\"command\":\"status\"}\n");
	is_answered(fd);
	say(fd, "{\"command\":\"help\"}\n");
	is_answered(fd);
	say(fd, "{\"command\":\"echo\"}\n");
	assert_non_null(strstr(is_refused(fd), "only root and the members of the group "));
	assert_int_equal(stats().denied, 1);
	close(fd);
	fd = client_as(UID, OWNER);
	say(fd, "{\"command\":\"echo\"}\n");
	is_answered(fd);
	close(fd);
	fd = client_as(UID, 4243);
	assert_non_null(strstr(is_refused(fd), "only root and the members"));
	assert_int_equal(stats().refused, 1);
	close(fd);
}

static void
any_user_sends_what_concerns_own_processes(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	read_group = NULL;
	is_public = true;
	open_it(NULL, 0);
	assert_string_equal(error, "");
	assert_int_equal(stat(socket_path(), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_int_equal(control_handle(c, "held", "waits", CONTROL_OWN, on_hold, NULL), 0);
	fd = client_as(UID, 4243);
	say(fd, "{\"command\":\"status\"}\n");
	assert_non_null(strstr(is_refused(fd), "only root may send 'status'"));
	say(fd, "{\"command\":\"echo\"}\n");
	assert_non_null(strstr(is_refused(fd), "only root may send 'echo'"));
	assert_int_equal(stats().denied, 2);
	say(fd, "{\"command\":\"held\"}\n");
	turn();
	assert_non_null(held);
	assert_int_equal(control_request_peer(held).access, CONTROL_OWN);
	control_answer(held, json_object());
	held = NULL;
	is_answered(fd);
	close(fd);
	fd = client_as(0, 0);
	say(fd, "{\"command\":\"echo\"}\n");
	is_answered(fd);
	close(fd);
}

static void
a_command_may_need_more_for_some_uses(void **state)
{
	int fd;

	(void)state;
	open_for_groups(0);
	assert_int_equal(control_handle(c, "held", "waits", CONTROL_READ, on_hold, NULL), 0);
	fd = client_as(UID, READERS_GID);
	say(fd, "{\"command\":\"held\"}\n");
	turn();
	assert_non_null(held);
	assert_int_equal(control_request_peer(held).uid, UID);
	assert_true(control_permits(held, CONTROL_READ, "x"));
	assert_false(control_permits(held, CONTROL_ADMIN, "change rules"));
	held = NULL;
	assert_non_null(strstr(is_refused(fd), " may change rules"));
	say(fd, "{\"command\":\"held\"}\n");
	turn();
	close(fd);
	while (clients() > 0 && !control_is_gone(held))
		turn();
	turn();
	assert_false(control_permits(held, CONTROL_ADMIN, "change rules"));
	held = NULL;
}

static void
a_user_has_a_share_of_the_connections(void **state)
{
	int fds[CONTROL_CLIENTS_OF_UID], more;

	(void)state;
	open_for_groups(0);
	for (int i = 0; i < CONTROL_CLIENTS_OF_UID; i++)
		fds[i] = client_as(UID, READERS_GID);
	more = client_as(UID, READERS_GID);
	assert_non_null(strstr(is_refused(more), "too many clients of this user"));
	close(more);
	assert_int_equal(stats().crowded, 1);
	more = client_as(UID + 1, READERS_GID);
	say(more, "{\"command\":\"status\"}\n");
	is_answered(more);
	close(more);
	close(fds[0]);
	turn();
	fds[0] = client_as(UID, READERS_GID);
	say(fds[0], "{\"command\":\"status\"}\n");
	is_answered(fds[0]);
	for (int i = 0; i < CONTROL_CLIENTS_OF_UID; i++)
		close(fds[i]);
}

static void
some_connections_are_kept_for_root(void **state)
{
	enum { OTHERS = CONTROL_CLIENTS - CONTROL_CLIENTS_KEPT };
	int fds[CONTROL_CLIENTS], more;

	(void)state;
	open_for_groups(0);
	for (int i = 0; i < OTHERS; i++)
		fds[i] = client_as(UID + (uid_t)i / CONTROL_CLIENTS_OF_UID, READERS_GID);
	assert_int_equal(clients(), OTHERS);
	more = client_as(UID + 100, READERS_GID);
	assert_non_null(strstr(is_refused(more), "too many clients"));
	close(more);
	for (int i = OTHERS; i < CONTROL_CLIENTS; i++) {
		fds[i] = client_as(0, 0);
		say(fds[i], "{\"command\":\"status\"}\n");
		is_answered(fds[i]);
	}
	more = client_as(0, 0);
	assert_non_null(strstr(is_refused(more), "too many clients at once"));
	close(more);
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		close(fds[i]);
}

/* Real CPU time, on a clock that is stopped: after the burst there is nothing more. */
static void
a_user_who_asks_too_much_waits(void **state)
{
	unsigned got = 0, before;
	int fd, other, root;

	(void)state;
	open_for_groups(0);
	timers.now_us = 1000000;
	fd = client_as(UID, READERS_GID);
	for (int i = 0; i < 3000 && stats().waits == 0; i++) {
		say(fd, "{\"command\":\"help\"}\n");
		turn();
		got += answers(fd);
	}
	assert_in_range(stats().waits, 1, 1);
	assert_in_range(got, 1, 700);		/* 0.1 s at 0.15 ms or more */
	for (int i = 0; i < 20; i++)
		say(fd, "{\"command\":\"help\"}\n");
	for (int i = 0; i < 50; i++) {
		usleep(1000);
		turn();
	}
	assert_in_range(answers(fd), 0, 1);	/* one may have been sent before */
	/* Others are not kept out, and root has no limit. */
	other = client_as(UID + 1, READERS_GID);
	say(other, "{\"command\":\"status\"}\n");
	is_answered(other);
	root = client_as(0, 0);
	for (int i = 0; i < 1000; i++) {
		say(root, "{\"command\":\"help\"}\n");
		is_answered(root);
	}
	before = (unsigned)stats().requests;
	timers.now_us += 11000000;		/* which pays for everything */
	for (int i = 0; i < 5000 && stats().requests < before + 20; i++) {
		usleep(1000);
		turn();
	}
	assert_in_range(answers(fd), 20, 21);
	close(fd);
	close(other);
	close(root);
}

static bool is_discounted;

/* Takes 20 ms of CPU time, a fifth of a burst. */
static void
on_costly_take(struct control_request *req, const json_t *args, void *arg)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), used;

	while ((used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) < 20000000)
		;
	if (is_discounted)
		control_discount(req, used);
	on_take(req, args, arg);
}

/* Asks as a new client, up to 20 times. Returns how often that was answered before a client had to wait. */
static unsigned
costly_takes(void)
{
	uint64_t before = stats().waits;
	unsigned n = 0;

	for (int i = 0; i < 20 && stats().waits == before; i++) {
		int fd = client_as(UID, READERS_GID);

		say(fd, "{\"command\":\"costly\"}\n");
		turn();
		if (taken != NULL) {
			bufferevent_free(taken);
			taken = NULL;
			n++;
		}
		close(fd);
	}
	return n;
}

static void
what_is_handed_over_is_paid_for(void **state)
{
	(void)state;
	open_for_groups(0);
	assert_int_equal(control_handle(c, "costly", "takes its time", CONTROL_READ, on_costly_take, NULL), 0);
	timers.now_us = 1000000;
	is_discounted = true;
	assert_int_equal(costly_takes(), 20);
	timers.now_us += 11000000;
	is_discounted = false;
	assert_in_range(costly_takes(), 1, 5);
}

/* Each byte would be a sign of life. */
static void
a_line_that_drips_is_cut_off(void **state)
{
	char byte;
	int fd;

	(void)state;
	open_for_groups(50);
	fd = client();
	for (int i = 0; i < 500 && stats().cut_off == 0; i++) {
		(void)!send(fd, " ", 1, MSG_NOSIGNAL);
		usleep(5000);
		turn();
	}
	assert_int_equal(stats().cut_off, 1);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
}

static void
a_user_who_only_connects_has_to_wait(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	unsigned connected = 0;

	(void)state;
	open_for_groups(0);
	timers.now_us = 1000000;
	strcpy(a.sun_path, socket_path());
	close(client_as(UID, 4243));
	for (int i = 0; i < 2000; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		connected += connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
		close(fd);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	assert_in_range(stats().refused, 200, 201);	/* the burst */
	assert_true(stats().waits > 0);
	assert_in_range(connected, 200, 400);		/* the others found no room in the kernel */
	/* A moment later there is room again. */
	timers.now_us += 1000000;
	for (int i = 0; i < 5000 && stats().refused < 300; i++) {
		usleep(1000);
		turn();
	}
	assert_true(stats().refused >= 300);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(readers_read_and_change_nothing, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(any_user_sends_what_concerns_own_processes, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(a_command_may_need_more_for_some_uses, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(a_user_has_a_share_of_the_connections, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(some_connections_are_kept_for_root, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(a_user_who_asks_too_much_waits, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(what_is_handed_over_is_paid_for, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(a_line_that_drips_is_cut_off, setup_limits, teardown),
		cmocka_unit_test_setup_teardown(a_user_who_only_connects_has_to_wait, setup_limits, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
