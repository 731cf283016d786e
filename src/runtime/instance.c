/*
 * SPDX-License-Identifier: Apache-2.0
 * instance: three requests, one after the other: for a token, the identity document and the lifecycle.
 *
 * As EC2's user guide has it ("Use the Instance Metadata Service"), a token is requested by PUT, and each other request has
 * it in a header. The service sends the token with a hop limit, by default 1: behind a bridge, as in a container with
 * a network of its own, no answer arrives.
 */
#include "runtime/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <jansson.h>

#include "http/client.h"

enum {
	URL_SIZE = 512,
	TOKEN_MAX = 255,
	STATUS_OK = 200,
	STATUS_NOT_FOUND = 404,
};

enum step {
	STEP_TOKEN,
	STEP_DOCUMENT,
	STEP_LIFECYCLE,
};

static const char *const paths[] = {
	[STEP_TOKEN] = "/latest/api/token",
	[STEP_DOCUMENT] = "/latest/dynamic/instance-identity/document",
	[STEP_LIFECYCLE] = "/latest/meta-data/instance-life-cycle",
};

struct instance {
	struct http_client *http;	/* owned */
	struct event *next;		/* owned; the end, outside of the client's callback, or another try */
	bool is_over;			/* the event is the end */
	char error[256];		/* of the end; "": none */
	instance_cb cb;
	void *arg;			/* the caller's */
	enum step step;
	unsigned tries;
	struct host_facts facts;
	char base_url[URL_SIZE];
	char url[2 * URL_SIZE];
	char header[TOKEN_MAX + 64];
};

/* Copies a name, as the service has them, of less than size bytes. Returns false if it is none. */
static bool
take_name(const char *text, size_t len, char *out, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

	if (len == 0 || len >= size)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return strspn(out, letters) == len;
}

static bool
take_member(const json_t *object, const char *name, char *out, size_t size)
{
	const json_t *value = json_object_get(object, name);

	return json_is_string(value) && take_name(json_string_value(value), json_string_length(value), out, size);
}

bool
instance_parse(const char *document, size_t len, struct host_facts *ret)
{
	json_t *root = json_loadb(document, len, 0, NULL);
	struct host_facts f = { .cloud = "aws" };
	bool is_one = take_member(root, "instanceType", f.instance_type, sizeof(f.instance_type)) &&
	    take_member(root, "region", f.region, sizeof(f.region));

	json_decref(root);
	if (is_one)
		*ret = f;
	return is_one;
}

/* Sends the request of this step. 0 or -ENOMEM. */
static int
request(struct instance *i)
{
	struct http_client_request q = { .url = i->url, .is_direct = true, .header = i->header };

	snprintf(i->url, sizeof(i->url), "%s%s", i->base_url, paths[i->step]);
	if (i->step == STEP_TOKEN) {
		q.method = "PUT";
		snprintf(i->header, sizeof(i->header), "X-aws-ec2-metadata-token-ttl-seconds: 60");
	}
	return http_client_send(i->http, &q);
}

/* Takes the token into the header of the next requests. Returns false if it is none. */
static bool
take_token(struct instance *i, const struct http_client_answer *a)
{
	if (a->len == 0 || a->len > TOKEN_MAX)
		return false;
	for (size_t at = 0; at < a->len; at++)
		if (a->body[at] <= ' ' || a->body[at] > '~')
			return false;
	snprintf(i->header, sizeof(i->header), "X-aws-ec2-metadata-token: %.*s", (int)a->len, a->body);
	return true;
}

static bool
take_lifecycle(struct instance *i, const struct http_client_answer *a)
{
	const char *end = memchr(a->body, '\n', a->len);

	return take_name(a->body, end != NULL ? (size_t)(end - a->body) : a->len, i->facts.lifecycle,
	    sizeof(i->facts.lifecycle));
}

static bool
take(struct instance *i, const struct http_client_answer *a)
{
	switch (i->step) {
	case STEP_TOKEN:
		return take_token(i, a);
	case STEP_DOCUMENT:
		return instance_parse(a->body, a->len, &i->facts);
	case STEP_LIFECYCLE:
		return take_lifecycle(i, a);
	}
	return false;
}

/* Ends this try, with the facts (error "") or with the error, once the client's callback has returned. */
static void
finish(struct instance *i)
{
	i->is_over = true;
	event_active(i->next, EV_TIMEOUT, 0);
}

static void
on_answer(const struct http_client_answer *a, void *arg)
{
	struct instance *i = arg;

	i->error[0] = '\0';
	if (a->code != 0)
		snprintf(i->error, sizeof(i->error), "%s", a->detail);
	else if (a->status == STATUS_NOT_FOUND && i->step == STEP_LIFECYCLE)
		i->facts.lifecycle[0] = '\0';	/* a service that does not know it */
	else if (a->status != STATUS_OK)
		snprintf(i->error, sizeof(i->error), "%s: status %ld", paths[i->step], a->status);
	else if (!take(i, a))
		snprintf(i->error, sizeof(i->error), "%s: the answer is not one of EC2's metadata service", paths[i->step]);
	if (i->error[0] != '\0' || i->step == STEP_LIFECYCLE) {
		finish(i);
		return;
	}
	i->step++;
	if (request(i) < 0) {
		snprintf(i->error, sizeof(i->error), "out of memory");
		finish(i);
	}
}

/* Hands the facts or the error over, or waits for another try. */
static void
end(struct instance *i)
{
	struct timeval later = { .tv_sec = INSTANCE_AGAIN_MS / 1000 };

	i->is_over = false;
	http_client_disconnect(i->http);
	explicit_bzero(i->header, sizeof(i->header));
	if (i->error[0] != '\0' && ++i->tries < INSTANCE_TRIES && event_add(i->next, &later) == 0)
		return;
	i->cb(i->error[0] == '\0' ? &i->facts : NULL, i->error, i->arg);
}

static void
on_next(evutil_socket_t fd, short what, void *arg)
{
	struct instance *i = arg;

	(void)fd;
	(void)what;
	if (i->is_over) {
		end(i);
		return;
	}
	i->step = STEP_TOKEN;
	if (request(i) < 0) {
		snprintf(i->error, sizeof(i->error), "out of memory");
		finish(i);
	}
}

int
instance_ask(struct event_base *base, const char *url, instance_cb cb, void *arg, struct instance **ret)
{
	static const struct http_client_options options = { .timeout_ms = INSTANCE_TIMEOUT_MS,
		.body_max = INSTANCE_ANSWER_MAX };
	struct instance *i;

	if (strlen(url) >= URL_SIZE)
		return -EINVAL;
	i = calloc(1, sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	snprintf(i->base_url, sizeof(i->base_url), "%s", url);
	i->cb = cb;
	i->arg = arg;
	i->next = evtimer_new(base, on_next, i);
	if (i->next == NULL || http_client_open(base, &options, on_answer, i, &i->http) < 0 || request(i) < 0) {
		instance_close(i);
		return -ENOMEM;
	}
	*ret = i;
	return 0;
}

void
instance_close(struct instance *i)
{
	if (i == NULL)
		return;
	http_client_close(i->http);
	if (i->next != NULL)
		event_free(i->next);
	free(i);
}
