/*
 * SPDX-License-Identifier: Apache-2.0
 * ids: what is known of each schema's id in the current epoch of the registry, and when it is to be requested.
 */
#include "registry/ids.h"

#include <stdlib.h>
#include <string.h>

#include <event2/util.h>

uint32_t
registry_random_bits(void)
{
	uint32_t bits;

	evutil_secure_rng_get_bytes(&bits, sizeof(bits));
	return bits;
}

void
registry_ids_done(struct registry_ids *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->entries[i].subject);
		free(s->entries[i].body);
	}
}

bool
registry_ids_is_usable(const struct registry_entry *e)
{
	return e->has_id && (e->is_verified || e->is_trusted);
}

uint64_t
registry_ids_fingerprint(const struct registry_ids *s, const struct registry_entry *e)
{
	return s->fingerprints[e - s->entries];
}

void
registry_ids_count(const struct registry_ids *s, struct registry_ids_counts *ret)
{
	*ret = (struct registry_ids_counts){ 0 };
	for (size_t i = 0; i < s->n; i++) {
		const struct registry_entry *e = &s->entries[i];

		ret->known += e->has_id;
		ret->unverified += e->has_id && !e->is_verified;
		ret->wanted += !registry_ids_is_usable(e);
		ret->refused += e->is_refused;
	}
}

static inline bool
is_entry(const struct registry_ids *s, size_t i, const char *subject, uint64_t fingerprint)
{
	return s->fingerprints[i] == fingerprint && strcmp(s->entries[i].subject, subject) == 0;
}

struct registry_entry *
registry_ids_find(struct registry_ids *s, const char *subject, uint64_t fingerprint)
{
	if (s->last < s->n && is_entry(s, s->last, subject, fingerprint))
		return &s->entries[s->last];
	for (size_t i = 0; i < s->n; i++) {
		if (is_entry(s, i, subject, fingerprint)) {
			s->last = i;
			return &s->entries[i];
		}
	}
	return NULL;
}

struct registry_entry *
registry_ids_add(struct registry_ids *s, const struct registry_entry *e, uint64_t fingerprint)
{
	s->entries[s->n] = *e;
	s->fingerprints[s->n] = fingerprint;
	return &s->entries[s->n++];
}

/*
 * Returns how urgent a request is; 0: most. That of a known id becomes urgent in time: the registry may fail for
 * another schema each time, which does not keep a change of the known ids from being noticed.
 */
static int
urgency(const struct registry_ids *s, const struct registry_entry *e, int64_t now_us)
{
	if (registry_ids_is_usable(e))
		return now_us - e->ask_at_us < (int64_t)s->recheck_ms * 1000 ? 2 : 0;
	return e->is_refused ? 1 : 0;
}

struct registry_entry *
registry_ids_due(struct registry_ids *s, int64_t now_us, int64_t *ret_at_us)
{
	struct registry_entry *best = NULL;

	*ret_at_us = INT64_MAX;
	for (size_t i = 0; i < s->n; i++) {
		struct registry_entry *e = &s->entries[(s->next + i) % s->n];

		if (e->ask_at_us > now_us) {
			if (e->ask_at_us < *ret_at_us)
				*ret_at_us = e->ask_at_us;
		} else if (best == NULL || urgency(s, e, now_us) < urgency(s, best, now_us)) {
			best = e;
		}
	}
	return best;
}

void
registry_ids_requested(struct registry_ids *s, const struct registry_entry *e)
{
	s->next = (size_t)(e - s->entries) + 1;
}

bool
registry_ids_trust(struct registry_ids *s, int64_t now_us, int64_t *ret_at_us)
{
	bool is_news = false;

	for (size_t i = 0; i < s->n; i++) {
		struct registry_entry *e = &s->entries[i];

		if (!e->has_id || registry_ids_is_usable(e))
			continue;
		if (e->trust_at_us <= now_us)
			e->is_trusted = is_news = true;
		else if (e->trust_at_us < *ret_at_us)
			*ret_at_us = e->trust_at_us;
	}
	return is_news;
}

void
registry_ids_put_off_trust(struct registry_ids *s, int64_t now_us)
{
	for (size_t i = 0; i < s->n; i++) {
		struct registry_entry *e = &s->entries[i];

		if (e->has_id && !registry_ids_is_usable(e))
			e->trust_at_us = now_us + (int64_t)s->trust_ms * 1000;
	}
}

/* Begins an epoch after an id of the registry has changed or was withdrawn: the others are not known any more. */
static void
begin_epoch(struct registry_ids *s, const struct registry_entry *changed, int64_t now_us)
{
	s->epoch++;
	for (size_t i = 0; i < s->n; i++) {
		struct registry_entry *e = &s->entries[i];

		if (e == changed || !e->has_id)
			continue;
		e->has_id = e->is_verified = e->is_trusted = false;
		e->ask_at_us = now_us;
	}
}

/* Returns when a known id is to be requested again: half of recheck_ms to all of it after the last one that is. */
static int64_t
recheck_at(const struct registry_ids *s, const struct registry_entry *known, int64_t now_us)
{
	/* Spread, so that hosts that started together do not send requests together. */
	uint64_t half = s->recheck_ms / 2, spread = (half * registry_random_bits()) >> 32;
	int64_t last_us = now_us;

	for (size_t i = 0; i < s->n; i++) {
		const struct registry_entry *e = &s->entries[i];

		if (e != known && e->has_id && e->is_verified && e->ask_at_us > last_us)
			last_us = e->ask_at_us;
	}
	return last_us + (int64_t)(s->recheck_ms - half + spread) * 1000;
}

bool
registry_ids_take(struct registry_ids *s, struct registry_entry *e, int32_t id, int64_t now_us)
{
	bool is_news = !e->has_id || e->id != id || !e->is_verified;

	if (e->has_id && e->id != id)
		begin_epoch(s, e, now_us);
	e->id = id;
	e->has_id = e->is_verified = true;
	e->is_refused = false;
	e->denials = 0;
	e->ask_at_us = recheck_at(s, e, now_us);
	return is_news;
}

/* Returns when a request that was refused is to be repeated: half of retry_max_ms to all of it later. */
static int64_t
retry_at(const struct registry_ids *s, int64_t now_us)
{
	uint32_t half = s->retry_max_ms / 2;

	return now_us + ((int64_t)(s->retry_max_ms - half) + (((uint64_t)half * registry_random_bits()) >> 32)) * 1000;
}

bool
registry_ids_reject(struct registry_ids *s, struct registry_entry *e, int64_t now_us)
{
	bool was_refused = e->is_refused, was_usable = registry_ids_is_usable(e);

	e->ask_at_us = retry_at(s, now_us);
	if (e->has_id)
		begin_epoch(s, e, now_us);
	e->has_id = e->is_verified = e->is_trusted = false;
	e->is_refused = true;
	return !was_refused || was_usable;
}

bool
registry_ids_deny(struct registry_ids *s, struct registry_entry *e, size_t n_urls, int64_t now_us)
{
	bool was_refused = e->is_refused;

	e->ask_at_us = retry_at(s, now_us);
	if (++e->denials % n_urls != 0)
		e->ask_at_us = now_us;	/* another URL may accept the request */
	else
		e->is_refused = !e->has_id;
	return was_refused != e->is_refused;
}
