/*
 * SPDX-License-Identifier: Apache-2.0
 * registry: ids of our schemas, assigned by a schema registry (Confluent's HTTP interface, v1).
 *
 * An entry is one schema under one subject, with the time of its next request. step() takes the most urgent
 * entry that is due and requests its id, one at a time, so that one connection is enough.
 *
 *	            registry_id()                 an id
 *	(not there) ------------> unknown ------------------> known <-----------------+
 *	     |                    |    ^                        | |                   |
 *	     | in the cache  refused   | retry_max_ms     refused | another entry's    | an id
 *	     |                    v    |                        | | id has changed    |
 *	     |                   refused <----------------------+ v                   |
 *	     +----------------------------------------> known, unverified ------------+
 *
 * Without an answer no entry changes: all requests are delayed, and the next URL is used.
 *
 * An id is valid in an epoch of the registry. If the registry behind the URL is replaced by a new one with other
 * ids, readers cannot decode records with the old ones, or decode them as another type. So known ids are requested
 * again, one of them each recheck_ms; an agent that registers schemas restores them by this request. Another id
 * replaces ours. If the registry does not know the schema, the id is withdrawn and records wait in the spool. Both
 * begin a new epoch: all other ids are unverified, and are requested at once.
 *
 * An unverified id, of the cache or of the epoch before, is given out only once the registry has confirmed it. But
 * the agent must continue while the registry is down: after trust_ms without a verdict the id is given out, since a
 * registry that is down is far more often the same one than a new one. Any other refusal (credentials, a wrong path)
 * is no evidence about an id, as a missing answer.
 */
#include "registry/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/util.h>

#include "base/ca_bundle.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/text.h"
#include "http/client.h"
#include "registry/answer.h"
#include "registry/cache.h"

#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_RETRY_MIN_MS 500
#define DEFAULT_RETRY_MAX_MS 30000
#define DEFAULT_RECHECK_MS (60 * 1000)
#define DEFAULT_TRUST_MS (10 * 1000)
#define BODY_MAX (1024 * 1024)	/* limit of an answer */
#define IDLE_US INT64_C(5000000)	/* an idle connection is closed after this */

struct entry {
	char		*subject;	/* owned */
	char		*body;		/* owned; body of the request */
	int64_t		 ask_at_us;	/* monotonic; no request before */
	int32_t		 id;		/* with has_id */
	bool		 has_id;
	bool		 is_verified;	/* the registry itself has sent that id in this epoch */
	bool		 is_trusted;	/* given out although it is not verified */
	int64_t		 trust_at_us;	/* monotonic; an unverified id is trusted from then on */
	bool		 is_refused;	/* its last request was refused, and it has no id */
	unsigned	 denials;	/* refusals in a row that did not concern the schema */
};

struct url {
	struct registry_url parts;	/* owned */
	int64_t		 not_before_us;	/* monotonic; requested by Retry-After */
};

struct registry {
	void		(*on_change)(void *arg);
	void		*arg;		/* the caller's */
	struct http_client *http;	/* owned */
	struct registry_cache *cache;	/* owned */
	struct event	*wake;		/* owned; the only timer, calls step() */
	struct url	*urls;		/* owned */
	size_t		 n_urls;
	size_t		 url;		/* index of the URL in use */
	char		*user;		/* owned, like the next five */
	char		*password;
	char		*token;
	char		*ca_file;	/* NULL: none */
	char		*cert_file;
	char		*key_file;
	bool		 lookup_only;
	uint32_t	 timeout_ms;
	uint32_t	 retry_min_ms;
	uint32_t	 retry_max_ms;
	uint32_t	 recheck_ms;
	uint32_t	 trust_ms;
	uint64_t	 epoch;		/* raised when an id has changed or was withdrawn */

