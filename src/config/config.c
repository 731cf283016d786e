/*
 * SPDX-License-Identifier: Apache-2.0
 * config: files to one checked configuration.
 */
#include "config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/apply.h"
#include "config/checks.h"
#include "config/errors.h"
#include "config/keys.h"
#include "config/values.h"
#include "config/yaml.h"

enum { DROP_INS_MAX = 256 };

void
config_free(struct config *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < config_keys_n; i++) {
		if (config_keys[i].field != NO_FIELD)
			value_done(&config_keys[i], key_field(&config_keys[i], c));
	}
	strings_done(&c->files);
	free(c);
}

int
config_defaults(struct config **ret)
{
	struct config *c = calloc(1, sizeof(*c));
	int r = c == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < config_keys_n && r == 0; i++) {
		if (config_keys[i].field != NO_FIELD)
			r = value_set_default(&config_keys[i], key_field(&config_keys[i], c));
	}
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* Lays one file's text over c. 0 with errors added for what is wrong, or -ENOMEM. */
static int
add_text(struct config *c, const char *name, const char *text, size_t len,
    struct config_errors *errors)
{
	struct node *root = NULL;
	int r = strings_add(&c->files, name);

	if (r < 0)
		return r;
	if (len > CONFIG_FILE_BYTES_MAX) {
		config_error_add(errors, name, 0, 0, "larger than 1 MiB: that is no configuration");
		return 0;
	}
	r = yaml_read(name, text, len, &root, errors);
	if (r == 0)
		r = config_apply(c, (unsigned)c->files.n - 1, root, errors);
	node_free(root);
	return r == -ENOMEM ? r : 0;
}

static void
cannot_read(const char *path, int error, struct config_errors *errors)
{
	/* A reload is done by the account that the agent has become. */
	if (error == EACCES)
		config_error_add(errors, path, 0, 0, "uid %u may not read it: let it, by its mode or group",
		    (unsigned)geteuid());
	else
		config_error_add(errors, path, 0, 0, "cannot be read: %s", strerror(error));
}

/* Opens what may be read as configuration. An fd, or a negative errno; -EINVAL: told already. */
static int
open_checked(const char *path, struct config_errors *errors)
{
	struct stat st;
	/* Not to wait for a writer, should it be a FIFO. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		config_error_add(errors, path, 0, 0, "not a regular file");
	} else if (st.st_mode & S_IWOTH) {
		/* It names commands that are run as root. */
		config_error_add(errors, path, 0, 0, "anybody may write it, and with it become root: run "
		    "`chmod o-w %s`", path);
	} else {
		return fd;
	}
	close(fd);
	return -EINVAL;
}

/* *ret_missing may be NULL: then a missing file is an error. 0 or -ENOMEM. */
static int
add_file(struct config *c, const char *path, bool *ret_missing, struct config_errors *errors)
{
	struct file_text text = { 0 };
	int fd = open_checked(path, errors), r;

	if (ret_missing != NULL)
		*ret_missing = fd == -ENOENT;
	if (fd == -ENOENT && ret_missing != NULL)
		return 0;
	if (fd < 0) {
		if (fd != -EINVAL)
			cannot_read(path, -fd, errors);
		return fd == -ENOMEM ? fd : 0;
	}
	r = file_read_fd(fd, &text, CONFIG_FILE_BYTES_MAX);
	close(fd);
	if (r == 0)
		r = add_text(c, path, text.text, text.len, errors);
	else if (r == -EFBIG)
		config_error_add(errors, path, 0, 0, "larger than 1 MiB: that is no configuration");
	else if (r != -ENOMEM)
		cannot_read(path, -r, errors);
	file_text_done(&text);
	return r == -ENOMEM ? r : 0;
}

static bool
ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && strcmp(name + len - n, end) == 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of dir's drop-ins, in order. 0 with errors added, or -ENOMEM. */
static int
list_drop_ins(const char *dir, struct config_strings *ret, struct config_errors *errors)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	struct stat st;
	int r = 0;

	if (d == NULL) {
		if (errno != ENOENT)
			cannot_read(dir, errno, errors);
		return 0;
	}
	if (fstat(dirfd(d), &st) == 0 && (st.st_mode & S_IWOTH) != 0)
		config_error_add(errors, dir, 0, 0, "anybody may put a file there, and with it become root: run "
		    "`chmod o-w %s`", dir);
	while (r == 0 && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (ends_with(e->d_name, ".yml"))
			config_error_add(errors, dir, 0, 0, "%s is not read: let its name end in .yaml",
			    e->d_name);
		if (!ends_with(e->d_name, ".yaml"))
			continue;
		if (ret->n == DROP_INS_MAX) {
			config_error_add(errors, dir, 0, 0, "more than %d drop-ins: merge some", DROP_INS_MAX);
			break;
		}
		r = strings_add(ret, e->d_name);
	}
	closedir(d);
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(ret->list[0]), by_name);
	return r;
}

static int
add_drop_ins(struct config *c, const char *path, struct config_errors *errors)
{
	const char *slash = strrchr(path, '/');
	struct config_strings names = { 0 };
	char *dir = NULL, *file;
	int r;

	if (asprintf(&dir, "%.*s" CONFIG_DROP_INS, slash != NULL ? (int)(slash - path + 1) : 0, path) < 0)
		return -ENOMEM;
	r = list_drop_ins(dir, &names, errors);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		if (asprintf(&file, "%s/%s", dir, names.list[i]) < 0) {
			r = -ENOMEM;
			break;
		}
		r = add_file(c, file, NULL, errors);
		free(file);
	}
	strings_done(&names);
	free(dir);
	return r;
}

/* The last check of all, and who owns c from here on. */
static int
finish(struct config *c, int r, size_t errors_before, struct config **ret,
    struct config_errors *errors)
{
	if (r == 0) {
		config_check_whole(c, errors);
		config_errors_sort(errors, &c->files);
		if (errors->n > errors_before || errors->untold > 0)
			r = -EINVAL;
	}
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int
config_load(const char *path, struct config **ret, struct config_errors *errors)
{
	size_t before = errors->n;
	struct config *c = NULL;
	bool is_missing = false;
	int r = config_defaults(&c);

	if (r < 0)
		return r;
	r = add_file(c, path != NULL ? path : CONFIG_PATH, path == NULL ? &is_missing : NULL, errors);
	c->has_main = r == 0 && c->files.n == 1;
	if (r == 0)
		r = add_drop_ins(c, path != NULL ? path : CONFIG_PATH, errors);
	return finish(c, r, before, ret, errors);
}

int
config_parse(const char *name, const char *text, size_t len, struct config **ret,
    struct config_errors *errors)
{
	size_t before = errors->n;
	struct config *c = NULL;
	int r = config_defaults(&c);

	if (r < 0)
		return r;
	c->has_main = true;
	r = add_text(c, name, text, len, errors);
	return finish(c, r, before, ret, errors);
}

void
config_differs(const struct config *old, const struct config *new, struct config_changes *ret)
{
	ret->n = ret->n_restart = 0;
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];

		if (k->field == NO_FIELD ||
		    value_equal(k, key_field_const(k, old), key_field_const(k, new)))
			continue;
		ret->list[ret->n].key = k->name;
		ret->list[ret->n++].needs_restart = !k->is_reloaded;
		ret->n_restart += !k->is_reloaded;
	}
}
