/*
 * SPDX-License-Identifier: Apache-2.0
 * containers: the sockets of container runtimes and this node's kubelet, which are asked with the privileges of the
 * agent's account; changes of their state are logged, including a refusal for lack of permission.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/state.h"
#include "runtime/container_resolver.h"
#include "runtime/kubelet.h"

#define ASK_AGAIN_EACH_S 10	/* the resolver waits longer for a socket that does not answer */

_Static_assert((int)CONFIG_SOCKETS_MAX == (int)CONTAINER_RESOLVER_SOCKETS, "all that can be configured can be asked");

/* Logs the state of socket i once for each change. */
static void
tell(struct daemon *d, size_t i, int state)
{
	const char *path = d->config->containers.sockets.list[i];
	int before = d->socket_states[i];

	d->socket_states[i] = state;
	if (state == before)
		return;
	if (state == 0 && before < 0)
		log_fields(LOG_LEVEL_INFO, "containers.socket", LOG_FIELDS(LOG_TEXT("path", path)),
		    "the socket answers now: containers have names");
	else if (state == -EACCES || state == -EPERM)
		log_fields(LOG_LEVEL_WARNING, "containers.socket", LOG_FIELDS(LOG_TEXT("path", path),
		    LOG_TEXT("user", d->config->user)), "containers have no names: the account %s may not open %s; make "
		    "it a member of the group that owns the socket, or leave the socket out of containers.sockets",
		    d->config->user, path);
	else if (state == -EBADMSG)
		log_fields(LOG_LEVEL_WARNING, "containers.socket", LOG_FIELDS(LOG_TEXT("path", path)),
		    "containers have no names: %s answers with an error, or not as Docker's API does", path);
	else if (state < 0)
		log_fields(LOG_LEVEL_WARNING, "containers.socket", LOG_FIELDS(LOG_TEXT("path", path)),
		    "containers have no names for now: %s does not answer: %s", path, strerror(-state));
}

/* The same of the kubelet. */
static void
tell_kubelet(struct daemon *d)
{
	const struct kubelet *k = agent_kubelet(d->agent);
	int state = kubelet_state(k), before = d->kubelet_state;

	if (state == KUBELET_NOT_ASKED || state == before)
		return;
	d->kubelet_state = state;
	if (state == 0 && before < 0)
		log_fields(LOG_LEVEL_INFO, "containers.kubelet", LOG_FIELDS(LOG_TEXT("url", d->config->containers.kubelet.url)),
		    "the kubelet answers now: pods have names");
	else if (state < 0)
		log_fields(LOG_LEVEL_WARNING, "containers.kubelet", LOG_FIELDS(LOG_TEXT("url", d->config->containers.kubelet.url)),
		    "pods have no names for now: %s", kubelet_error(k));
}

static int
open_kubelet(struct daemon *d)
{
	const struct kubelet_options o = {
		.url = d->config->containers.kubelet.url,
		.server_name = d->config->containers.kubelet.server_name,
		.ca_file = d->config->containers.kubelet.ca_file,
		.token_file = d->config->containers.kubelet.token_file,
	};
	int r;

	if (o.url[0] == '\0')
		return 0;
	r = agent_ask_kubelet(d->agent, &o);
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "containers.open", "cannot ask the kubelet for names of pods: %s", strerror(-r));
	return r;
}

static int
open_sockets(struct daemon *d)
{
	const struct config_strings *sockets = &d->config->containers.sockets;
	int r;

	if (sockets->n == 0)
		return 0;
	for (size_t i = 0; i < sockets->n; i++) {
		d->socket_states[i] = CONTAINER_RESOLVER_NOT_ASKED;
		if (access(sockets->list[i], W_OK) < 0)
			tell(d, i, -errno);
	}
	r = agent_ask_sockets(d->agent, (const char *const *)sockets->list, sockets->n);
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "containers.open", "cannot ask for names of containers: %s", strerror(-r));
	return r;
}

int
daemon_open_containers(struct daemon *d)
{
	int r = open_sockets(d);

	return r == 0 ? open_kubelet(d) : r;
}

void
daemon_watch_containers(struct daemon *d)
{
	size_t n = d->config->containers.sockets.n;

	for (size_t i = 0; i < n; i++) {
		int state = agent_socket_state(d->agent, i);

		if (state != CONTAINER_RESOLVER_NOT_ASKED)
			tell(d, i, state);
	}
	if (agent_kubelet(d->agent) != NULL)
		tell_kubelet(d);
	if ((n > 0 || agent_kubelet(d->agent) != NULL) && d->seconds % ASK_AGAIN_EACH_S == 0)
		agent_ask_again(d->agent);
}
