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
path_of(char path[64], uint64_t fingerprint, const char *suffix)
{
	snprintf(path, 64, FOLDER "/%016" PRIx64 ".avsc%s", fingerprint, suffix);
}

/*
 * Writes a schema under a temporary name and renames it, and sets *ret_is_new. It is synced only while no sync thread
 * runs: the loop must not wait for the disk.
 */
static int
write_text(const struct spool *s, uint64_t fingerprint, const char *text, bool *ret_is_new)
{
	int dir_fd = s->dir_fd;
	char part[64], path[64];
	struct stat st;
	int fd, r;

	path_of(path, fingerprint, "");
	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && (size_t)st.st_size == strlen(text))
		return 0;
	path_of(part, fingerprint, ".part");
	fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = file_write(fd, text, strlen(text), 0);
	if (r == 0 && s->syncer == NULL && fdatasync(fd) < 0)
		r = -errno;
	close(fd);
	if (r == 0 && renameat(dir_fd, part, dir_fd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, part, 0);
	else
		*ret_is_new = true;
	return r;
}

/* Syncs the names of new schemas: records that need them may outlive a power cut. 0 or a negative errno. */
static int
sync_names(const struct spool *s)
{
	int fd = openat(s->dir_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	/* EINVAL: this file system cannot sync a directory. */
	if ((fsync(fd) < 0 || fsync(s->dir_fd) < 0) && errno != EINVAL)
		r = -errno;
	close(fd);
	return r;
}

int
spool_schemas_write(struct spool *s)
{
	bool is_new = false;
	int r;

	if (mkdirat(s->dir_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
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
	return is_new && s->syncer == NULL ? sync_names(s) : 0;
}

const char *
spool_schema(struct spool *s, uint64_t fingerprint)
{
	struct file_text file = { 0 };
	struct spool_text *text;
	char path[64];
	int error;

	for (int t = 0; t < TOPIC_COUNT; t++)
		if (s->schemas[t] != NULL && s->fingerprints[t] == fingerprint)
			return s->schemas[t];
	for (text = s->texts; text != NULL; text = text->next)
		if (text->fingerprint == fingerprint)
			return text->text;
	path_of(path, fingerprint, "");
	error = file_read(s->dir_fd, path, &file, SPOOL_SCHEMA_MAX);
	if (error == 0 && spool_fingerprint(file.text, file.len) == fingerprint) {
		text = malloc(sizeof(*text) + file.len + 1);
		error = text == NULL ? -ENOMEM : 0;
	}
	if (text == NULL)
		goto out;
	text->fingerprint = fingerprint;
	memcpy(text->text, file.text, file.len + 1);
	text->next = s->texts;
	s->texts = text;
out:
	file_text_done(&file);
	if (text == NULL)
		errno = error == -ENOMEM || error == -EMFILE || error == -ENFILE ? -error : ENOENT;
	return text != NULL ? text->text : NULL;
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
