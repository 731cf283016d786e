/*
 * SPDX-License-Identifier: Apache-2.0
 * control_client: asks the running agent through its control socket.
 */
#include "cli/control_client.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/spell.h"
#include "config/config.h"
#include "control/control.h"

#define ANSWER_MAX ((size_t)4 << 20)
#define CONNECT_S 5	/* with the queue of an agent that hangs, connect(2) would wait for ever */

void
control_client_path(const char *named, const struct config *config, char *path, size_t size)
{
	snprintf(path, size, "%s", named != NULL ? named : config != NULL ? config->control : CONTROL_PATH);
}

int
control_client_open(const char *path)
{
	const struct timeval wait = { CONNECT_S, 0 }, none = { 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none)) == 0)
		return fd;
	r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (fd >= 0)
		close(fd);
	return r;
}

int
control_client_connect(const char *who, const char *path)
{
	int fd = control_client_open(path);

	if (fd >= 0)
		return fd;
	if (fd == -ENAMETOOLONG)
		spell_line(stderr, "%s: %s: is too long for a socket\n", who, path);
	else if (fd == -ENOENT || fd == -ECONNREFUSED)
		spell_line(stderr, "%s: no agent listens at %s; start one with `systemctl start sluice-agent`, "
		    "or `sluice agent -c FILE`, or name its socket with --socket\n", who, path);
	else if (fd == -EACCES || fd == -EPERM)
		spell_line(stderr, "%s: %s: only root and the members of its group may talk to the agent; "
		    "use sudo, or `usermod -aG sluice USER` and log in again\n", who, path);
	else
		spell_line(stderr, "%s: %s: %s\n", who, path, strerror(-fd));
	return -1;
}

static int
send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Receives up to the newline. Returns 0, or a negative errno: -ETIMEDOUT, -ECONNRESET without an answer. */
static int
receive_line(int fd, uint64_t timeout_ms, struct bytes *line)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + (int64_t)timeout_ms;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = until - clock_ms(CLOCK_MONOTONIC);
		ssize_t n;
		int r;

		if (left <= 0 || (r = poll(&p, 1, (int)left)) == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (line->len >= ANSWER_MAX)
			return -EMSGSIZE;
		r = bytes_reserve(line, 65536);
		if (r < 0)
			return r;
		n = recv(fd, line->data + line->len, line->cap - line->len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		line->len += (size_t)n;
		if (line->data[line->len - 1] == '\n')
			return 0;
	}
}

int
control_client_exchange(int fd, const json_t *request, uint64_t timeout_ms, json_t **ret)
{
	char *text = json_dumps(request, JSON_COMPACT);
	struct bytes line = { 0 };
	json_t *answer;
	int r;

	if (text == NULL)
		return -ENOMEM;
	/* An agent that refuses us may have closed already: its answer still counts, so read it. */
	r = send_all(fd, text, strlen(text));
	if (r == 0)
		send_all(fd, "\n", 1);
	r = receive_line(fd, timeout_ms, &line);
	if (r == 0) {
		answer = json_loadb((const char *)line.data, line.len, 0, NULL);
		if (json_is_object(answer)) {
			*ret = answer;
		} else {
			json_decref(answer);
			r = -EBADMSG;
		}
	}
	free(text);
	bytes_done(&line);
	return r;
}

json_t *
control_client_ask(const char *who, int fd, const char *path, const json_t *request, uint64_t timeout_ms)
{
	json_t *answer = NULL;
	int r = control_client_exchange(fd, request, timeout_ms, &answer);

	if (r == -ENOMEM)
		spell_line(stderr, "%s: out of memory\n", who);
	else if (r == -EBADMSG)
		spell_line(stderr, "%s: %s: not an agent: its answer is no JSON object\n", who, path);
	else if (r == -ETIMEDOUT)
		spell_line(stderr, "%s: the agent has not answered within %g s; it may still carry out the command\n", who,
		    (double)timeout_ms / 1000);
	else if (r < 0)
		spell_line(stderr, "%s: %s: the agent gave no answer: %s\n", who, path, strerror(-r));
	return answer;
}
