/*
 * SPDX-License-Identifier: Apache-2.0
 * requests: asks the registry for ids, one at a time, and tries its URLs in turn.
 *
 * step() takes the most urgent entry of ids.h that is due, so that one connection is enough. Without an answer no entry
 * changes: all requests are delayed, and the next URL is used.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/disk.h"
#include "http/client.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "registry/registry_state.h"

#define BODY_MAX (1024 * 1024)	/* limit of an answer */
#define IDLE_US INT64_C(5000000)	/* an idle connection is closed after this */
#define LATE_US INT64_C(1000000)	/* by which the timer is late if the process did not run */

/* Sets the timer. Negative: libevent has no memory for it. */
static int
wake_in(struct registry *r, int64_t wait_us)
{
	struct timeval tv = { .tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000 };

	r->wake_us = clock_us(CLOCK_MONOTONIC) + wait_us;
	return evtimer_add(r->wake, &tv);
}

enum registry_state
registry_requests_state(const struct registry *r)
{
	struct registry_ids_counts counts;

	registry_ids_count(&r->ids, &counts);
	if (r->ids.n == 0)
		return REGISTRY_IDLE;
	if (counts.wanted == 0)
		return REGISTRY_OK;
	if (r->away > 0)
		return REGISTRY_AWAY;
	return counts.refused > 0 ? REGISTRY_REFUSED : REGISTRY_ASKING;
}

/* Sets the last error; returns whether its text has changed. */
static bool
set_error(struct registry *r, const char *sentence)
{
	bool is_new = strcmp(sentence, r->error) != 0;

	snprintf(r->error, sizeof(r->error), "%s", sentence);
	r->error_us = clock_us(CLOCK_REALTIME);
	return is_new;
}

/*
 * Selects the first URL from the current one on without a Retry-After, or else the one whose Retry-After ends
 * first, and returns when it may be used.
 */
static int64_t
choose_url(struct registry *r, int64_t now_us)
{
	size_t best = r->url;

	for (size_t i = 0; i < r->n_urls; i++) {
		size_t at = (r->url + i) % r->n_urls;

		if (r->urls[at].not_before_us <= now_us) {
			best = at;
			break;
		}
		if (r->urls[at].not_before_us < r->urls[best].not_before_us)
			best = at;
	}
	r->url = best;
	return r->urls[best].not_before_us;
}

/*
 * Writes the cache; after a failure ids only have to be requested again at the next start. True: the last error
 * changed.
 */
static bool
save(struct registry *r)
{
	int e = registry_cache_save(r->cache);
	bool was_reported = r->is_save_reported;
	char text[REGISTRY_SENTENCE];

	r->is_save_reported = e < 0;
	if (e == 0 || was_reported)
		return false;
	snprintf(text, sizeof(text),
	    "schema ids cannot be saved (%s): after a restart they are requested from the "
	    "registry again",
	    disk_error_text(e));
	return set_error(r, text);
}

static int
ask(struct registry *r, struct registry_entry *e)
{
	const struct url *u = &r->urls[r->url];
	struct http_client_request q = {
		.user = u->parts.user != NULL ? u->parts.user : r->user,
		.password = u->parts.user != NULL ? u->parts.password : r->password,
		.token = u->parts.user != NULL ? NULL : r->token,
		.body = e->body,
	};
	int err;

	free(r->request_url);
	r->request_url = registry_url_of_subject(u->parts.base, e->subject, r->lookup_only);
	q.url = r->request_url;
	err = q.url != NULL ? http_client_send(r->http, &q) : -ENOMEM;
	if (err < 0)
		return err;
	r->in_flight = e;
	registry_ids_requested(&r->ids, e);
	r->requests++;
	return 0;
}

/*
 * Time in which the process did not run, as one that was stopped, is none in which the registry did not answer: its
 * answer may only not have been read. Once between two verdicts, so that a host where this is usual continues.
 */
