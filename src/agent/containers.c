/*
 * SPDX-License-Identifier: Apache-2.0
 * containers: names and images of containers and names of pods, from the sockets of runtimes and from the kubelet to
 * the correlator.
 */
#include "agent/host_state.h"
#include "runtime/container_resolver.h"
#include "runtime/kubelet.h"

static void
on_named(const char *id, const char *name, const char *image, void *arg)
{
	struct agent *a = arg;

	correlator_name_container(a->correlator, id, name, image);
}

void
host_on_container(const char *runtime, const char *id, void *arg)
{
	struct host_agent *h = arg;
	const char *name, *image;

	(void)runtime;		/* the resolver needs only the id */
	if (h->names != NULL && container_resolver_find(h->names, id, &name, &image))
		correlator_name_container(h->agent.correlator, id, name, image);
}

int
agent_ask_sockets(struct agent *a, const char *const *sockets, size_t n)
{
	int r = container_resolver_open(a->base, sockets, n, on_named, a, &host_agent(a)->names);

	if (r == 0)
		correlator_ask_containers(a->correlator);
	return r;
}

void
agent_ask_again(struct agent *a)
{
	if (host_agent(a)->names != NULL)
		correlator_ask_containers(a->correlator);
	if (host_agent(a)->kubelet != NULL)
		correlator_ask_pods(a->correlator);
}

const struct container_resolver_counts *
agent_container_counts(const struct agent *a)
{
	const struct host_agent *h = host_agent_const(a);

	return h->names != NULL ? container_resolver_counts(h->names) : NULL;
}

int
agent_socket_state(const struct agent *a, size_t i)
{
	return container_resolver_state(host_agent_const(a)->names, i);
}

void
host_on_pod(const char *pod_uid, const char *container_id, void *arg)
{
	struct host_agent *h = arg;
	struct pod_names names;

	if (h->kubelet == NULL)
		return;
	(void)kubelet_find(h->kubelet, pod_uid, container_id, &names);
	if (names.pod != NULL || names.container != NULL)
		correlator_name_pod(h->agent.correlator, pod_uid, container_id, &(struct pod_answer){ names.pod,
		    names.name_space, names.container, names.image });
}

static void
on_kubelet(void *arg)
{
	struct agent *a = arg;

	correlator_ask_pods(a->correlator);
}

int
agent_ask_kubelet(struct agent *a, const struct kubelet_options *options)
{
	int r = kubelet_open(a->base, options, on_kubelet, a, &host_agent(a)->kubelet);

	if (r == 0)
		correlator_ask_pods(a->correlator);
	return r;
}

const struct kubelet *
agent_kubelet(const struct agent *a)
{
	return host_agent_const(a)->kubelet;
}
