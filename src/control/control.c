/*
 * SPDX-License-Identifier: Apache-2.0
 * control: clients of the control socket, and their requests.
 *
 * A client has one request at a time: its next line is read once the answer was sent. So at most one answer
 * waits for a client that does not read, and lines that it sends ahead stay in the kernel.
 *
 *	idle ──line──► asked ──control_answer()──► answering ──all written──► idle
 *
 * A request outlives its client, because its owner holds it: the answer is then dropped.
 *
 * A client has a time for its next line, and for reading an answer, however it spreads its bytes over that. What the
 * requests of others than root cost is measured: a uid that took more than its share of CPU time is not read from until
 * that is paid for, and its share of the connections is limited, so that it keeps no other user out.
 */
#include "control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/control_socket.h"
#include "control/door.h"
#include "control/shares.h"

#define DEFAULT_IDLE_MS 30000
#define ANSWER_MAX ((size_t)1 << 20)
#define SENTENCE_NS UINT64_C(10000000)	/* of a hundred refusals in a second: further ones are silent */
#define SENTENCES_NS UINT64_C(1000000000)
#define WAKE_NS 50000		/* CPU time of reading from a client, whatever came */
#define REQUEST_NS 100000	/* ... of a request besides its handling */

enum {
	PER_SECOND = 500,	/* connections, most of which are refused then */
	BURST = 200,
};

struct client {
	TAILQ_ENTRY(client) entry;
	struct control *control;
	struct bufferevent *bev;	/* owned, with its fd; NULL: handed over */
	struct control_request *pending;
	struct control_peer peer;
	struct share *share;		/* of its uid; NULL: no limit */
	struct event *on_time;		/* owned; the end of its time, or of its wait */
	bool is_waiting;		/* is not read from, until its share of CPU time allows that */
	bool is_last;			/* sends no more: closed once it has its answers */
	bool is_broken;			/* no further line of it is read */
	bool is_asking;			/* its request is being handled: it is freed after that */
	uint64_t discount_ns;		/* CPU time of that which is not at its cost */
};

struct control_request {
	struct client *client;		/* NULL: disconnected */
	struct control_peer peer;
};

struct handler {
	const char *name;		/* the caller's */
	const char *summary;
	enum control_access access;
	control_cb cb;
	void *arg;
};

struct status_source {
	status_fill fill;
	void *arg;
};

struct control {
	struct event_base *base;	/* the caller's */
	struct door *door;		/* owned */
	char *path;			/* owned; NULL: not bound */
	char *admins;			/* owned; the group's name, for messages; NULL: no group */
	struct peer_rights rights;
	struct shares shares;
	unsigned others;		/* clients that have a share */
	struct pace sentences;		/* for those who are refused */
	uint32_t idle_ms;
	struct handler *handlers;	/* owned */
	size_t n_handlers;
	struct status_source status;
	TAILQ_HEAD(, client) clients;
	struct control_stats stats;
};

static void process(struct client *client);

static void
client_free(struct client *client)
{
	struct control *c = client->control;

	if (client->pending != NULL)
		client->pending->client = NULL;
	TAILQ_REMOVE(&c->clients, client, entry);
	c->stats.clients--;
	if (client->share != NULL) {
		client->share->connections--;
		c->others--;
	}
	event_free(client->on_time);
	if (client->bev != NULL)
		bufferevent_free(client->bev);
	free(client);
}

/* Begins the time in which the client sends its next line, or reads an answer. */
static void
expect(struct client *client)
{
	uint32_t ms = client->control->idle_ms;

	evtimer_add(client->on_time, (&(struct timeval){ ms / 1000, ms % 1000 * 1000 }));
}

