/*
 * SPDX-License-Identifier: Apache-2.0
 * announce: sends one line to the agent's control socket and reads one back.
 */
#include "cli/announce.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/run.h"
#include "base/clock.h"

#define ANSWER_MS 2000	/* an agent takes a few ms; one that hangs must not hold a run up */

static json_t *
text_or_null(const char *text)
{
	return text != NULL ? json_string(text) : json_null();
}

/* Sends a line; a line that does not fit into the socket at once is not sent. */
static bool
send_line(int fd, const char *line)
{
	size_t len = strlen(line);
	ssize_t n = send(fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)len;
}

/* Returns true if the agent has answered, whatever the answer, or has closed the connection. */
static bool
wait_for_answer(int fd)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + ANSWER_MS, left;
	char answer[1024];

	while ((left = until - clock_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = recv(fd, answer, sizeof(answer), 0);
		if (n > 0 && answer[n - 1] != '\n')
			continue;
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return true;
	}
	return false;
}

int
announce(const char *path, pid_t pid, const char *run_id, const struct agent_run_options *names)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	json_t *request;
	char *line, number[16];
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	snprintf(number, sizeof(number), "%d", (int)pid);
	request = json_pack("{ss s{ss ss so so so sb}}", "command", "tag", "args", "pid", number, "run", run_id,
	    "pipeline", text_or_null(names->pipeline), "task", text_or_null(names->task),
	    "sample", text_or_null(names->sample), "is_run", 1);
	line = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	if (line == NULL || !send_line(fd, line) || !send_line(fd, "\n") || wait_for_answer(fd)) {
		close(fd);
		fd = -1;
	}
	free(line);
	json_decref(request);
	return fd;
}