	struct entry	*in_flight;	/* entry of the request in flight, or NULL */
	char		*request_url;	/* owned */
	size_t		 next;		/* index at which the search for the next request begins */
	unsigned	 away;		/* requests in a row without an answer */
	int64_t		 away_until_us;	/* monotonic; no request before */
	int64_t		 away_since_us;	/* monotonic; the first of these requests ended; with away */
	int64_t		 last_us;	/* monotonic; of the last answer */
	bool		 is_save_reported;	/* a failed save of the cache was reported */

	char		 error[REGISTRY_SENTENCE];
	int64_t		 error_us;	/* wall clock */
	uint64_t	 requests;
	uint64_t	 failures;

	/*
	 * Searched for each record: fingerprints are kept apart from entries so that they fit into few cache
	 * lines, and the last hit is tried first, because consecutive records often have the same topic.
	 */
	size_t		 last;
	size_t		 n;
	uint64_t	 fingerprints[REGISTRY_MAX];
	struct entry	 entries[REGISTRY_MAX];
};

static uint32_t
random_bits(void)
{
	uint32_t bits;

	evutil_secure_rng_get_bytes(&bits, sizeof(bits));
	return bits;
}

/* Sets the timer. Negative: libevent has no memory for it. */
static int
wake_in(struct registry *r, int64_t wait_us)
{
	struct timeval tv = { .tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000 };

	return evtimer_add(r->wake, &tv);
}

/* Returns whether an entry's id may be given out. */
static bool
is_usable(const struct entry *e)
{
	return e->has_id && (e->is_verified || e->is_trusted);
}

static enum registry_state
state_of(const struct registry *r)
{
	bool is_refused = false, is_wanted = false;

	for (size_t i = 0; i < r->n; i++) {
		is_wanted |= !is_usable(&r->entries[i]);
		is_refused |= r->entries[i].is_refused;
	}
	if (r->n == 0)
		return REGISTRY_IDLE;
	if (!is_wanted)
		return REGISTRY_OK;
	if (r->away > 0)
		return REGISTRY_AWAY;
	return is_refused ? REGISTRY_REFUSED : REGISTRY_ASKING;
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

/* Returns how urgent a request is; 0: most. */
static int
urgency(const struct entry *e)
{
	return is_usable(e) ? 2 : e->is_refused ? 1 : 0;
}

/*
 * Returns the most urgent entry that is due, or NULL with the time when the next one will be. The search begins
 * after the entry that was requested last, so that a request that the server cannot handle does not block
 * others.
 */
static struct entry *
next_entry(struct registry *r, int64_t now_us, int64_t *ret_at_us)
{
	struct entry *best = NULL;

	*ret_at_us = INT64_MAX;
	for (size_t i = 0; i < r->n; i++) {
		struct entry *e = &r->entries[(r->next + i) % r->n];

		if (e->ask_at_us > now_us) {
			if (e->ask_at_us < *ret_at_us)
				*ret_at_us = e->ask_at_us;
		} else if (best == NULL || urgency(e) < urgency(best)) {
			best = e;
		}
	}
	return best;
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
ask(struct registry *r, struct entry *e)
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
	r->next = (size_t)(e - r->entries) + 1;
	r->requests++;
	return 0;
}

/*
 * Trusts unverified ids whose time has come. Returns whether there were any, and when the next one will be: at
 * *ret_at_us, unless that is earlier.
 */
static bool
trust(struct registry *r, int64_t now_us, int64_t *ret_at_us)
{
	bool is_news = false;

	for (size_t i = 0; i < r->n; i++) {
		struct entry *e = &r->entries[i];

		if (!e->has_id || is_usable(e))
			continue;
		if (e->trust_at_us <= now_us)
			e->is_trusted = is_news = true;
		else if (e->trust_at_us < *ret_at_us)
			*ret_at_us = e->trust_at_us;
	}
	return is_news;
}

/* Sends the next request that is due, or sets the timer for it. Ids are trusted meanwhile, too. */
static void
step(struct registry *r)
{
	int64_t now_us = clock_us(CLOCK_MONOTONIC), at_us, trust_at_us = INT64_MAX;
	bool is_news = trust(r, now_us, &trust_at_us);
	struct entry *e;

	if (r->in_flight != NULL) {
		if (trust_at_us != INT64_MAX)
			(void)wake_in(r, trust_at_us - now_us);
		goto out;	/* on_answer() calls step() */
	}
	e = next_entry(r, now_us, &at_us);
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
			at_us = now_us + (int64_t)r->retry_max_ms * 1000;	/* no memory */
		}
	} else if (now_us - r->last_us >= IDLE_US) {
		http_client_disconnect(r->http);	/* no effect if it is closed */
	} else if (at_us > r->last_us + IDLE_US) {
		at_us = r->last_us + IDLE_US;
	}
	if (at_us > trust_at_us)
		at_us = trust_at_us;
	if (at_us != INT64_MAX)
		(void)wake_in(r, at_us - now_us);	/* after a failure id_of() sets it */
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
 * Begins an epoch after an id of the registry has changed or was withdrawn: the other ids are no longer verified, nor
 * trusted. While one waits for its verdict already, the change before is still being looked into, and the verified ones
 * were confirmed since.
 */
