/*
 * SPDX-License-Identifier: Apache-2.0
 * share: how much of the lake each user has, so that one who fills it does not make the records of others leave it.
 */
#include "lake/share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "lake/folders.h"

#define SHARE 16		/* part of what the lake may have */

/* Bytes of records of one user, or of several whose places in the table are the same. */
struct part {
	int		 user;
	size_t		 bytes;
};

void
lake_users_add(struct lake_users *u, const struct opt_u64 *user, size_t bytes)
{
	const struct part part = { user_bytes_index(user), bytes };
	struct part *last = u->parts.len == 0 ? NULL : (struct part *)(void *)(u->parts.data + u->parts.len) - 1;

	if (part.user < 0)
		return;
	if (last != NULL && last->user == part.user)
		last->bytes += bytes;
	else
		(void)bytes_append(&u->parts, &part, sizeof(part));
}

void
lake_users_clear(struct lake_users *u)
{
	u->parts.len = 0;
}

void
lake_users_done(struct lake_users *u)
{
	bytes_done(&u->parts);
}

void
lake_shares_take(struct lake_shares *s, const struct lake_users *u, uint64_t bytes, uint64_t raw)
{
	for (size_t at = 0; at < u->parts.len; at += sizeof(struct part)) {
		const struct part *p = (const struct part *)(const void *)(u->parts.data + at);

		s->users.of[p->user] += raw > 0 ? p->bytes * bytes / raw : 0;
		s->is_changed = true;
	}
}

void
lake_shares_follow(struct lake_shares *s, uint64_t bytes)
{
	if (bytes < s->bytes)
		(void)user_bytes_shrink(&s->users, s->bytes - bytes, s->bytes);
	s->is_changed = s->is_changed || bytes < s->bytes;
	s->bytes = bytes;
}

void
lake_shares_over(const struct lake_shares *s, uint64_t capacity, uint64_t over[LAKE_OVER_SIZE])
{
	memset(over, 0, LAKE_OVER_SIZE * sizeof(*over));
	for (size_t i = 0; i < USERS_APART && capacity > 0; i++) {
		if (s->users.of[i] >= capacity / SHARE)
			over[i / 64] |= UINT64_C(1) << i % 64;
	}
}

/* Writes the path of the file with the counts. False: it is too long. */
static bool
path_of(const char *lake, const char *host_id, const char *end, char ret[PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s/.shares-%s%s", lake, host_id, end) < PATH_MAX;
}

/* Parses the counts. False: they are damaged. */
static bool
parse(struct lake_shares *s, const char *text)
{
	const char *end = strstr(text, "end "), *line = strchr(text, '\n');
	uint64_t user, bytes;
	uint32_t checksum;
	int n = 0;

	if (end == NULL || sscanf(end, "end %" SCNx32 "\n%n", &checksum, &n) != 1 || end[n] != '\0' || end[n - 1] != '\n' ||
	    crc32c(0, text, (size_t)(end - text)) != checksum ||
	    sscanf(text, "sluice-shares 1 %" SCNu64 "\n", &s->bytes) != 1 || s->bytes > INT64_MAX || line == NULL)
		return false;
	for (line++; line < end; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "%" SCNu64 " %" SCNu64 "\n", &user, &bytes) != 2 || user >= USERS_APART ||
		    bytes > INT64_MAX)
			return false;
		s->users.of[user] = bytes;
	}
	return true;
}

void
lake_shares_read(struct lake_shares *s, const char *lake, const char *host_id, const struct lake_owner *owner)
{
	struct file_text text = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (!path_of(lake, host_id, "", path))
		return;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != (owner->is_set ? owner->uid : geteuid()) ||
	    file_read_fd(fd, &text, LAKE_SHARES_MAX) < 0 || !parse(s, text.text)))
		*s = (struct lake_shares){ 0 };
	if (fd >= 0)
		close(fd);
	file_text_done(&text);
}

/* One that is there is of a process that was killed, or another user's. */
static int
open_new(const char *path)
{
	(void)unlink(path);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

void
lake_shares_write(struct lake_shares *s, const char *lake, const char *host_id, const struct lake_owner *owner)
{
	char path[PATH_MAX], new_path[PATH_MAX], *text = NULL;
	size_t len = 0;
	FILE *to = s->is_changed ? open_memstream(&text, &len) : NULL;
	int fd = -1;

	if (to == NULL)
		return;
	fprintf(to, "sluice-shares 1 %" PRIu64 "\n", s->bytes);
	for (size_t i = 0; i < USERS_APART; i++) {
		if (s->users.of[i] > 0)
			fprintf(to, "%zu %" PRIu64 "\n", i, s->users.of[i]);
	}
	fflush(to);
	fprintf(to, "end %08" PRIx32 "\n", crc32c(0, text, len));
	if (fclose(to) == 0 && path_of(lake, host_id, "", path) && path_of(lake, host_id, ".new", new_path))
		fd = open_new(new_path);
	if (fd >= 0 && file_write(fd, text, len, 0) == 0 &&
	    (!owner->is_set || fchown(fd, owner->uid, owner->gid) == 0))
		s->is_changed = rename(new_path, path) < 0;
	if (fd >= 0)
		close(fd);
	free(text);
}
