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
 */
#include "control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <grp.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"
#include "control/unix_socket.h"

#define DEFAULT_IDLE_MS 30000
#define ANSWER_MAX ((size_t)1 << 20)
#define NO_GROUP ((gid_t)-1)

struct client {
	TAILQ_ENTRY(client) entry;
	struct control *control;
	struct bufferevent *bev;	/* owned, with its fd; NULL: handed over */
	struct control_request *pending;
	struct control_peer peer;
	bool is_last;			/* sends no more: closed once it has its answers */
	bool is_broken;			/* no further line of it is read */
	bool is_asking;			/* its request is being handled: it is freed after that */
};

struct control_request {
	struct client *client;		/* NULL: disconnected */
	struct control_peer peer;
};

struct handler {
	const char *name;		/* the caller's */
	const char *summary;
	control_cb cb;
	void *arg;
};

struct status_source {
	status_fill fill;
	void *arg;
};

struct control {
	struct event_base *base;	/* the caller's */
	struct evconnlistener *listener;	/* owned, with its fd */
	struct event *again;		/* listens again after accept(2) failed */
	char *path;			/* owned; NULL: not bound */
	uid_t owner;
	gid_t group;			/* NO_GROUP: no group */
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
	if (client->bev != NULL)
		bufferevent_free(client->bev);
	free(client);
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
	bufferevent_set_timeouts(bev, NULL, NULL);
	client->bev = NULL;
	if (!client->is_asking)
		client_free(client);
	return bev;
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
		req = calloc(1, sizeof(*req));
		if (req == NULL) {
			client_write(client, NULL);
		} else {
			req->client = client;
			req->peer = client->peer;
			client->pending = req;
			client->is_asking = true;
			c->handlers[i].cb(req, args, c->handlers[i].arg);
			client->is_asking = false;
		}
		json_decref(args);
		return;
	}
	client_write(client, no_command(c, command));
	json_decref(args);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	process(arg);
}

/* Processes lines while no request is pending. May free the client. */
static void
process(struct client *client)
{
	struct evbuffer *in = bufferevent_get_input(client->bev);
	struct evbuffer *out = bufferevent_get_output(client->bev);

	while (client->pending == NULL && evbuffer_get_length(out) == 0 && !client->is_broken) {
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
			dispatch(client, line, len);
		}
		free(line);
		if (client->bev == NULL) {
			client_free(client);
			return;
		}
	}
	if (client->is_last && client->pending == NULL && evbuffer_get_length(out) == 0)
		client_free(client);
}

/* Runs when the kernel has taken all of an answer. */
static void
on_written(struct bufferevent *bev, void *arg)
{
	(void)bev;
	process(arg);
}

static void
on_client_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;
	bool is_busy = client->pending != NULL || evbuffer_get_length(bufferevent_get_output(bev)) > 0;

	if ((what & BEV_EVENT_TIMEOUT) != 0 && (what & BEV_EVENT_READING) != 0 && is_busy) {
		bufferevent_enable(bev, EV_READ);	/* we wait for the client now, not the client for us */
		return;
	}
	if ((what & BEV_EVENT_TIMEOUT) != 0)
		client->control->stats.cut_off++;
	/* Half-closed, as by `nc -N`: the client still reads. Lines that it sent ahead are answered too. */
	if ((what & BEV_EVENT_EOF) != 0 && is_busy) {
		client->is_last = true;
		return;
	}
	client_free(client);
}

/* Returns the membership that the kernel has for that process, not the one that /etc/group has for its user. */
static bool
is_in_group(int fd, const struct ucred *peer, gid_t group)
{
	gid_t few[64], *groups = few;
	socklen_t len = sizeof(few);
	bool found = peer->gid == group;
	int r;

	r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len);
	if (r < 0 && errno == ERANGE) {
		groups = malloc(len);
		r = groups != NULL ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) : -1;
	}
	for (size_t i = 0; r == 0 && i < len / sizeof(gid_t); i++)
		found |= groups[i] == group;
	if (groups != few)
		free(groups);
	return found;
}

/*
 * Returns NULL if the peer may send requests. The socket's mode checks the same, but not for a socket that was
 * passed on or has a wrong mode.
 */
static const char *
refusal(const struct control *c, int fd, struct control_peer *ret)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return "the kernel does not report who you are";
	*ret = (struct control_peer){ peer.pid, peer.uid, peer.gid };
	if (peer.uid == 0 || peer.uid == c->owner)
		return NULL;
	if (c->group != NO_GROUP && is_in_group(fd, &peer, c->group))
		return NULL;
	return "only root and the members of the control socket's group may talk to the agent";
}