static void
begin_epoch(struct registry *r, const struct entry *changed, int64_t now_us)
{
	r->epoch++;
	for (size_t i = 0; i < r->n; i++) {
		const struct entry *e = &r->entries[i];

		if (e != changed && e->has_id && !is_usable(e))
			return;
	}
	for (size_t i = 0; i < r->n; i++) {
		struct entry *e = &r->entries[i];

		if (e == changed || !e->has_id)
			continue;
		e->is_verified = e->is_trusted = false;
		e->ask_at_us = now_us;
		e->trust_at_us = now_us + (int64_t)r->trust_ms * 1000;
	}
}

/* Returns when a known id is to be requested again: half of recheck_ms to all of it after the last one that is. */
static int64_t
recheck_at(const struct registry *r, const struct entry *known, int64_t now_us)
{
	/* Spread, so that hosts that started together do not send requests together. */
	uint64_t half = r->recheck_ms / 2, spread = (half * random_bits()) >> 32;
	int64_t last_us = now_us;

	for (size_t i = 0; i < r->n; i++) {
		const struct entry *e = &r->entries[i];

		if (e != known && e->has_id && e->is_verified && e->ask_at_us > last_us)
			last_us = e->ask_at_us;
	}
	return last_us + (int64_t)(r->recheck_ms - half + spread) * 1000;
}

/* Stores an id from the registry. Returns whether anything has changed. */
static bool
take_id(struct registry *r, struct entry *e, int32_t id, int64_t now_us)
{
	const char *base = r->urls[r->url].parts.base;
	bool is_news = !e->has_id || e->id != id || !e->is_verified;

	if (e->has_id && e->id != id)
		begin_epoch(r, e, now_us);
	e->id = id;
	e->has_id = e->is_verified = true;
	e->is_refused = false;
	e->denials = 0;
	e->ask_at_us = recheck_at(r, e, now_us);
	/* Without memory it is only requested again at the next start. */
	(void)registry_cache_put(r->cache, base, e->subject, r->fingerprints[e - r->entries], id);
	return is_news;
}

/* The registry answers for schemas: an unverified id waits for its own answer, which is to come soon. */
static void
put_off_trust(struct registry *r, int64_t now_us)
{
	for (size_t i = 0; i < r->n; i++) {
		struct entry *e = &r->entries[i];

		if (e->has_id && !is_usable(e))
			e->trust_at_us = now_us + (int64_t)r->trust_ms * 1000;
	}
}

