/*
 * SPDX-License-Identifier: Apache-2.0
 * cache: schema ids that registries have assigned, in a small JSON file.
 *
 *	{"version": 1, "ids": [{"url": "…", "subject": "…", "fingerprint": "<16 hex>", "id": 7}, …]}
 *
 * Oldest first. An id is valid only for its registry: the base URL is part of the key.
 */
#ifndef SLUICE_REGISTRY_CACHE_H
#define SLUICE_REGISTRY_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct disk;
struct registry_cache;

enum {
	REGISTRY_CACHE_MAX = 512,	/* ids; the oldest are dropped first */
	REGISTRY_CACHE_BYTES = 256 * 1024,	/* limit of the file; a larger one is not ours */
};

/*
 * Opens a cache and reads path, which need not exist; NULL: in memory only. 0 or -ENOMEM. An unreadable or
 * damaged file is reported in error (otherwise ""): intact ids are kept, and the file is written again.
 */
int registry_cache_open(const char *path, struct registry_cache **ret, char *error, size_t error_size);
/* Has further saves go through a disk, which must outlive c. NULL: they take as long as they take. */
void registry_cache_use_disk(struct registry_cache *c, struct disk *disk);
void registry_cache_close(struct registry_cache *c);	/* does not save; NULL is fine */

/* Finds an id. 0 with *ret_id, or -ENOENT. */
int registry_cache_get(const struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t *ret_id);
/* Adds or replaces an id. 0 or -ENOMEM. */
int registry_cache_put(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t id);
/* Removes an id, if it is there. */
void registry_cache_drop(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint);
/* Removes all ids of a registry. */
void registry_cache_drop_all(struct registry_cache *c, const char *url);
/* Returns the number of ids. */
size_t registry_cache_count(const struct registry_cache *c);

/*
 * Writes the file if it has changed: a temporary file, mode 0600, is renamed to path. Not synced, because ids
 * damaged by a power cut can be requested again. 0, or a negative errno (the next save tries again).
 */
int registry_cache_save(struct registry_cache *c);

/* Adds the ids in text; public for its fuzzer. Returns the number of damaged rows, or -EINVAL. */
int registry_cache_parse(struct registry_cache *c, const char *text, size_t len);

#endif
