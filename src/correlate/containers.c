/*
 * SPDX-License-Identifier: Apache-2.0
 * Containers: their names and images from the runtime, shared by all locations in one container. ops.container is
 * called once for each new container; correlator_name_container() takes the answer at any later time.
 */
#include "correlate/containers.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/wal.h"

struct container *
container_get(struct correlator *c, const struct placement *placement)
{
	size_t len = strlen(placement->container);
	struct container *k;

	if (len == 0)
		return NULL;
	HASH_FIND(hh, c->containers, placement->container, len, k);
	if (k != NULL) {
		k->refs++;
		return k;
	}
	k = calloc(1, sizeof(*k) + len + 1);
	if (k == NULL)
		return NULL;
	memcpy(k->id, placement->container, len);
	k->runtime = placement->runtime;
	k->refs = 1;
	HASH_ADD(hh, c->containers, id, len, k);
	if (c->ops.container != NULL && !c->wal.is_replaying)
		c->ops.container(k->runtime, k->id, c->arg);
	return k;
}

void
container_unref(struct correlator *c, struct container *k)
{
	if (k == NULL || --k->refs > 0)
		return;
	HASH_DEL(c->containers, k);
	free(k->name);
	free(k->image);
	free(k);
}

/* Keeps the old text if there is no memory for the new one. */
static void
learn(char **to, const char *text)
{
	char *copy = text != NULL && text[0] != '\0' ? strdup(text) : NULL;

	if (copy == NULL)
		return;
	free(*to);
	*to = copy;
}

void
correlator_name_container(struct correlator *c, const char *container_id, const char *name, const char *image)
{
	struct container *k;

	HASH_FIND(hh, c->containers, container_id, strlen(container_id), k);
	if (k == NULL)
		return;
	learn(&k->name, name);
	learn(&k->image, image);
	k->is_reported = true;
}

void
correlator_ask_containers(struct correlator *c)
{
	struct container *k, *next;

	if (c->ops.container == NULL)
		return;
	HASH_ITER(hh, c->containers, k, next) {
		if (!k->is_reported)
			c->ops.container(k->runtime, k->id, c->arg);
	}
}