/* Charges the client's uid, and returns true if nothing is read from the client until that is paid for. */
static bool
charge(struct client *client, uint64_t cpu_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ms;

	if (client->share == NULL)
		return false;
	shares_charge(&client->control->shares, client->share, cpu_ns, now);
	ms = (shares_wait_ns(&client->control->shares, client->share, now) + 999999) / 1000000;
	if (ms == 0)
		return false;
	client->control->stats.waits += !client->is_waiting;
	client->is_waiting = true;
	bufferevent_disable(client->bev, EV_READ);
	evtimer_add(client->on_time, (&(struct timeval){ (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) }));
	return true;
}

/*
 * Takes ownership of answer. If it is too large or memory is short it sends a short one, so that there always is
 * an answer.
 */
static void
client_write(struct client *client, json_t *answer)
{
	static const char no_answer[] = "{\"ok\":false,\"error\":\"the answer is too large, or memory is short\"}";
	char *text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
	const char *out = text != NULL && strlen(text) < ANSWER_MAX ? text : no_answer;

	if (bufferevent_write(client->bev, out, strlen(out)) < 0 || bufferevent_write(client->bev, "\n", 1) < 0)
		client->is_last = client->is_broken = true;
	if (!client->is_waiting)
		expect(client);
	free(text);
	json_decref(answer);
}

static json_t *
error_json(const char *sentence)
{
	char out[TEXT_ESCAPE_MAX(1024)];

	text_escape(sentence, strlen(sentence), out, sizeof(out), NULL);
	return json_pack("{sb ss}", "ok", 0, "error", out);
}

void
control_answer(struct control_request *req, struct json_t *answer)
{
	struct client *client = req->client;

	free(req);
	if (client == NULL) {
		json_decref(answer);
		return;
	}
	client->pending = NULL;
	if (answer != NULL && json_object_get(answer, "ok") == NULL)
		json_object_set_new(answer, "ok", json_true());
	client_write(client, answer);
}

