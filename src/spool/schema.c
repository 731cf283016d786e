/*
 * SPDX-License-Identifier: Apache-2.0
 * schema: the texts of the schemas that the records in the spool were encoded with.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "spool/state.h"

#define FOLDER "schemas"

void
spool_schemas_init(struct spool *s, const char *const schemas[TOPIC_COUNT])
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		s->schemas[t] = schemas[t];
		if (schemas[t] != NULL)
			s->fingerprints[t] = spool_fingerprint(schemas[t], strlen(schemas[t]));
		s->batch_schemas[t] = s->fingerprints[t];
	}
}

static void
path_of(char path[64], uint64_t fingerprint)
{
	snprintf(path, 64, FOLDER "/%016" PRIx64 ".avsc", fingerprint);
}

/* Writes a file under a temporary name and renames it. 1; 0: it is there; or a negative errno. */
static int
write_file(int dir_fd, const char *path, const void *text, size_t len, bool is_synced)
{
	char part[80];
	struct stat st;
	int fd, r;

	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && (size_t)st.st_size == len)
		return 0;
	snprintf(part, sizeof(part), "%s.part", path);
	fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = file_write(fd, text, len, 0);
	if (r == 0 && is_synced && fdatasync(fd) < 0)
		r = -errno;
	close(fd);
	if (r == 0 && renameat(dir_fd, part, dir_fd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, part, 0);
	return r < 0 ? r : 1;
}

/* disk_functions. */
static int
write_synced(int dir_fd, const char *path, const void *text, size_t len)
{
	return write_file(dir_fd, path, text, len, true);
}

static int
write_unsynced(int dir_fd, const char *path, const void *text, size_t len)
{
	return write_file(dir_fd, path, text, len, false);
}

static int
make_folder(int dir_fd, const char *path, const void *data, size_t len)
{
	(void)data;
	(void)len;
	return mkdirat(dir_fd, path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * Writes a schema, and sets *ret_is_new. It is synced only while no sync thread runs: a disk that is merely slow does
 * not count as one that hangs.
 */
static int
write_text(const struct spool *s, uint64_t fingerprint, const char *text, bool *ret_is_new)
{
	char path[64];
	int r;

	path_of(path, fingerprint);
	r = disk_run(s->disk, s->dir_fd, path, text, strlen(text), s->syncer == NULL ? write_synced : write_unsynced);
	*ret_is_new = *ret_is_new || r == 1;
	return r < 0 ? r : 0;
}

/* Syncs the names of new schemas: records that need them may outlive a power cut. A disk_function. */
static int
sync_names(int dir_fd, const char *path, const void *data, size_t len)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	(void)data;
	(void)len;
	if (fd < 0)
		return -errno;
	/* EINVAL: this file system cannot sync a directory. */
	if ((fsync(fd) < 0 || fsync(dir_fd) < 0) && errno != EINVAL)
		r = -errno;
	close(fd);
	return r;
}

int
spool_schemas_write(struct spool *s)
{
	bool is_new = false;
	int r = disk_run(s->disk, s->dir_fd, FOLDER, NULL, 0, make_folder);

	if (r < 0)
		return r;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (s->schemas[t] == NULL)
			continue;
		r = write_text(s, s->fingerprints[t], s->schemas[t], &is_new);
		if (r < 0)
			return r;
	}
	/* Also write the older ones that are loaded, in case the directory was created anew. */
	for (const struct spool_text *text = s->texts; text != NULL; text = text->next) {
		r = write_text(s, text->fingerprint, text->text, &is_new);
		if (r < 0)
			return r;
	}
	return is_new && s->syncer == NULL ? disk_run(s->disk, s->dir_fd, FOLDER, NULL, 0, sync_names) : 0;
}

/* Reads the text of a schema; the caller's. 0; -ENOENT: it is lost; or another negative errno: not now. */
static int
read_text(const struct spool *s, uint64_t fingerprint, struct spool_text **ret)
{
	struct spool_text *text = malloc(sizeof(*text) + SPOOL_SCHEMA_MAX + 1);
	char path[64];
	ssize_t n;
	int fd;

	if (text == NULL)
		return -ENOMEM;
	path_of(path, fingerprint);
	n = fd = disk_open(s->disk, s->dir_fd, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		n = disk_read(s->disk, fd, text->text, SPOOL_SCHEMA_MAX + 1, 0);
		disk_close(s->disk, fd);
	}
	if (n < 0 || n > SPOOL_SCHEMA_MAX || spool_fingerprint(text->text, (size_t)n) != fingerprint) {
		free(text);
		return n == -ENOMEM || n == -EMFILE || n == -ENFILE || n == -ETIMEDOUT ? (int)n : -ENOENT;
	}
	text->text[n] = '\0';
	*ret = realloc(text, sizeof(*text) + (size_t)n + 1);
	if (*ret == NULL)
		*ret = text;
	return 0;
}

const char *
spool_schema(struct spool *s, uint64_t fingerprint)
{
	struct spool_text *text;
	int error;

	for (int t = 0; t < TOPIC_COUNT; t++)
		if (s->schemas[t] != NULL && s->fingerprints[t] == fingerprint)
			return s->schemas[t];
	for (text = s->texts; text != NULL; text = text->next)
		if (text->fingerprint == fingerprint)
			return text->text;
	error = read_text(s, fingerprint, &text);
	if (error < 0) {
		errno = -error;
		return NULL;
	}
	text->fingerprint = fingerprint;
	text->next = s->texts;
	s->texts = text;
	return text->text;
}

void
spool_schemas_done(struct spool *s)
{
	while (s->texts != NULL) {
		struct spool_text *next = s->texts->next;

		free(s->texts);
		s->texts = next;
	}
}
