/*
 * SPDX-License-Identifier: Apache-2.0
 * listen: parses the address, and binds.
 */
#include "control/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "control/unix_socket.h"

#define UNIX "unix:"

/* Bytes that a connection holds until they are read, with what the kernel has beside each piece: to read frees them. */
#define REQUEST_BUFFER 16384

bool
listen_is_unix(const char *address)
{
	return strncmp(address, UNIX, strlen(UNIX)) == 0;
}

const char *
listen_unix_path(const char *address)
{
	return address + strlen(UNIX);
}

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Parses "127.0.0.1:9465" or "[::1]:9465"; only numbers, and localhost, so that it never waits for a name server. */
static bool
parse_tcp(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t len;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(host) || !text_number(colon + 1, UINT16_MAX, &port))
		return false;
	len = (size_t)(colon - text);
	memcpy(host, text, len);
	host[len] = '\0';
	if (strcmp(host, "localhost") == 0)
		strcpy(host, "127.0.0.1");
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(*v6);
		return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)port);
	*ret_len = sizeof(*v4);
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

static int
listen_tcp(const struct listen_options *o, uint16_t *ret_port, char *error, size_t size)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr *sa = (struct sockaddr *)&address;
	socklen_t len, got = sizeof(address);
	const int one = 1, buffer = REQUEST_BUFFER;
	int fd, r;

	if (!parse_tcp(o->address, &address, &len)) {
		snprintf(error, size, "%s: not an address; use 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", o->address);
		return -EINVAL;
	}
	if (!o->allow_remote && !is_loopback(sa)) {
		snprintf(error, size, "%s: other hosts could read it, and there is no password; "
		    "use 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", o->address);
		return -EINVAL;
	}
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		r = -errno;
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) < 0 || bind(fd, sa, len) < 0 ||
	    listen(fd, o->backlog) < 0 || getsockname(fd, sa, &got) < 0)
		r = -errno;
	else
		r = fd;
	if (r >= 0) {
		*ret_port = ntohs(sa->sa_family == AF_INET ? ((struct sockaddr_in *)(void *)sa)->sin_port :
		    ((struct sockaddr_in6 *)(void *)sa)->sin6_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	if (r == -EADDRINUSE)
		snprintf(error, size, "%s: is in use by another program; `ss -ltnp` names it, or choose another port",
		    o->address);
	else
		snprintf(error, size, "%s: cannot listen there: %s", o->address, strerror(-r));
	return r;
}

static int
listen_unix(const struct listen_options *o, char *error, size_t size)
{
	struct group *g = o->group != NULL ? getgrnam(o->group) : NULL;

	return unix_socket_listen(listen_unix_path(o->address), g != NULL ? g->gr_gid : getegid(),
	    g != NULL ? 0660 : 0600, o->backlog, error, size);
}

int
listen_at(const struct listen_options *o, uint16_t *ret_port, char *error, size_t error_size)
{
	*ret_port = 0;
	if (listen_is_unix(o->address))
		return listen_unix(o, error, error_size);
	return listen_tcp(o, ret_port, error, error_size);
}
