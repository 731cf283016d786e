/*
 * SPDX-License-Identifier: Apache-2.0
 * owner: whether a package manager installed a program, which then updates it.
 */
#include "update/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/text.h"

#define PACKAGE "sluice-agent"

enum {
	LIST_BYTES_MAX = 4 << 20,
	RPM_TIMEOUT_MS = 30000,
	RPM_OUTPUT_MAX = 4096,
};

/* Returns whether a list of paths has this one, or what it was called before /bin and /lib became links into /usr. */
static bool
has_line(const char *list, const char *path)
{
	const char *shorter = strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;

	for (const char *at = list; *at != '\0';) {
		size_t len = strcspn(at, "\n");

		if ((len == strlen(path) && memcmp(at, path, len) == 0) ||
		    (len == strlen(shorter) && memcmp(at, shorter, len) == 0))
			return true;
		at += len + (at[len] == '\n');
	}
	return false;
}

/* Reads "sluice-agent.list", or "sluice-agent:amd64.list" where a package may be there of several architectures. */
static int
ask_dpkg(const char *path, const char *info)
{
	struct file_text list = { 0 };
	const struct dirent *e;
	DIR *d = opendir(info);
	int r = 0;

	if (d == NULL)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (r == 0 && (e = readdir(d)) != NULL) {
		size_t len = strlen(PACKAGE);

		if (strncmp(e->d_name, PACKAGE, len) != 0 || strchr(".:-", e->d_name[len]) == NULL ||
		    !text_ends_with(e->d_name, ".list"))
			continue;
		r = file_read(dirfd(d), e->d_name, &list, LIST_BYTES_MAX);
		if (r == 0)
			r = has_line(list.text, path);
	}
	closedir(d);
	file_text_done(&list);
	return r;
}

static int
ask_rpm(const char *path, const char *rpm)
{
	char *const argv[] = { (char *)rpm, (char *)"-qf", (char *)"--queryformat", (char *)"%{NAME}", (char *)path, NULL };
	const struct child_options o = { .path = rpm, .argv = argv, .timeout_ms = RPM_TIMEOUT_MS,
		.output_max = RPM_OUTPUT_MAX, .is_quiet = true };
	struct bytes out = { 0 };
	int status = 0, r;

	if (access(rpm, X_OK) < 0)
		return 0;
	r = child_run(&o, &out, &status);
	if (r == 0)
		r = WIFEXITED(status) && WEXITSTATUS(status) == 0 && out.len > 0;
	bytes_done(&out);
	return r;
}

int
owner_find(const char *path, const char *dpkg_info, const char *rpm, char *command, size_t size)
{
	int r = ask_dpkg(path, dpkg_info);

	if (r < 0)
		snprintf(command, size, "the lists of dpkg in %s cannot be read: %s", dpkg_info, strerror(-r));
	else if (r > 0)
		snprintf(command, size, "apt-get install --only-upgrade " PACKAGE);
	if (r != 0)
		return r;
	r = ask_rpm(path, rpm);
	if (r < 0)
		snprintf(command, size, "%s does not say whether a package has %s: %s", rpm, path, strerror(-r));
	else if (r > 0)
		snprintf(command, size, "dnf upgrade " PACKAGE);
	return r;
}
