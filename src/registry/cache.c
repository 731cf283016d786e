/*
 * SPDX-License-Identifier: Apache-2.0
 * cache: schema ids that registries have assigned, in a small JSON file.
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

#include "base/disk.h"
#include "base/file.h"

enum {
	VERSION = 1,
	FINGERPRINT_SIZE = 17,	/* in hexadecimal digits, with the NUL */
};

struct registry_cache {
	char	*path;		/* owned; NULL: in memory only */
	json_t	*root;		/* owned; contents of the file */
	json_t	*ids;		/* member of root; oldest first */
	bool	 is_dirty;	/* the file may differ */
	struct disk *disk;	/* the caller's; NULL: none */
};

static void
print_fingerprint(uint64_t fingerprint, char out[FINGERPRINT_SIZE])
{
	snprintf(out, FINGERPRINT_SIZE, "%016" PRIx64, fingerprint);
}

static bool
is_text(const json_t *row, const char *name, const char *text)
{
	return strcmp(json_string_value(json_object_get(row, name)), text) == 0;
}

/* Returns the index of a row, or the number of rows. */
static size_t
find(const struct registry_cache *c, const char *url, const char *subject, uint64_t fingerprint)
{
	char hex[FINGERPRINT_SIZE];
	size_t i;

	print_fingerprint(fingerprint, hex);
	for (i = 0; i < json_array_size(c->ids); i++) {
		const json_t *row = json_array_get(c->ids, i);

		if (is_text(row, "fingerprint", hex) && is_text(row, "subject", subject) && is_text(row, "url", url))
			break;
	}
	return i;
}

static int32_t
id_at(const struct registry_cache *c, size_t i)
{
	return (int32_t)json_integer_value(json_object_get(json_array_get(c->ids, i), "id"));
}

static void
remove_at(struct registry_cache *c, size_t i)
{
	json_array_remove(c->ids, i);
	c->is_dirty = true;
}

int
registry_cache_put(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t id)
{
	size_t i = find(c, url, subject, fingerprint);
	char hex[FINGERPRINT_SIZE];

	if (i < json_array_size(c->ids)) {
		if (id_at(c, i) == id)
			return 0;
		remove_at(c, i);
	}
	if (json_array_size(c->ids) == REGISTRY_CACHE_MAX)
		remove_at(c, 0);
	print_fingerprint(fingerprint, hex);
	if (json_array_append_new(c->ids, json_pack("{s:s, s:s, s:s, s:i}", "url", url, "subject", subject,
		"fingerprint", hex, "id", (int)id)) < 0)
		return -ENOMEM;
	c->is_dirty = true;
	return 0;
}

void
registry_cache_drop(struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint)
{
	size_t i = find(c, url, subject, fingerprint);

	if (i < json_array_size(c->ids))
		remove_at(c, i);
}

void
registry_cache_drop_all(struct registry_cache *c, const char *url)
{
	for (size_t i = json_array_size(c->ids); i-- > 0;)
		if (is_text(json_array_get(c->ids, i), "url", url))
			remove_at(c, i);
}

int
registry_cache_get(const struct registry_cache *c, const char *url, const char *subject,
    uint64_t fingerprint, int32_t *ret_id)
{
	size_t i = find(c, url, subject, fingerprint);

	if (i == json_array_size(c->ids))
		return -ENOENT;
	*ret_id = id_at(c, i);
	return 0;
}

size_t
registry_cache_count(const struct registry_cache *c)
{
	return json_array_size(c->ids);
}

/* Accepts exactly sixteen hexadecimal digits. */
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

/* Reads the file into c; errors are reported. */
static void
load(struct registry_cache *c, char *error, size_t error_size)
{
	struct file_text t = { 0 };
	int r = file_read(AT_FDCWD, c->path, &t, REGISTRY_CACHE_BYTES);

	if (r < 0 && r != -ENOENT) {
		snprintf(error, error_size,
		    "%s: the schema ids in it cannot be read (%s): they are requested from "
		    "the registry again",
		    c->path, r == -EFBIG ? "too large for schema ids" : strerror(-r));
		c->is_dirty = true;
	} else if (r == 0) {
		r = registry_cache_parse(c, t.text, t.len);
		if (r < 0)
			snprintf(error, error_size,
			    "%s: damaged: the schema ids in it are lost, and are requested from "
			    "the registry again",
			    c->path);
		else if (r > 0)
			snprintf(error, error_size,
			    "%s: damaged: %d of the schema ids in it are lost, and are requested "
			    "from the registry again",
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
	c->path = path != NULL ? strdup(path) : NULL;
	c->root = json_pack("{s:i, s:[]}", "version", VERSION, "ids");
	c->ids = json_object_get(c->root, "ids");
	if (c->ids == NULL || (path != NULL && c->path == NULL)) {
		registry_cache_close(c);
		return -ENOMEM;
	}
	if (path != NULL)
		load(c, error, error_size);
	*ret = c;
	return 0;
}

void
registry_cache_use_disk(struct registry_cache *c, struct disk *disk)
{
	c->disk = disk;
}

void
registry_cache_close(struct registry_cache *c)
{
	if (c == NULL)
		return;
	json_decref(c->root);
	free(c->path);
	free(c);
}

/* Replaces a file by a text. A disk_function. */
static int
replace(int dir_fd, const char *path, const void *text, size_t len)
{
	char *tmp = NULL;
	int fd, r;

	if (asprintf(&tmp, "%s.tmp", path) < 0)
		return -ENOMEM;
	/* A link planted at that name is not followed; a file left by an earlier save is replaced. */
	if (unlinkat(dir_fd, tmp, 0) < 0 && errno != ENOENT) {
		r = -errno;
		free(tmp);
		return r;
	}
	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : file_write(fd, text, len, 0);
	if (r == 0 && renameat(dir_fd, tmp, dir_fd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, tmp, 0);
	if (fd >= 0)
		close(fd);
	free(tmp);
	return r;
}

int
registry_cache_save(struct registry_cache *c)
{
	char *text;
	int r;

	if (!c->is_dirty || c->path == NULL)
		return 0;
	text = json_dumps(c->root, JSON_INDENT(1));
	r = text == NULL ? -ENOMEM : disk_run(c->disk, AT_FDCWD, c->path, text, strlen(text), replace);
	if (r == 0)
		c->is_dirty = false;
	free(text);
	return r;
}
