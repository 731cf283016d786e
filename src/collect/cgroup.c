/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup: mount points of the cgroup hierarchies, and the limits that apply to a cgroup path.
 */
#include "collect/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/proctext.h"

#define MOUNTINFO_MAX (16u << 20)	/* enough for a host of thousands of containers */
#define VALUE_MAX 65536			/* enough for a cpuset list of every second of 10,000 CPUs */

static const char *const controllers[CGROUP_HIERARCHIES] = { "", "cpu", "cpuset", "memory" };

struct cgroup_mount {
	char *point;	/* owned; NULL: not mounted */
	char *root;	/* owned; the cgroup mounted at point, "/" except in a container */
};

struct cgroup_mounts {
	struct cgroup_mount mount[CGROUP_HIERARCHIES];
};

/* Sets one hierarchy's mount, unless a mount of its root is known: that reaches everything. */
static int
set_mount(struct cgroup_mount *m, const char *root, const char *point)
{
	char *new_root, *new_point;

	if (m->point != NULL && (strcmp(m->root, "/") == 0 || strcmp(root, "/") != 0))
		return 0;
	new_root = strdup(root);
	new_point = strdup(point);
	if (new_root == NULL || new_point == NULL) {
		free(new_root);
		free(new_point);
		return -ENOMEM;
	}
	free(m->root);
	free(m->point);
	*m = (struct cgroup_mount){ .point = new_point, .root = new_root };
	return 0;
}

int
cgroup_mounts_open(const char *proc, struct cgroup_mounts **ret)
{
	struct cgroup_mounts *m = calloc(1, sizeof(*m));
	struct proc_cgroup_mount mount;
	struct file_text t = { 0 };
	char path[PATH_MAX], root[PATH_MAX], point[PATH_MAX];
	const char *text;
	size_t len;
	int r;

	if (m == NULL)
		return -ENOMEM;
	r = -ENAMETOOLONG;
	if (snprintf(path, sizeof(path), "%s/self/mountinfo", proc) >= (int)sizeof(path))
		goto out;
	r = file_read(AT_FDCWD, path, &t, MOUNTINFO_MAX);
	if (r < 0)
		goto out;
	text = t.text;
	len = t.len;
	while ((r = proctext_next_cgroup_mount(&text, &len, &mount)) != 0) {
		if (r < 0 || proctext_unescape(mount.root, root, sizeof(root)) < 0 ||
		    proctext_unescape(mount.point, point, sizeof(point)) < 0)
			continue;	/* a malformed mount must not hide the others */
		for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
			bool is_it = i == CGROUP_V2 ? mount.is_v2 :
			    !mount.is_v2 && proctext_list_has(mount.controllers, controllers[i]);

			r = is_it ? set_mount(&m->mount[i], root, point) : 0;
			if (r < 0)
				goto out;
		}
	}
	*ret = m;
	m = NULL;
	r = 0;
out:
	file_text_done(&t);
	cgroup_mounts_close(m);
	return r;
}

void
cgroup_mounts_close(struct cgroup_mounts *m)
{
	if (m == NULL)
		return;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		free(m->mount[i].root);
		free(m->mount[i].point);
	}
	free(m);
}

/* Buffers and result of one walk up a hierarchy, for one cgroup_limits_read(). */
struct walk {
	struct file_text value;
	struct file_text period;
	uint32_t online;
	uint64_t memory_bytes;
	struct cgroup_limits limits;
};

static void
limit_cpus(struct walk *w, double cpus)
{
	if (cpus <= 0 || (w->online > 0 && cpus >= w->online))
		return;
	if (!w->limits.cpus.known || cpus < w->limits.cpus.value)
		w->limits.cpus = (struct opt_double){ .value = cpus, .known = true };
}

static void
limit_memory(const struct walk *w, struct opt_u64 *limit, struct opt_u64 bytes)
{
	if (!bytes.known || bytes.value == 0 ||
	    (w->memory_bytes > 0 && bytes.value >= w->memory_bytes))
		return;
	if (!limit->known || bytes.value < limit->value)
		*limit = bytes;
}

/* Reads a file of dir; returns false if this level has none: the root, or a disabled controller. */
static bool
has_value(int dir, const char *name, struct file_text *t)
{
	return file_read(dir, name, t, VALUE_MAX) == 0 && t->len > 0;
}

static const char *const cpusets[2][2] = {
	{ "cpuset.cpus", "cpuset.cpus.effective" },
	{ "cpuset.cpus", "cpuset.effective_cpus" },
};

