/*
 * SPDX-License-Identifier: Apache-2.0
 * arena: a bounded bump allocator for values that live as long as one record.
 *
 * Pieces are never freed alone: arena_reset() frees all of them at once. The arena never grows; a full one
 * returns NULL, and the caller decides how a record without that piece looks.
 */
#ifndef SLUICE_BASE_ARENA_H
#define SLUICE_BASE_ARENA_H

#include <stddef.h>

struct arena {
	char *base;	/* owned */
	size_t size;
	size_t used;
};

/* Allocates size bytes. Returns 0, or -ENOMEM with *a emptied, so that arena_done() may be called either way. */
int arena_init(struct arena *a, size_t size);
void arena_done(struct arena *a);	/* frees the memory; a zeroed arena is valid */
void arena_reset(struct arena *a);	/* invalidates every piece that was returned */
void arena_wipe(struct arena *a);	/* invalidates every piece and clears their bytes */

/* Returns size bytes aligned for any type, not zeroed; NULL when the arena is full. */
void *arena_alloc(struct arena *a, size_t size);
/* Returns size bytes without alignment, for text; NULL when the arena is full. */
char *arena_bytes(struct arena *a, size_t size);
/* Returns a NUL-terminated copy of len bytes; NULL when the arena is full. */
char *arena_copy(struct arena *a, const char *bytes, size_t len);

#endif
