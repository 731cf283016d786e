/*
 * SPDX-License-Identifier: Apache-2.0
 * calls: the calls of the C library on files and eventfds. Each may be the last of a life.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls.h"

static struct description *fds[FDS];

static int
fails(int error)
{
	errno = error;
	return -1;
}

/* Returns the description, or NULL with errno. */
struct description *
sim_fd_of(int fd)
{
	if (fd >= FIRST_FD && fd < FIRST_FD + FDS && fds[fd - FIRST_FD] != NULL)
		return fds[fd - FIRST_FD];
	errno = EBADF;
	return NULL;
}

struct sim_inode *
sim_fd_inode(int fd)
{
	struct description *f = sim_fd_of(fd);

	if (f == NULL || f->inode < 0)
		sim_broken("a call on descriptor %d, which is no file", fd);
	return &world->disk.inodes[f->inode];
}

static int
put_fd(struct description *f)
{
	for (int i = 0; i < FDS; i++) {
		if (fds[i] != NULL)
			continue;
		fds[i] = f;
		f->refs++;
		return FIRST_FD + i;
	}
	sim_broken("more than %d descriptors are open", FDS);
}

unsigned
sim_fds_open(void)
{
	unsigned n = 0;

	for (int i = 0; i < FDS; i++)
		n += fds[i] != NULL;
	return n;
}

/* --- opening --- */

int
sim_open(int dir, const char *path, int flags)
{
	char name[SIM_NAME_SIZE];
	struct description *f;
	int at, inode;

	sim_point();
	sim_disk_wait();
	at = sim_path_folder(dir, path, name);
	if (at < 0)
		return fails(-at);
	inode = sim_path_find_in(at, name);
	if (inode >= 0 && (flags & O_CREAT) && (flags & O_EXCL))
		return fails(EEXIST);
	if (inode >= 0 && (flags & O_DIRECTORY) && !world->disk.inodes[inode].is_dir)
		return fails(ENOTDIR);
	if (inode < 0 && !(flags & O_CREAT))
		return fails(-inode);
	if (inode < 0) {
		if (world->disk.is_full && sim_dice(500))
			return fails(ENOSPC);
		sim_say_record("%s is made", name);
		inode = sim_disk_make(&world->disk, at, name, false);
	}
	if (flags & O_TRUNC)
		(void)sim_disk_resize(&world->disk, inode, 0);
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		abort();
	f->inode = inode;
	f->flags = flags;
	world->disk.inodes[inode].opens++;
	return put_fd(f);
}

SIM_WRAP(int, open, const char *path, int flags, ...)
{
	return sim_open(AT_FDCWD, path, flags);
}

SIM_WRAP(int, openat, int dir, const char *path, int flags, ...)
{
	return sim_open(dir, path, flags);
}

SIM_WRAP(int, eventfd, unsigned value, int flags)
{
	struct description *f = calloc(1, sizeof(*f));

	(void)flags;
	if (f == NULL)
		abort();
	f->inode = -1;
	f->count = value;
	return put_fd(f);
}

SIM_WRAP(int, close, int fd)
{
	struct description *f = sim_fd_of(fd);

	sim_point();
	if (f == NULL)
		sim_broken("descriptor %d is closed, which is not open", fd);
	fds[fd - FIRST_FD] = NULL;
	if (--f->refs > 0)
		return 0;
	if (f->inode >= 0) {
		world->disk.inodes[f->inode].opens--;
		sim_disk_free_unused(&world->disk, f->inode);
	}
	free(f);
	return 0;
}

static bool
is_locked_by_other(const struct description *f)
{
	for (int i = 0; i < FDS; i++)
		if (fds[i] != NULL && fds[i] != f && fds[i]->inode == f->inode && fds[i]->is_locked)
			return true;
	return false;
}

SIM_WRAP(int, fcntl, int fd, int command, ...)
{
	struct description *f = sim_fd_of(fd);
	struct flock *lock;
	va_list args;

	if (f == NULL)
		return -1;
	if (command == F_DUPFD_CLOEXEC)
		return put_fd(f);
	if (command != F_OFD_SETLK)
		sim_broken("fcntl(2) with the command %d is not modelled", command);
	va_start(args, command);
	lock = va_arg(args, struct flock *);
	va_end(args);
	if (lock->l_type != F_UNLCK && is_locked_by_other(f))
		return fails(EAGAIN);
	f->is_locked = lock->l_type != F_UNLCK;
	return 0;
}