/* Applies the limits that one level sets, whose directory is dir. Malformed text sets none. */
static void
read_level(struct walk *w, enum cgroup_hierarchy hierarchy, int dir)
{
	struct opt_double cpus = { 0 };
	struct opt_u64 bytes = { 0 };
	uint32_t count;

	if (hierarchy == CGROUP_V2 && has_value(dir, "cpu.max", &w->value) &&
	    proctext_cpu_max(w->value.text, w->value.len, &cpus) == 0 && cpus.known)
		limit_cpus(w, cpus.value);
	if (hierarchy == CGROUP_CPU && has_value(dir, "cpu.cfs_quota_us", &w->value) &&
	    has_value(dir, "cpu.cfs_period_us", &w->period) &&
	    proctext_cfs(w->value.text, w->value.len, w->period.text, w->period.len, &cpus) == 0 &&
	    cpus.known)
		limit_cpus(w, cpus.value);
	/* In v2 an empty cpuset is inherited from the parent. The effective one excludes offline CPUs. */
	for (size_t i = 0; (hierarchy == CGROUP_V2 || hierarchy == CGROUP_CPUSET) &&
	    i < sizeof(cpusets[0]) / sizeof(cpusets[0][0]); i++)
		if (has_value(dir, cpusets[hierarchy == CGROUP_CPUSET][i], &w->value) &&
		    proctext_cpu_list(w->value.text, w->value.len, &count) == 0)
			limit_cpus(w, count);
	if (hierarchy == CGROUP_V2 && has_value(dir, "memory.max", &w->value) &&
	    proctext_memory_limit(w->value.text, w->value.len, &bytes) == 0)
		limit_memory(w, &w->limits.memory_bytes, bytes);
	if (hierarchy == CGROUP_V2 && has_value(dir, "memory.high", &w->value) &&
	    proctext_memory_limit(w->value.text, w->value.len, &bytes) == 0)
		limit_memory(w, &w->limits.memory_high, bytes);
	if (hierarchy == CGROUP_MEMORY && has_value(dir, "memory.limit_in_bytes", &w->value) &&
	    proctext_memory_limit(w->value.text, w->value.len, &bytes) == 0)
		limit_memory(w, &w->limits.memory_bytes, bytes);
}

/* Returns the part of path below the mount's root; NULL if the mount does not reach it. */
static const char *
below(const struct cgroup_mount *m, const char *path)
{
	size_t len = strlen(m->root);

	if (strcmp(m->root, "/") == 0)
		return path;
	if (strncmp(path, m->root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
		return path + len;
	return NULL;
}

/* A cgroup namespace shows cgroups outside of it as "/../x", which would lead out of the hierarchy. */
static bool
has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
		if (at[3] == '/' || at[3] == '\0')
			return true;
	return false;
}

int
cgroup_folder_open(const struct cgroup_mounts *m, enum cgroup_hierarchy hierarchy, const char *path)
{
	const struct cgroup_mount *mount = &m->mount[hierarchy];
	char full[PATH_MAX];
	int fd;

	path = mount->point != NULL && path[0] == '/' && !has_dots(path) ? below(mount, path) : NULL;
	if (path == NULL)
		return -ENOENT;
	if (snprintf(full, sizeof(full), "%s%s", mount->point, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Takes into account who owns a folder that has so many of the path's names below it. */
static void
read_owner(struct walk *w, int dir, uint32_t names_below)
{
	struct stat st;

	if (fstat(dir, &st) == 0 && st.st_uid != 0 && names_below > w->limits.users_names)
		w->limits.users_names = names_below;
}

static void
walk_up(struct walk *w, const struct cgroup_mounts *m, enum cgroup_hierarchy hierarchy, const char *path)
{
	const struct cgroup_mount *mount = &m->mount[hierarchy];
	char full[PATH_MAX];
	uint32_t names_below = 0;
	size_t stop;
	int dir, n;

	if (mount->point == NULL || path == NULL || path[0] != '/' || has_dots(path))
		return;
	path = below(mount, path);
	if (path == NULL)
		path = "";	/* only the mounted cgroup itself: our own container's */
	stop = strlen(mount->point);
	n = snprintf(full, sizeof(full), "%s%s", mount->point, path);
	if (n >= (int)sizeof(full))
		return;
	for (;;) {
		while ((size_t)n > stop && full[n - 1] == '/')
			full[--n] = '\0';
		dir = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0) {
			read_level(w, hierarchy, dir);
			if (hierarchy == CGROUP_V2 || hierarchy == CGROUP_MEMORY)
				read_owner(w, dir, names_below);
			close(dir);
		}
		if ((size_t)n <= stop)
			return;
		while ((size_t)n > stop && full[n - 1] != '/')
			full[--n] = '\0';
		names_below++;
	}
}

static void
walk_done(struct walk *w)
{
	file_text_done(&w->value);
	file_text_done(&w->period);
}

void
cgroup_limits_read(const struct cgroup_mounts *m, const char *v2_path, const char *v1_path,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret)
{
	struct walk w = { .online = online, .memory_bytes = memory_bytes };

	walk_up(&w, m, CGROUP_V2, v2_path);
	for (int i = CGROUP_CPU; i < CGROUP_HIERARCHIES; i++)
		walk_up(&w, m, (enum cgroup_hierarchy)i, v1_path);
	*ret = w.limits;
	walk_done(&w);
}

int
cgroup_limits_of_pid(const struct cgroup_mounts *m, const char *proc, uint32_t pid,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret)
{
	struct walk w = { .online = online, .memory_bytes = memory_bytes };
	struct file_text t = { 0 };
	struct proc_cgroup line;
	char path[PATH_MAX];
	const char *text;
	size_t len;
	int r;

	if (snprintf(path, sizeof(path), "%s/%u/cgroup", proc, pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = file_read(AT_FDCWD, path, &t, VALUE_MAX);
	if (r < 0)
		goto out;
	text = t.text;
	len = t.len;
	while ((r = proctext_next_cgroup(&text, &len, &line)) != 0) {
		if (r < 0)
			goto out;
		if (line.path.len >= sizeof(path))
			continue;
		memcpy(path, line.path.at, line.path.len);
		path[line.path.len] = '\0';
		for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
			bool is_it = i == CGROUP_V2 ? line.hierarchy == 0 :
			    proctext_list_has(line.controllers, controllers[i]);

			if (is_it)
				walk_up(&w, m, (enum cgroup_hierarchy)i, path);
		}
	}
	*ret = w.limits;
out:
	walk_done(&w);
	file_text_done(&t);
	return r;
}
