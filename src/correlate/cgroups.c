/*
 * SPDX-License-Identifier: Apache-2.0
 * The paths of cgroups: an event of a program has ids only; each path arrives once.
 */
#include "correlate/cgroups.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/text.h"
#include "correlate/judged.h"
#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/wal.h"
#include "model/user.h"

struct cgroup_path *
cgroup_find(struct correlator *c, uint64_t id, bool is_v2)
{
	struct cgroup_path *g = NULL;
	struct { uint64_t id, is_v2; } key = { id, is_v2 };

	if (id != 0)
		HASH_FIND(hh, c->cgroups, &key, sizeof(key), g);
	return g;
}

struct cgroup_path *
cgroup_use(struct correlator *c, uint64_t id, bool is_v2)
{
	struct cgroup_path *g = cgroup_find(c, id, is_v2);

	if (g == NULL || g->hh.next == NULL)
		return g;
	HASH_DEL(c->cgroups, g);	/* to the end: most recently used */
	HASH_ADD(hh, c->cgroups, key, sizeof(g->key), g);
	DL_DELETE(g->owner->first, g);
	DL_APPEND(g->owner->first, g);
	return g;
}

/* Returns what a path takes of the bound on all. */
static size_t
bytes_of(const struct cgroup_path *g)
{
	return sizeof(*g) + strlen(g->path) + 1;
}

/* Returns an owner of paths; NULL without memory. */
static struct cgroup_owner *
owner_add(struct correlator *c, owner_t id)
{
	struct cgroup_owner *owner = NULL;

	HASH_FIND(hh, c->cgroup_owners, &id, sizeof(id), owner);
	if (owner != NULL)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (owner == NULL)
		return NULL;
	owner->id = id;
	HASH_ADD(hh, c->cgroup_owners, id, sizeof(owner->id), owner);
	return owner;
}

static void
enter(struct cgroup_owner *owner, struct cgroup_path *g)
{
	g->owner = owner;
	DL_APPEND(owner->first, g);
	owner->bytes += bytes_of(g);
}

/* Takes a path from its owner, who is freed with the last one. */
static void
leave(struct correlator *c, struct cgroup_path *g)
{
	struct cgroup_owner *owner = g->owner;

	DL_DELETE(owner->first, g);
	owner->bytes -= bytes_of(g);
	if (owner->first != NULL)
		return;
	HASH_DEL(c->cgroup_owners, owner);
	free(owner);
}

static void
own(struct correlator *c, uint64_t id, bool is_v2, uint32_t user)
{
	struct cgroup_path *g = cgroup_find(c, id, is_v2);
	struct cgroup_owner *owner;

	if (g == NULL || g->owner->id != 0)
		return;
	owner = owner_add(c, owner_of(user % OWNERS));
	if (owner == NULL)
		return;
	leave(c, g);
	enter(owner, g);
}

void
cgroups_own(struct correlator *c, const struct program_context *context)
{
	const uint32_t user = user_behind(context->uid, context->user_uid);

	own(c, context->cgroup_v2, true, user);
	own(c, context->cgroup_v1, false, user);
}

/* Drops the path that was used least recently of the owner whose paths take most. */
static void
drop_one(struct correlator *c)
{
	struct cgroup_owner *owner, *next, *most = NULL;
	struct cgroup_path *g;

	HASH_ITER(hh, c->cgroup_owners, owner, next)
		if (most == NULL || owner->bytes > most->bytes)
			most = owner;
	g = most->first;
	leave(c, g);
	HASH_DEL(c->cgroups, g);
	c->cgroup_bytes -= bytes_of(g);
	free(g);
}

struct cgroup_path *
cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len)
{
	struct cgroup_owner *none;
	struct cgroup_path *g;

	if (id == 0 || cgroup_find(c, id, is_v2) != NULL)
		return NULL;
	judged_forget(c);
	while (c->cgroups != NULL && (HASH_COUNT(c->cgroups) >= CGROUPS_KNOWN_MAX ||
	    c->cgroup_bytes + sizeof(*g) + len + 1 > CGROUPS_BYTES_MAX))
		drop_one(c);
	g = calloc(1, sizeof(*g) + len + 1);
	none = g != NULL ? owner_add(c, 0) : NULL;
	if (none == NULL) {
		free(g);
		return NULL;
	}
	g->key.id = id;
	g->key.is_v2 = is_v2;
	memcpy(g->path, path, len);
	c->cgroup_bytes += bytes_of(g);
	enter(none, g);
	HASH_ADD(hh, c->cgroups, key, sizeof(g->key), g);
	return g;
}

void
correlator_cgroup(struct correlator *c, const struct cgroup_event *s)
{
	size_t len = strlen(s->path);
	struct cgroup_path *g;
	char *path;

	if (text_is_plain(s->path, len)) {
		g = cgroup_add(c, s->id, s->is_v2, s->path, len);
	} else {
		path = malloc(TEXT_ESCAPE_MAX(len));
		if (path == NULL)
			return;
		len = text_escape(s->path, len, path, TEXT_ESCAPE_MAX(len), NULL);
		g = cgroup_add(c, s->id, s->is_v2, path, len);
		free(path);
	}
	if (g == NULL)
		return;
	g->cpus = s->cpus;
	g->memory_bytes = s->memory_bytes;
	g->memory_high = s->memory_high;
	g->users_names = s->users_names;
	wal_cgroup(c, g);
}

const char *
correlator_cgroup_path(struct correlator *c, uint64_t id, bool is_v2)
{
	const struct cgroup_path *g = cgroup_find(c, id, is_v2);

	return g != NULL ? g->path : NULL;
}

void
cgroups_free(struct correlator *c)
{
	struct cgroup_path *g, *next;

	HASH_ITER(hh, c->cgroups, g, next) {
		HASH_DEL(c->cgroups, g);
		leave(c, g);
		free(g);
	}
	c->cgroup_bytes = 0;
}
