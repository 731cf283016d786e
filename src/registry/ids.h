/*
 * SPDX-License-Identifier: Apache-2.0
 * ids: what is known of each schema's id in the current epoch of the registry, and when it is to be requested.
 *
 * An entry is one schema under one subject, with the time of its next request.
 *
 *	        registry_ids_add()             an id
 *	(not there) -----------> unknown -----------------> known <-----+
 *	     |                    |  ^  ^                    |  |       |
 *	     |            refused |  |  +--------------------+  |       | an id
 *	     | in the             v  |  another one has changed |       |
 *	     | cache             refused <----------------------+       |
 *	     |                                refused                   |
 *	     +------------------------------> unverified ---------------+
 *
 * An id is valid in an epoch of the registry. If the registry behind the URL is replaced by a new one with other
 * ids, readers cannot decode records with the old ones, or decode them as another type. So known ids are requested
 * again, one of them each recheck_ms; an agent that registers schemas restores them by this request. Another id
 * replaces ours. If the registry does not know the schema, the id is withdrawn and records wait in the spool. Both
 * begin a new epoch: all other ids are unknown, also to the cache, and are requested at once. Records wait for them,
 * however long the registry fails: an id of the epoch before is most likely that of another schema.
 *
 * An unverified id, of the cache, is given out only once the registry has confirmed it. But the agent must continue
 * while the registry is down: after trust_ms without a verdict, in which the agent itself ran, the id is given out,
 * since a registry that is down is far more often the same one than a new one. Any other refusal (credentials, a wrong
 * path) is no evidence about an id, as a missing answer.
 */
#ifndef SLUICE_REGISTRY_IDS_H
#define SLUICE_REGISTRY_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry.h"

struct registry_entry {
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

/* A zeroed one, but for the times, is valid and empty. */
struct registry_ids {
	uint32_t	 retry_max_ms;	/* the caller's, as the next two: see struct registry_options */
	uint32_t	 recheck_ms;
	uint32_t	 trust_ms;
	uint64_t	 epoch;		/* raised when an id has changed or was withdrawn */
	size_t		 next;		/* index at which the search for the next request begins */

	/*
	 * Searched for each record: fingerprints are kept apart from entries so that they fit into few cache
	 * lines, and the last hit is tried first, because consecutive records often have the same topic.
	 */
	size_t		 last;
	size_t		 n;
	uint64_t	 fingerprints[REGISTRY_MAX];
	struct registry_entry entries[REGISTRY_MAX];
};

struct registry_ids_counts {
	unsigned known;
	unsigned unverified;		/* of the known ones */
	unsigned wanted;		/* may not be given out */
	unsigned refused;
};

void registry_ids_done(struct registry_ids *s);
/* Returns whether the entry's id may be given out. */
bool registry_ids_is_usable(const struct registry_entry *e);
/* Returns the fingerprint of the entry's schema. */
uint64_t registry_ids_fingerprint(const struct registry_ids *s, const struct registry_entry *e);
void registry_ids_count(const struct registry_ids *s, struct registry_ids_counts *ret);
/* Returns a schema's entry; NULL: there is none. */
struct registry_entry *registry_ids_find(struct registry_ids *s, const char *subject, uint64_t fingerprint);
/* Takes over an entry, with what it owns, and returns it. n must be below REGISTRY_MAX. */
struct registry_entry *registry_ids_add(struct registry_ids *s, const struct registry_entry *e, uint64_t fingerprint);

/*
 * Returns the most urgent entry that is due, or NULL with the time when the next one will be. The search begins
 * after the entry that was requested last, so that a request that the server cannot handle does not block
 * others.
 */
struct registry_entry *registry_ids_due(struct registry_ids *s, int64_t now_us, int64_t *ret_at_us);
/* Notes that the entry is being requested. */
void registry_ids_requested(struct registry_ids *s, const struct registry_entry *e);
/*
 * Trusts unverified ids whose time has come. Returns whether there were any, and when the next one will be: at
 * *ret_at_us, unless that is earlier.
 */
bool registry_ids_trust(struct registry_ids *s, int64_t now_us, int64_t *ret_at_us);
/* The registry answers for schemas, or may have: an unverified id waits for its own answer, which is to come soon. */
void registry_ids_put_off_trust(struct registry_ids *s, int64_t now_us);

/* Stores an id from the registry. Returns whether anything has changed. */
bool registry_ids_take(struct registry_ids *s, struct registry_entry *e, int32_t id, int64_t now_us);
/* The registry refuses the schema: an id is withdrawn. Returns whether anything has changed. */
bool registry_ids_reject(struct registry_ids *s, struct registry_entry *e, int64_t now_us);
/*
 * The request was refused, and not the schema: another one of n_urls may accept it. Returns whether anything has
 * changed.
 */
bool registry_ids_deny(struct registry_ids *s, struct registry_entry *e, size_t n_urls, int64_t now_us);

/* Returns 32 bits that spread the requests of hosts that started together. */
uint32_t registry_random_bits(void);

#endif
