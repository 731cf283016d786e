/*
 * SPDX-License-Identifier: Apache-2.0
 * registry: ids of our schemas, assigned by a schema registry (Confluent's HTTP interface, v1). ids.h says what is
 * known of them, and requests.c asks for them.
 */
#include "registry/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/ca_bundle.h"
#include "base/clock.h"
#include "base/text.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "registry/ids.h"
#include "registry/registry_state.h"

#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_RETRY_MIN_MS 500
#define DEFAULT_RETRY_MAX_MS 30000
#define DEFAULT_RECHECK_MS (60 * 1000)
#define DEFAULT_TRUST_MS (10 * 1000)

/* Adds an entry, with its id if it is cached. 0 or a negative errno. */
static int
add(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema, struct registry_entry **ret)
{
	struct registry_entry e;

	if (r->ids.n == REGISTRY_MAX)
		return -ENOSPC;
	if (!text_is_plain(subject, strlen(subject)))
		return -EINVAL;
	e = (struct registry_entry){ .subject = strdup(subject), .body = registry_request_body(schema) };
	/* Started by the timer, so that on_change is not called within registry_id(). */
	if (e.subject == NULL || e.body == NULL || registry_requests_wake(r) < 0) {
		int err = e.subject == NULL || text_is_plain(schema, strlen(schema)) ? -ENOMEM : -EINVAL;

		free(e.subject);
		free(e.body);
		return err;
	}
	/* All URLs belong to one registry, so an id from any of them is valid. */
	for (size_t i = 0; i < r->n_urls && !e.has_id; i++)
		e.has_id = registry_cache_get(r->cache, r->urls[i].parts.base, subject, fingerprint, &e.id) == 0;
	/* Of a registry that does not answer already no more is known by waiting anew. */
	e.trust_at_us = r->away > 0 ? r->away_since_us : clock_us(CLOCK_MONOTONIC);
	e.trust_at_us += (int64_t)r->ids.trust_ms * 1000;
	*ret = registry_ids_add(&r->ids, &e, fingerprint);
	return 0;
}

static int
id_of(struct registry *r, const struct registry_entry *e, int32_t *ret_id)
{
	if (!registry_ids_is_usable(e)) {
		if (!evtimer_pending(r->wake, NULL))
			(void)registry_requests_wake(r);	/* a step could not set it */
		return e->is_refused ? -EACCES : -EAGAIN;
	}
	*ret_id = e->id;
	return 0;
}

int
registry_id(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema,
    int32_t *ret_id)
{
	struct registry_entry *e = registry_ids_find(&r->ids, subject, fingerprint);
	int err = e != NULL ? 0 : add(r, subject, fingerprint, schema, &e);

	return err < 0 ? err : id_of(r, e, ret_id);
}

uint64_t
registry_epoch(const struct registry *r)
{
	return r->ids.epoch;
}

void
registry_status(const struct registry *r, struct registry_status *ret)
{
	struct registry_ids_counts counts;

	registry_ids_count(&r->ids, &counts);
	*ret = (struct registry_status){
		.state = registry_requests_state(r),
		.error_us = r->error_us,
		.requests = r->requests,
		.failures = r->failures,
		.known = counts.known,
		.unverified = counts.unverified,
		.wanted = counts.wanted,
	};
	snprintf(ret->url, sizeof(ret->url), "%s", r->urls[r->url].parts.base);
	memcpy(ret->error, r->error, sizeof(ret->error));
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
	r->ids.retry_max_ms = o->retry_max_ms > 0 ? o->retry_max_ms : DEFAULT_RETRY_MAX_MS;
	r->ids.recheck_ms = o->recheck_ms > 0 ? o->recheck_ms : DEFAULT_RECHECK_MS;
	r->ids.trust_ms = o->trust_ms > 0 ? o->trust_ms : DEFAULT_TRUST_MS;
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
	err = registry_requests_open(r, base);
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
	registry_requests_close(r);
	registry_cache_close(r->cache);
	registry_ids_done(&r->ids);
	for (size_t i = 0; i < r->n_urls; i++)
		registry_url_done(&r->urls[i].parts);
	free(r->urls);
	free(r->user);
	free(r->password);
	free(r->token);
	free(r->ca_file);
	free(r->cert_file);
	free(r->key_file);
	free(r);
}
