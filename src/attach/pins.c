/*
 * SPDX-License-Identifier: Apache-2.0
 * Paths in the BPF file system: made, found, removed. Removing a link's name detaches its program.
 */
#include "attach/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int
make_dir(const char *path)
{
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int
pins_prepare(const char *root, const char *layout, char *error, size_t error_size)
{
	char path[PINS_PATH_MAX];
	struct statfs fs;
	char *slash;
	int r = 0;

	snprintf(path, sizeof(path), "%s", root);
	slash = strrchr(path, '/');
	if (slash == NULL || slash == path) {
		snprintf(error, error_size, "'%s' is no folder in a BPF file system", root);
		return -EINVAL;
	}
	*slash = '\0';
	if (statfs(path, &fs) < 0 || fs.f_type != BPF_FS_MAGIC) {
		if (mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME, "mode=0700") < 0) {
			r = -errno;
			snprintf(error, error_size, "there is no BPF file system at %s and it cannot be mounted: %s; "
			    "run: mount -t bpf bpf %s", path, strerror(-r), path);
			return r;
		}
	}
	*slash = '/';
	r = make_dir(path);
	for (int i = 0; i < 3 && r == 0; i++) {
		static const char *const below[] = { "", "/maps", "/links" };

		snprintf(path, sizeof(path), "%s/%s%s", root, layout, below[i]);
		r = make_dir(path);
	}
	if (r < 0)
		snprintf(error, error_size, "cannot make %s: %s", path, strerror(-r));
	return r;
}

void
pins_map_path(const char *root, const char *layout, const char *name, char out[PINS_PATH_MAX])
{
	snprintf(out, PINS_PATH_MAX, "%s/%s/maps/%s", root, layout, name);
}

int
pins_link_path(const char *root, const char *layout, uint64_t owner, const char *name,
    char out[PINS_PATH_MAX])
{
	int r;

	snprintf(out, PINS_PATH_MAX, "%s/%s/links/%016" PRIx64, root, layout, owner);
	r = make_dir(out);
	if (r < 0)
		return r;
	if (snprintf(out, PINS_PATH_MAX, "%s/%s/links/%016" PRIx64 "/%s", root, layout, owner, name) >=
	    PINS_PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

/* Removes what a folder holds, two levels deep at most, but for one entry; then, without one, itself. */
static int
remove_below(const char *dir, const char *but, int depth)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int first = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)) != NULL) {
		char path[PINS_PATH_MAX];
		int r = 0;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    (but != NULL && strcmp(e->d_name, but) == 0))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			r = -ENAMETOOLONG;
		else if (e->d_type == DT_DIR && depth > 0)
			r = remove_below(path, NULL, depth - 1);
		else if (unlink(path) < 0)
			r = -errno;
		if (r < 0 && first == 0)
			first = r;
	}
	closedir(d);
	if (but == NULL && first == 0 && rmdir(dir) < 0 && errno != ENOENT)
		first = -errno;
	return first;
}

int
pins_remove_links(const char *root, const char *layout, uint64_t but_owner)
{
	char dir[PINS_PATH_MAX], but[20];

	snprintf(dir, sizeof(dir), "%s/%s/links", root, layout);
	snprintf(but, sizeof(but), "%016" PRIx64, but_owner);
	return remove_below(dir, but, 1);
}

int
pins_remove_maps(const char *root, const char *layout)
{
	char dir[PINS_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/%s/maps", root, layout);
	return remove_below(dir, "", 0);	/* the folder stays */
}

int
pins_remove_other_layouts(const char *root, const char *layout)
{
	DIR *d = opendir(root);
	struct dirent *e;
	int n = 0;

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		char path[PINS_PATH_MAX];

		if (e->d_name[0] == '.' || strcmp(e->d_name, layout) == 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", root, e->d_name) < (int)sizeof(path) &&
		    remove_below(path, NULL, 3) == 0)
			n++;
	}
	closedir(d);
	return n;
}

int
pins_uninstall(const char *root)
{
	return remove_below(root, NULL, 4);
}
