/* SPDX-License-Identifier: Apache-2.0 */
/* control: a connection that another part of the agent takes over. */
#include <signal.h>

#include "control_kit.h"

static void
a_connection_is_handed_over_after_its_answer(void **state)
{
	char rest[8] = "";
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 50);
	fd = client();
	say(fd, "{\"command\":\"take\"}\n{\"command\":\"echo\"}\n");
	answer = hear(fd);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
	assert_non_null(taken);
	assert_int_equal(clients(), 0);
	usleep(100000);		/* the time after which an idle client is disconnected */
	turn();
	bufferevent_write(taken, "more", 4);
	turn();
	/* and no answer to the second request */
	assert_int_equal(recv(fd, rest, sizeof(rest), MSG_DONTWAIT), 4);
	assert_memory_equal(rest, "more", 4);
	bufferevent_free(taken);
	close(fd);
}

static void
a_held_request_is_handed_over_later_or_never(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	open_it(NULL, 0);
	fd = client();
	say(fd, "{\"command\":\"hold\"}\n");
	turn();
	taken = control_hand_over(held, json_object());
	held = NULL;
	assert_non_null(taken);
	assert_int_equal(clients(), 0);
	answer = hear(fd);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
	bufferevent_free(taken);
	close(fd);
	fd = client();
	say(fd, "{\"command\":\"hold\"}\n");
	turn();
	close(fd);
	while (clients() > 0 && !control_is_gone(held))
		turn();
	control_close(c);
	c = NULL;
	assert_null(control_hand_over(held, json_object()));
	held = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_is_handed_over_after_its_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_held_request_is_handed_over_later_or_never, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