static void
put_off_trust_if_late(struct registry *r, int64_t now_us)
{
	bool is_late = r->wake_us != 0 && now_us - r->wake_us >= LATE_US;

	r->wake_us = 0;
	if (!is_late || r->is_put_off)
		return;
	registry_ids_put_off_trust(&r->ids, now_us);
	r->is_put_off = true;
}

/* Sends the next request that is due, or sets the timer for it. Ids are trusted meanwhile, too. */
static void
step(struct registry *r)
{
	int64_t now_us = clock_us(CLOCK_MONOTONIC), at_us, trust_at_us = INT64_MAX;
	struct registry_entry *e;
	bool is_news;

	put_off_trust_if_late(r, now_us);
	is_news = registry_ids_trust(&r->ids, now_us, &trust_at_us);
	if (r->in_flight != NULL) {
		if (trust_at_us != INT64_MAX)
			(void)wake_in(r, trust_at_us - now_us);
		goto out;	/* on_answer() calls step() */
	}
	e = registry_ids_due(&r->ids, now_us, &at_us);
	if (e != NULL) {
		at_us = choose_url(r, now_us);
		if (at_us < r->away_until_us)
			at_us = r->away_until_us;
		if (at_us <= now_us) {
			if (ask(r, e) == 0) {
				if (trust_at_us != INT64_MAX)
					(void)wake_in(r, trust_at_us - now_us);
				goto out;
			}
			at_us = now_us + (int64_t)r->ids.retry_max_ms * 1000;	/* no memory */
		}
	} else if (now_us - r->last_us >= IDLE_US) {
		http_client_disconnect(r->http);	/* no effect if it is closed */
	} else if (at_us > r->last_us + IDLE_US) {
		at_us = r->last_us + IDLE_US;
	}
	if (at_us > trust_at_us)
		at_us = trust_at_us;
	if (at_us != INT64_MAX)
		(void)wake_in(r, at_us - now_us);	/* after a failure registry_id() sets it */
	is_news |= save(r);
out:
	if (is_news)
		r->on_change(r->arg);	/* last: it may make a request due */
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	step(arg);
}

/*
 * Removes the ids of the epoch before from the cache, also those that were not asked for: they would be trusted while
 * the registry is down, by this agent or by the next one.
 */
static void
forget(struct registry *r)
{
	for (size_t u = 0; u < r->n_urls; u++)
		registry_cache_drop_all(r->cache, r->urls[u].parts.base);
}

/* Stores an id from the registry. Returns whether anything has changed. */
static bool
take_id(struct registry *r, struct registry_entry *e, int32_t id, int64_t now_us)
{
	const char *base = r->urls[r->url].parts.base;
	uint64_t epoch = r->ids.epoch;
	bool is_news = registry_ids_take(&r->ids, e, id, now_us);

	if (r->ids.epoch != epoch)
		forget(r);
	/* Without memory it is only requested again at the next start. */
	(void)registry_cache_put(r->cache, base, e->subject, registry_ids_fingerprint(&r->ids, e), id);
	return is_news;
}

/* Withdraws an id that the registry refuses. Returns whether anything has changed. */
static bool
take_rejection(struct registry *r, struct registry_entry *e, int64_t now_us)
{
	const char *base = r->urls[r->url].parts.base;
	uint64_t epoch = r->ids.epoch;
	bool is_news = registry_ids_reject(&r->ids, e, now_us);

	registry_cache_drop(r->cache, base, e->subject, registry_ids_fingerprint(&r->ids, e));
	if (r->ids.epoch != epoch)
		forget(r);
	return is_news;
}

/* Handles a refusal that does not concern the schema: uses the next URL. Returns whether anything has changed. */
static bool
take_denial(struct registry *r, struct registry_entry *e, int64_t now_us)
{
	r->url = (r->url + 1) % r->n_urls;
	return registry_ids_deny(&r->ids, e, r->n_urls, now_us);
}