void
control_answer_error(struct control_request *req, const char *format, ...)
{
	char sentence[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	control_answer(req, error_json(sentence));
}

struct bufferevent *
control_hand_over(struct control_request *req, struct json_t *answer)
{
	struct client *client = req->client;
	struct bufferevent *bev;

	control_answer(req, answer);
	if (client == NULL)
		return NULL;
	bev = client->bev;
	bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
	bufferevent_enable(bev, EV_READ);
	client->bev = NULL;
	if (!client->is_asking)
		client_free(client);
	return bev;
}

void
control_discount(struct control_request *req, uint64_t cpu_ns)
{
	if (req->client != NULL)
		req->client->discount_ns += cpu_ns;
}

bool
control_is_gone(const struct control_request *req)
{
	struct pollfd p = { .events = 0 };

	if (req->client == NULL)
		return true;
	/*
	 * The loop reports the same for a client that has only shut down its writing side; that one still reads and
	 * has no POLLHUP.
	 */
	p.fd = bufferevent_getfd(req->client->bev);
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

struct control_peer
control_request_peer(const struct control_request *req)
{
	return req->peer;
}

/* Makes the answer to an unknown command: a list of those that exist. */
static json_t *
no_command(const struct control *c, const char *command)
{
	char sentence[1024];
	json_t *answer, *list = json_array();
	size_t used;

	used = (size_t)snprintf(sentence, sizeof(sentence), "the agent has no command '%s'; it has", command);
	for (size_t i = 0; i < c->n_handlers; i++) {
		json_array_append_new(list, json_pack("{ss ss}", "name", c->handlers[i].name, "summary",
		    c->handlers[i].summary));
		if (used < sizeof(sentence))
			used += (size_t)snprintf(sentence + used, sizeof(sentence) - used, "%s %s", i > 0 ? "," : "",
			    c->handlers[i].name);
	}
	answer = error_json(sentence);
	json_object_set_new(answer, "commands", list);
	return answer;
}

static json_t *
no_access(struct control *c, const char *what)
{
	char sentence[512];

	c->stats.denied++;
	snprintf(sentence, sizeof(sentence), "only root%s%s may %s", c->admins != NULL ? " and the members of the group " : "",
	    c->admins != NULL ? c->admins : "", what);
	return error_json(sentence);
}

bool
control_permits(struct control_request *req, enum control_access access, const char *what)
{
	if (req->peer.access >= access)
		return true;
	control_answer(req, req->client != NULL ? no_access(req->client->control, what) : NULL);
	return false;
}

static void
dispatch(struct client *client, const char *line, size_t len)
{
	struct control *c = client->control;
	struct control_request *req;
	char command[CONTROL_COMMAND_SIZE], error[256];
	json_t *args;

	c->stats.requests++;
	if (control_parse(line, len, command, &args, error, sizeof(error)) < 0) {
		client_write(client, error_json(error));
		return;
	}
	for (size_t i = 0; i < c->n_handlers; i++) {
		if (strcmp(c->handlers[i].name, command) != 0)
			continue;
		req = client->peer.access >= c->handlers[i].access ? calloc(1, sizeof(*req)) : NULL;
		if (client->peer.access < c->handlers[i].access) {
			char what[CONTROL_COMMAND_SIZE + 16];

			snprintf(what, sizeof(what), "send '%s'", command);
			client_write(client, no_access(c, what));
		} else if (req == NULL) {
			client_write(client, NULL);
		} else {
			req->client = client;
			req->peer = client->peer;
			client->pending = req;
			client->is_asking = true;
			evtimer_del(client->on_time);	/* it waits for us now */
			c->handlers[i].cb(req, args, c->handlers[i].arg);
			client->is_asking = false;
		}
		json_decref(args);
		return;
	}
	client_write(client, no_command(c, command));
	json_decref(args);
}

/* Handles a line, at the cost of the client's share. */
static void
handle(struct client *client, const char *line, size_t len)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), cost;

	client->discount_ns = 0;
	dispatch(client, line, len);
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin - client->discount_ns + REQUEST_NS;
	if (client->bev != NULL)
		(void)charge(client, cost);
	else if (client->share != NULL)		/* handed over: the next connection of its uid waits */
		shares_charge(&client->control->shares, client->share, cost, clock_ns(CLOCK_MONOTONIC));
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	if (!charge(arg, WAKE_NS))
		process(arg);
}

/* Processes lines while no request is pending. May free the client. */
static void
process(struct client *client)
{
	struct evbuffer *in = bufferevent_get_input(client->bev);
	struct evbuffer *out = bufferevent_get_output(client->bev);

	while (client->pending == NULL && evbuffer_get_length(out) == 0 && !client->is_broken && !client->is_waiting) {
		size_t len;
		char *line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);

		if (line == NULL) {
			if (evbuffer_get_length(in) <= CONTROL_LINE_MAX)
				break;
			client_write(client, error_json("a request is one line of at most 64 KiB"));
			client->is_last = client->is_broken = true;
			break;
		}
		if (len > CONTROL_LINE_MAX) {
			client_write(client, error_json("a request is one line of at most 64 KiB"));
			client->is_last = client->is_broken = true;
		} else if (len > 0) {
			handle(client, line, len);
		}
		free(line);
		if (client->bev == NULL) {
			client_free(client);
			return;
		}
	}
	if (client->is_last && client->pending == NULL && evbuffer_get_length(out) == 0 && !client->is_waiting)
		client_free(client);
}

/* Runs when the kernel has taken all of an answer. */
static void
on_written(struct bufferevent *bev, void *arg)
{
	struct client *client = arg;

	(void)bev;
	if (!client->is_waiting && client->pending == NULL)
		expect(client);
	process(client);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;

	(void)fd;
	(void)what;
	if (!client->is_waiting) {
		client->control->stats.cut_off++;
		client_free(client);
		return;
	}
	if (charge(client, 0))
		return;		/* other clients of its uid, or of all, took what it waited for */
	client->is_waiting = false;
	bufferevent_enable(client->bev, EV_READ);
	if (client->pending == NULL)
		expect(client);
	process(client);
}