SIM_WRAP(int, flock, int fd, int how)
{
	struct description *f = sim_fd_of(fd);

	if (f == NULL)
		return -1;
	if (how != LOCK_UN && is_locked_by_other(f))
		return fails(EWOULDBLOCK);
	f->is_locked = how != LOCK_UN;
	return 0;
}

/* --- contents --- */

SIM_WRAP(ssize_t, pread, int fd, void *data, size_t len, off_t at)
{
	(void)sim_fd_inode(fd);
	sim_disk_wait_to_read();
	return sim_disk_read(&world->disk, sim_fd_of(fd)->inode, data, len, (uint64_t)at);
}

/* Writes, perhaps less; a life that ends meanwhile may have written a part. */
static ssize_t
write_at(int fd, const void *data, size_t len, off_t at)
{
	struct sim_inode *f = sim_fd_inode(fd);
	ssize_t r;

	if (world->kill_in == 1 && len > 0)
		(void)sim_disk_write(&world->disk, (int)(f - world->disk.inodes), data, sim_below(len + 1),
		    (uint64_t)at);
	sim_point_of_change();
	sim_disk_wait_to_write((int)(f - world->disk.inodes), data, len, (uint64_t)at);
	if (sim_dice(world->disk.write_errors))
		return fails(EIO);
	if (len > 1 && sim_dice(5))
		len = 1 + sim_below(len - 1);
	r = sim_disk_write(&world->disk, (int)(f - world->disk.inodes), data, len, (uint64_t)at);
	return r < 0 ? fails((int)-r) : r;
}

SIM_WRAP(ssize_t, pwrite, int fd, const void *data, size_t len, off_t at)
{
	return write_at(fd, data, len, at);
}

SIM_WRAP(ssize_t, pwritev, int fd, const struct iovec *iov, int n, off_t at)
{
	size_t len = 0;
	uint8_t *all;
	ssize_t r;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	all = malloc(len + 1);
	if (all == NULL)
		abort();
	len = 0;
	for (int i = 0; i < n; i++) {
		memcpy(all + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	r = write_at(fd, all, len, at);
	free(all);
	return r;
}

SIM_WRAP(off_t, lseek, int fd, off_t at, int whence)
{
	if (whence != SEEK_END || at != 0)
		sim_broken("lseek(2) is only modelled to find a file's size");
	return (off_t)sim_fd_inode(fd)->size;
}

static int
resize(int fd, off_t size)
{
	int r;

	sim_point_of_change();
	sim_disk_wait();
	r = sim_disk_resize(&world->disk, (int)(sim_fd_inode(fd) - world->disk.inodes), (uint64_t)size);
	return r < 0 ? fails(-r) : 0;
}

SIM_WRAP(int, ftruncate, int fd, off_t size)
{
	return resize(fd, size);
}

SIM_WRAP(int, posix_fallocate, int fd, off_t at, off_t len)
{
	if ((off_t)sim_fd_inode(fd)->size >= at + len)
		return 0;
	return resize(fd, at + len) < 0 ? errno : 0;
}

static int
sync_fd(int fd)
{
	struct sim_inode *f = sim_fd_inode(fd);
	int64_t until_us = world->now_us + (int64_t)sim_below((uint64_t)world->disk.sync_us + 1);
	int r;

	sim_point_of_change();
	sim_disk_wait();
	sim_wait_until(until_us);
	r = sim_disk_sync(&world->disk, (int)(f - world->disk.inodes));
	sim_point_of_change();
	return r < 0 ? fails(-r) : 0;
}

SIM_WRAP(int, fdatasync, int fd)
{
	return sync_fd(fd);
}

SIM_WRAP(int, fsync, int fd)
{
	return sync_fd(fd);
}

/* --- eventfds --- */

bool
sim_fd_is_readable(int fd)
{
	struct description *f = sim_fd_of(fd);

	return f != NULL && f->inode < 0 && f->count > 0;
}

void
sim_fd_wake(int fd)
{
	struct description *f = sim_fd_of(fd);

	if (f != NULL)
		f->count++;
}

SIM_WRAP(int, eventfd_write, int fd, eventfd_t value)
{
	struct description *f = sim_fd_of(fd);

	if (f == NULL)
		return -1;
	f->count += value;
	return 0;
}

SIM_WRAP(int, eventfd_read, int fd, eventfd_t *value)
{
	struct description *f = sim_fd_of(fd);

	if (f == NULL || f->count == 0)
		return fails(f == NULL ? EBADF : EAGAIN);
	*value = f->count;
	f->count = 0;
	return 0;
}
