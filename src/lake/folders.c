/*
 * SPDX-License-Identifier: Apache-2.0
 * folders: folders and file names of the file lake.
 */
#include "lake/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/libc.h"
#include "base/text.h"

#define DAY_US INT64_C(86400000000)
#define OVER ".over"			/* in names of files of records beyond their users' shares */

enum {
	PUBLISH_TRIES = 1000,
};

/* Creates one folder below dir_fd, which may be AT_FDCWD, if it is missing. 0 or a negative errno. */
static int
make_folder(int dir_fd, const char *name, const struct lake_owner *owner)
{
	/* mkdir(2) of a folder that exists may wait, too, while the file system is frozen. */
	if (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (mkdirat(dir_fd, name, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (owner->is_set &&
	    fchownat(dir_fd, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

int
lake_make(const char *path, const struct lake_owner *owner)
{
	char parent[PATH_MAX];
	size_t len = strlen(path);
	struct stat st;
	int r;

	if (len == 0)
		return -ENOENT;
	if (len >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, len + 1);
	for (char *slash = strchr(parent + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		/* A parent may exist although this process may not create it. */
		r = make_folder(AT_FDCWD, parent, owner);
		if (r < 0 && stat(parent, &st) < 0)
			return r;
		*slash = '/';
	}
	r = make_folder(AT_FDCWD, path, owner);
	if (stat(path, &st) < 0)
		return r < 0 ? r : -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int64_t
lake_day(int64_t time_us)
{
	int64_t day = time_us / DAY_US;

	return time_us % DAY_US < 0 ? day - 1 : day;
}

/* Opens the folder name below dir_fd, and closes dir_fd. Links are not followed, because root writes here. */
static int
enter(int dir_fd, const char *name, const struct lake_owner *owner)
{
	int fd, r;

	r = make_folder(dir_fd, name, owner);
	if (r == 0) {
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : fd;
	}
	close(dir_fd);
	return r;
}

int
lake_open_folder(const char *lake, const char *topic, int64_t day, const char *host_id,
    const struct lake_owner *owner)
{
	time_t seconds = (time_t)(day * (DAY_US / 1000000));
	char date[64], host[NAME_MAX + 1];
	struct tm tm;
	int fd, r;

	if (gmtime_r(&seconds, &tm) == NULL ||
	    strftime(date, sizeof(date), "date=%Y-%m-%d", &tm) == 0)
		return -EOVERFLOW;
	if ((size_t)snprintf(host, sizeof(host), "host=%s", host_id) >= sizeof(host))
		return -ENAMETOOLONG;
	r = lake_make(lake, owner);
	if (r < 0)
		return r;
	fd = open(lake, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fd = enter(fd, topic, owner);
	if (fd >= 0)
		fd = enter(fd, date, owner);
	if (fd >= 0)
		fd = enter(fd, host, owner);
	return fd;
}

/* Syncs a folder. Some file systems cannot, which is no error. 0 or a negative errno. */
static int
sync_folder(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL && errno != EOPNOTSUPP ? -errno : 0;
}

int
lake_sync_folders(int dir_fd, unsigned n)
{
	char up[64] = "..";
	int fd, r = sync_folder(dir_fd);

	for (unsigned i = 1; i < n && r == 0; i++) {
		fd = openat(dir_fd, up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		r = sync_folder(fd);
		close(fd);
		strncat(up, "/..", sizeof(up) - strlen(up) - 1);
	}
	return r;
}

int
lake_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return errno == EACCES ? -EAGAIN : -errno;
	return 0;
}

bool
lake_is_open(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool
lake_is_part(const char *name)
{
	return name[0] == '.' && name[1] != '\0' && text_ends_with(name + 2, LAKE_PART_SUFFIX);
}

/* Returns how many digits text begins with. */
static size_t
digits(const char *text)
{
	return strspn(text, "0123456789");
}

bool
lake_is_complete(const char *name)
{
	const char *dash = strrchr(name, '-'), *end;

	if (name[0] == '.' || dash == NULL || dash == name || digits(dash + 1) == 0)
		return false;
	end = dash + 1 + digits(dash + 1);
	if (strncmp(end, OVER, strlen(OVER)) == 0)
		end += strlen(OVER);
	if (end[0] == '.' && digits(end + 1) > 0)
		end += 1 + digits(end + 1);
	return strcmp(end, ".avro") == 0;
}

bool
lake_is_over(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash != NULL && strncmp(dash + 1 + digits(dash + 1), OVER, strlen(OVER)) == 0;
}

bool
lake_index_name(const char *name, char *ret, size_t size)
{
	int stem = (int)(strlen(name) - strlen(".avro"));

	return (size_t)snprintf(ret, size, ".%.*s" RUN_INDEX_SUFFIX, stem, name) < size;
}

/* Renames without overwriting, also on file systems without RENAME_NOREPLACE. */
static int
rename_new(int dir_fd, const char *from, const char *to)
{
	if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (faccessat(dir_fd, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

/* Returns whether a file with that name exists, open or closed. */
static bool
is_taken(int dir_fd, const char *part)
{
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s.avro", (int)(strlen(part) - strlen(LAKE_PART_SUFFIX)) - 1, part + 1);
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    faccessat(dir_fd, part, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int
lake_part_name(int dir_fd, const char *agent_id, uint64_t seq, bool is_over, char *ret, size_t size)
{
	const char *over = is_over ? OVER : "";
	int n = snprintf(ret, size, ".%s-%" PRIu64 "%s" LAKE_PART_SUFFIX, agent_id, seq, over);

	for (int i = 2; n > 0 && (size_t)n < size && is_taken(dir_fd, ret); i++) {
		if (i == PUBLISH_TRIES)
			return -EEXIST;
		n = snprintf(ret, size, ".%s-%" PRIu64 "%s.%d" LAKE_PART_SUFFIX, agent_id, seq, over, i);
	}
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int
lake_publish(int dir_fd, const char *part)
{
	char name[NAME_MAX + 1];
	int stem = (int)(strlen(part) - strlen(LAKE_PART_SUFFIX)) - 1;
	int r;

	snprintf(name, sizeof(name), "%.*s.avro", stem, part + 1);
	r = rename_new(dir_fd, part, name);
	for (int i = 2; r == -EEXIST && i < PUBLISH_TRIES; i++) {
		snprintf(name, sizeof(name), "%.*s.%d.avro", stem, part + 1, i);
		r = rename_new(dir_fd, part, name);
	}
	return r;
}
