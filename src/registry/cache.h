/*
 * SPDX-License-Identifier: Apache-2.0
 * cache: schema ids as they were learnt, in a small JSON file.
 *
 *	{"version": 1, "ids": [{"url": "…", "subject": "…", "fingerprint": "<16 hex>", "id": 7}, …]}
 *
 * Oldest first. An id belongs to the registry that gave it: the base URL is part of the key.
 */
#ifndef SLUICE_REGISTRY_CACHE_H
#define SLUICE_REGISTRY_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct registry_cache;

enum {
	REGISTRY_CACHE_MAX = 512,	/* ids; the oldest go first */
	REGISTRY_CACHE_BYTES = 256 * 1024,	/* of the file; a larger one is not ours */
};

/*
 * Reads path, which need not exist; NULL: in memory only. 0 or -ENOMEM. Whatever is wrong with the
 * file is told in error ("" else) and costs only what could not be read: it is written anew.
 */
int registry_cache_open(const char *path, struct registry_cache **ret, char *error, size_t error_size);
void registry_cache_close(struct registry_cache *c);	/* saves nothing; NULL is fine */

/* 0 with *ret_id, or -ENOENT. */
int registry_cache_get(const struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t *ret_id);
/* Remembers, replacing what was there. 0 or -ENOMEM. */
int registry_cache_put(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t id);
void registry_cache_drop(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint);
size_t registry_cache_count(const struct registry_cache *c);

/*
 * Writes the file if anything changed since: beside it, mode 0600, then renamed. Not synced: what a
 * power cut damages is asked for again. 0, or a negative errno (it will be tried at the next save).
 */
int registry_cache_save(struct registry_cache *c);

/* The parser, for its fuzzer: adds what text holds; the number of damaged rows, or -EINVAL. */
int registry_cache_parse(struct registry_cache *c, const char *text, size_t len);

#endif
