/* SPDX-License-Identifier: Apache-2.0 */
/* control: real clients at a real socket, on one loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>

#include "control/control.h"
#include "control_kit.h"

static void
a_command_is_answered(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"echo\",\"args\":{\"a\":[1,null]}}\n");
	answer = hear(fd);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "args"), "a")), 2);
	json_decref(answer);
	/* The same connection again; no args is an empty object. */
	say(fd, "{\"command\":\"echo\"}\n");
	answer = hear(fd);
	assert_int_equal(json_object_size(json_object_get(answer, "args")), 0);
	json_decref(answer);
	say(fd, "{\"command\":\"no\"}\n");
	assert_string_equal(refused(hear(fd)), "sluice.yaml:3: \"no\"\n\\xff");
	close(fd);
}

static void
an_unknown_command_names_those_there_are(void **state)
{
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"relod\"}\n");
	assert_string_equal(refused(hear(fd)), "the agent has no command 'relod'; it has help, echo, hold, no, take, huge, status");
	close(fd);
}

static void
lines_sent_ahead_are_answered_in_order(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"echo\",\"args\":{\"n\":1}}\n\n{\"command\":\"hold\"}\n{\"command\":\"echo\",\"args\":{\"n\":3}}\n");
	shutdown(fd, SHUT_WR);	/* as `nc -N` */
	answer = hear(fd);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "args"), "n")), 1);
	json_decref(answer);
	turn();
	assert_non_null(held);
	control_answer(held, json_pack("{si}", "n", 2));
	held = NULL;
	answer = hear(fd);
	assert_int_equal(json_integer_value(json_object_get(answer, "n")), 2);
	json_decref(answer);
	answer = hear(fd);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "args"), "n")), 3);
	json_decref(answer);
	assert_null(hear(fd));
	close(fd);
}

static void
a_late_answer_to_nobody_harms_nobody(void **state)
{
	struct control_stats stats;
	int fd;

	(void)state;
	open_it(NULL, 50);
	fd = client();
	say(fd, "{\"command\":\"hold\"}\n");
	turn();
	assert_non_null(held);
	close(fd);
	for (int i = 0; i < 10; i++) {	/* the idle limit passes too */
		usleep(10000);
		turn();
	}
	control_answer_error(held, "late");
	held = NULL;
	turn();
	control_stats(c, &stats);
	assert_int_equal(stats.clients, 0);

	/* An answer to a client whose socket the server has closed. */
	fd = client();
	say(fd, "{\"command\":\"hold\"}\n");
	turn();
	control_close(c);
	c = NULL;
	control_answer(held, json_object());
	held = NULL;
	close(fd);
}

static void
bad_requests_are_refused_with_the_reason(void **state)
{
	static const char *const bad[][2] = {
		{ "nonsense\n", "not a line of JSON" },
		{ "[1]\n", "not an object" },
		{ "{}\n", "\"command\" is missing" },
		{ "{\"command\":7}\n", "\"command\" is missing" },
		{ "{\"command\":\"Two Words\"}\n", "not a command's name" },
		{ "{\"command\":\"echo\",\"args\":[]}\n", "\"args\" is not an object" },
		{ "{\"command\":\"echo\",\"arg\":{}}\n", "nothing else" },
		{ "{\"command\":\"echo\",\"command\":\"no\"}\n", "not a line of JSON" },
	};
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		say(fd, bad[i][0]);
		assert_non_null(strstr(refused(hear(fd)), bad[i][1]));
	}
	close(fd);
}

static void
a_line_without_end_is_cut_off(void **state)
{
	static char much[CONTROL_LINE_MAX + 10];
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	memset(much, ' ', sizeof(much) - 1);
	for (size_t at = 0; at < sizeof(much) - 1;) {
		ssize_t n = send(fd, much + at, sizeof(much) - 1 - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		at += n > 0 ? (size_t)n : 0;
		turn();
	}
	assert_non_null(strstr(refused(hear(fd)), "64 KiB"));
	assert_null(hear(fd));
	close(fd);
}

static void
a_silent_client_is_cut_off(void **state)
{
	struct control_stats stats;
	int fd;

	(void)state;
	open_it(NULL, 50);
	fd = client();
	assert_null(hear(fd));
	control_stats(c, &stats);
	assert_int_equal(stats.cut_off, 1);
	assert_int_equal(stats.clients, 0);
	close(fd);
}

static void
one_that_waits_for_us_is_not(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 50);
	fd = client();
	say(fd, "{\"command\":\"hold\"}\n");
	for (int i = 0; i < 20; i++) {
		usleep(10000);
		turn();
	}
	control_answer(held, json_object());
	held = NULL;
	answer = hear(fd);
	assert_non_null(answer);
	json_decref(answer);
	close(fd);
}

