/*
 * SPDX-License-Identifier: Apache-2.0
 * mirror: reads the files of the newest release from a mirror, which is an http:// or https:// URL or a folder.
 */
#include "update/mirror.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ca_bundle.h"
#include "base/safe_path.h"
#include "http/client.h"

enum {
	TIMEOUT_SMALL_MS = 30000,
	TIMEOUT_MS = 600000,
	PROGRESS_US = 200000,
};

struct mirror {
	char *where;			/* owned; without slashes at its end */
	bool is_folder;
	struct event_base *base;	/* owned; NULL: a folder */
	/* Of the file that is being received. */
	struct http_client *http;
	struct bytes *out;
	mirror_cb progress;
	void *arg;
	int result;
	char *error;
	size_t error_size;
	const char *url;
};

static bool
is_url(const char *where)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i]);

		/* Neither credentials, which would be printed, nor a query, behind which a path means nothing. */
		if (strncasecmp(where, schemes[i], len) == 0)
			return where[len] != '\0' && where[len] != '/' && strpbrk(where, "@?# \t\r\n") == NULL;
	}
	return false;
}

int
mirror_open(const char *where, struct mirror **ret, char *error, size_t error_size)
{
	size_t len = strlen(where);
	struct mirror *m;

	if (len >= MIRROR_WHERE_MAX || (where[0] != '/' && !is_url(where))) {
		snprintf(error, error_size, "the mirror %.100s is neither an http:// or https:// URL, without user or query, nor "
		    "an absolute path of a folder", where);
		return -EINVAL;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		goto fail;
	while (len > 1 && where[len - 1] == '/')
		len--;
	m->where = strndup(where, len);
	m->is_folder = where[0] == '/';
	if (!m->is_folder)
		m->base = event_base_new();
	if (m->where == NULL || (!m->is_folder && m->base == NULL))
		goto fail;
	*ret = m;
	return 0;
fail:
	mirror_close(m);
	snprintf(error, error_size, "out of memory");
	return -ENOMEM;
}

void
mirror_close(struct mirror *m)
{
	if (m == NULL)
		return;
	if (m->base != NULL)
		event_base_free(m->base);
	free(m->where);
	free(m);
}

/* Opens a file that no other than root can change. Returns an fd, or a negative errno with a sentence in error. */
static int
open_file(const char *path, char *error, size_t error_size)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct safe_path_fault fault = { 0 };
	char text[2 * PATH_MAX];
	struct stat st;
	int fd;

	if (safe_path_is_wanted())
		fd = safe_path_open(path, flags, 0, &fault);
	else if ((fd = open(path, flags)) < 0)
		fd = -errno;
	if (fd == -EPERM && fault.path[0] != '\0')
		snprintf(error, error_size, "%s: %s", path, safe_path_text(&fault, "replace this program", text, sizeof(text)));
	else if (fd < 0)
		snprintf(error, error_size, "%s: %s", path, strerror(-fd));
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	snprintf(error, error_size, "%s: not a regular file", path);
	return -EINVAL;
}

int
mirror_read_file(const char *path, size_t max, struct bytes *out, char *error, size_t error_size)
{
	int fd = open_file(path, error, error_size), r = 0;

	if (fd < 0)
		return fd;
	while (r == 0) {
		ssize_t n;

		r = bytes_reserve(out, 65536);
		if (r < 0)
			break;
		n = read(fd, out->data + out->len, out->cap - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		out->len += (size_t)n;
		if (out->len > max)
			r = -EFBIG;
	}
	close(fd);
	if (r == -EFBIG)
		snprintf(error, error_size, "%s: longer than %zu bytes", path, max);
	else if (r < 0)
		snprintf(error, error_size, "%s: %s", path, strerror(-r));
	if (r < 0)
		bytes_done(out);
	return r;
}

static void
on_answer(const struct http_client_answer *a, void *arg)
{
	struct mirror *m = arg;

	if (a->code != 0) {
		m->result = a->error;
		snprintf(m->error, m->error_size, "%s: %s", m->url, a->error == -EFBIG ? "longer than it may be" : a->detail);
	} else if (a->status != 200) {
		m->result = a->status == 404 ? -ENOENT : -EIO;
		snprintf(m->error, m->error_size, "%s: the server answered %ld", m->url, a->status);
	} else {
		m->result = bytes_append(m->out, a->body, a->len);
		if (m->result == 0)
			m->result = bytes_reserve(m->out, 1);	/* an empty file has an address, too */
		if (m->result < 0)
			snprintf(m->error, m->error_size, "out of memory");
	}
	event_base_loopbreak(m->base);
}

static void
on_progress(evutil_socket_t fd, short what, void *arg)
{
	struct mirror *m = arg;

	(void)fd;
	(void)what;
	if (m->progress(http_client_received(m->http), m->arg))
		return;
	m->result = -EINTR;
	snprintf(m->error, m->error_size, "interrupted");
	event_base_loopbreak(m->base);
}

static int
receive(struct mirror *m, size_t max)
{
	const struct http_client_options o = { .ca_file = ca_bundle_find(ca_bundle_paths), .body_max = max,
		.timeout_ms = max <= MIRROR_SMALL_MAX ? TIMEOUT_SMALL_MS : TIMEOUT_MS };
	const struct http_client_request q = { .url = m->url };
	const struct timeval interval = { 0, PROGRESS_US };
	struct event *timer = NULL;
	int r = http_client_open(m->base, &o, on_answer, m, &m->http);

	if (r < 0) {
		snprintf(m->error, m->error_size, "out of memory");
		return r;
	}
	if (m->progress != NULL) {
		timer = event_new(m->base, -1, EV_PERSIST, on_progress, m);
		if (timer != NULL)
			event_add(timer, &interval);
	}
	m->result = -EIO;
	snprintf(m->error, m->error_size, "%s: the request cannot be sent", m->url);
	if (http_client_send(m->http, &q) == 0)
		event_base_dispatch(m->base);
	if (timer != NULL)
		event_free(timer);
	http_client_close(m->http);
	return m->result;
}

int
mirror_read(struct mirror *m, const char *name, size_t max, struct bytes *out, mirror_cb progress, void *arg,
    char *error, size_t error_size)
{
	char where[MIRROR_WHERE_MAX + 300];

	snprintf(where, sizeof(where), "%s/latest/%s", m->where, name);
	if (m->is_folder)
		return mirror_read_file(where, max, out, error, error_size);
	m->url = where;
	m->out = out;
	m->progress = progress;
	m->arg = arg;
	m->error = error;
	m->error_size = error_size;
	return receive(m, max);
}
