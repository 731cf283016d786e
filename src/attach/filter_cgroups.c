/*
 * SPDX-License-Identifier: Apache-2.0
 * Walks the cgroup file systems. A folder's inode number is the id that the kernel side reads.
 */
#include "attach/filter_cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/namespaces.h"

#define DEPTH_MAX 64

struct walk {
	void (*each)(uint64_t id, bool is_v2, const char *path, void *arg);
	void *arg;
	bool is_v2;
	char path[PATH_MAX];
};

/* Takes ownership of fd. path has len bytes, without a trailing slash: "" is the root. */
static void
walk_folder(struct walk *w, int fd, size_t len, int depth)
{
	const struct dirent *e;
	struct stat st;
	DIR *d;

	if (fstat(fd, &st) == 0)
		w->each(st.st_ino, w->is_v2, len > 0 ? w->path : "/", w->arg);
	d = fdopendir(fd);
	if (d == NULL) {
		close(fd);
		return;
	}
	while (depth > 0 && (e = readdir(d)) != NULL) {
		size_t name_len = strlen(e->d_name);
		int child;

		if (e->d_type != DT_DIR || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    len + 1 + name_len >= sizeof(w->path))
			continue;
		child = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child < 0)
			continue;	/* it was removed */
		w->path[len] = '/';
		memcpy(w->path + len + 1, e->d_name, name_len + 1);
		walk_folder(w, child, len + 1 + name_len, depth - 1);
		w->path[len] = '\0';
	}
	closedir(d);
}

/* proc(5): id parent major:minor root mountpoint options... - type source superoptions */
static void
walk_mount(struct walk *w, const char *line)
{
	char root[PATH_MAX], point[PATH_MAX], type[32], options[PATH_MAX];
	const char *rest = strstr(line, " - ");
	struct stat st;
	size_t len;
	int fd;

	if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
	    sscanf(rest, " - %31s %*s %4095s", type, options) != 2)
		return;
	if (strcmp(type, "cgroup2") == 0)
		w->is_v2 = true;
	else if (strcmp(type, "cgroup") == 0 && strstr(options, "memory") != NULL)
		w->is_v2 = false;
	else
		return;
	fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	memcpy(w->path, root, len);
	w->path[len] = '\0';
	walk_folder(w, fd, len, DEPTH_MAX);
}

void
filter_cgroups_walk(const char *mountinfo,
    void (*each)(uint64_t id, bool is_v2, const char *path, void *arg), void *arg)
{
	struct walk w = { .each = each, .arg = arg };
	char line[4 * PATH_MAX];
	FILE *f;

	if (!namespace_is_hosts(NAMESPACE_CGROUP))
		return;
	f = fopen(mountinfo, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		walk_mount(&w, line);
	fclose(f);
}
