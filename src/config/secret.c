/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: passwords and tokens, fetched from the files or commands that the configuration names.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/child.h"
#include "base/safe_path.h"
#include "config/config.h"

enum {
	FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
};

bool
config_secret_is_set(const struct config_secret *s)
{
	return s->file != NULL || s->command.n > 0;
}

void
config_secret_free(char *secret)
{
	if (secret == NULL)
		return;
	explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* Reads to the end. Returns 0, or a negative errno; -EFBIG: too long. */
static int
read_all(int fd, struct bytes *secret)
{
	for (;;) {
		ssize_t n = read(fd, secret->data + secret->len, CONFIG_SECRET_BYTES_MAX + 1 - secret->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		secret->len += (size_t)n;
		if (secret->len > CONFIG_SECRET_BYTES_MAX)
			return -EFBIG;
	}
}

static int
open_to_all(const char *path, mode_t mode, char *error, size_t error_size)
{
	snprintf(error, error_size, "secret file %s is open to everybody (mode %03o): run `chmod o= %s`", path,
	    (unsigned)(mode & 0777), path);
	return -EACCES;
}

/* Opens what the secret is from. Returns an fd, or a negative errno with the error written; -EPERM: it is not safe. */
static int
open_source(const char *kind, const char *path, int flags, uid_t owner, char *error, size_t error_size)
{
	struct safe_path_fault fault = { 0 };
	char text[2 * PATH_MAX];
	int fd;

	if (safe_path_is_wanted()) {
		fd = safe_path_open(path, flags, owner, &fault);
	} else {
		fd = open(path, flags);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0 && flags == FILE_FLAGS && !fault.is_foreign && !fault.is_above && (fault.mode & S_IRWXO) != 0)
		return open_to_all(path, fault.mode, error, error_size);
	if (fault.path[0] != '\0') {
		snprintf(error, error_size, "secret %s %s: %s", kind, path, safe_path_text(&fault, "become root", text,
		    sizeof(text)));
		return -EPERM;
	}
	if (fd < 0)
		snprintf(error, error_size, "secret %s %s cannot be read: %s", kind, path, strerror(-fd));
	return fd;
}

static int
read_file(const char *path, uid_t owner, struct bytes *secret, char *error, size_t error_size)
{
	int fd = open_source("file", path, FILE_FLAGS, owner, error, error_size), r;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		r = -errno;
		snprintf(error, error_size, "secret file %s cannot be read: %s", path, strerror(errno));
		goto out;
	}
	r = -EINVAL;
	if (!S_ISREG(st.st_mode)) {
		snprintf(error, error_size, "secret file %s is not a regular file", path);
		goto out;
	}
	if (st.st_mode & S_IRWXO) {
		r = open_to_all(path, st.st_mode, error, error_size);
		goto out;
	}
	r = read_all(fd, secret);
	if (r == -EFBIG)
		snprintf(error, error_size, "secret file %s is longer than 64 KiB: that is no secret", path);
	else if (r < 0)
		snprintf(error, error_size, "secret file %s cannot be read: %s", path, strerror(-r));
out:
	close(fd);
	return r;
}

/*
 * As root, the agent runs no program that another user may change; the agent's own account is one, since with what it
 * runs here it would be root. It is executed by its name, which interpreters of scripts need: only root can make the
 * name mean another file, now that each component is checked.
 */
static int
check_command(const char *name, char *error, size_t error_size)
{
	int fd = open_source("command", name, O_PATH | O_CLOEXEC, 0, error, error_size);

	if (fd == -EPERM)
		return fd;
	if (fd >= 0)
		close(fd);
	return 0;	/* execv(2) reports a missing program */
}

static int
run_command(const struct config_strings *command, struct bytes *secret, char *error, size_t error_size)
{
	const char *name = command->list[0];
	char **argv = calloc(command->n + 1, sizeof(*argv));	/* the NULL behind */
	const struct child_options o = { .path = name, .argv = argv, .timeout_ms = CONFIG_SECRET_TIMEOUT_MS,
		.output_max = CONFIG_SECRET_BYTES_MAX };
	int status = 0, r;

	r = check_command(name, error, error_size);
	if (r < 0) {
		free(argv);
		return r;
	}
	if (argv != NULL) {
		memcpy(argv, command->list, command->n * sizeof(*argv));
		r = child_run(&o, secret, &status);
	} else {
		r = -ENOMEM;
	}
	free(argv);
	if (r == -ETIMEDOUT)
		snprintf(error, error_size, "secret command %s had not ended after %d s and was killed", name,
		    CONFIG_SECRET_TIMEOUT_MS / 1000);
	else if (r == -EFBIG)
		snprintf(error, error_size, "secret command %s wrote more than 64 KiB: that is no secret",
		    name);
	else if (r < 0)
		snprintf(error, error_size, "secret command %s cannot be run: %s", name, strerror(-r));
	if (r < 0)
		return r;
	if (WIFSIGNALED(status))
		snprintf(error, error_size, "secret command %s was ended by signal %d", name,
		    WTERMSIG(status));
	else if (WEXITSTATUS(status) == CHILD_NOT_EXECUTED)
		snprintf(error, error_size, "secret command %s cannot be executed, or exited with status 127: "
		    "see that it is there and may be executed", name);
	else if (WEXITSTATUS(status) != 0)
		snprintf(error, error_size, "secret command %s exited with status %d: its own error is above, "
		    "on standard error", name, WEXITSTATUS(status));
	else
		return 0;
	return -EINVAL;
}

int
config_secret_read(const struct config_secret *s, uid_t owner, char **ret, char *error, size_t error_size)
{
	const char *kind = s->file != NULL ? "file" : "command";
	const char *name = s->file != NULL ? s->file : s->command.n > 0 ? s->command.list[0] : "";
	struct bytes secret = { 0 };
	char *text;
	int r;

	if (!config_secret_is_set(s)) {
		snprintf(error, error_size, "no secret is configured");
		return -EINVAL;
	}
	/* Room for all of it, so that no copy of a secret stays in freed memory. */
	if (bytes_reserve(&secret, CONFIG_SECRET_BYTES_MAX + CHILD_PIECE) < 0) {
		snprintf(error, error_size, "no memory for the secret of %s", name);
		return -ENOMEM;
	}
	r = s->file != NULL ? read_file(s->file, owner, &secret, error, error_size) :
	    run_command(&s->command, &secret, error, error_size);
	text = (char *)secret.data;
	if (r < 0)
		goto fail;
	/* An editor or echo(1) appends one newline. */
	if (secret.len > 0 && text[secret.len - 1] == '\n')
		secret.len--;
	if (secret.len > 0 && text[secret.len - 1] == '\r')
		secret.len--;
	text[secret.len] = '\0';
	r = -EINVAL;
	if (secret.len == 0) {
		snprintf(error, error_size, "secret %s %s gave nothing", kind, name);
		goto fail;
	}
	if (strlen(text) != secret.len) {
		snprintf(error, error_size, "secret %s %s gave a NUL byte: it must be text", kind, name);
		goto fail;
	}
	*ret = text;
	return 0;

fail:
	explicit_bzero(text, secret.cap);
	bytes_done(&secret);
	return r;
}
