/*
 * SPDX-License-Identifier: Apache-2.0
 * stage: puts a program in the place of another, in the same folder, so that its path always names one of them, whole.
 */
#include "update/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/safe_path.h"

enum {
	LOCK_TRIES = 10,
};

/* Sets the names. -ENAMETOOLONG where one does not fit. */
static int
name_all(struct stage *s, const char *target)
{
	const char *slash = strrchr(target, '/');
	const struct {
		char *to;
		const char *format;
	} names[] = { { s->update, ".%s.update" }, { s->old, ".%s.update.old" }, { s->lock, ".%s.update.lock" },
		{ s->previous, "%s.previous" } };

	if (slash == NULL || slash[1] == '\0' || strlen(slash + 1) > NAME_MAX - 20 || strlen(target) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(s->folder, sizeof(s->folder), "%.*s", slash == target ? 1 : (int)(slash - target), target);
	snprintf(s->name, sizeof(s->name), "%s", slash + 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *percent = strchr(names[i].format, '%');

		snprintf(names[i].to, NAME_MAX + 1, "%.*s%s%s", (int)(percent - names[i].format), names[i].format, s->name,
		    percent + 2);
	}
	snprintf(s->path, sizeof(s->path), "%s/%s", s->folder, s->update);
	return 0;
}

/* Opens the folder, and checks it and the program. */
static int
open_folder(struct stage *s, const char *target, char *error, size_t error_size)
{
	struct safe_path_fault fault = { 0 };
	char text[2 * PATH_MAX];
	struct stat st;
	int fd;

	s->dir = safe_path_open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, geteuid(), &fault);
	if (s->dir >= 0) {
		fd = safe_path_open(target, O_RDONLY | O_CLOEXEC | O_NONBLOCK, geteuid(), &fault);
		if (fd >= 0 && fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
			close(fd);
			return 0;
		}
		if (fd >= 0)
			close(fd);
		fd = fd < 0 ? fd : -EINVAL;
	} else {
		fd = s->dir;
	}
	if (fd == -EPERM && fault.path[0] != '\0')
		snprintf(error, error_size, "%s: %s", target, safe_path_text(&fault, "become root", text, sizeof(text)));
	else
		snprintf(error, error_size, "%s: %s", target, fd == -EINVAL ? "not a regular file" : strerror(-fd));
	return fd;
}

/* Takes the lock. A process that had it removes the file before it unlocks: then this is another file of that name. */
static int
take_lock(struct stage *s)
{
	struct stat here, there;

	for (int i = 0; i < LOCK_TRIES; i++) {
		s->lock_fd = openat(s->dir, s->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->lock_fd < 0)
			return -errno;
		if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (fstat(s->lock_fd, &here) == 0 && fstatat(s->dir, s->lock, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    here.st_ino == there.st_ino && here.st_dev == there.st_dev)
			return 0;
		close(s->lock_fd);
		s->lock_fd = -1;
	}
	return -EBUSY;
}

/* Returns 1 if the two names are of different files, 0 if they are of one; -ENOENT: the first is missing. */
static int
differ(const struct stage *s, const char *a, const char *b)
{
	struct stat sa, sb;

	if (fstatat(s->dir, a, &sa, AT_SYMLINK_NOFOLLOW) < 0 || fstatat(s->dir, b, &sb, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return sa.st_ino != sb.st_ino || sa.st_dev != sb.st_dev;
}

static void
read_note(struct stage *s)
{
	ssize_t n = pread(s->lock_fd, s->note, sizeof(s->note) - 1, 0);

	s->note[n > 0 ? n : 0] = '\0';
	s->note[strcspn(s->note, "\n")] = '\0';
}

static int
remove_name(const struct stage *s, const char *name)
{
	return unlinkat(s->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int
stage_open(const char *target, struct stage *s, char *error, size_t error_size)
{
	int r;

	memset(s, 0, sizeof(*s));
	s->dir = s->lock_fd = -1;
	r = name_all(s, target);
	if (r < 0) {
		snprintf(error, error_size, "%s: %s", target, strerror(-r));
		return r;
	}
	r = open_folder(s, target, error, error_size);
	if (r < 0)
		goto fail;
	r = take_lock(s);
	if (r == 0) {
		s->is_swapped = differ(s, s->old, s->name) == 1;
		if (s->is_swapped)
			read_note(s);
		else
			r = remove_name(s, s->old);
	}
	if (r == 0)
		r = remove_name(s, s->update);
	if (r == 0)
		return 0;
	snprintf(error, error_size, r == -EBUSY ? "another update of %s is under way" : "no update can be made in %s: %s",
	    r == -EBUSY ? target : s->folder, strerror(-r));
fail:
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dir >= 0)
		close(s->dir);
	s->dir = s->lock_fd = -1;
	return r;
}

void
stage_close(struct stage *s)
{
	if (s->lock_fd >= 0) {
		remove_name(s, s->update);
		/* Without a verdict the note stays for the next one. */
		if (!s->is_swapped)
			remove_name(s, s->lock);
		close(s->lock_fd);
	}
	if (s->dir >= 0)
		close(s->dir);
	s->dir = s->lock_fd = -1;
}

static int
sync_fd(int fd)
{
	return fsync(fd) < 0 ? -errno : 0;
}

int
stage_write(struct stage *s, const void *data, size_t len)
{
	int fd, r;

	r = remove_name(s, s->update);
	if (r < 0)
		return r;
	fd = openat(s->dir, s->update, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	if (fd < 0)
		return -errno;
	r = file_write(fd, data, len, 0);
	if (r == 0 && fchmod(fd, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = sync_fd(fd);
	/* One that is open for writing cannot be executed. */
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		remove_name(s, s->update);
	return r;
}

int
stage_swap(struct stage *s, const char *note)
{
	char line[STAGE_NOTE_SIZE + 1];
	struct stat st;
	int r;

	snprintf(line, sizeof(line), "%.*s\n", STAGE_NOTE_SIZE - 2, note);
	if (fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || ftruncate(s->lock_fd, 0) < 0)
		return -errno;
	r = file_write(s->lock_fd, line, strlen(line), 0);
	if (r == 0)
		r = sync_fd(s->lock_fd);
	if (r == 0 && (fchmodat(s->dir, s->update, (st.st_mode & 0755) | 0500, 0) < 0 ||
	    linkat(s->dir, s->name, s->dir, s->old, 0) < 0))
		r = -errno;
	if (r == 0)
		r = sync_fd(s->dir);
	if (r == 0 && renameat(s->dir, s->update, s->dir, s->name) < 0)
		r = -errno;
	if (r < 0) {
		remove_name(s, s->old);
		return r;
	}
	s->is_swapped = true;
	return sync_fd(s->dir);
}

/* Gives the old one another name. */
static int
end(struct stage *s, const char *name)
{
	int r = renameat(s->dir, s->old, s->dir, name) < 0 ? -errno : 0;

	if (r == 0) {
		s->is_swapped = false;
		r = sync_fd(s->dir);
	}
	return r;
}

int
stage_keep(struct stage *s)
{
	return end(s, s->previous);
}

int
stage_back(struct stage *s)
{
	return end(s, s->name);
}
