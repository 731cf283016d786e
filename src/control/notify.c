/*
 * SPDX-License-Identifier: Apache-2.0
 * notify: sd_notify(3) and sd_watchdog_enabled(3) without libsystemd, since each is one datagram.
 */
#include "control/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define STATUS_MAX 500	/* bytes: a line of systemctl(1) */

struct notify {
	int fd;			/* -1: there is no service manager */
	struct sockaddr_un address;
	socklen_t address_len;
	uint64_t watchdog_us;
	char status[sizeof("STATUS=") + STATUS_MAX];	/* what was sent last */
};

/* Parses a path, or "@name" for the abstract namespace. */
static int
parse_address(const char *text, struct notify *n)
{
	size_t len = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || len < 2)
		return -EAFNOSUPPORT;
	if (len >= sizeof(n->address.sun_path))
		return -ENAMETOOLONG;
	n->address.sun_family = AF_UNIX;
	memcpy(n->address.sun_path, text, len + 1);
	n->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
	if (text[0] == '@') {
		n->address.sun_path[0] = '\0';
		n->address_len--;	/* an abstract name has no terminator */
	}
	return 0;
}

/* Returns 0 unless the variables are set, well-formed, and meant for this process. */
static uint64_t
parse_watchdog(const char *usec, const char *pid)
{
	uint64_t us;

	if (usec == NULL || !text_number(usec, UINT64_MAX, &us))
		return 0;
	if (pid != NULL && strtoll(pid, NULL, 10) != getpid())
		return 0;
	return us;
}

int
notify_open(struct notify **ret, char *error, size_t error_size)
{
	const char *where = getenv("NOTIFY_SOCKET");
	struct notify *n = calloc(1, sizeof(*n));
	int r = 0;

	error[0] = '\0';
	if (n == NULL)
		return -ENOMEM;
	n->fd = -1;
	if (where != NULL) {
		r = parse_address(where, n);
		if (r == 0) {
			n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			r = n->fd < 0 ? -errno : 0;
		}
		if (r < 0)
			snprintf(error, error_size, "NOTIFY_SOCKET=%s cannot be used: %s", where, strerror(-r));
	}
	if (r == 0 && where != NULL)
		n->watchdog_us = parse_watchdog(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	*ret = n;
	return r;
}

void
notify_close(struct notify *n)
{
	if (n == NULL)
		return;
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}

static int
notify_send(struct notify *n, const char *state)
{
	size_t len = strlen(state);
	ssize_t sent;

	if (n == NULL || n->fd < 0)
		return 0;
	sent = sendto(n->fd, state, len, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&n->address,
	    n->address_len);
	return sent < 0 ? -errno : 0;
}

int
notify_ready(struct notify *n)
{
	return notify_send(n, "READY=1");
}

int
notify_reloading(struct notify *n)
{
	char state[64];

	/* In the same datagram: the manager finds by it which READY=1 ends this reload. */
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_us(CLOCK_MONOTONIC));
	return notify_send(n, state);
}

int
notify_stopping(struct notify *n)
{
	return notify_send(n, "STOPPING=1");
}

int
notify_watchdog(struct notify *n)
{
	return notify_send(n, "WATCHDOG=1");
}

int
notify_status(struct notify *n, const char *text)
{
	char state[sizeof("STATUS=") + STATUS_MAX];
	int r;

	if (!notify_has_manager(n))
		return 0;
	snprintf(state, sizeof(state), "STATUS=%.*s", (int)strcspn(text, "\n"), text);
	if (strcmp(state, n->status) == 0)
		return 0;
	r = notify_send(n, state);
	if (r == 0)
		memcpy(n->status, state, sizeof(state));
	return r;
}

bool
notify_has_manager(const struct notify *n)
{
	return n != NULL && n->fd >= 0;
}

uint64_t
notify_watchdog_us(const struct notify *n)
{
	return n != NULL ? n->watchdog_us : 0;
}