static void
on_client_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;
	bool is_busy = client->pending != NULL || evbuffer_get_length(bufferevent_get_output(bev)) > 0;

	/* Half-closed, as by `nc -N`: the client still reads. Lines that it sent ahead are answered too. */
	if ((what & BEV_EVENT_EOF) != 0 && is_busy) {
		client->is_last = true;
		return;
	}
	client_free(client);
}

/*
 * Sends one line to a client that is refused, unless many were in this moment. It fits into an empty socket buffer, or
 * is lost.
 */
static void
refuse_client(struct control *c, int fd, const char *sentence)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	json_t *answer = NULL;
	char *text = NULL;

	if (pace_wait_ns(&c->sentences, SENTENCES_NS, now) == 0) {
		pace_charge(&c->sentences, SENTENCE_NS, now);
		answer = error_json(sentence);
		text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
	}
	if (text != NULL && send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) > 0)
		(void)!send(fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	json_decref(answer);
	close(fd);
}

/*
 * Returns NULL if the peer may connect, or the reason why not. The socket's mode checks the same, but not for a socket
 * that was passed on or has a wrong mode. *ret_share is NULL for one that has no limits.
 */
static const char *
refusal(struct control *c, int fd, struct control_peer *ret, struct share **ret_share)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	*ret_share = NULL;
	if (peer_of(fd, &c->rights, ret) < 0 || ret->access == CONTROL_NONE) {
		c->stats.refused++;
		return "only root and the members of the control socket's groups may talk to the agent";
	}
	if (ret->uid != 0 && ret->uid != c->rights.owner) {
		*ret_share = shares_of(&c->shares, ret->uid, now);
		if (*ret_share == NULL || (*ret_share)->connections >= CONTROL_CLIENTS_OF_UID ||
		    c->others >= CONTROL_CLIENTS - CONTROL_CLIENTS_KEPT) {
			c->stats.crowded++;
			return "too many clients of this user, or of all, at once; try again in a moment";
		}
	}
	if (c->stats.clients < CONTROL_CLIENTS)
		return NULL;
	c->stats.crowded++;
	return "too many clients at once; try again in a moment";
}

static void
on_accept(int fd, void *arg)
{
	struct control *c = arg;
	struct client *client;
	struct control_peer peer;
	struct share *share;
	const char *why = refusal(c, fd, &peer, &share);

	if (why != NULL) {
		refuse_client(c, fd, why);
		return;
	}
	client = calloc(1, sizeof(*client));
	if (client != NULL) {
		client->bev = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
		client->on_time = evtimer_new(c->base, on_time, client);
	}
	if (client == NULL || client->bev == NULL || client->on_time == NULL) {
		if (client != NULL && client->on_time != NULL)
			event_free(client->on_time);
		if (client != NULL && client->bev != NULL)
			bufferevent_free(client->bev);
		else
			close(fd);
		free(client);
		return;
	}
	client->control = c;
	client->peer = peer;
	client->share = share;
	TAILQ_INSERT_TAIL(&c->clients, client, entry);
	c->stats.clients++;
	if (share != NULL) {
		share->connections++;
		c->others++;
	}
	bufferevent_setcb(client->bev, on_read, on_written, on_client_event, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, CONTROL_LINE_MAX + 2);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
	expect(client);
	(void)charge(client, WAKE_NS);
}

/* Makes {"text":…}; names and error texts in it may be any bytes. NULL: out of memory. */
static json_t *
text_json(const struct bytes *text)
{
	size_t size = TEXT_ESCAPE_MAX(text->len);
	char *out = malloc(size);
	json_t *answer = NULL;

	if (out != NULL) {
		text_escape((const char *)text->data, text->len, out, size, NULL);
		answer = json_pack("{ss}", "text", out);
	}
	free(out);
	return answer;
}

