/*
 * SPDX-License-Identifier: Apache-2.0
 * host_agent: sends one line at a time to the agent's control socket, and reads one back.
 */
#include "cli/host_agent.h"

#include <errno.h>
#include <fcntl.h>
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
#include "control/control.h"

#define ANSWER_MS 2000	/* an agent takes a few ms; one that hangs must not hold a run up */
#define ANSWER_MAX 4096

/* Returns a connection, or a negative errno. Waits briefly for others who connect to the same socket. */
static int
connect_to(const char *path)
{
	const struct timeval wait = { ANSWER_MS / 1000, 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
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

/* Returns the agent's answer, the caller's, if it accepts the request; NULL: error has its sentence, or ours. */
static json_t *
ask(int fd, json_t *request, char *error, size_t error_size)
{
	char answer[ANSWER_MAX];
	json_t *root;
	ssize_t n;

	n = send_request(fd, request) ? read_answer(fd, answer) : -EPIPE;
	if (n <= 0) {
		snprintf(error, error_size, "the agent of this host does not answer: %s", strerror(n < 0 ? (int)-n : EPIPE));
		return NULL;
	}
	root = json_loadb(answer, (size_t)n, 0, NULL);
	if (!json_is_true(json_object_get(root, "ok"))) {
		const char *sentence = json_string_value(json_object_get(root, "error"));

		snprintf(error, error_size, "%s", sentence != NULL ? sentence : "the agent of this host refuses, without a reason");
		json_decref(root);
		return NULL;
	}
	return root;
}

static bool
offers_events(int fd, char suffix[HOST_AGENT_SUFFIX_SIZE], char *error, size_t error_size)
{
	const char *own;
	char number[16];
	json_t *answer;

	snprintf(number, sizeof(number), "%d", (int)getpid());
	answer = ask(fd, json_pack("{ss s{ss ss}}", "command", "subscribe", "args", "version", SLUICE_VERSION, "pid", number),
	    error, error_size);
	own = json_string_value(json_object_get(answer, "run_suffix"));
	snprintf(suffix, HOST_AGENT_SUFFIX_SIZE, "%s", own != NULL ? own : "");
	json_decref(answer);
	return answer != NULL;
}

int
host_agent_find(const char *path, char suffix[HOST_AGENT_SUFFIX_SIZE], char *error, size_t error_size)
{
	int fd = connect_to(path != NULL ? path : CONTROL_PATH);

	if (fd < 0 && path == NULL)
		fd = connect_to(CONTROL_RUN_PATH);
	if (fd < 0) {
		snprintf(error, error_size, fd == -EACCES ? "this user may not use the agent at %s" :
		    fd == -EAGAIN ? "the agent at %s does not answer" : "no agent listens at %s",
		    path != NULL ? path : CONTROL_RUN_PATH);
		return -1;
	}
	if (offers_events(fd, suffix, error, error_size))
		return fd;
	close(fd);
	return -1;
}

bool
host_agent_subscribe(int fd, pid_t pid, const char *run_id, const struct agent_run_options *names, char *error,
    size_t error_size)
{
	json_t *answer = ask(fd, run_request("subscribe", pid, run_id, names), error, error_size);

	json_decref(answer);
	return answer != NULL;
}

int
host_agent_announce(const char *path, pid_t pid, const char *run_id, const struct agent_run_options *names)
{
	int fd = connect_to(path != NULL ? path : CONTROL_PATH);
	char answer[ANSWER_MAX];

	if (fd >= 0 && send_request(fd, run_request("tag", pid, run_id, names)) && read_answer(fd, answer) == -ETIMEDOUT)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
