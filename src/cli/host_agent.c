/*
 * SPDX-License-Identifier: Apache-2.0
 * host_agent: sends one line at a time to the agent's control socket, and reads one back.
 */
#include "cli/host_agent.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/run.h"
#include "base/clock.h"

#define ANSWER_MS 2000	/* an agent takes a few ms; one that hangs must not hold a run up */
#define ANSWER_MAX 4096

int
host_agent_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Sends a request as one line, and frees it. One that does not fit into the socket at once is not sent. */
static bool
send_request(int fd, json_t *request)
{
	char *line = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	size_t len = line != NULL ? strlen(line) : 0;
	bool is_sent = false;

	if (line != NULL) {
		line[len] = '\n';	/* in place of its NUL */
		is_sent = send(fd, line, len + 1, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len + 1;
	}
	free(line);
	json_decref(request);
	return is_sent;
}

/*
 * Reads one line, and nothing beyond it. Returns its length without the newline; 0: the agent has closed the
 * connection; -ETIMEDOUT; -EMSGSIZE.
 */
static ssize_t
read_answer(int fd, char answer[ANSWER_MAX])
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + ANSWER_MS, left;
	size_t have = 0;

	while ((left = until - clock_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		const char *end;
		ssize_t n;

		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = recv(fd, answer + have, ANSWER_MAX - have, MSG_PEEK);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return 0;
		end = memchr(answer + have, '\n', (size_t)n);
		if (end != NULL)
			n = end - (answer + have) + 1;
		n = recv(fd, answer + have, (size_t)n, 0);
		if (n < 0)
			continue;
		have += (size_t)n;
		if (end != NULL)
			return (ssize_t)have - 1;
		if (have == ANSWER_MAX)
			return -EMSGSIZE;
	}
	return -ETIMEDOUT;
}

static json_t *
text_or_null(const char *text)
{
	return text != NULL ? json_string(text) : json_null();
}

static json_t *
run_request(const char *command, pid_t pid, const char *run_id, const struct agent_run_options *names)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)pid);
	return json_pack("{ss s{ss ss ss so so so sb}}", "command", command, "args", "version", SLUICE_VERSION,
	    "pid", number, "run", run_id, "pipeline", text_or_null(names->pipeline), "task", text_or_null(names->task),
	    "sample", text_or_null(names->sample), "is_run", 1);
}

/* Returns true if the agent accepts the request; else error has its sentence, or ours. */
static bool
ask(int fd, json_t *request, char *error, size_t error_size)
{
	char answer[ANSWER_MAX];
	json_t *root;
	bool is_ok;
	ssize_t n;

	n = send_request(fd, request) ? read_answer(fd, answer) : -EPIPE;
	if (n <= 0) {
		snprintf(error, error_size, "the agent of this host does not answer: %s", strerror(n < 0 ? (int)-n : EPIPE));
		return false;
	}
	root = json_loadb(answer, (size_t)n, 0, NULL);
	is_ok = json_is_true(json_object_get(root, "ok"));
	if (!is_ok) {
		const char *sentence = json_string_value(json_object_get(root, "error"));

		snprintf(error, error_size, "%s", sentence != NULL ? sentence : "the agent of this host refuses, without a reason");
	}
	json_decref(root);
	return is_ok;
}

bool
host_agent_offers_events(int fd)
{
	char error[ANSWER_MAX], number[16];

	snprintf(number, sizeof(number), "%d", (int)getpid());
	return ask(fd, json_pack("{ss s{ss ss}}", "command", "subscribe", "args", "version", SLUICE_VERSION, "pid", number),
	    error, sizeof(error));
}

bool
host_agent_subscribe(int fd, pid_t pid, const char *run_id, const struct agent_run_options *names, char *error,
    size_t error_size)
{
	return ask(fd, run_request("subscribe", pid, run_id, names), error, error_size);
}

int
host_agent_announce(const char *path, pid_t pid, const char *run_id, const struct agent_run_options *names)
{
	int fd = host_agent_connect(path);
	char answer[ANSWER_MAX];

	if (fd >= 0 && send_request(fd, run_request("tag", pid, run_id, names)) && read_answer(fd, answer) == -ETIMEDOUT)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
