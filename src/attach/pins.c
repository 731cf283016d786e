/*
 * SPDX-License-Identifier: Apache-2.0
 * pins: makes, finds and removes paths in the BPF file system. Removing a link's name detaches its program.
 */
#include "attach/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define USUAL_MOUNT "/sys/fs/bpf"

/*
 * Makes a folder, or checks one that is there: a BPF file system that is open to all, as by default, may have
 * another's.
 */
static int
make_dir(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST || lstat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0 ? 0 : -EPERM;
}

static bool
is_bpf_fs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

int
pins_prepare(const char *root, const char *layout, char *error, size_t error_size)
{
	char path[PINS_PATH_MAX];
	char *slash;
	int r = 0;

	snprintf(path, sizeof(path), "%s", root);
	slash = strrchr(path, '/');
	if (slash == NULL || slash == path) {
		snprintf(error, error_size, "'%s' is not a folder in a BPF file system", root);
		return -EINVAL;
	}
	*slash = '\0';
	/* The folder alone may be of it, where a service sees nothing of what others have pinned. */
	if (!is_bpf_fs(path) && !is_bpf_fs(root)) {
		/* Not in another place: a mount would hide what is there. */
		if (strcmp(path, USUAL_MOUNT) != 0) {
			snprintf(error, error_size, "there is no BPF file system at %s; run: mount -t bpf bpf %s", path,
			    path);
			return -EMEDIUMTYPE;
		}
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
	if (r == -EPERM)
		snprintf(error, error_size, "%s belongs to another user than uid %u, or others may write it; if no agent runs: sluice "
		    "agent --uninstall", path, (unsigned)geteuid());
	else if (r < 0)
		snprintf(error, error_size, "cannot make %s: %s", path, strerror(-r));
	return r;
}

int
pins_lock(const char *root)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

void
pins_map_path(const char *root, const char *layout, const char *name, char out[PINS_PATH_MAX])
{
	snprintf(out, PINS_PATH_MAX, "%s/%s/maps/%s", root, layout, name);
}

int
pins_link_path(const char *root, const char *layout, uint64_t epoch, const char *name,
    char out[PINS_PATH_MAX])
{
	int r;

	snprintf(out, PINS_PATH_MAX, "%s/%s/links/%016" PRIx64, root, layout, epoch);
	r = make_dir(out);
	if (r < 0)
		return r;
	if (snprintf(out, PINS_PATH_MAX, "%s/%s/links/%016" PRIx64 "/%s", root, layout, epoch, name) >=
	    PINS_PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

/*
 * Removes the content of a folder, with at most `depth` levels of subfolders, except for the entry `but`; if
 * that is NULL, the folder too.
 */
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
pins_remove_links(const char *root, const char *layout, uint64_t but_epoch)
{
	char dir[PINS_PATH_MAX], but[20];

	snprintf(dir, sizeof(dir), "%s/%s/links", root, layout);
	snprintf(but, sizeof(but), "%016" PRIx64, but_epoch);
	return remove_below(dir, but, 1);
}

int
pins_remove_maps(const char *root, const char *layout)
{
	char dir[PINS_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/%s/maps", root, layout);
	return remove_below(dir, "", 0);	/* "": the folder itself stays */
}

/*
 * Returns true for a layout's folder, which contains nothing but "maps" and "links". Other programs' pins are
 * not touched.
 */
static bool
is_layout(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool is = d != NULL;

	while (is && (e = readdir(d)) != NULL)
		is = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    strcmp(e->d_name, "maps") == 0 || strcmp(e->d_name, "links") == 0;
	if (d != NULL)
		closedir(d);
	return is;
}

/* Removes all layouts but two, which may be NULL. *ret_n is how many. Returns 0, or the first -errno. */
static int
remove_layouts(const char *root, const char *but, const char *second, int *ret_n)
{
	DIR *d = opendir(root);
	const struct dirent *e;
	int first = 0;

	*ret_n = 0;
	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)) != NULL) {
		char path[PINS_PATH_MAX];
		int r;

		if (e->d_name[0] == '.' || (but != NULL && strcmp(e->d_name, but) == 0) ||
		    (second != NULL && strcmp(e->d_name, second) == 0) ||
		    snprintf(path, sizeof(path), "%s/%s", root, e->d_name) >= (int)sizeof(path) ||
		    !is_layout(path))
			continue;
		r = remove_below(path, NULL, 3);
		if (r == 0)
			++*ret_n;
		else if (first == 0)
			first = r;
	}
	closedir(d);
	return first;
}

int
pins_remove_other_layouts(const char *root, const char *layout, const char *second)
{
	int n;

	remove_layouts(root, layout, second, &n);
	return n;
}

int
pins_uninstall(const char *root)
{
	int n, r, fd;

	if (access(root, F_OK) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!is_bpf_fs(root))
		return -EMEDIUMTYPE;	/* a folder named by mistake keeps its content */
	fd = pins_lock(root);
	if (fd < 0)
		return fd;
	r = remove_layouts(root, NULL, NULL, &n);
	/* -ENOTEMPTY: pins of another program. */
	if (r == 0 && rmdir(root) < 0)
		r = -errno;
	close(fd);
	return r;
}
