/*
 * SPDX-License-Identifier: Apache-2.0
 * containers: the sockets of container runtimes, which are asked with the privileges of the agent's
 * account; changes of their state are logged, including a refusal for lack of permission.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/state.h"
#include "runtime/container_resolver.h"

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

int
daemon_open_containers(struct daemon *d)
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

void
daemon_watch_containers(struct daemon *d)
{
	size_t n = d->config->containers.sockets.n;

	for (size_t i = 0; i < n; i++) {
		int state = agent_socket_state(d->agent, i);

		if (state != CONTAINER_RESOLVER_NOT_ASKED)
			tell(d, i, state);
	}
	if (n > 0 && d->seconds % ASK_AGAIN_EACH_S == 0)
		agent_ask_again(d->agent);
}
