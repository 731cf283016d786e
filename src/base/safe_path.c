/*
 * SPDX-License-Identifier: Apache-2.0
 * safe_path: opens a file only if no one but root, and one user who is named, could have written it.
 */
#include "base/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/namespaces.h"

#define LINKS_MAX 40	/* as the kernel allows */
#define NAME_SIZE (NAME_MAX + 2)	/* one that is too long stays too long, and the kernel refuses it */
#define GO_ON (-4096)	/* no errno: there are more components */

struct walk {
	int dir;			/* O_PATH: the folder that is reached */
	char at[PATH_MAX];		/* its path, without links; "" for / */
	char rest[2 * PATH_MAX];	/* what is still to be walked */
	unsigned links;
	uid_t owner;
	struct safe_path_fault *fault;
};

/* Returns 0, or -EPERM with the fault filled. name: in the folder that is reached; NULL: that folder. */
static int
check(const struct walk *w, const struct stat *st, const char *name, bool is_above)
{
	bool is_foreign = st->st_uid != 0 && (w->owner == 0 || st->st_uid != w->owner);
	bool is_sticky = is_above && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;
	bool is_written = !S_ISLNK(st->st_mode) && !is_sticky && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;

	if ((!is_foreign && !is_written) || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode)))
		return 0;
	*w->fault = (struct safe_path_fault){ .uid = st->st_uid, .mode = st->st_mode & 07777, .is_foreign = is_foreign,
		.is_link = S_ISLNK(st->st_mode), .is_above = is_above };
	snprintf(w->fault->path, sizeof(w->fault->path), "%s%s%s", w->at, name != NULL || w->at[0] == '\0' ? "/" : "",
	    name != NULL ? name : "");
	return -EPERM;
}

static void
move_to(struct walk *w, int fd)
{
	if (w->dir >= 0)
		close(w->dir);
	w->dir = fd;
}

static int
start_at_root(struct walk *w)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	move_to(w, fd);
	w->at[0] = '\0';
	return fstat(fd, &st) < 0 ? -errno : check(w, &st, NULL, true);
}

/* Takes the next component from the rest into name. Returns false if there is none. */
static bool
next_name(struct walk *w, char name[NAME_SIZE], bool *ret_is_last)
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");

	if (len == 0)
		return false;
	snprintf(name, NAME_SIZE, "%.*s", (int)(len < NAME_SIZE ? len : NAME_SIZE), w->rest + skip);
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	*ret_is_last = w->rest[strspn(w->rest, "/")] == '\0';
	return true;
}

/* Puts the target of a link before the rest. */
static int
follow(struct walk *w, int link)
{
	char target[PATH_MAX], rest[sizeof(w->rest)];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	memcpy(rest, w->rest, strlen(w->rest) + 1);
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s/%s", target, rest) >= sizeof(w->rest))
		return -ENAMETOOLONG;
	return target[0] == '/' ? start_at_root(w) : 0;
}

/* Enters a folder, whose descriptor becomes the walk's. */
static int
enter(struct walk *w, int fd, const char *name)
{
	size_t len = strlen(w->at);

	move_to(w, fd);
	if (strcmp(name, "..") == 0) {
		char *slash = strrchr(w->at, '/');

		if (slash != NULL)
			*slash = '\0';
	} else if (strcmp(name, ".") != 0) {
		if ((size_t)snprintf(w->at + len, sizeof(w->at) - len, "/%s", name) >= sizeof(w->at) - len)
			return -ENAMETOOLONG;
	}
	return 0;
}

/* Opens the last component, which was no link a moment ago. */
static int
open_last(const struct walk *w, const char *name, int flags)
{
	int fd = openat(w->dir, name, flags | O_NOFOLLOW | O_CLOEXEC), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : check(w, &st, name, false);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Walks one component. Returns an fd if it is the last, GO_ON to go on, or another negative errno. */
static int
step(struct walk *w, const char *name, bool is_last, int flags)
{
	/* O_DIRECTORY mounts what is to be mounted when it is used. */
	bool is_folder = !is_last || (flags & O_DIRECTORY) != 0;
	int fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0)), r;
	struct stat st;

	if (fd < 0 && errno == ENOTDIR && is_folder)
		fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && S_ISLNK(st.st_mode)) {
		r = check(w, &st, name, true);
		if (r == 0)
			r = follow(w, fd);
		close(fd);
		return r < 0 ? r : GO_ON;
	}
	if (r == 0 && is_folder && !S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r < 0 || is_last) {
		close(fd);
		return r < 0 ? r : open_last(w, name, flags);
	}
	r = check(w, &st, name, true);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = enter(w, fd, name);
	return r < 0 ? r : GO_ON;
}

int
safe_path_open(const char *path, int flags, uid_t owner, struct safe_path_fault *ret)
{
	struct walk w = { .dir = -1, .owner = owner, .fault = ret };
	char cwd[PATH_MAX] = "", name[NAME_SIZE];
	bool is_last = false;
	int r = 0;

	*ret = (struct safe_path_fault){ 0 };
	if (path[0] == '\0')
		return -ENOENT;
	if (path[0] != '/' && getcwd(cwd, sizeof(cwd)) == NULL)
		return -errno;
	if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s/%s", cwd, path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	r = start_at_root(&w);
	if (r == 0)
		r = GO_ON;
	while (r == GO_ON)
		r = next_name(&w, name, &is_last) ? step(&w, name, is_last, flags) : open_last(&w, ".", flags);
	if (w.dir >= 0)
		close(w.dir);
	return r;
}

char *
safe_path_text(const struct safe_path_fault *f, const char *harm, char *buf, size_t size)
{
	const char *what = !f->is_above ? "" : f->is_link ? "its symbolic link " : "its folder ";
	bool by_group = (f->mode & S_IWGRP) != 0, by_all = (f->mode & S_IWOTH) != 0;
	const char *subject = f->is_above ? f->path : "", *blank = f->is_above ? " " : "";

	if (f->is_foreign)
		snprintf(buf, size, "%s%s%sbelongs to uid %u, who could %s: run `chown %sroot %s`", what, subject, blank,
		    (unsigned)f->uid, harm, f->is_link ? "-h " : "", f->path);
	else if (by_all)
		snprintf(buf, size, "%s%s%sis world-writable, so any user could %s: run `chmod %so-w %s`", what, subject,
		    blank, harm, by_group ? "g" : "", f->path);
	else
		snprintf(buf, size, "%s%s%sis writable by its group (mode %03o), so a member of it could %s: run "
		    "`chmod g-w %s`", what, subject, blank, (unsigned)(f->mode & 0777), harm, f->path);
	return buf;
}

bool
safe_path_is_wanted(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = { 0 };
	/* Of the moment of exec: an agent that has given up root reads the same files again at a reload. */
	bool is_root = getauxval(AT_EUID) == 0;
	bool has_capabilities = syscall(SYS_capget, &head, held) == 0 && (held[0].permitted | held[1].permitted) != 0;

	return (is_root || has_capabilities) && namespace_is_hosts(NAMESPACE_USER);
}
