/*
 * SPDX-License-Identifier: Apache-2.0
 * The paths of cgroups: ids come with every program, each path once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/state.h"

const char *
cgroup_find(struct correlator *c, uint64_t id, bool is_v2)
{
	struct cgroup_path *g;
	struct { uint64_t id, is_v2; } key = { id, is_v2 };

	if (id == 0)
		return NULL;
	HASH_FIND(hh, c->cgroups, &key, sizeof(key), g);
	if (g == NULL)
		return NULL;
	HASH_DEL(c->cgroups, g);	/* to the end of the line: used last */
	HASH_ADD(hh, c->cgroups, key, sizeof(g->key), g);
	return g->path;
}

void
correlator_cgroup(struct correlator *c, const struct cgroup_signal *s)
{
	size_t len = strlen(s->path);
	size_t space = text_is_plain(s->path, len) ? len + 1 : TEXT_ESCAPE_MAX(len);
	struct cgroup_path *g;

	if (cgroup_find(c, s->id, s->is_v2) != NULL)
		return;
	if (HASH_COUNT(c->cgroups) >= CGROUPS_KNOWN_MAX) {
		g = c->cgroups;
		HASH_DEL(c->cgroups, g);
		free(g);
	}
	g = calloc(1, sizeof(*g) + space);
	if (g == NULL)
		return;
	g->key.id = s->id;
	g->key.is_v2 = s->is_v2;
	text_escape(s->path, len, g->path, space, NULL);
	HASH_ADD(hh, c->cgroups, key, sizeof(g->key), g);
}
