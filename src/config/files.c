/*
 * SPDX-License-Identifier: Apache-2.0
 * files: reads files of configuration or rules, and lists those of a folder.
 */
#include "config/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "config/errors.h"
#include "config/values.h"

static void
cannot_read(const char *path, int error, struct config_errors *errors)
{
	/* At a reload the agent no longer runs as root. */
	if (error == EACCES)
		config_error_add(errors, path, 0, 0, "uid %u has no permission to read it: change its mode or group",
		    (unsigned)geteuid());
	else
		config_error_add(errors, path, 0, 0, "cannot be read: %s%s", strerror(error), error == ENOENT ||
		    error == ENOTDIR || error == ELOOP ? ": check the path, and where a symbolic link leads" : "");
}

/* Returns an fd, or a negative errno; -EINVAL: an error was added. */
static int
open_checked(const struct files_policy *policy, const char *path, struct config_errors *errors)
{
	struct stat st;
	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		config_error_add(errors, path, 0, 0, "not a regular file: replace it by one, or name another");
	} else if (st.st_mode & S_IWOTH) {
		config_error_add(errors, path, 0, 0, "is world-writable, so any user could %s: run `chmod o-w %s`",
		    policy->harm, path);
	} else {
		return fd;
	}
	close(fd);
	return -EINVAL;
}

int
files_read(const struct files_policy *policy, const char *path, struct file_text *text,
    bool *ret_missing, struct config_errors *errors)
{
	int fd = open_checked(policy, path, errors), r;

	if (ret_missing != NULL)
		*ret_missing = fd == -ENOENT;
	if (fd == -EINVAL || (fd == -ENOENT && ret_missing != NULL))
		return -EINVAL;
	r = fd;
	if (fd >= 0) {
		r = file_read_fd(fd, text, policy->bytes_max);
		close(fd);
	}
	if (r == -EFBIG)
		config_error_add(errors, path, 0, 0, "%s", policy->too_large);
	else if (r < 0 && r != -ENOMEM)
		cannot_read(path, -r, errors);
	return r < 0 && r != -ENOMEM ? -EINVAL : r;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
files_list(const struct files_policy *policy, const char *dir, struct config_strings *ret,
    struct config_errors *errors)
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
		config_error_add(errors, dir, 0, 0, "is world-writable, so any user could %s: run `chmod o-w %s`",
		    policy->harm, dir);
	while (r == 0 && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (text_ends_with(e->d_name, ".yml"))
			config_error_add(errors, dir, 0, 0, "%s is ignored: its name must end in .yaml",
			    e->d_name);
		if (!text_ends_with(e->d_name, ".yaml"))
			continue;
		if (ret->n == policy->files_max) {
			config_error_add(errors, dir, 0, 0, "%s", policy->too_many);
			break;
		}
		r = strings_add(ret, e->d_name);
	}
	closedir(d);
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(ret->list[0]), by_name);
	return r;
}
