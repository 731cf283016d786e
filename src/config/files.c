/*
 * SPDX-License-Identifier: Apache-2.0
 * files: reads files of configuration or rules, and lists those of a folder.
 */
#include "config/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_path.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "config/errors.h"
#include "config/values.h"

static void
cannot_read(const char *path, int error, struct config_errors *errors)
{
	/* At a reload the agent no longer runs as root. */
	if (error == EACCES && sandbox_refuses(path))
		config_error_add(errors, path, 0, 0, "is outside the folders that the agent confined itself to when it started: "
		    "restart it, and it reads this one too");
	else if (error == EACCES)
		config_error_add(errors, path, 0, 0, "uid %u has no permission to read it: change its mode or group",
		    (unsigned)geteuid());
	else
		config_error_add(errors, path, 0, 0, "cannot be read: %s%s", strerror(error), error == ENOENT ||
		    error == ENOTDIR || error == ELOOP ? ": check the path, and where a symbolic link leads" : "");
}

/*
 * Opens a file, or with O_DIRECTORY a folder, that no one else may write. Returns an fd, or a negative errno;
 * -EINVAL: an error was added.
 */
static int
open_safe(const struct files_policy *policy, const char *path, int flags, struct config_errors *errors)
{
	struct safe_path_fault fault = { 0 };
	char text[2 * PATH_MAX];
	struct stat st;
	int fd;

	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	flags |= O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (safe_path_is_wanted()) {
		fd = safe_path_open(path, flags, policy->owner, &fault);
	} else {
		fd = open(path, flags);
		if (fd < 0)
			return -errno;
		/* A device may be for any user to write. */
		if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
		    (st.st_mode & S_IWOTH) != 0) {
			fault.mode = S_IWOTH;
			snprintf(fault.path, sizeof(fault.path), "%s", path);
		}
	}
	if (fault.path[0] == '\0')
		return fd;
	config_error_add(errors, path, 0, 0, "%s", safe_path_text(&fault, policy->harm, text, sizeof(text)));
	if (fd >= 0)
		close(fd);
	return -EINVAL;
}

/* Returns the fd of a regular file, or as open_safe(). */
static int
open_file(const struct files_policy *policy, const char *path, struct config_errors *errors)
{
	int fd = open_safe(policy, path, 0, errors);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	config_error_add(errors, path, 0, 0, "not a regular file: replace it by one, or name another");
	close(fd);
	return -EINVAL;
}

int
files_read(const struct files_policy *policy, const char *path, struct file_text *text,
    bool *ret_missing, struct config_errors *errors)
{
	int fd = open_file(policy, path, errors), r;

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
	int fd = open_safe(policy, dir, O_DIRECTORY, errors), r = 0;
	const struct dirent *e;
	DIR *d;

	if (fd < 0) {
		if (fd != -ENOENT && fd != -EINVAL)
			cannot_read(dir, -fd, errors);
		return 0;
	}
	d = fdopendir(fd);
	if (d == NULL) {
		close(fd);
		return -ENOMEM;
	}
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
