/*
 * SPDX-License-Identifier: Apache-2.0
 * live_process: the properties of a running process and its ancestors in /proc, for the agent's rules.
 */
#include "explain/live_process.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "collect/proc_reader.h"
#include "identify/redact.h"

enum {
	ARENA_BYTES = 1 << 20,
	ARGV_BYTES = 12 << 10,		/* bytes of arguments that are sent; of an ancestor, a quarter */
	FILE_BYTES = 16 << 10,
};

/* Returns bytes as UTF-8 text in a; NULL for NULL and where a is full. */
static const char *
as_text(struct arena *a, const char *bytes, size_t len)
{
	char *out = bytes != NULL ? arena_bytes(a, TEXT_ESCAPE_MAX(len)) : NULL;

	if (out != NULL)
		text_escape(bytes, len, out, TEXT_ESCAPE_MAX(len), NULL);
	return out;
}

static void
put(json_t *o, struct arena *a, const char *name, const char *bytes)
{
	const char *text = bytes != NULL ? as_text(a, bytes, strlen(bytes)) : NULL;

	if (text != NULL)
		json_object_set_new(o, name, json_string(text));
}

/* Redacts before cutting: half a secret would not be recognised. */
static void
put_arguments(json_t *o, struct arena *a, const struct exec_event *s, size_t max)
{
	const char **argv = s->argv != NULL ? arena_alloc(a, s->argc * sizeof(*argv)) : NULL;
	json_t *list;
	size_t argc = 0;

	if (argv == NULL)
		return;
	while (argc < s->argc && (argv[argc] = as_text(a, s->argv[argc], s->argv_len[argc])) != NULL)
		argc++;
	redact_argv(NULL, argv, argc, a);
	list = json_array();
	for (size_t i = 0; i < argc && strlen(argv[i]) < max; i++) {
		max -= strlen(argv[i]) + 1;
		json_array_append_new(list, json_string(argv[i]));
	}
	json_object_set_new(o, "argv", list);
}

/* Reads the number after a name in /proc/PID/status. False: the name is missing. */
static bool
status_number(const char *status, const char *name, uint32_t *ret)
{
	const char *at = strstr(status, name);

	if (at == NULL)
		return false;
	*ret = (uint32_t)strtoul(at + strlen(name), NULL, 10);
	return true;
}

/* Reads /proc/PID/NAME. False: the process has ended. */
static bool
read_file(const char *proc, uint32_t pid, const char *name, struct file_text *ret)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%u/%s", proc, pid, name);
	return file_read(AT_FDCWD, path, ret, FILE_BYTES) == 0;
}

bool
executable_is_of_root(const char *path)
{
	struct statvfs mount;
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid == 0 && statvfs(path, &mount) == 0 && !(mount.f_flag & ST_NOSUID);
}

/*
 * Whether the host's root owns the executable, as the kernel side sees it: of a process in a user namespace, which maps
 * other users than all to themselves, it does not.
 */
static bool
is_exe_of_root(const char *proc, uint32_t pid)
{
	struct file_text map = { 0 };
	unsigned inside = 1, outside = 1, n = 0;
	char path[PATH_MAX];
	bool is_host;

	is_host = read_file(proc, pid, "uid_map", &map) && sscanf(map.text, "%u %u %u", &inside, &outside, &n) == 3 &&
	    inside == 0 && outside == 0 && n == UINT32_MAX;
	file_text_done(&map);
	snprintf(path, sizeof(path), "%s/%u/exe", proc, pid);
	return is_host && executable_is_of_root(path);
}

