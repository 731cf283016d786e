/*
 * SPDX-License-Identifier: Apache-2.0
 * update_agent: the running agent, as `sluice update` sees it.
 */
#include "cli/update_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/safe_path.h"
#include "cli/control_client.h"
#include "config/config.h"

#define SYSTEMD_RUNS "/run/systemd/system"
#define UNIT "sluice-agent.service"

enum {
	ANSWER_MS = 5000,
	SYSTEMCTL_MS = 30000,
	RESTART_MS = 900000,		/* the old one may deliver for as long as `drain`, 10 minutes at most */
	OUTPUT_MAX = 64 << 10,
	POLL_MS = 1000,
	UNWELL_MAX = 3,			/* polls in a row: an output may be down for a moment */
};

/* systemctl(1) is in /usr/bin, or in /bin where that is a folder of its own. */
static const char *const systemctl_paths[] = { "/usr/bin/systemctl", "/bin/systemctl" };

/* What the agent answered. */
struct answer {
	char version[64];
	pid_t pid;
	bool is_ready;
	char reason[256];		/* why it is not; "" */
	unsigned missing;
	uint64_t delivered;
};

static void
read_answer(const json_t *status, struct answer *ret)
{
	const char *version = json_string_value(json_object_get(status, "version"));
	const char *reason = json_string_value(json_object_get(status, "not_ready_reason"));
	const json_t *signals = json_object_get(status, "signals"), *records = json_object_get(status, "records");

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->version, sizeof(ret->version), "%s", version != NULL ? version : "?");
	snprintf(ret->reason, sizeof(ret->reason), "%s", reason != NULL ? reason : "");
	ret->pid = (pid_t)json_integer_value(json_object_get(status, "pid"));
	ret->is_ready = json_is_true(json_object_get(status, "ready")) && json_is_true(json_object_get(status, "seeing"));
	for (size_t i = 0; i < json_array_size(signals); i++) {
		const char *state = json_string_value(json_object_get(json_array_get(signals, i), "state"));

		ret->missing += state != NULL && strcmp(state, "missing") == 0;
	}
	for (size_t i = 0; i < json_array_size(records); i++)
		ret->delivered += (uint64_t)json_integer_value(json_object_get(json_array_get(records, i), "delivered"));
}

/* Returns 0, or a negative errno: the agent does not answer. */
static int
ask(const char *path, struct answer *ret)
{
	int fd = control_client_open(path), r = fd;
	json_t *request, *status = NULL;

	if (fd < 0)
		return r;
	request = json_pack("{ss}", "command", "status");
	r = request != NULL ? control_client_exchange(fd, request, ANSWER_MS, &status) : -ENOMEM;
	if (r == 0)
		read_answer(status, ret);
	json_decref(request);
	json_decref(status);
	close(fd);
	return r;
}

/* Returns whether a process runs the file of this path, which has not been replaced since. */
static bool
runs(pid_t pid, const char *target)
{
	struct stat program, running;
	char exe[64];

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	return stat(target, &program) == 0 && stat(exe, &running) == 0 && program.st_ino == running.st_ino &&
	    program.st_dev == running.st_dev;
}

