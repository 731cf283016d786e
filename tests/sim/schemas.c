/*
 * SPDX-License-Identifier: Apache-2.0
 * schemas: the registry's server, in place of what src/http sends requests to.
 */
#include <errno.h>
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"
#include "sim.h"

/* An agent asks for one known id after the other, each after 30 s at most; a changed one makes it ask for all. */
#define RECHECK_US (30 * SIM_S)
#define MARGIN_US (15 * SIM_S)

struct http_client {
	http_client_cb cb;
	void *arg;
	bool is_busy;
	int64_t at_us;			/* when the answer arrives */
	uint32_t timeout_ms;
	char url[256];
	char *body;			/* owned */
};

static struct http_client *client;

const char *
sim_schema_text(unsigned topic, unsigned version)
{
	static char texts[SIM_TOPICS][SIM_SCHEMAS][64];

	/* Neither the spool nor the registry's client reads what is in it. */
	snprintf(texts[topic][version], sizeof(texts[topic][version]), "{\"type\":\"%s\",\"version\":%u}",
	    sim_topic_name(topic), version);
	return texts[topic][version];
}

/* --- the server --- */

void
sim_registry_init(struct sim_registry *r)
{
	r->is_up = true;
	r->delay_us = 20 * SIM_MS;
	r->next_id = 100;
}

static void
retire(const struct sim_registry *r, struct sim_schema *s, int64_t most_us)
{
	if (s->id == 0)
		return;
	memmove(&s->former[1], &s->former[0], (SIM_FORMER - 1) * sizeof(s->former[0]));
	s->former[0] = (struct sim_former){ s->id, world->life, r->answers_us, most_us };
	s->id = 0;
}

void
sim_registry_replace(struct sim_registry *r)
{
	for (unsigned t = 0; t < SIM_TOPICS; t++)
		for (int v = 0; v < SIM_SCHEMAS; v++)
			retire(r, &r->schemas[t][v], RECHECK_US + MARGIN_US);
	r->next_id += 100;
}

void
sim_registry_renumber(struct sim_registry *r, unsigned topic, unsigned version)
{
	retire(r, &r->schemas[topic][version], SIM_TOPICS * SIM_SCHEMAS * RECHECK_US + MARGIN_US);
	r->next_id++;
}

/* Finds the schema of a request. */
static bool
find(const struct http_client *h, unsigned *ret_topic, unsigned *ret_version)
{
	json_t *body = json_loads(h->body, 0, NULL);
	const char *schema = json_string_value(json_object_get(body, "schema"));
	bool is_found = false;

	for (unsigned t = 0; t < SIM_TOPICS && schema != NULL; t++) {
		char subject[64];

		snprintf(subject, sizeof(subject), "/subjects/%s-value/", sim_topic_name(t));
		for (unsigned v = 0; v < SIM_SCHEMAS; v++) {
			if (strstr(h->url, subject) == NULL || strcmp(schema, sim_schema_text(t, v)) != 0)
				continue;
			*ret_topic = t;
			*ret_version = v;
			is_found = true;
		}
	}
	json_decref(body);
	return is_found;
}

static void
answer(struct http_client *h)
{
	struct sim_registry *r = &world->registry;
	struct http_client_answer a = { .status = 200 };
	char body[128];
	unsigned topic;
	unsigned version;

	h->is_busy = false;
	if (!r->is_up) {
		a.code = sim_dice(500) ? CURLE_COULDNT_CONNECT : CURLE_OPERATION_TIMEDOUT;
		a.error = -ECONNREFUSED;
		a.detail = "no connection";
	} else if (!find(h, &topic, &version)) {
		sim_broken("the registry is asked for a schema that is not there: %s", h->url);
	} else if (r->refuses[topic] != 0) {
		a.status = r->refuses[topic];
		a.body = "{}";
		/* As in a slow registry, the client leaves time before its next request, of any schema. */
		if (a.status != 409)
			r->slow_us = world->now_us;
	} else {
		if (r->schemas[topic][version].id == 0)
			r->schemas[topic][version].id = r->next_id++;
		snprintf(body, sizeof(body), "{\"id\":%d}", r->schemas[topic][version].id);
		a.body = body;
	}
	sim_say("registry: %s: %ld %s", h->url, a.code != 0 ? 0 : a.status, a.body != NULL ? a.body : a.detail);
	a.len = a.body != NULL ? strlen(a.body) : 0;
	h->cb(&a, h->arg);
}

void
sim_registry_work(void)
{
	if (client != NULL && client->is_busy && client->at_us <= world->now_us)
		answer(client);
}

int64_t
sim_registry_next_us(void)
{
	return client != NULL && client->is_busy ? client->at_us : INT64_MAX;
}

/* --- the client --- */

SIM_WRAP(int, http_client_open, struct event_base *base, const struct http_client_options *o, http_client_cb cb,
    void *arg, struct http_client **ret)
{
	struct http_client *h = calloc(1, sizeof(*h));

	(void)base;
	if (h == NULL)
		abort();
	h->cb = cb;
	h->arg = arg;
	h->timeout_ms = o->timeout_ms;
	*ret = client = h;
	return 0;
}

SIM_WRAP(void, http_client_close, struct http_client *h)
{
	if (h == NULL)
		return;
	client = NULL;
	free(h->body);
	free(h);
}

SIM_WRAP(int, http_client_send, struct http_client *h, const struct http_client_request *q)
{
	const struct sim_registry *r = &world->registry;

	if (h->is_busy)
		return -EBUSY;
	h->is_busy = true;
	h->at_us = world->now_us + (int64_t)sim_below((uint64_t)r->delay_us + 1);
	if (!r->is_up && sim_dice(500))
		h->at_us = world->now_us + (int64_t)h->timeout_ms * SIM_MS;
	snprintf(h->url, sizeof(h->url), "%s", q->url);
	free(h->body);
	h->body = strdup(q->body);
	return 0;
}

SIM_WRAP(void, http_client_disconnect, struct http_client *h)
{
	(void)h;
}
