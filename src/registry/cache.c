/*
 * SPDX-License-Identifier: Apache-2.0
 * cache: schema ids as they were learnt, in a small JSON file.
 */
#include "registry/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"

enum { VERSION = 1 };

struct row {
	char		*url;		/* owned */
	char		*subject;	/* owned */
	uint64_t	 fingerprint;
	int32_t		 id;
};

struct registry_cache {
	char		*path;		/* owned; NULL: in memory only */
	struct row	*rows;		/* owned; oldest first */
	size_t		 n;
	size_t		 cap;
	bool		 is_dirty;	/* the file may hold something else */
};

static size_t
find(const struct registry_cache *c, const char *url, const char *subject, uint64_t fingerprint)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (c->rows[i].fingerprint == fingerprint &&
		    strcmp(c->rows[i].subject, subject) == 0 && strcmp(c->rows[i].url, url) == 0)
			break;
	}
	return i;
}

static void
remove_at(struct registry_cache *c, size_t i)
{
	free(c->rows[i].url);
	free(c->rows[i].subject);
	c->n--;
	memmove(c->rows + i, c->rows + i + 1, (c->n - i) * sizeof(*c->rows));
	c->is_dirty = true;
}

static int
add(struct registry_cache *c, const char *url, const char *subject, uint64_t fingerprint,
    int32_t id)
{
	struct row *row;

	if (c->n == REGISTRY_CACHE_MAX)
		remove_at(c, 0);
	if (c->n == c->cap) {
		size_t cap = c->cap > 0 ? c->cap * 2 : 16;
		struct row *rows = realloc(c->rows, cap * sizeof(*rows));

		if (rows == NULL)
			return -ENOMEM;
		c->rows = rows;
		c->cap = cap;
	}
	row = &c->rows[c->n];
	*row = (struct row){ strdup(url), strdup(subject), fingerprint, id };
	if (row->url == NULL || row->subject == NULL) {
		free(row->url);
		free(row->subject);
		return -ENOMEM;
	}
	c->n++;
	c->is_dirty = true;
	return 0;
}

int
registry_cache_put(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t id)
{
	size_t i = find(c, url, subject, fingerprint);

	if (i < c->n && c->rows[i].id == id)
		return 0;
	if (i < c->n)
		remove_at(c, i);
	return add(c, url, subject, fingerprint, id);
}

void
registry_cache_drop(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint)
{
	size_t i = find(c, url, subject, fingerprint);

	if (i < c->n)
		remove_at(c, i);
}

int
registry_cache_get(const struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t *ret_id)
{
	size_t i = find(c, url, subject, fingerprint);

	if (i == c->n)
		return -ENOENT;
	*ret_id = c->rows[i].id;
	return 0;
}

size_t
registry_cache_count(const struct registry_cache *c)
{
	return c->n;
}

/* Sixteen hex digits, no more and no less. */
static bool
parse_fingerprint(const char *text, uint64_t *ret)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*ret = strtoull(text, NULL, 16);
	return true;
}

int
registry_cache_parse(struct registry_cache *c, const char *text, size_t len)
{
	json_t *root = json_loadb(text, len, 0, NULL), *ids, *row;
	int damaged = 0;
	size_t i;

	ids = json_object_get(root, "ids");
	if (!json_is_array(ids) ||
	    json_integer_value(json_object_get(root, "version")) != VERSION) {
		json_decref(root);
		return -EINVAL;
	}
	json_array_foreach(ids, i, row) {
		const char *url = json_string_value(json_object_get(row, "url"));
		const char *subject = json_string_value(json_object_get(row, "subject"));
		const char *hex = json_string_value(json_object_get(row, "fingerprint"));
		json_t *id = json_object_get(row, "id");
		uint64_t fingerprint;

		if (url == NULL || subject == NULL || hex == NULL ||
		    !parse_fingerprint(hex, &fingerprint) || !json_is_integer(id) ||
		    json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX ||
		    registry_cache_put(
			c, url, subject, fingerprint, (int32_t)json_integer_value(id)) < 0)
			damaged++;
	}
	json_decref(root);
	return damaged;
}

/* Reads the file into c; what is wrong with it is told. */
static void
load(struct registry_cache *c, char *error, size_t error_size)
{
	struct file_text t = { 0 };
	int r = file_read(AT_FDCWD, c->path, &t, REGISTRY_CACHE_BYTES);

	if (r < 0 && r != -ENOENT) {
		snprintf(error, error_size,
		    "%s: the schema ids kept there cannot be read (%s): the registry is asked for "
		    "them again",
		    c->path, r == -EFBIG ? "too large to be ours" : strerror(-r));
		c->is_dirty = true;
	} else if (r == 0) {
		r = registry_cache_parse(c, t.text, t.len);
		if (r < 0)
			snprintf(error, error_size,
			    "%s: damaged: the schema ids kept there are lost, the registry is "
			    "asked for them again",
			    c->path);
		else if (r > 0)
			snprintf(error, error_size,
			    "%s: damaged: %d of the schema ids kept there are lost, the registry "
			    "is asked for them again",
			    c->path, r);
		c->is_dirty = r != 0;
	}
	file_text_done(&t);
}

int
registry_cache_open(const char *path, struct registry_cache **ret, char *error, size_t error_size)
{
	struct registry_cache *c = calloc(1, sizeof(*c));

	if (error_size > 0)
		error[0] = '\0';
	if (c == NULL)
		return -ENOMEM;
	if (path != NULL) {
		c->path = strdup(path);
		if (c->path == NULL) {
			free(c);
			return -ENOMEM;
		}
		load(c, error, error_size);
	}
	*ret = c;
	return 0;
}

void
registry_cache_close(struct registry_cache *c)
{
	if (c == NULL)
		return;
	while (c->n > 0)
		remove_at(c, c->n - 1);
	free(c->rows);
	free(c->path);
	free(c);
}

/* The file's text; malloc'd, NULL without memory. */
static char *
print(const struct registry_cache *c)
{
	json_t *ids = json_array(), *root = json_pack("{s:i, s:o}", "version", VERSION, "ids", ids);
	char *text = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct row *row = &c->rows[i];
		char hex[17];

		snprintf(hex, sizeof(hex), "%016" PRIx64, row->fingerprint);
		if (json_array_append_new(ids,
			json_pack("{s:s, s:s, s:s, s:i}", "url", row->url, "subject", row->subject,
			    "fingerprint", hex, "id", (int)row->id)) < 0)
			goto out;
	}
	text = json_dumps(root, JSON_INDENT(1));
out:
	json_decref(root);
	return text;
}

static int
write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int
registry_cache_save(struct registry_cache *c)
{
	char *text = NULL, *tmp = NULL;
	int fd = -1, r = -ENOMEM;

	if (!c->is_dirty || c->path == NULL)
		return 0;
	text = print(c);
	if (text == NULL || asprintf(&tmp, "%s.tmp", c->path) < 0) {
		tmp = NULL;
		goto out;
	}
	/* A link that somebody put in its place is not followed; a left-over of ours is replaced. */
	if (unlink(tmp) < 0 && errno != ENOENT) {
		r = -errno;
		goto out;
	}
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
	if (r == 0 && rename(tmp, c->path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	else
		c->is_dirty = false;
out:
	if (fd >= 0)
		close(fd);
	free(text);
	free(tmp);
	return r;
}
