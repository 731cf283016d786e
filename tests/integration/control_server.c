/*
 * SPDX-License-Identifier: Apache-2.0
 * control_server SOCKET ADDRESS: the control stage alone on its loop, with a simulated agent, for
 * test_control.py. Prints the port of its HTTP server, and ends on SIGTERM.
 */
#include <event2/event.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/status_sample.h"
#include "base/log.h"
#include "control/control.h"
#include "control/http.h"
#include "control/notify.h"

static bool is_bad;
static struct event_base *base;

static void
fill(struct agent_status *s, void *arg)
{
	(void)arg;
	if (is_bad)
		status_sample_bad(s);
	else
		status_sample(s);
}

static void
on_break(struct control_request *req, const json_t *args, void *arg)
{
	(void)args;
	(void)arg;
	is_bad = true;
	control_answer(req, json_object());
}

static void
on_reloaded(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (is_bad)
		control_answer_error(arg, "sluice.yaml:3:1: no such key");
	else
		control_answer(arg, json_pack("{ss si}", "message", "generation 5", "generation", 5));
}

static void
on_reload(struct control_request *req, const json_t *args, void *arg)
{
	struct timeval later = { 0, 200000 };

	(void)args;
	(void)arg;
	event_base_once(base, -1, EV_TIMEOUT, on_reloaded, req, &later);
}

static void
on_words(struct control_request *req, const json_t *args, void *arg)
{
	(void)arg;
	control_answer(req, json_pack("{sO}", "args", args));
}

static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

int
main(int argc, char **argv)
{
	struct control_options options = { 0 };
	struct http_options http_options = { 0 };
	struct control *c = NULL;
	struct http *h = NULL;
	struct notify *n = NULL;
	struct event *term;
	char error[512];
	int status = 0;

	if (argc != 3)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	options.path = argv[1];
	http_options.listen.address = argv[2];
	base = event_base_new();
	term = evsignal_new(base, SIGTERM, on_term, base);
	evsignal_add(term, NULL);
	if (notify_open(&n, error, sizeof(error)) < 0 ||
	    control_open(base, &options, &c, error, sizeof(error)) < 0 ||
	    http_open(base, &http_options, fill, NULL, &h, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_ERROR, "start", "%s", error);
		status = 1;
		goto out;
	}
	control_handle_status(c, fill, NULL);
	control_handle(c, "break", "from now on all is wrong", CONTROL_ADMIN, on_break, NULL);
	control_handle(c, "reload", "answers after a while", CONTROL_ADMIN, on_reload, NULL);
	control_handle(c, "words", "says its arguments", CONTROL_ADMIN, on_words, NULL);
	printf("%u\n", http_port(h));
	fflush(stdout);
	notify_ready(n);
	event_base_dispatch(base);
	notify_stopping(n);
out:
	http_close(h);
	control_close(c);
	notify_close(n);
	event_free(term);
	event_base_free(base);
	return status;
}
