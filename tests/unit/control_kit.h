/*
 * SPDX-License-Identifier: Apache-2.0
 * control_kit: a control socket with a few commands, and clients of it, on one loop.
 * tree.h removes the socket's folder.
 */
#ifndef SLUICE_TESTS_UNIT_CONTROL_KIT_H
#define SLUICE_TESTS_UNIT_CONTROL_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>

#include "control/control.h"
#include "status_sample.h"
#include "tree.h"

static struct tree tree;
static struct event_base *base;
static struct control *c;
static char error[512];
static struct control_request *held;	/* by the command hold */
static struct bufferevent *taken;	/* by the command take */
static const char *read_group;		/* of open_it(), as the next one */
static bool is_public;

static inline const char *
socket_path(void)
{
	return tree_path(&tree, "run/control.sock");
}

static inline void
on_echo(struct control_request *req, const json_t *args, void *arg)
{
	(void)arg;
	control_answer(req, json_pack("{sO}", "args", args));
}

static inline void
on_hold(struct control_request *req, const json_t *args, void *arg)
{
	(void)args;
	(void)arg;
	assert_null(held);
	held = req;
}

static inline void
on_no(struct control_request *req, const json_t *args, void *arg)
{
	(void)args;
	control_answer_error(req, "%s:3: \"no\"\n\xff", (const char *)arg);
}

static inline void
on_huge(struct control_request *req, const json_t *args, void *arg)
{
	size_t size = (size_t)json_integer_value(json_object_get(args, "size"));
	char *text = malloc(size + 1);

	(void)arg;
	memset(text, 'x', size);
	text[size] = '\0';
	control_answer(req, json_pack("{ss}", "text", text));
	free(text);
}

static inline void
on_take(struct control_request *req, const json_t *args, void *arg)
{
	(void)args;
	(void)arg;
	taken = control_hand_over(req, json_pack("{ss}", "message", "yours"));
}

static inline void
fill(struct agent_status *s, void *arg)
{
	(void)arg;
	status_sample_bad(s);
}

static inline void
open_it(const char *group, uint32_t idle_ms)
{
	struct control_options o = { .path = socket_path(), .group = group, .read_group = read_group,
		.is_public = is_public, .idle_ms = idle_ms };

	assert_int_equal(control_open(base, &o, &c, error, sizeof(error)), 0);
	assert_int_equal(control_handle(c, "echo", "says it again", CONTROL_ADMIN, on_echo, NULL), 0);
	assert_int_equal(control_handle(c, "hold", "waits", CONTROL_ADMIN, on_hold, NULL), 0);
	assert_int_equal(control_handle(c, "no", "refuses", CONTROL_ADMIN, on_no, (void *)(uintptr_t)"sluice.yaml"), 0);
	assert_int_equal(control_handle(c, "take", "is handed over", CONTROL_ADMIN, on_take, NULL), 0);
	assert_int_equal(control_handle(c, "huge", "answers at length", CONTROL_ADMIN, on_huge, NULL), 0);
	assert_int_equal(control_handle_status(c, fill, NULL), 0);
}

static inline int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	base = event_base_new();
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	control_close(c);
	c = NULL;
	event_base_free(base);
	tree_done(&tree);
	return 0;
}

static inline int
client(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, socket_path());
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void
turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static inline void
say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* One line, or NULL at the end of the stream. Runs the loop meanwhile, for a few seconds. */
static inline json_t *
hear(int fd)
{
	static char line[2 << 20];
	size_t len = 0;

	for (int i = 0; i < 5000; i++) {
		ssize_t n;

		event_base_loop(base, EVLOOP_NONBLOCK);
		while ((n = recv(fd, line + len, 1, MSG_DONTWAIT)) == 1) {
			if (line[len++] != '\n')
				continue;
			line[len] = '\0';
			return json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		}
		if (n == 0)
			return NULL;
		usleep(len > 0 ? 0 : 1000);
	}
	fail_msg("no answer");
	return NULL;
}

static inline const char *
refused(json_t *answer)
{
	static char text[1024];

	assert_non_null(answer);
	assert_true(json_is_false(json_object_get(answer, "ok")));
	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(answer, "error")));
	json_decref(answer);
	return text;
}

/* Returns the number of clients. */
static inline unsigned
clients(void)
{
	struct control_stats stats;

	control_stats(c, &stats);
	return stats.clients;
}

#endif
