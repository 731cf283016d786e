/*
 * SPDX-License-Identifier: Apache-2.0
 * readable: warns of files of the configuration that root can read, and the account that the agent runs as cannot.
 *
 * For each file a child becomes the account and opens it: that counts its groups, access lists and all else, too.
 */
#include "cli/readable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/spell.h"
#include "base/text.h"
#include "config/config.h"

struct reader {
	const char *account;
	char group[64];			/* its own one */
};

/* Returns the length of the path of the first folder above a file that this process may not search; 0: of none. */
static size_t
closed_above(const char *path)
{
	char folder[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		if (access(folder, X_OK) < 0)
			return (size_t)(slash - path);
	}
	return 0;
}

/* real: the path without symbolic links. */
static void
warn(const struct reader *r, const char *path, const char *real)
{
	const char *at = real, *right = "r";
	size_t len = closed_above(real);
	char fix[PATH_MAX];
	struct stat st;

	if (len == 0) {
		len = closed_above(path);
		at = len > 0 ? path : real;
	}
	if (len > 0)
		right = "x";
	else if (stat(real, &st) == 0 && S_ISDIR(st.st_mode))
		right = "rx";
	snprintf(fix, sizeof(fix), "%.*s", len > 0 ? (int)len : PATH_MAX - 1, at);
	spell_line(stderr, "%s: warning: account '%s', which the agent runs as, cannot read it: run `chgrp %s %s && "
	    "chmod g+%s %s`\n", path, r->account, r->group, fix, right, fix);
}

static void
try_file(const struct reader *r, const char *path)
{
	const struct privileges_options become = { .user = r->account };
	char real[PATH_MAX], error[512];
	pid_t child;

	if (realpath(path, real) == NULL)
		return;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (privileges_drop(&become, error, sizeof(error)) == 0 &&
		    open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) < 0 && errno == EACCES)
			warn(r, path, real);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static int
is_read(const struct dirent *e)
{
	return e->d_name[0] != '.' && text_ends_with(e->d_name, ".yaml");
}

static void
try_folder(const struct reader *r, const char *folder)
{
	struct dirent **list = NULL;
	char path[PATH_MAX];
	int n = scandir(folder, &list, is_read, alphasort);

	try_file(r, folder);
	for (int i = 0; i < n; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name) < sizeof(path))
			try_file(r, path);
		free(list[i]);
	}
	free(list);
}

void
readable_warn(const struct config *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct reader r = { .account = c->user };
	char drop_ins[PATH_MAX], error[512];
	const struct group *group;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0 || privileges_user_ids(c->user, &uid, &gid, error, sizeof(error)) < 0 || uid == 0)
		return;
	group = getgrgid(gid);
	if (group != NULL)
		snprintf(r.group, sizeof(r.group), "%s", group->gr_name);
	else
		snprintf(r.group, sizeof(r.group), "%u", (unsigned)gid);
	snprintf(drop_ins, sizeof(drop_ins), "%.*s" CONFIG_DROP_INS, slash != NULL ? (int)(slash - path + 1) : 0, path);
	try_file(&r, path);
	try_folder(&r, drop_ins);
	try_folder(&r, c->rules);
}