static void
a_client_that_does_not_read_is_cut_off(void **state)
{
	struct control_stats stats;
	int fd, small = 4096;

	(void)state;
	open_it(NULL, 100);
	fd = client();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 8; i++)
		say(fd, "{\"command\":\"huge\",\"args\":{\"size\":900000}}\n");
	turn();
	control_stats(c, &stats);
	assert_int_equal(stats.requests, 1);	/* the others wait: memory holds only one answer */
	for (int i = 0; i < 40 && stats.clients > 0; i++) {
		usleep(10000);
		turn();
		control_stats(c, &stats);
	}
	assert_int_equal(stats.clients, 0);
	assert_int_equal(stats.cut_off, 1);
	close(fd);
}

static void
an_answer_too_large_is_an_error(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"huge\",\"args\":{\"size\":900000}}\n");
	answer = hear(fd);
	assert_int_equal(json_string_length(json_object_get(answer, "text")), 900000);
	json_decref(answer);
	say(fd, "{\"command\":\"huge\",\"args\":{\"size\":2000000}}\n");
	assert_non_null(strstr(refused(hear(fd)), "too large"));
	close(fd);
}

static void
one_client_too_many_is_refused(void **state)
{
	int fds[CONTROL_CLIENTS + 1];

	(void)state;
	open_it(NULL, 0);
	for (int i = 0; i <= CONTROL_CLIENTS; i++) {
		fds[i] = client();
		turn();
	}
	assert_non_null(strstr(refused(hear(fds[CONTROL_CLIENTS])), "too many"));
	assert_null(hear(fds[CONTROL_CLIENTS]));
	say(fds[0], "{\"command\":\"echo\"}\n");
	json_decref(hear(fds[0]));
	for (int i = 0; i <= CONTROL_CLIENTS; i++)
		close(fds[i]);
}

static void
status_is_json_or_text(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"status\"}\n");
	answer = hear(fd);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_true(json_is_false(json_object_get(answer, "ready")));
	assert_int_equal(json_integer_value(json_object_get(answer, "pid")), 4711);
	json_decref(answer);
	say(fd, "{\"command\":\"status\",\"args\":{\"format\":\"text\"}}\n");
	answer = hear(fd);
	assert_memory_equal(json_string_value(json_object_get(answer, "text")), "not delivering", 14);
	json_decref(answer);
	say(fd, "{\"command\":\"status\",\"args\":{\"format\":\"xml\"}}\n");
	assert_non_null(strstr(refused(hear(fd)), "no format 'xml'"));
	say(fd, "{\"command\":\"help\"}\n");
	answer = hear(fd);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "text")), "status       the state of the agent"));
	json_decref(answer);
	close(fd);
}

