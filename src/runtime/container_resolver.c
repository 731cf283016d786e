/*
 * SPDX-License-Identifier: Apache-2.0
 * container_resolver: a table of ids, a queue of those that are to be asked for, one request at a time.
 *
 * A socket where nobody answers, or where we may not ask, is left alone for a while: the queue goes
 * on to the next one, and ids that were waiting are forgotten, so that they are asked for again when
 * they come again.
 */
#include "runtime/container_resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <jansson.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/client.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(e) ((e)->is_lost = true)
#include <uthash.h>

/* The host is whom the socket belongs to; it is in the request, and no name is looked up for it. */
#define URL_FORMAT "http://localhost/containers/json?all=1&filters=%%7B%%22id%%22%%3A%%5B%%22%s%%22%%5D%%7D"

enum {
	ID_LEN = 64,
	ANSWER_MAX = 256 * 1024,
	TIMEOUT_MS = 2000,
	REST_NS_S = 30,			/* seconds for which a socket without answer is left alone */
};

enum state {
	STATE_WAITING,
	STATE_NAMED,
	STATE_UNKNOWN,
};

struct entry {
	UT_hash_handle hh;
	struct entry *prev, *next;	/* of the queue, while it waits */
	enum state state;
	bool is_lost;			/* not in the table */
	char id[ID_LEN + 1];
	char *name, *image;		/* owned; NULL unknown */
};

struct container_resolver {
	struct http_client	*http;		/* owned */
	container_resolver_cb	 cb;
	void			*arg;		/* the caller's */
	struct {
		char		*path;		/* owned */
		uint64_t	 rest_until_ns;
		int		 state;
	} sockets[CONTAINER_RESOLVER_SOCKETS];
	size_t			 n_sockets;
	size_t			 socket;	/* that is asked now */
	bool			 has_failed;	/* one of those asked for the queue's first */
	struct entry		*entries;	/* owned; the oldest first */
	struct entry		*queue;		/* of entries; the first is under way, or about to be */
	size_t			 n_queue;
	bool			 is_asking;
	char			 url[ID_LEN + 96];	/* of what is under way */
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

/* One line of text of a sensible length, else "". */
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
		if (name[0] == '/')	/* as Docker writes them */
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

/* The next socket for the queue's first, or the next of the queue where all were asked. */
static void
go_on(struct container_resolver *c)
{
	struct entry *e = c->queue;

	if (++c->socket < c->n_sockets) {
		ask(c);
		return;
	}
	if (c->has_failed) {
		/* Perhaps the one that did not answer knows it. */
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
		c->sockets[c->socket].rest_until_ns = clock_ns(CLOCK_MONOTONIC) + REST_NS_S * UINT64_C(1000000000);
		c->has_failed = true;
	}
	if (r <= 0) {
		go_on(c);
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

/* Asks for the queue's first, unless somebody is asked already. */
static void
ask(struct container_resolver *c)
{
	while (!c->is_asking && c->queue != NULL) {
		struct entry *e = c->queue;
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		while (c->socket < c->n_sockets && c->sockets[c->socket].rest_until_ns > now) {
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
		/* None to ask, or no memory: it may come again. */
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

/* Room for one more: the oldest that does not wait goes. */
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