/* Returns systemctl's path if systemd runs the agent's unit; else NULL. */
static const char *
systemctl(void)
{
	int status = 0;

	for (size_t i = 0; i < sizeof(systemctl_paths) / sizeof(systemctl_paths[0]); i++) {
		const char *path = systemctl_paths[i];
		char *const argv[] = { (char *)path, (char *)"--quiet", (char *)"is-active", (char *)UNIT, NULL };
		const struct child_options o = { .path = path, .argv = argv, .timeout_ms = SYSTEMCTL_MS,
			.is_quiet = true };

		if (access(SYSTEMD_RUNS, F_OK) < 0 || access(path, X_OK) < 0)
			continue;
		if (child_run(&o, NULL, &status) == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return path;
		return NULL;
	}
	return NULL;
}

/* As root, no program is run that another user may change. */
static int
check_command(const char *path, char *error, size_t error_size)
{
	struct safe_path_fault fault = { 0 };
	char text[2 * PATH_MAX];
	int fd = safe_path_open(path, O_PATH | O_CLOEXEC, 0, &fault);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(error, error_size, "update.restart: %s: %s", path, fd == -EPERM && fault.path[0] != '\0' ?
	    safe_path_text(&fault, "become root", text, sizeof(text)) : strerror(-fd));
	return fd;
}

/* Sets the command by which the agent is restarted. */
static int
find_command(struct update_agent *a, char *error, size_t error_size)
{
	static char *by_systemd[] = { NULL, (char *)"restart", (char *)UNIT, NULL };
	const struct config_strings *words = &a->config->update.restart;
	const char *path;

	a->restart = UPDATE_RESTART_BY_COMMAND;
	if (words->n > 0) {
		a->words = calloc(words->n + 1, sizeof(*a->words));
		if (a->words == NULL) {
			snprintf(error, error_size, "out of memory");
			return -ENOMEM;
		}
		memcpy(a->words, words->list, words->n * sizeof(*a->words));
		a->command = a->words;
		return check_command(words->list[0], error, error_size);
	}
	path = systemctl();
	if (path == NULL)
		a->restart = UPDATE_RESTART_BY_HAND;
	by_systemd[0] = (char *)path;
	a->command = path != NULL ? by_systemd : NULL;
	return 0;
}

int
update_agent_look(struct update_agent *a, const struct config *config, const char *target, char *error,
    size_t error_size)
{
	struct answer now;

	memset(a, 0, sizeof(*a));
	a->config = config;
	if (ask(config->control, &now) < 0 || !runs(now.pid, target))
		return 0;
	a->was_ready = now.is_ready;
	a->missing = now.missing;
	return find_command(a, error, error_size);
}

void
update_agent_done(struct update_agent *a)
{
	free(a->words);
	a->words = NULL;
}

void
update_agent_note(const struct update_agent *a, char *note, size_t size)
{
	snprintf(note, size, "%s %d %u", a->restart == UPDATE_RESTART_BY_COMMAND ? "restart" : "no-restart", a->was_ready,
	    a->missing);
}

int
update_agent_recall(struct update_agent *a, const struct config *config, const char *note, char *error,
    size_t error_size)
{
	char how[16] = "";
	int was_ready = 0;

	memset(a, 0, sizeof(*a));
	a->config = config;
	if (sscanf(note, "%15s %d %u", how, &was_ready, &a->missing) != 3 || strcmp(how, "restart") != 0)
		return 0;
	a->was_ready = was_ready != 0;
	return find_command(a, error, error_size);
}

int
update_agent_restart(const struct update_agent *a, char *error, size_t error_size)
{
	const struct child_options o = { .path = a->command[0], .argv = a->command, .timeout_ms = RESTART_MS,
		.output_max = OUTPUT_MAX };
	int status = 0, r = child_run(&o, NULL, &status);

	if (r < 0)
		snprintf(error, error_size, "%s could not restart the agent: %s", o.path, strerror(-r));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		snprintf(error, error_size, "%s could not restart the agent: %s %d", o.path,
		    WIFEXITED(status) ? "exit status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	else
		return 0;
	return r < 0 ? r : -EIO;
}

/* Returns whether the agent does as well as before; if not, error has why. */
static bool
is_well(const struct update_agent *a, const char *version, int r, const struct answer *now, char *error,
    size_t error_size)
{
	if (r < 0)
		snprintf(error, error_size, "the agent does not answer at %s: %s", a->config->control, strerror(-r));
	else if (version != NULL && strcmp(now->version, version) != 0)
		snprintf(error, error_size, "the agent that answers is of version %s", now->version);
	else if (a->was_ready && !now->is_ready)
		snprintf(error, error_size, "the agent is not as well as before: %s", now->reason);
	else if (now->missing > a->missing)
		snprintf(error, error_size, "the agent misses %u signals, the one before missed %u", now->missing, a->missing);
	else
		return true;
	return false;
}

int
update_agent_watch(const struct update_agent *a, const char *version, uint64_t wait_ms, uint64_t watch_ms,
    void (*on_second)(unsigned left_s, void *arg), void *arg, char *error, size_t error_size)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + (int64_t)wait_ms;
	struct answer now = { 0 };
	unsigned unwell = 0;
	pid_t pid = 0;			/* of the agent that is watched; 0: none is well yet */

	for (;;) {
		const struct timespec pause = { POLL_MS / 1000, POLL_MS % 1000 * 1000000 };
		int r = ask(a->config->control, &now);
		bool well = is_well(a, version, r, &now, error, error_size);
		int64_t at = clock_ms(CLOCK_MONOTONIC);

		if (pid != 0 && r == 0 && now.pid != pid) {
			snprintf(error, error_size, "the agent ended, and another was started");
			return -EIO;
		}
		unwell = well ? 0 : unwell + 1;
		if (pid == 0 && well) {
			pid = now.pid;
			until = at + (int64_t)watch_ms;
		} else if (pid != 0 && unwell >= UNWELL_MAX) {
			return -EIO;
		} else if (at >= until && (pid == 0 || unwell == 0)) {
			break;
		}
		on_second(pid != 0 && until > at ? (unsigned)((until - at + 999) / 1000) : 0, arg);
		nanosleep(&pause, NULL);
	}
	if (pid == 0)
		return -EIO;
	if (a->was_ready && watch_ms > 0 && now.delivered == 0) {
		snprintf(error, error_size, "the agent has delivered nothing");
		return -EIO;
	}
	return 0;
}