static void
a_live_agent_keeps_its_socket_and_a_dead_one_does_not(void **state)
{
	struct control_options o = { .path = socket_path() };
	struct control *second = NULL;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	(void)state;
	open_it(NULL, 0);
	assert_int_equal(control_open(base, &o, &second, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, "another agent listens there"));
	assert_null(second);
	turn();
	control_close(c);
	c = NULL;
	assert_int_equal(lstat(socket_path(), &st), -1);

	/* One that was killed leaves the file behind. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(a.sun_path, socket_path());
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
	open_it(NULL, 0);
	assert_int_equal(lstat(socket_path(), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);	/* no group: root only */
	assert_int_equal(stat(tree_path(&tree, "run"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void
what_is_no_socket_stays(void **state)
{
	struct control_options o = { .path = socket_path() };
	struct stat st;

	(void)state;
	tree_write(&tree, "run/control.sock", "precious");
	assert_int_equal(control_open(base, &o, &c, error, sizeof(error)), -EEXIST);
	assert_non_null(strstr(error, "is not a socket"));
	assert_int_equal(stat(socket_path(), &st), 0);
	assert_int_equal(st.st_size, 8);

	o.path = "/tmp/a/very/long/path/01234567890123456789/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234";
	assert_int_equal(control_open(base, &o, &c, error, sizeof(error)), -ENAMETOOLONG);
}

static void
a_group_that_is_missing_means_root_only(void **state)
{
	struct stat st;

	(void)state;
	open_it("no-such-group-here", 0);
	assert_non_null(strstr(error, "groupadd --system no-such-group-here"));
	assert_int_equal(lstat(socket_path(), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Connects as another user: 'a' answered, 'r' refused with a message, 'p' refused by the file's mode. */
static int
ask_as(uid_t uid, gid_t gid, gid_t extra)
{
	int status, pipes[2];
	char verdict = '?';
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char buf[1024] = "";
		ssize_t n;

		strcpy(a.sun_path, socket_path());
		if (setgroups(extra != 0 ? 1 : 0, &extra) < 0 || setgid(gid) < 0 || setuid(uid) < 0)
			_exit(1);
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
			verdict = errno == EACCES ? 'p' : '?';
		} else {
			(void)!send(fd, "{\"command\":\"echo\"}\n", 19, MSG_NOSIGNAL);
			n = recv(fd, buf, sizeof(buf) - 1, 0);
			buf[n > 0 ? n : 0] = '\0';
			verdict = strstr(buf, "\"ok\":true") != NULL ? 'a' : strstr(buf, "only root") != NULL ? 'r' : '?';
		}
		(void)!write(pipes[1], &verdict, 1);
		_exit(0);
	}
	close(pipes[1]);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		turn();
		usleep(1000);
	}
	(void)!read(pipes[0], &verdict, 1);
	close(pipes[0]);
	return verdict;
}

static void
only_root_and_the_group_are_heard(void **state)
{
	const gid_t group = 65534;	/* nogroup */
	struct control_stats stats;
	struct group *g;

	(void)state;
	g = getgrgid(group);
	if (geteuid() != 0 || g == NULL)
		skip();		/* needs root, to become another user */
	open_it(g->gr_name, 0);
	assert_string_equal(error, "");
	chmod(tree.root, 0755);
	assert_int_equal(ask_as(0, 0, 0), 'a');
	assert_int_equal(ask_as(12345, group, 0), 'a');
	assert_int_equal(ask_as(12345, 12345, group), 'a');
	assert_int_equal(ask_as(12345, 12345, 0), 'p');
	/* The mode was loosened by mistake: the credentials still count. */
	chmod(socket_path(), 0666);
	assert_int_equal(ask_as(12345, 12345, 0), 'r');
	control_stats(c, &stats);
	assert_int_equal(stats.refused, 1);
}

static void
without_descriptors_clients_wait_and_are_heard_later(void **state)
{
	struct rlimit before, none;
	char answer[64];
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;		/* accept(2) fails, and the socket stays readable */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn();
	say(fd, "{\"command\":\"echo\",\"args\":{\"a\":1}}\n");
	turn();
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	json_decref(hear(fd));		/* fails the test if there is none */
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_command_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(an_unknown_command_names_those_there_are, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_sent_ahead_are_answered_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_answer_to_nobody_harms_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_requests_are_refused_with_the_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(a_line_without_end_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_silent_client_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_waits_for_us_is_not, setup, teardown),
		cmocka_unit_test_setup_teardown(a_client_that_does_not_read_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(an_answer_too_large_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(one_client_too_many_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(status_is_json_or_text, setup, teardown),
		cmocka_unit_test_setup_teardown(a_live_agent_keeps_its_socket_and_a_dead_one_does_not, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_socket_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_group_that_is_missing_means_root_only, setup, teardown),
		cmocka_unit_test_setup_teardown(only_root_and_the_group_are_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(without_descriptors_clients_wait_and_are_heard_later, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
