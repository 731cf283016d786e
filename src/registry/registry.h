/*
 * SPDX-License-Identifier: Apache-2.0
 * registry: the ids that a schema registry (Confluent's HTTP interface, v1) gives our schemas.
 *
 * Asks over libcurl's multi interface on the caller's loop; nothing here waits. An id once learnt is
 * kept in memory and in a file, so that an agent that restarts while the registry is away goes on.
 */
#ifndef SLUICE_REGISTRY_REGISTRY_H
#define SLUICE_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health.h"

struct event_base;
struct registry;

/* Strings are copied. NULL where not wanted. Proxies are taken from the environment, as curl does. */
struct registry_options {
	const char *const *urls;	/* tried in turn; one may hold user:password@ of its own */
	size_t n_urls;
	const char *user;		/* basic auth, with password */
	const char *password;
	const char *token;		/* bearer */
	const char *ca_file;		/* PEM; NULL: the system's, wherever this system has it */
	const char *cert_file;		/* our own, for mutual TLS; both are read again for each connection */
	const char *key_file;
	bool lookup_only;		/* auto_register: false */
	const char *cache_file;		/* ids by URL, subject and fingerprint; NULL: none */
	uint32_t timeout_ms;		/* of one request; 0: 10 s */
	uint32_t retry_min_ms;		/* 0: 500 ms; doubles, with jitter, up to */
	uint32_t retry_max_ms;		/* 0: 30 s */
	uint32_t recheck_ms;		/* a known id is asked for again, by chance half as late; 0: 1 h */
};

struct registry_status {
	enum registry_state state;
	char url[256];		/* the one in use, without credentials */
	char error[1024];	/* what went wrong last and what to do about it; "" never */
	int64_t error_us;	/* when; 0: never */
	uint64_t requests;
	uint64_t failures;	/* of those: no answer, or one that says no */
	unsigned known;		/* ids */
	unsigned unverified;	/* of those: from the cache, this registry has not been asked yet */
	unsigned wanted;	/* that were asked for and are not known */
};

/*
 * on_change: an id became known, changed or was taken back, or the state or the last error changed.
 * Called on the loop, never from within registry_id(); it must not close the registry. 0, or a
 * negative errno with *ret untouched and a sentence in error. A damaged cache is told there too (0);
 * else error is "". Credentials are in no sentence.
 */
int registry_open(struct event_base *base, const struct registry_options *o,
    void (*on_change)(void *arg), void *arg, struct registry **ret, char *error, size_t error_size);
void registry_close(struct registry *r);	/* NULL is fine; what is in flight is given up */

/*
 * The id of a schema under a subject. schema: the original .avsc text, valid during the call;
 * fingerprint: of that text, the caller's name for it. 0 with *ret_id; -EAGAIN: asked for, on_change
 * will tell; -EACCES: the registry refuses it at present. Else never: -EINVAL a schema or subject
 * that is not UTF-8, -ENOSPC more than REGISTRY_MAX of them, -ENOMEM.
 */
#define REGISTRY_MAX 128
int registry_id(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema,
    int32_t *ret_id);

void registry_status(const struct registry *r, struct registry_status *ret);

#endif
