/*
 * SPDX-License-Identifier: Apache-2.0
 * container_resolver: a table of ids, a queue of those to be requested, one request at a time.
 *
 * A socket without an answer or permission is skipped for a while: the queue's first id is requested from the
 * next socket. Ids for which a socket was skipped or failed are forgotten, so that they are requested again
 * when they are seen again.
 */
#include "runtime/container_resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/client.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(e) ((e)->is_lost = true)
#include <uthash.h>

/* The host is the owner of the socket; the name is sent in the request, but not resolved. */
#define URL_FORMAT "http://localhost/containers/json?all=1&filters=%%7B%%22id%%22%%3A%%5B%%22%s%%22%%5D%%7D"

enum {
	ID_LEN = 64,
	ANSWER_MAX = 256 * 1024,
	TIMEOUT_MS = 2000,
	SKIP_S = 30,			/* seconds for which a socket is skipped after a failure */
};

enum state {
	STATE_WAITING,
	STATE_NAMED,
	STATE_UNKNOWN,
};

struct entry {
	UT_hash_handle hh;
	struct entry *prev, *next;	/* in the queue, while it waits */
	enum state state;
	bool is_lost;			/* not in the table */
	char id[ID_LEN + 1];
	char *name, *image;		/* owned; NULL: unknown */
};

struct container_resolver {
	struct http_client	*http;		/* owned */
	container_resolver_cb	 cb;
	void			*arg;		/* the caller's */
	struct {
		char		*path;		/* owned */
		uint64_t	 skip_until_ns;
		int		 state;
	} sockets[CONTAINER_RESOLVER_SOCKETS];
	size_t			 n_sockets;
	size_t			 socket;	/* index of the socket that is requested now */
	bool			 has_failed;	/* a socket failed or was skipped for the queue's first */
	struct entry		*entries;	/* owned; oldest first */
	struct entry		*queue;		/* waiting entries; the first is in flight, or next */
	size_t			 n_queue;
	bool			 is_asking;
	char			 url[ID_LEN + 96];	/* URL of the request in flight */
	struct container_resolver_counts counts;
};

static void ask(struct container_resolver *c);

static void
entry_free(struct entry *e)
{
	free(e->name);
	free(e->image);
	free(e);
}

static void
forget(struct container_resolver *c, struct entry *e)
{
	HASH_DEL(c->entries, e);
	entry_free(e);
}

static void
leave_queue(struct container_resolver *c, struct entry *e)
{
	DL_DELETE(c->queue, e);
	c->n_queue--;
	c->socket = 0;
	c->has_failed = false;
}

/* Copies one line of text that fits; otherwise out is "". */
static void
copy_text(const json_t *value, char out[CONTAINER_NAME_SIZE])
{
	const char *text = json_string_value(value);
	size_t len = text != NULL ? json_string_length(value) : 0;

	out[0] = '\0';
	if (text == NULL || len >= CONTAINER_NAME_SIZE || strlen(text) != len || !text_is_plain(text, len))
		return;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return;
	memcpy(out, text, len + 1);
}

int
container_resolver_parse(const char *body, size_t len, const char *id, char name[CONTAINER_NAME_SIZE],
    char image[CONTAINER_NAME_SIZE])
{
	json_t *root = json_loadb(body, len, 0, NULL), *one;
	const char *its_id;
	size_t i;
	int r = json_is_array(root) ? 0 : -EBADMSG;

	name[0] = image[0] = '\0';
	json_array_foreach(root, i, one) {
		its_id = json_string_value(json_object_get(one, "Id"));
		if (its_id == NULL || strcmp(its_id, id) != 0)
			continue;
		copy_text(json_array_get(json_object_get(one, "Names"), 0), name);
		if (name[0] == '/')	/* Docker's names begin with a slash */
			memmove(name, name + 1, strlen(name));
		copy_text(json_object_get(one, "Image"), image);
		r = 1;
		break;
	}
	json_decref(root);
	return r;
}

static char *
copy_or_null(const char *text)
{
	return text[0] != '\0' ? strdup(text) : NULL;
}

/* Requests the queue's first from the next socket, or the next of the queue after the last socket. */
static void
ask_next(struct container_resolver *c)
{
	struct entry *e = c->queue;

	if (++c->socket < c->n_sockets) {
		ask(c);
		return;
	}
	if (c->has_failed) {
		/* The runtime whose socket failed may have it. */
		c->counts.failed++;
		leave_queue(c, e);
		forget(c, e);
	} else {
		c->counts.unknown++;
		e->state = STATE_UNKNOWN;
		leave_queue(c, e);
	}
	ask(c);
}