/* Reads one process without its ancestors. NULL: it has ended, or it is a kernel thread. */
static json_t *
read_one(struct proc_reader *f, const char *proc, uint32_t pid, struct arena *a, size_t argv_max, uint32_t *ret_ppid)
{
	struct state_event state = { .self = { .pid = pid } };
	struct file_text status = { 0 }, comm = { 0 };
	struct exec_event s;
	uint32_t uid;
	json_t *o = NULL;

	state.self.start_ns = proc_reader_ticks_ns(proc_reader_start_ticks(f, pid));
	if (!read_file(proc, pid, "status", &status) || !read_file(proc, pid, "comm", &comm) ||
	    !proc_reader_read(f, &state, &s) || (s.exe == NULL && s.argv == NULL))
		goto out;
	if (comm.len > 0 && comm.text[comm.len - 1] == '\n')
		comm.text[comm.len - 1] = '\0';
	o = json_pack("{si}", "pid", (int)pid);
	put(o, a, "comm", comm.text);
	put(o, a, "exe", s.exe);
	put(o, a, "cwd", s.cwd);
	put(o, a, "cgroup", proc_reader_cgroup(f, true));
	put(o, a, "cgroup_v1", proc_reader_cgroup(f, false));
	put_arguments(o, a, &s, argv_max);
	if (status_number(status.text, "\nUid:\t", &uid))
		json_object_set_new(o, "uid", json_integer(uid));
	if (is_exe_of_root(proc, pid))
		json_object_set_new(o, "exe_of_root", json_true());
	if (!status_number(status.text, "\nPPid:\t", ret_ppid))
		*ret_ppid = 0;
out:
	file_text_done(&status);
	file_text_done(&comm);
	return o;
}

json_t *
live_process_read(const char *proc, uint32_t pid)
{
	struct arena a = { 0 };
	struct proc_reader *f = NULL;
	json_t *first = NULL, *last = NULL, *o;

	if (arena_init(&a, ARENA_BYTES) < 0 || proc_reader_new(proc, &f) < 0)
		goto out;
	for (int i = 0; i < LIVE_PROCESS_DEPTH && pid != 0; i++) {
		o = read_one(f, proc, pid, &a, i == 0 ? ARGV_BYTES : ARGV_BYTES / 4, &pid);
		if (o == NULL)
			break;
		if (last == NULL)
			first = o;
		else
			json_object_set_new(last, "parent", o);
		last = o;
		arena_wipe(&a);
	}
out:
	proc_reader_free(f);
	arena_wipe(&a);		/* it contains arguments before redaction */
	arena_done(&a);
	return first;
}

static bool
parse_arguments(const json_t *list, struct arena *a, struct candidate *s)
{
	const char **argv;

	if (!json_is_array(list))
		return list == NULL;
	argv = arena_alloc(a, (json_array_size(list) + 1) * sizeof(*argv));
	if (argv == NULL)
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		argv[i] = json_string_value(json_array_get(list, i));
		if (argv[i] == NULL)
			return false;
	}
	s->argv = argv;
	s->argc = json_array_size(list);
	return true;
}

bool
live_process_parse(const json_t *json, uint32_t pid, struct arena *a, struct live_process *ret)
{
	*ret = (struct live_process){ 0 };
	for (; json_is_object(json) && ret->n < LIVE_PROCESS_DEPTH; json = json_object_get(json, "parent")) {
		const json_t *uid = json_object_get(json, "uid");
		struct candidate *s = &ret->candidate[ret->n];

		s->exe = json_string_value(json_object_get(json, "exe"));
		s->comm = json_string_value(json_object_get(json, "comm"));
		s->cwd = json_string_value(json_object_get(json, "cwd"));
		s->cgroup = json_string_value(json_object_get(json, "cgroup"));
		s->cgroup_v1 = json_string_value(json_object_get(json, "cgroup_v1"));
		s->has_uid = json_is_integer(uid);
		s->uid = (uint32_t)json_integer_value(uid);
		s->is_exe_of_root = json_is_true(json_object_get(json, "exe_of_root"));
		if (!parse_arguments(json_object_get(json, "argv"), a, s))
			return false;
		ret->pid[ret->n] = (uint32_t)json_integer_value(json_object_get(json, "pid"));
		if (ret->n > 0)
			ret->candidate[ret->n - 1].parent = s;
		ret->n++;
	}
	return ret->n > 0 && ret->pid[0] == pid;
}
