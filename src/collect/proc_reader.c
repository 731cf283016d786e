/*
 * SPDX-License-Identifier: Apache-2.0
 * proc_reader: makes an exec event from /proc/PID/{stat,exe,cwd,cmdline,cgroup} of one process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/proc_reader.h"
#include "collect/proctext.h"
#include "event.h"

#define ARGS_MAX 4096
#define DELETED " (deleted)"
#define STAT_START 22		/* fields of /proc/PID/stat, counted from 1; proc(5) */
#define STAT_VSIZE 23
#define TASK_SIZE 40		/* of a path below /proc: PID, or PID/task/TID */
#define ASKED_MAX 64		/* threads tried of a process whose first thread has ended */

struct proc_reader {
	char proc[PATH_MAX];
	char exe[PATH_MAX + 1];
	char cwd[PATH_MAX + 1];
	char cmdline[EVENT_ARGV_MAX + 1];
	const char *argv[ARGS_MAX];
	size_t argv_len[ARGS_MAX];
	char cgroup[2][PATH_MAX];
	bool has_cgroup[2];
};

int
proc_reader_new(const char *proc, struct proc_reader **ret)
{
	struct proc_reader *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	snprintf(f->proc, sizeof(f->proc), "%s", proc);
	*ret = f;
	return 0;
}

void
proc_reader_free(struct proc_reader *f)
{
	if (f != NULL)		/* arguments before redaction */
		explicit_bzero(f->cmdline, sizeof(f->cmdline));
	free(f);
}

static void
path_of(const struct proc_reader *f, const char *task, const char *name, char out[PATH_MAX])
{
	if (snprintf(out, PATH_MAX, "%s/%s/%s", f->proc, task, name) >= PATH_MAX)
		out[0] = '\0';
}

static void
task_of(uint32_t pid, char out[TASK_SIZE])
{
	snprintf(out, TASK_SIZE, "%u", pid);
}

/* Reads up to size - 1 bytes, NUL-terminated; returns their number or -errno. */
static ssize_t
read_file(const struct proc_reader *f, const char *task, const char *name, char *out, size_t size)
{
	char path[PATH_MAX];
	size_t len = 0;
	ssize_t n;
	int fd;

	path_of(f, task, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	out[len] = '\0';
	return (ssize_t)len;
}

/* Reads a link without its " (deleted)"; NULL: it cannot be read. */
static const char *
read_link(const struct proc_reader *f, const char *task, const char *name, char out[PATH_MAX + 1])
{
	char path[PATH_MAX];
	ssize_t n;

	path_of(f, task, name, path);
	n = readlink(path, out, PATH_MAX);
	if (n <= 0 || n == PATH_MAX)
		return NULL;
	out[n] = '\0';
	if ((size_t)n > strlen(DELETED) && strcmp(out + n - strlen(DELETED), DELETED) == 0)
		out[(size_t)n - strlen(DELETED)] = '\0';
	return out[0] == '/' ? out : NULL;
}

static uint64_t
tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return UINT64_C(1000000000) / (uint64_t)(hz > 0 ? hz : 100);
}

uint64_t
proc_reader_ticks(uint64_t start_ns)
{
	return (start_ns + (uint64_t)clock_added_ns[CLOCK_BOOTTIME]) / tick_ns();	/* as /proc shows it here */
}

uint64_t
proc_reader_ticks_ns(uint64_t ticks)
{
	return ticks * tick_ns() - (uint64_t)clock_added_ns[CLOCK_BOOTTIME];
}