/* Handles a refusal. Returns whether anything has changed. */
static bool
take_refusal(struct registry *r, struct entry *e, bool is_about_schema, int64_t now_us)
{
	bool was_refused = e->is_refused, was_usable = is_usable(e);
	uint32_t half = r->retry_max_ms / 2;

	e->ask_at_us = now_us +
	    ((int64_t)(r->retry_max_ms - half) + (((uint64_t)half * random_bits()) >> 32)) * 1000;
	if (is_about_schema) {
		if (e->has_id)
			begin_epoch(r, e, now_us);
		e->has_id = e->is_verified = e->is_trusted = false;
		e->is_refused = true;
		registry_cache_drop(r->cache, r->urls[r->url].parts.base, e->subject,
		    r->fingerprints[e - r->entries]);
	} else {
		r->url = (r->url + 1) % r->n_urls;
		if (++e->denials % r->n_urls != 0)
			e->ask_at_us = now_us;	/* another URL may accept the request */
		else
			e->is_refused = !e->has_id;
	}
	return was_refused != e->is_refused || was_usable != is_usable(e);
}

/* Handles a missing answer: delays all requests, longer after each round over all URLs. */
static void
take_failure(struct registry *r, int64_t retry_after_s, int64_t now_us)
{
	uint32_t wait_ms = registry_wait_ms(
	    r->retry_min_ms, r->retry_max_ms, r->away / (unsigned)r->n_urls, random_bits());
	int64_t max_us = (int64_t)r->retry_max_ms * 1000;

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
	enum registry_state before = state_of(r);
	const struct registry_url *u = &r->urls[r->url].parts;
	struct entry *e = r->in_flight;
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
	if (a.verdict == REGISTRY_ID || a.verdict == REGISTRY_REJECTED)
		put_off_trust(r, now_us);
	switch (a.verdict) {
	case REGISTRY_ID:
		is_news |= take_id(r, e, a.id, now_us);
		break;
	case REGISTRY_REJECTED:
	case REGISTRY_DENIED:
		is_news |= take_refusal(r, e, a.verdict == REGISTRY_REJECTED, now_us);
		break;
	case REGISTRY_UNAVAILABLE:
		take_failure(r, http->retry_after_s, now_us);
		break;
	}
	step(r);
	if (is_news || state_of(r) != before)
		r->on_change(r->arg);
}

/* Adds an entry, with its id if it is cached. 0 or a negative errno. */
static int
add(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema)
{
	struct entry *e = &r->entries[r->n];

	if (r->n == REGISTRY_MAX)
		return -ENOSPC;
	if (!text_is_plain(subject, strlen(subject)))
		return -EINVAL;
	*e = (struct entry){ .subject = strdup(subject), .body = registry_request_body(schema) };
	/* Started by the timer, so that on_change is not called within registry_id(). */
	if (e->subject == NULL || e->body == NULL || wake_in(r, 0) < 0) {
		int err = e->subject == NULL || text_is_plain(schema, strlen(schema)) ? -ENOMEM
										      : -EINVAL;

		free(e->subject);
		free(e->body);
		return err;
	}
	/* All URLs belong to one registry, so an id from any of them is valid. */
	for (size_t i = 0; i < r->n_urls && !e->has_id; i++)
		e->has_id = registry_cache_get(
				r->cache, r->urls[i].parts.base, subject, fingerprint, &e->id) == 0;
	/* Of a registry that does not answer already no more is known by waiting anew. */
	e->trust_at_us = r->away > 0 ? r->away_since_us : clock_us(CLOCK_MONOTONIC);
	e->trust_at_us += (int64_t)r->trust_ms * 1000;
	r->fingerprints[r->n] = fingerprint;
	r->n++;
	return 0;
}

static int
id_of(struct registry *r, const struct entry *e, int32_t *ret_id)
{
	if (!is_usable(e)) {
		if (!evtimer_pending(r->wake, NULL))
			(void)wake_in(r, 0);	/* step() could not set it */
		return e->is_refused ? -EACCES : -EAGAIN;
	}
	*ret_id = e->id;
	return 0;
}

