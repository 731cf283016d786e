/*
 * SPDX-License-Identifier: Apache-2.0
 * folders: paths, and the calls of the C library on folders and names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"

/* A file that is made or removed meanwhile has no effect on which of the others are read, as POSIX has it. */
struct __dirstream {
	int fd;
	size_t at;
	struct sim_names names;		/* of all folders, when it was opened */
	struct dirent entry;
};

static int
fails(int error)
{
	errno = error;
	return -1;
}

/* --- paths --- */

/* Finds a name in a folder. Its inode, or a negative errno. */
int
sim_path_find_in(int dir, const char *name)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0)
		return dir;
	return strcmp(name, "..") == 0 ? sim_disk_parent(&world->disk, dir) : sim_disk_find(&world->disk, dir, name);
}

/* Finds the folder of a path, and the path's last part. The folder's inode, or a negative errno. */
int
sim_path_folder(int dir, const char *path, char name[SIM_NAME_SIZE])
{
	int at = 0;

	if (*path != '/' && dir != AT_FDCWD) {
		struct description *f = sim_fd_of(dir);

		if (f == NULL)
			return -EBADF;
		at = f->inode;
	}
	for (;;) {
		size_t len;

		while (*path == '/')
			path++;
		len = strcspn(path, "/");
		if (len >= SIM_NAME_SIZE)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		if (*path == '\0')
			return at;
		at = sim_path_find_in(at, name);
		if (at < 0)
			return at;
		if (!world->disk.inodes[at].is_dir)
			return -ENOTDIR;
	}
}

/* Finds a path. Its inode, or a negative errno. */
static int
find(int dir, const char *path)
{
	char name[SIM_NAME_SIZE];
	int at = sim_path_folder(dir, path, name);

	return at < 0 ? at : sim_path_find_in(at, name);
}

static void
fill_stat(int inode, struct stat *st)
{
	const struct sim_inode *f = &world->disk.inodes[inode];

	memset(st, 0, sizeof(*st));
	st->st_dev = 1;
	st->st_ino = (ino_t)inode + 1;
	st->st_mode = f->is_dir ? S_IFDIR | 0700 : S_IFREG | 0600;
	st->st_nlink = f->names;
	st->st_uid = geteuid();
	st->st_size = (off_t)f->size;
}

/* --- folders --- */

static int
make_dir(int dir, const char *path)
{
	char name[SIM_NAME_SIZE];
	int at;

	sim_point_of_change();
	sim_disk_wait();
	at = sim_path_folder(dir, path, name);
	if (at < 0)
		return fails(-at);
	if (sim_disk_find(&world->disk, at, name) >= 0)
		return fails(EEXIST);
	if (world->disk.is_full)
		return fails(ENOSPC);
	(void)sim_disk_make(&world->disk, at, name, true);
	return 0;
}

SIM_WRAP(int, mkdir, const char *path, mode_t mode)
{
	(void)mode;
	return make_dir(AT_FDCWD, path);
}

SIM_WRAP(int, mkdirat, int dir, const char *path, mode_t mode)
{
	(void)mode;
	return make_dir(dir, path);
}

static int
rename_at(int from_dir, const char *from, int to_dir, const char *to)
{
	char old[SIM_NAME_SIZE], new[SIM_NAME_SIZE];
	int at, there;

	sim_point_of_change();
	sim_disk_wait();
	at = sim_path_folder(from_dir, from, old);
	there = sim_path_folder(to_dir, to, new);
	if (at < 0 || there < 0)
		return fails(at < 0 ? -at : -there);
	if (at != there)
		sim_broken("a file is renamed to another folder, which is not modelled");
	if (sim_disk_find(&world->disk, at, old) < 0)
		return fails(ENOENT);
	sim_say_record("%s is renamed to %s", old, new);
	sim_disk_rename(&world->disk, at, old, new);
	return 0;
}

SIM_WRAP(int, rename, const char *from, const char *to)
{
	return rename_at(AT_FDCWD, from, AT_FDCWD, to);
}

SIM_WRAP(int, renameat, int from_dir, const char *from, int to_dir, const char *to)
{
	return rename_at(from_dir, from, to_dir, to);
}

static int
unlink_at(int dir, const char *path)
{
	char name[SIM_NAME_SIZE];
	int at;

	sim_point_of_change();
	sim_disk_wait();
	at = sim_path_folder(dir, path, name);
	if (at < 0 || sim_disk_find(&world->disk, at, name) < 0)
		return fails(at < 0 ? -at : ENOENT);
	sim_say_record("%s is removed", name);
	sim_disk_remove(&world->disk, at, name);
	return 0;
}

SIM_WRAP(int, unlink, const char *path)
{
	return unlink_at(AT_FDCWD, path);
}

SIM_WRAP(int, unlinkat, int dir, const char *path, int flags)
{
	(void)flags;
	return unlink_at(dir, path);
}

static int
stat_path(int dir, const char *path, struct stat *st)
{
	int inode = find(dir, path);

	if (inode < 0)
		return fails(-inode);
	fill_stat(inode, st);
	return 0;
}

SIM_WRAP(int, stat, const char *path, struct stat *st)
{
	return stat_path(AT_FDCWD, path, st);
}

SIM_WRAP(int, fstatat, int dir, const char *path, struct stat *st, int flags)
{
	(void)flags;
	return stat_path(dir, path, st);
}

SIM_WRAP(int, fstat, int fd, struct stat *st)
{
	fill_stat((int)(sim_fd_inode(fd) - world->disk.inodes), st);
	return 0;
}

SIM_WRAP(int, access, const char *path, int mode)
{
	int inode = find(AT_FDCWD, path);

	(void)mode;
	return inode < 0 ? fails(-inode) : 0;
}

SIM_WRAP(int, faccessat, int dir, const char *path, int mode, int flags)
{
	int inode = find(dir, path);

	(void)mode;
	(void)flags;
	return inode < 0 ? fails(-inode) : 0;
}

SIM_WRAP(int, chmod, const char *path, mode_t mode)
{
	(void)mode;
	return find(AT_FDCWD, path) < 0 ? fails(ENOENT) : 0;
}

SIM_WRAP(int, fchmod, int fd, mode_t mode)
{
	(void)mode;
	(void)sim_fd_inode(fd);
	return 0;
}

SIM_WRAP(DIR *, fdopendir, int fd)
{
	DIR *d;

	if (!sim_fd_inode(fd)->is_dir) {
		errno = ENOTDIR;
		return NULL;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		abort();
	d->fd = fd;
	d->names = world->disk.seen;
	return d;
}

SIM_WRAP(DIR *, opendir, const char *path)
{
	int fd = sim_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? NULL : __wrap_fdopendir(fd);
}

SIM_WRAP(struct dirent *, readdir, DIR *d)
{
	int inode = sim_fd_of(d->fd)->inode;

	while (d->at < d->names.n) {
		const struct sim_name *name = &d->names.list[d->at++];

		if (name->dir != inode || sim_disk_find(&world->disk, inode, name->name) < 0)
			continue;
		snprintf(d->entry.d_name, sizeof(d->entry.d_name), "%s", name->name);
		return &d->entry;
	}
	return NULL;
}

SIM_WRAP(int, closedir, DIR *d)
{
	int fd = d->fd;

	free(d);
	return close(fd);
}

SIM_WRAP(int, dirfd, DIR *d)
{
	return d->fd;
}