/* Returns a number of /proc/.../stat; 0: the task is gone. */
static uint64_t
stat_field(const struct proc_reader *f, const char *task, int wanted)
{
	char text[1024];
	const char *at;

	if (read_file(f, task, "stat", text, sizeof(text)) <= 0)
		return 0;
	at = strrchr(text, ')');	/* comm may contain spaces and parentheses */
	for (int field = 2; at != NULL && field < wanted; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

uint64_t
proc_reader_start_ticks(const struct proc_reader *f, uint32_t pid)
{
	char task[TASK_SIZE];

	task_of(pid, task);
	return stat_field(f, task, STAT_START);
}

/* Splits the arguments; a process may have written over them, or have none. */
static void
split_arguments(struct proc_reader *f, const struct proc_texts *texts, struct exec_event *s)
{
	const char *cmdline = texts->cmdline;

	if (cmdline == NULL || texts->cmdline_len == 0)
		return;
	s->argv_truncated = texts->cmdline_len >= sizeof(f->cmdline) - 1;
	for (size_t at = 0; at < texts->cmdline_len; s->argc++) {
		if (s->argc == ARGS_MAX) {
			s->argv_truncated = true;
			break;
		}
		f->argv[s->argc] = cmdline + at;
		f->argv_len[s->argc] = strlen(cmdline + at);
		at += f->argv_len[s->argc] + 1;
	}
	s->argv = f->argv;
	s->argv_len = f->argv_len;
}

size_t
proc_reader_title(const struct proc_reader *f, uint32_t pid, char *buf, size_t size)
{
	char task[TASK_SIZE];
	size_t len;
	ssize_t n;

	task_of(pid, task);
	n = read_file(f, task, "cmdline", buf, size);
	len = n > 0 ? strlen(buf) : 0;
	if ((ssize_t)len + 1 >= n)
		return 0;
	while (len > 0 && buf[len - 1] == ' ')
		len--;
	return len;
}

static void
read_cgroups(struct proc_reader *f, const char *task)
{
	char text[8192];
	ssize_t len = read_file(f, task, "cgroup", text, sizeof(text));
	const char *at = text;
	size_t left = len > 0 ? (size_t)len : 0;
	struct proc_cgroup g;
	int r;

	f->has_cgroup[0] = f->has_cgroup[1] = false;
	while ((r = proctext_next_cgroup(&at, &left, &g)) != 0) {
		bool is_v2 = r > 0 && g.hierarchy == 0;

		if (r < 0 || (!is_v2 && !proctext_list_has(g.controllers, "memory")) ||
		    g.path.len >= sizeof(f->cgroup[0]))
			continue;
		memcpy(f->cgroup[is_v2], g.path.at, g.path.len);
		f->cgroup[is_v2][g.path.len] = '\0';
		f->has_cgroup[is_v2] = true;
	}
}

/*
 * Reads values that only a task with memory has. Returns false if it has none, so that values read before may be
 * incomplete. The error of readlink(2) does not show which: without memory the kernel may refuse links that it allows
 * with it.
 */
static bool
read_memory(struct proc_reader *f, const char *task, struct proc_texts *t)
{
	ssize_t len = read_file(f, task, "cmdline", f->cmdline, sizeof(f->cmdline));

	t->cmdline = len > 0 ? f->cmdline : NULL;
	t->cmdline_len = len > 0 ? (size_t)len : 0;
	t->cwd = read_link(f, task, "cwd", f->cwd);
	t->exe = read_link(f, task, "exe", f->exe);	/* last: shows that the values read before are complete */
	return t->exe != NULL || stat_field(f, task, STAT_VSIZE) > 0;
}

/* Reads through another thread, since a process whose first thread has ended shows nothing. */
static bool
read_through_thread(struct proc_reader *f, uint32_t pid, struct proc_texts *t)
{
	char path[PATH_MAX], task[TASK_SIZE];
	const struct dirent *e;
	bool is_read = false;
	int asked = 0;
	DIR *dir;

	task_of(pid, task);
	path_of(f, task, "task", path);
	dir = opendir(path);
	while (dir != NULL && !is_read && asked < ASKED_MAX && (e = readdir(dir)) != NULL) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (tid == 0 || tid == pid)
			continue;
		asked++;
		snprintf(task, sizeof(task), "%u/task/%u", pid, tid);
		is_read = read_memory(f, task, t);
	}
	if (dir != NULL)
		closedir(dir);
	return is_read;
}

bool
proc_reader_texts(struct proc_reader *f, uint32_t pid, struct proc_texts *ret)
{
	char task[TASK_SIZE];

	*ret = (struct proc_texts){ 0 };
	task_of(pid, task);
	/* A process that is exiting is not discovered: values that can no longer be read might have excluded it. */
	if (!read_memory(f, task, ret) && !read_through_thread(f, pid, ret))
		return false;
	read_cgroups(f, task);
	for (int is_v2 = 0; is_v2 < 2; is_v2++)
		ret->cgroup[is_v2] = f->has_cgroup[is_v2] ? f->cgroup[is_v2] : NULL;
	ret->start_ticks = stat_field(f, task, STAT_START);
	return ret->start_ticks != 0;
}

bool
proc_reader_event(struct proc_reader *f, const struct state_event *state, const struct proc_texts *texts,
    struct exec_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->is_discovered = true;
	ret->time_ns = state->time_ns;
	ret->self = state->self;
	ret->parent = state->parent;
	ret->anchor = state->anchor;
	ret->ppid = state->ppid;
	ret->context = state->context;
	ret->replaced = state->counters;	/* the base of its usage from now on */
	memcpy(ret->comm, state->comm, sizeof(ret->comm));
	ret->exe = state->exe;
	ret->cwd = state->cwd;
	if (texts == NULL)
		return true;
	if (ret->exe == NULL)
		ret->exe = texts->exe;
	if (ret->cwd == NULL)
		ret->cwd = texts->cwd;
	split_arguments(f, texts, ret);
	return texts->start_ticks == proc_reader_ticks(state->self.start_ns);
}

bool
proc_reader_read(struct proc_reader *f, const struct state_event *state, struct exec_event *ret)
{
	struct proc_texts texts;

	return proc_reader_texts(f, state->self.pid, &texts) && proc_reader_event(f, state, &texts, ret);
}

const char *
proc_reader_cgroup(const struct proc_reader *f, bool is_v2)
{
	return f->has_cgroup[is_v2] ? f->cgroup[is_v2] : NULL;
}
