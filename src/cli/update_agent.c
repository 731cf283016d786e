/*
 * SPDX-License-Identifier: Apache-2.0
 * update_agent: the running agent, as `sluice update` sees it.
 */
#include "cli/update_agent.h"

#include <dirent.h>
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
#include "base/text.h"
#include "cli/control_client.h"
#include "config/config.h"

#define SYSTEMD_RUNS "/run/systemd/system"
#define UNIT "sluice-agent.service"
#define DELETED " (deleted)"		/* behind the path of a program that was replaced while it runs */

enum {
	ANSWER_MS = 5000,
	SYSTEMCTL_MS = 30000,
	RESTART_MS = 900000,		/* the old one may deliver for as long as `drain`, 10 minutes at most */
	OUTPUT_MAX = 64 << 10,
	POLL_MS = 1000,
	COMM_LEN = 15,			/* of a program's name is all that the kernel keeps */
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

/* Reads the beginning of /proc/PID/NAME, and ends it in a NUL. Returns its length. */
static size_t
read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, size - 1) : 0;
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/*
 * Returns 1 if a process runs the program of this path, or one that was there before it, and 0 if not, or if it has
 * ended; or a negative errno: which program it runs cannot be read. Of another user's process that takes
 * CAP_SYS_PTRACE.
 */
static int
runs(pid_t pid, const char *target)
{
	char exe[64], path[PATH_MAX + sizeof(DELETED)];
	size_t len = strlen(target);
	struct stat program, running;
	ssize_t n;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	if (stat(target, &program) == 0 && stat(exe, &running) == 0 && program.st_ino == running.st_ino &&
	    program.st_dev == running.st_dev)
		return 1;
	n = readlink(exe, path, sizeof(path) - 1);
	if (n < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	path[n] = '\0';
	return strncmp(path, target, len) == 0 && strcmp(path + len, DELETED) == 0;
}

/* Returns what is behind the last slash of a path, in it. */
static const char *
file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/*
 * Returns whether a process is `sluice agent`, under the kernel's name of the program of that path, or under any if
 * that is NULL. Its nursery and readers have the same arguments, but other names.
 */
static bool
is_agent(pid_t pid, const char *target)
{
	char arguments[PATH_MAX + 16], name[32];
	size_t len, first;

	read_proc(pid, "comm", name, sizeof(name));
	if (strcmp(name, "sluice-nursery\n") == 0 || strcmp(name, "sluice-reader\n") == 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	if (target != NULL && strncmp(name, file_name(target), COMM_LEN) != 0)
		return false;
	len = read_proc(pid, "cmdline", arguments, sizeof(arguments));
	first = strlen(arguments) + 1;
	return first < len && strcmp(arguments + first, "agent") == 0;
}

/*
 * Finds an agent that runs the program, whether it answers or not. Returns its pid; 0: none does; or a negative errno,
 * with *ret_unknown the process of which cannot be read which program it runs; 0: /proc cannot be read.
 */
static pid_t
find_agent(const char *target, pid_t *ret_unknown)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	pid_t found = 0;
	uint64_t pid;

	*ret_unknown = 0;
	if (d == NULL)
		return -errno;
	while (found <= 0 && (e = readdir(d)) != NULL) {
		int r;

		if (!text_number(e->d_name, INT_MAX, &pid))
			continue;
		/* Arguments are in the process's memory, and its user can hang who reads them: it is asked last. */
		r = runs((pid_t)pid, target);
		if (r > 0 && is_agent((pid_t)pid, NULL)) {
			found = (pid_t)pid;
		} else if (r < 0 && is_agent((pid_t)pid, target)) {
			found = r;
			*ret_unknown = (pid_t)pid;
		}
	}
	closedir(d);
	return found;
}

/* Nothing is replaced under an agent that cannot be judged: it would run on, and the update would seem done. */
static int
check_none_runs(const char *socket, int asked, const char *target, char *error, size_t error_size)
{
	pid_t unknown, pid = find_agent(target, &unknown);

	if (pid == 0)
		return 0;
	if (pid < 0 && unknown > 0) {
		snprintf(error, error_size, "process %d is an agent that does not answer at %s, and which program it runs cannot "
		    "be read: %s: run this with CAP_SYS_PTRACE, or name its configuration with -c", (int)unknown, socket,
		    strerror(-pid));
		return pid;
	}
	if (pid < 0) {
		snprintf(error, error_size, "whether an agent runs cannot be found out: /proc: %s", strerror(-pid));
		return pid;
	}
	snprintf(error, error_size, "an agent of this program runs, process %d, but does not answer at %s: %s: restart it, "
	    "by `systemctl restart " UNIT "` if that runs it, or stop it; or name its configuration with -c", (int)pid,
	    socket, asked < 0 ? strerror(-asked) : "an agent of another program does");
	return -EBUSY;
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
	int r = ask(config->control, &now);

	memset(a, 0, sizeof(*a));
	a->config = config;
	if (r < 0 || !runs(now.pid, target))
		return check_none_runs(config->control, r, target, error, error_size);
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