static void
on_help(struct control_request *req, const struct json_t *args, void *arg)
{
	struct control *c = arg;
	struct bytes text = { 0 };
	int r = 0;

	(void)args;
	for (size_t i = 0; i < c->n_handlers && r == 0; i++) {
		char line[512];

		snprintf(line, sizeof(line), "%-12s %s\n", c->handlers[i].name, c->handlers[i].summary);
		r = bytes_append(&text, line, strlen(line));
	}
	control_answer(req, r == 0 ? text_json(&text) : NULL);
	bytes_done(&text);
}

static void
on_status(struct control_request *req, const struct json_t *args, void *arg)
{
	struct status_source *source = arg;
	const char *format = json_string_value(json_object_get(args, "format"));
	struct agent_status *s = calloc(1, sizeof(*s));
	struct bytes text = { 0 };

	if (s == NULL) {
		control_answer(req, NULL);
		return;
	}
	source->fill(s, source->arg);
	if (format == NULL || strcmp(format, "json") == 0)
		control_answer(req, status_json(s));
	else if (strcmp(format, "text") != 0)
		control_answer_error(req, "no format '%s'; the formats are json and text", format);
	else if (status_text(s, json_is_true(json_object_get(args, "colour")), &text) == 0)
		control_answer(req, text_json(&text));
	else
		control_answer(req, NULL);
	bytes_done(&text);
	free(s);
}

int
control_handle(struct control *c, const char *name, const char *summary, enum control_access access, control_cb cb,
    void *arg)
{
	struct handler *handlers;

	for (size_t i = 0; i < c->n_handlers; i++) {
		if (strcmp(c->handlers[i].name, name) == 0)
			return -EEXIST;
	}
	handlers = reallocarray(c->handlers, c->n_handlers + 1, sizeof(*handlers));
	if (handlers == NULL)
		return -ENOMEM;
	handlers[c->n_handlers++] = (struct handler){ name, summary, access, cb, arg };
	c->handlers = handlers;
	return 0;
}

int
control_handle_status(struct control *c, status_fill fill, void *arg)
{
	c->status = (struct status_source){ fill, arg };
	return control_handle(c, "status", "the state of the agent; --json for programs", CONTROL_READ, on_status, &c->status);
}

void
control_stats(const struct control *c, struct control_stats *ret)
{
	*ret = c->stats;
	ret->waits += door_waits(c->door);
}

int
control_open(struct event_base *base, const struct control_options *o, struct control **ret, char *error,
    size_t error_size)
{
	struct door_options door = { .per_second = PER_SECOND, .burst = BURST, .on_accept = on_accept };
	struct control *c;
	int r;

	error[0] = '\0';
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	TAILQ_INIT(&c->clients);
	c->base = base;
	c->idle_ms = o->idle_ms > 0 ? o->idle_ms : DEFAULT_IDLE_MS;
	r = control_bind(o, &c->rights, error, error_size);
	if (r < 0)
		goto fail;
	c->path = strdup(o->path);
	door.arg = c;
	r = door_open(base, r, &door, &c->door);
	if (r == 0 && c->rights.admins != PEER_NO_GROUP && (c->admins = strdup(o->group)) == NULL)
		r = -ENOMEM;
	if (r < 0 || c->path == NULL || control_handle(c, "help", "this list", CONTROL_OWN, on_help, c) < 0) {
		snprintf(error, error_size, "no memory for the control socket");
		r = -ENOMEM;
		goto fail;
	}
	*ret = c;
	return 0;

fail:
	control_close(c);
	return r;
}

void
control_close(struct control *c)
{
	struct client *client;

	if (c == NULL)
		return;
	while ((client = TAILQ_FIRST(&c->clients)) != NULL)
		client_free(client);
	door_close(c->door);
	if (c->path != NULL)
		unlink(c->path);	/* may fail after privileges were dropped: the next agent replaces it */
	free(c->path);
	free(c->admins);
	free(c->handlers);
	free(c);
}
