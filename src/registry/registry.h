/*
 * SPDX-License-Identifier: Apache-2.0
 * registry: ids of our schemas, assigned by a schema registry (Confluent's HTTP interface, v1).
 *
 * Requests run over libcurl's multi interface on the caller's loop; no call waits. Known ids are kept in memory
 * and in a file, so that an agent that restarts while the registry is down can continue. They belong to an epoch of
 * the registry, which ends when one of them has changed.
 */
#ifndef SLUICE_REGISTRY_REGISTRY_H
#define SLUICE_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health.h"

struct disk;
struct event_base;
struct registry;

/*
 * Options of a registry. Strings are copied; NULL means none. Proxies are taken from the environment, as curl
 * does.
 */
struct registry_options {
	const char *const *urls;	/* tried in turn; each may contain user:password@ */
	size_t n_urls;
	const char *user;		/* basic auth, with password */
	const char *password;
	const char *token;		/* bearer */
	const char *ca_file;		/* PEM; NULL: the system's default */
	const char *cert_file;		/* client certificate for mutual TLS; both are read for each connection */
	const char *key_file;
	bool lookup_only;		/* auto_register: false */
	const char *cache_file;		/* ids by URL, subject and fingerprint; NULL: not kept on disk */
	struct disk *disk;		/* of that file; the caller's, outlives the registry; NULL: it is waited for */
	uint32_t timeout_ms;		/* limit of one request; 0: 10 s */
	uint32_t retry_min_ms;		/* first delay after a failure, doubled with jitter; 0: 500 ms */
	uint32_t retry_max_ms;		/* limit of the delay; 0: 30 s */
	uint32_t recheck_ms;		/* a known id, in turn, is requested after half to all of it; 0: 1 min */
	uint32_t trust_ms;		/* an unverified id is given out after this without a verdict; 0: 10 s */
};

#define REGISTRY_MAX 128	/* schemas of one registry */

struct registry_status {
	enum registry_state state;
	char url[256];		/* URL in use, without credentials */
	char error[1024];	/* last error, with a hint; "": none */
	int64_t error_us;	/* time of the last error; 0: never */
	uint64_t requests;
	uint64_t failures;	/* requests without an answer, or refused */
	unsigned known;		/* number of ids */
	unsigned unverified;	/* known ids that the registry has not confirmed in this epoch */
	unsigned wanted;	/* requested ids that are not given out yet */
};

/*
 * Creates a registry. on_change is called when an id became known, changed or was withdrawn, or when the state
 * or the last error changed: on the loop, never within registry_id(); it must not close the registry. 0, or a
 * negative errno with *ret untouched and a sentence in error. A damaged cache sets error too, with 0; otherwise
 * error is "". No sentence contains credentials.
 */
int registry_open(struct event_base *base, const struct registry_options *o,
    void (*on_change)(void *arg), void *arg, struct registry **ret, char *error, size_t error_size);
void registry_close(struct registry *r);	/* NULL is fine; requests in flight are cancelled */

/*
 * Finds the id of a schema under a subject. schema: the original .avsc text, valid during the call;
 * fingerprint: of that text, chosen by the caller. 0 with *ret_id; -EAGAIN: requested, or not verified yet, on_change
 * will be called; -EACCES: the registry refuses it at present. Permanent errors: -EINVAL, schema or subject is not
 * UTF-8; -ENOSPC, more than REGISTRY_MAX schemas; -ENOMEM.
 */
int registry_id(struct registry *r, const char *subject, uint64_t fingerprint, const char *schema,
    int32_t *ret_id);
/*
 * Returns the epoch of the ids: each change or withdrawal of an id raises it, and on_change follows. Ids of an
 * earlier epoch are to be asked for again before they are used.
 */
uint64_t registry_epoch(const struct registry *r);

/* Copies the state and the counters since registry_open(). */
void registry_status(const struct registry *r, struct registry_status *ret);

#endif