/* Handles a missing answer: delays all requests, longer after each round over all URLs. */
static void
take_failure(struct registry *r, int64_t retry_after_s, int64_t now_us)
{
	uint32_t wait_ms = registry_wait_ms(r->retry_min_ms, r->ids.retry_max_ms,
	    r->away / (unsigned)r->n_urls, registry_random_bits());
	int64_t max_us = (int64_t)r->ids.retry_max_ms * 1000;

	if (r->away++ == 0)
		r->away_since_us = now_us;
	r->away_until_us = now_us + (int64_t)wait_ms * 1000;
	if (retry_after_s > 0)
		r->urls[r->url].not_before_us = now_us +
		    (retry_after_s > max_us / 1000000 ? max_us : retry_after_s * 1000000);
	r->url = (r->url + 1) % r->n_urls;
}

static void
on_answer(const struct http_client_answer *http, void *arg)
{
	struct registry *r = arg;
	int64_t now_us = clock_us(CLOCK_MONOTONIC);
	enum registry_state before = registry_requests_state(r);
	const struct registry_url *u = &r->urls[r->url].parts;
	struct registry_entry *e = r->in_flight;
	struct registry_request q = {
		.base = u->base,
		.subject = e->subject,
		.lookup_only = r->lookup_only,
		.timeout_ms = r->timeout_ms,
		.ca = r->ca_file,
		.user = u->user != NULL ? u->user : r->user,
		.secrets = { u->user != NULL ? u->password : r->password, r->token },
	};
	struct registry_answer a;
	uint64_t epoch = r->ids.epoch;
	bool is_news = false;

	r->in_flight = NULL;
	r->last_us = now_us;
	if (http->code != 0)
		registry_answer_failed(&q, http->code, http->detail, &a);
	else
		registry_answer_read(&q, http->status, http->body, http->len, &a);

	if (a.verdict != REGISTRY_UNAVAILABLE)
		r->away = 0;
	if (a.verdict != REGISTRY_ID) {
		r->failures++;
		is_news |= set_error(r, a.sentence);
	}
	if (a.verdict == REGISTRY_ID || a.verdict == REGISTRY_REJECTED) {
		registry_ids_put_off_trust(&r->ids, now_us);
		r->is_put_off = false;
	}
	switch (a.verdict) {
	case REGISTRY_ID:
		is_news |= take_id(r, e, a.id, now_us);
		break;
	case REGISTRY_REJECTED:
		is_news |= take_rejection(r, e, now_us);
		break;
	case REGISTRY_DENIED:
		is_news |= take_denial(r, e, now_us);
		break;
	case REGISTRY_UNAVAILABLE:
		take_failure(r, http->retry_after_s, now_us);
		break;
	}
	if (r->ids.epoch != epoch)
		is_news |= save(r);	/* before the next request, whose answer may take long */
	step(r);
	if (is_news || registry_requests_state(r) != before)
		r->on_change(r->arg);
}

int
registry_requests_open(struct registry *r, struct event_base *base)
{
	static const char *const headers[] = { "Content-Type: application/vnd.schemaregistry.v1+json",
		"Accept: application/vnd.schemaregistry.v1+json, application/json", NULL };
	const struct http_client_options http = { .headers = headers, .body_max = BODY_MAX, .ca_file = r->ca_file,
		.cert_file = r->cert_file, .key_file = r->key_file, .timeout_ms = r->timeout_ms };

	r->wake = evtimer_new(base, on_wake, r);
	if (r->wake == NULL)
		return -ENOMEM;
	return http_client_open(base, &http, on_answer, r, &r->http);
}

void
registry_requests_close(struct registry *r)
{
	http_client_close(r->http);
	if (r->wake != NULL)
		event_free(r->wake);
	free(r->request_url);
}

int
registry_requests_wake(struct registry *r)
{
	return wake_in(r, 0);
}