/* Sends one line to a client that is refused. It fits into an empty socket buffer, or is lost. */
static void
refuse_client(int fd, const char *sentence)
{
	json_t *answer = error_json(sentence);
	char *text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;

	if (text != NULL && send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) > 0)
		(void)!send(fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	json_decref(answer);
	close(fd);
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len, void *arg)
{
	struct control *c = arg;
	struct timeval idle = { c->idle_ms / 1000, c->idle_ms % 1000 * 1000 };
	struct client *client;
	struct control_peer peer;
	const char *why = refusal(c, fd, &peer);

	(void)listener;
	(void)address;
	(void)len;
	if (why != NULL) {
		c->stats.refused++;
		refuse_client(fd, why);
		return;
	}
	if (c->stats.clients >= CONTROL_CLIENTS) {
		c->stats.cut_off++;
		refuse_client(fd, "too many clients at once; try again in a moment");
		return;
	}
	client = calloc(1, sizeof(*client));
	if (client != NULL)
		client->bev = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (client == NULL || client->bev == NULL) {
		free(client);
		close(fd);
		return;
	}
	client->control = c;
	client->peer = peer;
	TAILQ_INSERT_TAIL(&c->clients, client, entry);
	c->stats.clients++;
	bufferevent_setcb(client->bev, on_read, on_written, on_client_event, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, CONTROL_LINE_MAX + 2);
	bufferevent_set_timeouts(client->bev, &idle, &idle);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
}

/* Pauses after accept(2) failed for lack of fds or memory: the socket stays readable, so the loop would spin. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct control *c = arg;

	evconnlistener_disable(listener);
	event_add(c->again, &(struct timeval){ 1, 0 });
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct control *c = arg;

	(void)fd;
	(void)what;
	evconnlistener_enable(c->listener);
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
control_handle(struct control *c, const char *name, const char *summary, control_cb cb, void *arg)
{
	struct handler *handlers;

	for (size_t i = 0; i < c->n_handlers; i++) {
		if (strcmp(c->handlers[i].name, name) == 0)
			return -EEXIST;
	}
	handlers = reallocarray(c->handlers, c->n_handlers + 1, sizeof(*handlers));
	if (handlers == NULL)
		return -ENOMEM;
	handlers[c->n_handlers++] = (struct handler){ name, summary, cb, arg };
	c->handlers = handlers;
	return 0;
}

int
control_handle_status(struct control *c, status_fill fill, void *arg)
{
	c->status = (struct status_source){ fill, arg };
	return control_handle(c, "status", "the state of the agent; --json for programs", on_status, &c->status);
}

void
control_stats(const struct control *c, struct control_stats *ret)
{
	*ret = c->stats;
}

static gid_t
find_group(const char *name, char *error, size_t error_size)
{
	struct group *g = name != NULL ? getgrnam(name) : NULL;

	if (g != NULL)
		return g->gr_gid;
	if (name != NULL)
		snprintf(error, error_size,
		    "there is no group '%s': only root may use the control socket; `groupadd --system %s` and start again",
		    name, name);
	return NO_GROUP;
}

int
control_open(struct event_base *base, const struct control_options *o, struct control **ret, char *error,
    size_t error_size)
{
	struct control *c;
	int fd, r;

	error[0] = '\0';
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	TAILQ_INIT(&c->clients);
	c->base = base;
	c->owner = geteuid();
	c->idle_ms = o->idle_ms > 0 ? o->idle_ms : DEFAULT_IDLE_MS;
	c->group = find_group(o->group, error, error_size);

	r = fd = unix_socket_listen(o->path, c->group != NO_GROUP ? c->group : getegid(),
	    c->group != NO_GROUP ? 0660 : 0600, CONTROL_CLIENTS, error, error_size);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	c->listener = evconnlistener_new(base, on_accept, c, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (c->listener == NULL) {
		close(fd);
		unlink(o->path);
		goto fail;
	}
	evconnlistener_set_error_cb(c->listener, on_accept_error);
	c->path = strdup(o->path);
	c->again = evtimer_new(base, on_again, c);
	if (c->path == NULL || c->again == NULL || control_handle(c, "help", "this list", on_help, c) < 0) {
		snprintf(error, error_size, "no memory for the control socket");
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
	if (c->listener != NULL)
		evconnlistener_free(c->listener);
	if (c->again != NULL)
		event_free(c->again);
	if (c->path != NULL)
		unlink(c->path);	/* may fail after privileges were dropped: the next agent replaces it */
	free(c->path);
	free(c->handlers);
	free(c);
}
