/*
 * SPDX-License-Identifier: Apache-2.0
 * Containers: their names and images from the runtime, shared by all locations in one container. ops.container is
 * called once for each new container; correlator_name_container() takes the answer at any later time. ops.pod and
 * correlator_name_pod() are the same for pods and for the containers in them.
 */
#include "correlate/containers.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/wal.h"

static void
ask_pod(struct correlator *c, const struct pod *p, const char *container)
{
	if (c->ops.pod != NULL && !c->wal.is_replaying)
		c->ops.pod(p->uid, container, c->arg);
}

struct pod *
pod_get(struct correlator *c, const struct placement *placement)
{
	size_t len = strlen(placement->pod);
	struct pod *p;

	if (len == 0)
		return NULL;
	HASH_FIND(hh, c->pods, placement->pod, len, p);
	if (p != NULL) {
		p->refs++;
		return p;
	}
	p = calloc(1, sizeof(*p) + len + 1);
	if (p == NULL)
		return NULL;
	memcpy(p->uid, placement->pod, len);
	p->refs = 1;
	HASH_ADD(hh, c->pods, uid, len, p);
	if (placement->container[0] == '\0')
		ask_pod(c, p, "");	/* else with its container */
	return p;
}

void
pod_unref(struct correlator *c, struct pod *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	HASH_DEL(c->pods, p);
	free(p->name);
	free(p->name_space);
	free(p);
}

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
	k->pod = pod_get(c, placement);
	if (k->pod != NULL)
		ask_pod(c, k->pod, k->id);
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
	pod_unref(c, k->pod);
	free(k->name);
	free(k->image);
	free(k->k8s_name);
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
correlator_name_pod(struct correlator *c, const char *pod_uid, const char *container_id, const struct pod_answer *names)
{
	struct container *k;
	struct pod *p;

	HASH_FIND(hh, c->pods, pod_uid, strlen(pod_uid), p);
	if (p == NULL)
		return;
	learn(&p->name, names->pod);
	learn(&p->name_space, names->name_space);
	p->is_reported = true;
	HASH_FIND(hh, c->containers, container_id, strlen(container_id), k);
	if (k == NULL || k->pod != p || names->container == NULL)
		return;
	learn(&k->k8s_name, names->container);
	if (!k->is_reported)
		learn(&k->image, names->image);
	k->is_in_pod = true;
}

void
correlator_ask_pods(struct correlator *c)
{
	struct container *k, *next_container;
	struct pod *p, *next_pod;

	if (c->ops.pod == NULL)
		return;
	HASH_ITER(hh, c->containers, k, next_container) {
		if (k->pod != NULL && !k->is_in_pod)
			c->ops.pod(k->pod->uid, k->id, c->arg);
	}
	HASH_ITER(hh, c->pods, p, next_pod) {
		if (!p->is_reported)
			c->ops.pod(p->uid, "", c->arg);
	}
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
