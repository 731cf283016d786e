/*
 * SPDX-License-Identifier: Apache-2.0
 * arena: a bounded bump allocator for values that live as long as one record.
 */
#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
arena_init(struct arena *a, size_t size)
{
	a->used = 0;
	a->base = malloc(size);
	a->size = a->base != NULL ? size : 0;
	return a->base != NULL ? 0 : -ENOMEM;
}

void
arena_done(struct arena *a)
{
	free(a->base);
	memset(a, 0, sizeof(*a));
}

void
arena_reset(struct arena *a)
{
	a->used = 0;
}

void
arena_wipe(struct arena *a)
{
	explicit_bzero(a->base, a->used);
	a->used = 0;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	size_t align = _Alignof(max_align_t);
	size_t start = (a->used + align - 1) / align * align;

	if (start > a->size || size > a->size - start)
		return NULL;
	a->used = start + size;
	return a->base + start;
}

char *
arena_bytes(struct arena *a, size_t size)
{
	char *p;

	if (size > a->size - a->used)
		return NULL;
	p = a->base + a->used;
	a->used += size;
	return p;
}

char *
arena_copy(struct arena *a, const char *bytes, size_t len)
{
	char *p;

	if (len >= a->size - a->used)	/* one more for the NUL */
		return NULL;
	p = arena_bytes(a, len + 1);
	memcpy(p, bytes, len);
	p[len] = '\0';
	return p;
}