static inline bool
is_entry(const struct registry *r, size_t i, const char *subject, uint64_t fingerprint)
{
	return r->fingerprints[i] == fingerprint && strcmp(r->entries[i].subject, subject) == 0;
}

int
registry_id(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema,
    int32_t *ret_id)
{
	int err;

	if (r->last < r->n && is_entry(r, r->last, subject, fingerprint))
		return id_of(r, &r->entries[r->last], ret_id);
	for (size_t i = 0; i < r->n; i++) {
		if (is_entry(r, i, subject, fingerprint)) {
			r->last = i;
			return id_of(r, &r->entries[i], ret_id);
		}
	}
	err = add(r, subject, fingerprint, schema);
	return err < 0 ? err : id_of(r, &r->entries[r->n - 1], ret_id);
}

uint64_t
registry_epoch(const struct registry *r)
{
	return r->epoch;
}

void
registry_status(const struct registry *r, struct registry_status *ret)
{
	*ret = (struct registry_status){
		.state = state_of(r),
		.error_us = r->error_us,
		.requests = r->requests,
		.failures = r->failures,
	};
	snprintf(ret->url, sizeof(ret->url), "%s", r->urls[r->url].parts.base);
	memcpy(ret->error, r->error, sizeof(ret->error));
	for (size_t i = 0; i < r->n; i++) {
		const struct entry *e = &r->entries[i];

		ret->known += e->has_id;
		ret->unverified += e->has_id && !e->is_verified;
		ret->wanted += !is_usable(e);
	}
}

