/*
 * SPDX-License-Identifier: Apache-2.0
 * arena: a bounded bump allocator for what lives as long as one record.
 *
 * Pieces are never freed alone: arena_reset() takes all of them back at once. The arena never
 * grows; a full one says so, and the caller decides what a record without that piece looks like.
 */
#ifndef SLUICE_BASE_ARENA_H
#define SLUICE_BASE_ARENA_H

#include <stddef.h>

struct arena {
	char *base;	/* owned */
	size_t size;
	size_t used;
};

/* 0, or -ENOMEM with *a emptied (so that arena_done() is fine either way). */
int arena_init(struct arena *a, size_t size);
void arena_done(struct arena *a);	/* a zeroed arena is fine */
void arena_reset(struct arena *a);	/* every piece handed out so far is dead */
void arena_wipe(struct arena *a);	/* the same, and nothing of them remains in memory */

/* size bytes aligned for any type, not zeroed; NULL when the arena is full. */
void *arena_alloc(struct arena *a, size_t size);
/* size bytes without alignment, for text; NULL when the arena is full. */
char *arena_bytes(struct arena *a, size_t size);
/* A NUL-terminated copy of len bytes; NULL when the arena is full. */
char *arena_copy(struct arena *a, const char *bytes, size_t len);

#endif
