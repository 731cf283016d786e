/*
 * SPDX-License-Identifier: Apache-2.0
 * repair: finds files that dead writers left open, cuts torn blocks off, and gives the rest their final names.
 *
 * Only folders of this host are repaired: locks of other hosts may be invisible on a shared file system.
 */
#include "lake/repair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/ocf.h"
#include "lake/folders.h"
#include "model/record.h"

/* Finds the end of the file's whole blocks, and counts their records. 0 or a negative errno. */
static int
measure(int fd, uint64_t *ret_end, uint64_t *ret_records)
{
	struct ocf_reader *reader = NULL;
	struct ocf_error err;
	struct ocf_block block;
	int r;

	*ret_end = 0;
	*ret_records = 0;
	r = ocf_reader_open(fd, &reader, &err);
	if (r == -ENODATA)
		return 0;	/* the header is torn: no block is whole */
	if (r < 0)
		return r;
	while ((r = ocf_reader_next(reader, &block, &err)) == 1) {
		*ret_records += block.count;
		*ret_end = ocf_reader_offset(reader);
	}
	ocf_reader_close(reader);
	return r == -ENODATA || r == -EBADMSG ? 0 : r;
}

/*
 * Renames a file without a header that can be read: after a power cut, one of which the disk has no whole block and
 * nothing was acknowledged. If it was damaged later, its blocks are still there.
 */
static int
set_aside(int dir_fd, const char *name)
{
	char bad[NAME_MAX + 1];

	if (snprintf(bad, sizeof(bad), "%s.bad", name) >= (int)sizeof(bad))
		return -ENAMETOOLONG;
	return renameat(dir_fd, name, dir_fd, bad) < 0 ? -errno : 0;
}

/* Repairs one file below dir_fd. 0, or a negative errno with the file unchanged, but for its name after -EBADMSG. */
static int
repair_file(int dir_fd, const char *name, struct lake_repair *ret)
{
	struct stat st, named;
	uint64_t end, records;
	int fd, r;

	fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = lake_lock(fd);
	if (r == -EAGAIN) {
		ret->live++;
		r = 0;
		goto out;
	}
	if (r < 0)
		goto out;
	/* Its writer may have closed and renamed it between our open and our lock. */
	if (fstat(fd, &st) < 0 || fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ino != named.st_ino || st.st_dev != named.st_dev)
		goto out;
	r = measure(fd, &end, &records);
	if (r == -EBADMSG)
		(void)set_aside(dir_fd, name);
	if (r < 0)
		goto out;
	if (records == 0) {
		r = unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
		if (r < 0)
			goto out;
		ret->empty++;
		ret->torn_bytes += (uint64_t)st.st_size;
		goto out;
	}
	if (end < (uint64_t)st.st_size && ftruncate(fd, (off_t)end) < 0)
		r = -errno;
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0)
		r = lake_publish(dir_fd, name);
	if (r == 0)
		r = lake_sync_folders(dir_fd, 1);
	if (r < 0)
		goto out;
	ret->files++;
	ret->records += records;
	ret->torn_bytes += (uint64_t)st.st_size - end;

out:
	close(fd);
	return r;
}

static void
add_failure(struct lake_repair *ret, int error, const char *path, const char *name)
{
	if (ret->failed++ > 0)
		return;
	ret->error = error;
	/* A path that does not fit is cut; it is only shown. */
	if (snprintf(ret->failed_path, sizeof(ret->failed_path), "%s/%s", path, name) < 0)
		ret->failed_path[0] = '\0';
}

static void
repair_folder(const char *path, struct lake_repair *ret)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (dir == NULL) {
		if (errno != ENOENT && errno != ENOTDIR)
			add_failure(ret, -errno, path, "");
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		int r;

		if (!lake_is_part(entry->d_name))
			continue;
		r = repair_file(dirfd(dir), entry->d_name, ret);
		if (r < 0)
			add_failure(ret, r, path, entry->d_name);
	}
	closedir(dir);
}

int
lake_repair(const char *lake, const char *host_id, struct lake_repair *ret)
{
	*ret = (struct lake_repair){ 0 };
	for (int t = 0; t < TOPIC_COUNT; t++) {
		char path[PATH_MAX];
		struct dirent *entry;
		DIR *dir;

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", lake, topic_name(t)) >=
		    sizeof(path))
			return -ENAMETOOLONG;
		dir = opendir(path);
		if (dir == NULL && errno == ENOENT)
			continue;
		if (dir == NULL)
			return -errno;
		while ((entry = readdir(dir)) != NULL) {
			char folder[PATH_MAX + NAME_MAX + 16];

			if (strncmp(entry->d_name, "date=", 5) != 0)
				continue;
			snprintf(folder, sizeof(folder), "%s/%s/host=%s", path, entry->d_name,
			    host_id);
			repair_folder(folder, ret);
		}
		closedir(dir);
	}
	return 0;
}