static void
on_answer(const struct http_client_answer *a, void *arg)
{
	char name[CONTAINER_NAME_SIZE], image[CONTAINER_NAME_SIZE];
	struct container_resolver *c = arg;
	struct entry *e = c->queue;
	int r = a->error;

	c->is_asking = false;
	if (r == 0)
		r = a->status == 200 ? container_resolver_parse(a->body, a->len, e->id, name, image) : -EBADMSG;
	c->sockets[c->socket].state = r < 0 ? r : 0;
	if (r < 0) {
		c->sockets[c->socket].skip_until_ns = clock_ns(CLOCK_MONOTONIC) + SKIP_S * UINT64_C(1000000000);
		c->has_failed = true;
	}
	if (r <= 0) {
		ask_next(c);
		return;
	}
	e->name = copy_or_null(name);
	e->image = copy_or_null(image);
	e->state = STATE_NAMED;
	c->counts.named++;
	leave_queue(c, e);
	if (c->cb != NULL)
		c->cb(e->id, e->name, e->image, c->arg);
	ask(c);
}

/* Requests the queue's first, unless a request is in flight. */
static void
ask(struct container_resolver *c)
{
	while (!c->is_asking && c->queue != NULL) {
		struct entry *e = c->queue;
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		while (c->socket < c->n_sockets && c->sockets[c->socket].skip_until_ns > now) {
			c->has_failed = true;
			c->socket++;
		}
		if (c->socket < c->n_sockets) {
			struct http_client_request q = { .url = c->url, .unix_socket = c->sockets[c->socket].path };

			snprintf(c->url, sizeof(c->url), URL_FORMAT, e->id);
			c->is_asking = http_client_send(c->http, &q) == 0;
			if (c->is_asking) {
				c->counts.asked++;
				return;
			}
		}
		/* No usable socket, or no memory: it is requested again when it is seen again. */
		c->counts.failed++;
		leave_queue(c, e);
		forget(c, e);
	}
}

int
container_resolver_open(struct event_base *base, const char *const *sockets, size_t n,
    container_resolver_cb cb, void *arg, struct container_resolver **ret)
{
	const struct http_client_options o = { .timeout_ms = TIMEOUT_MS, .body_max = ANSWER_MAX };
	struct container_resolver *c;

	if (n > CONTAINER_RESOLVER_SOCKETS)
		return -E2BIG;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->cb = cb;
	c->arg = arg;
	for (; c->n_sockets < n; c->n_sockets++) {
		c->sockets[c->n_sockets].state = CONTAINER_RESOLVER_NOT_ASKED;
		c->sockets[c->n_sockets].path = strdup(sockets[c->n_sockets]);
		if (c->sockets[c->n_sockets].path == NULL)
			goto fail;
	}
	if (http_client_open(base, &o, on_answer, c, &c->http) < 0)
		goto fail;
	*ret = c;
	return 0;

fail:
	container_resolver_close(c);
	return -ENOMEM;
}

void
container_resolver_close(struct container_resolver *c)
{
	struct entry *e, *next;

	if (c == NULL)
		return;
	http_client_close(c->http);
	HASH_ITER(hh, c->entries, e, next)
		forget(c, e);
	for (size_t i = 0; i < c->n_sockets; i++)
		free(c->sockets[i].path);
	free(c);
}

static bool
is_id(const char *id)
{
	return strlen(id) == ID_LEN && id[strspn(id, "0123456789abcdef")] == '\0';
}

/* Makes room for one more by forgetting the oldest entries that do not wait. */
static void
make_room(struct container_resolver *c)
{
	struct entry *e, *next;

	HASH_ITER(hh, c->entries, e, next) {
		if (HASH_COUNT(c->entries) < CONTAINER_RESOLVER_KEPT)
			return;
		if (e->state != STATE_WAITING)
			forget(c, e);
	}
}

bool
container_resolver_find(struct container_resolver *c, const char *id, const char **ret_name, const char **ret_image)
{
	struct entry *e;

	*ret_name = *ret_image = NULL;
	if (!is_id(id))
		return false;
	HASH_FIND_STR(c->entries, id, e);
	if (e != NULL) {
		*ret_name = e->name;
		*ret_image = e->image;
		return e->state == STATE_NAMED;
	}
	if (c->n_queue >= CONTAINER_RESOLVER_WAITING) {
		c->counts.refused++;
		return false;
	}
	make_room(c);
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return false;
	memcpy(e->id, id, ID_LEN);
	HASH_ADD_STR(c->entries, id, e);
	if (e->is_lost) {
		free(e);
		return false;
	}
	DL_APPEND(c->queue, e);
	c->n_queue++;
	ask(c);
	return false;
}

int
container_resolver_state(const struct container_resolver *c, size_t i)
{
	return c->sockets[i].state;
}

const struct container_resolver_counts *
container_resolver_counts(const struct container_resolver *c)
{
	return &c->counts;
}