/* Returns whether text may be put into a header, which a control character would end. NULL is fine. */
static bool
is_header_text(const char *text)
{
	for (; text != NULL && *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

/* Returns a sentence about options that cannot work together, or NULL. */
static const char *
objection(const struct registry_options *o)
{
	if (o->n_urls == 0)
		return "registry.urls is empty: set at least one URL";
	if (o->token != NULL && o->user != NULL)
		return "registry.user and registry.token are both set: remove one of them";
	if (o->password != NULL && o->user == NULL)
		return "registry.password is set without registry.user: set both";
	if (o->user != NULL && strchr(o->user, ':') != NULL)
		return "registry.user contains a colon, which basic authentication does not allow";
	if (!is_header_text(o->user) || !is_header_text(o->password) || !is_header_text(o->token))
		return "the registry's credentials contain a control character, such as the newline "
		       "at a file's end: remove it";
	if ((o->cert_file != NULL) != (o->key_file != NULL))
		return "one of registry.cert_file and registry.key_file is set without the other: "
		       "set both";
	return NULL;
}

/* Checks that a file can be read. NULL is fine. 0, or a negative errno with a sentence in error. */
static int
check_file(const char *key, const char *path, char *error, size_t error_size)
{
	int err;

	if (path == NULL || access(path, R_OK) == 0)
		return 0;
	err = -errno;
	snprintf(error, error_size, "%s: %s cannot be read: %s", key, path,
	    strerror(-err));
	return err;
}

static int
parse_urls(struct registry *r, const struct registry_options *o, bool *ret_is_https, char *error,
    size_t error_size)
{
	int err;

	r->urls = calloc(o->n_urls, sizeof(*r->urls));
	if (r->urls == NULL)
		return -ENOMEM;
	for (; r->n_urls < o->n_urls; r->n_urls++) {
		struct registry_url *u = &r->urls[r->n_urls].parts;

		err = registry_url_parse(o->urls[r->n_urls], u, error, error_size);
		if (err < 0)
			return err;
		*ret_is_https |= u->is_https;
	}
	return 0;
}

/* Copies the options. 0; -ENOMEM without a sentence; or another negative errno with one. */
static int
take_options(struct registry *r, const struct registry_options *o, char *error, size_t error_size)
{
	struct {
		char **to;
		const char *from;
	} texts[] = { { &r->ca_file, o->ca_file }, { &r->cert_file, o->cert_file }, { &r->key_file, o->key_file },
		{ &r->user, o->user }, { &r->password, o->password }, { &r->token, o->token } };
	bool is_https = false;
	int err;

	r->lookup_only = o->lookup_only;
	r->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
	r->retry_min_ms = o->retry_min_ms > 0 ? o->retry_min_ms : DEFAULT_RETRY_MIN_MS;
	r->retry_max_ms = o->retry_max_ms > 0 ? o->retry_max_ms : DEFAULT_RETRY_MAX_MS;
	r->recheck_ms = o->recheck_ms > 0 ? o->recheck_ms : DEFAULT_RECHECK_MS;
	r->trust_ms = o->trust_ms > 0 ? o->trust_ms : DEFAULT_TRUST_MS;
	err = parse_urls(r, o, &is_https, error, error_size);
	if (err < 0)
		return err;
	if (o->ca_file == NULL && is_https)
		texts[0].from = ca_bundle_find(ca_bundle_paths);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].from == NULL)
			continue;
		*texts[i].to = strdup(texts[i].from);
		if (*texts[i].to == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
registry_open(struct event_base *base, const struct registry_options *o,
    void (*on_change)(void *arg), void *arg, struct registry **ret, char *error, size_t error_size)
{
	static const char *const headers[] = { "Content-Type: application/vnd.schemaregistry.v1+json",
		"Accept: application/vnd.schemaregistry.v1+json, application/json", NULL };
	struct http_client_options http = { .headers = headers, .body_max = BODY_MAX };
	struct registry *r = NULL;
	const char *wrong = objection(o);
	int err;

	snprintf(error, error_size, "%s", wrong != NULL ? wrong : "");
	if (wrong != NULL)
		return -EINVAL;
	err = check_file("registry.ca_file", o->ca_file, error, error_size);
	if (err == 0)
		err = check_file("registry.cert_file", o->cert_file, error, error_size);
	if (err == 0)
		err = check_file("registry.key_file", o->key_file, error, error_size);
	if (err < 0)
		return err;

	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		err = -ENOMEM;
		goto fail;
	}
	r->on_change = on_change;
	r->arg = arg;
	err = take_options(r, o, error, error_size);
	if (err < 0)
		goto fail;
	http.ca_file = r->ca_file;
	http.cert_file = r->cert_file;
	http.key_file = r->key_file;
	http.timeout_ms = r->timeout_ms;
	err = -ENOMEM;
	r->wake = evtimer_new(base, on_wake, r);
	if (r->wake == NULL)
		goto fail;
	err = http_client_open(base, &http, on_answer, r, &r->http);
	if (err < 0)
		goto fail;
	err = registry_cache_open(o->cache_file, &r->cache, error, error_size);
	if (err < 0)
		goto fail;
	registry_cache_use_disk(r->cache, o->disk);
	*ret = r;
	return 0;

fail:
	if (err == -ENOMEM)
		snprintf(error, error_size, "no memory for the registry client");
	registry_close(r);
	return err;
}

void
registry_close(struct registry *r)
{
	if (r == NULL)
		return;
	if (r->cache != NULL)
		(void)registry_cache_save(r->cache);	/* an error cannot be reported any more */
	http_client_close(r->http);
	registry_cache_close(r->cache);
	if (r->wake != NULL)
		event_free(r->wake);
	for (size_t i = 0; i < r->n; i++) {
		free(r->entries[i].subject);
		free(r->entries[i].body);
	}
	for (size_t i = 0; i < r->n_urls; i++)
		registry_url_done(&r->urls[i].parts);
	free(r->urls);
	free(r->request_url);
	free(r->user);
	free(r->password);
	free(r->token);
	free(r->ca_file);
	free(r->cert_file);
	free(r->key_file);
	free(r);
}
