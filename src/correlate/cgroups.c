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
	DL_DELETE(c->cgroups_of[g->owner].first, g);
	DL_APPEND(c->cgroups_of[g->owner].first, g);
	return g;
}

/* Returns what a path takes of the bound on all. */
static size_t
bytes_of(const struct cgroup_path *g)
{
	return sizeof(*g) + strlen(g->path) + 1;
}

static void
enter(struct correlator *c, struct cgroup_path *g, owner_t owner)
{
	g->owner = owner;
	DL_APPEND(c->cgroups_of[owner].first, g);
	c->cgroups_of[owner].bytes += bytes_of(g);
}

static void
leave(struct correlator *c, struct cgroup_path *g)
{
	DL_DELETE(c->cgroups_of[g->owner].first, g);
	c->cgroups_of[g->owner].bytes -= bytes_of(g);
}

static void
own(struct correlator *c, uint64_t id, bool is_v2, uint32_t uid)
{
	struct cgroup_path *g = cgroup_find(c, id, is_v2);

	if (g == NULL || g->owner != 0)
		return;
	leave(c, g);
	enter(c, g, owner_of(uid));
}

void
cgroups_own(struct correlator *c, const struct program_context *context)
{
	own(c, context->cgroup_v2, true, context->uid);
	own(c, context->cgroup_v1, false, context->uid);
}

/* Drops the path that was used least recently of the owner whose paths take most. */
static void
drop_one(struct correlator *c)
{
	struct cgroup_path *g;
	size_t most = 0;

	for (size_t i = 1; i <= OWNERS; i++)
		if (c->cgroups_of[i].bytes > c->cgroups_of[most].bytes)
			most = i;
	g = c->cgroups_of[most].first;
	leave(c, g);
	HASH_DEL(c->cgroups, g);
	c->cgroup_bytes -= bytes_of(g);
	free(g);
}

struct cgroup_path *
cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len)
{
	struct cgroup_path *g;

	if (id == 0 || cgroup_find(c, id, is_v2) != NULL)
		return NULL;
	judged_forget(c);
	while (c->cgroups != NULL && (HASH_COUNT(c->cgroups) >= CGROUPS_KNOWN_MAX ||
	    c->cgroup_bytes + sizeof(*g) + len + 1 > CGROUPS_BYTES_MAX))
		drop_one(c);
	g = calloc(1, sizeof(*g) + len + 1);
	if (g == NULL)
		return NULL;
	g->key.id = id;
	g->key.is_v2 = is_v2;
	memcpy(g->path, path, len);
	c->cgroup_bytes += bytes_of(g);
	enter(c, g, 0);
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
