/*
 * SPDX-License-Identifier: Apache-2.0
 * unix_http: HTTP/1.0, so that an answer is neither chunked nor followed by another: it ends when its
 * connection does.
 */
#include "runtime/unix_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

struct unix_http {
	struct bufferevent	*bev;		/* owned */
	struct event		*deadline;	/* owned; of the whole request, however slowly bytes come */
	unix_http_cb		 cb;
	void			*arg;		/* the caller's */
	int			 refused;	/* what connect said: a negative errno, or 0 */
};

void
unix_http_cancel(struct unix_http *h)
{
	if (h == NULL)
		return;
	if (h->deadline != NULL)
		event_free(h->deadline);
	if (h->bev != NULL)
		bufferevent_free(h->bev);
	free(h);
}

/* "Content-Length: 12" among the header's lines: 1; 0: not there; -EBADMSG: no number. */
static int
content_length(const char *head, size_t len, size_t *ret)
{
	static const char name[] = "\ncontent-length:";

	for (size_t i = 0; i + sizeof(name) - 1 < len; i++) {
		const char *at = head + i + sizeof(name) - 1, *end = head + len;
		size_t value = 0;

		if (strncasecmp(head + i, name, sizeof(name) - 1) != 0)
			continue;
		while (at < end && *at == ' ')
			at++;
		if (at == end || !isdigit((unsigned char)*at))
			return -EBADMSG;
		for (; at < end && isdigit((unsigned char)*at); at++) {
			value = value * 10 + (size_t)(*at - '0');
			if (value > UNIX_HTTP_MAX)
				return -EBADMSG;
		}
		*ret = value;
		return 1;
	}
	return 0;
}

int
unix_http_parse(const char *text, size_t len, int *ret_status, const char **ret_body, size_t *ret_len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	size_t body_len, said = 0;
	int r;

	if (end == NULL || len < 12 || strncmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ' ||
	    !isdigit((unsigned char)text[9]) || !isdigit((unsigned char)text[10]) ||
	    !isdigit((unsigned char)text[11]))
		return -EBADMSG;
	body_len = len - (size_t)(end + 4 - text);
	r = content_length(text, (size_t)(end + 2 - text), &said);
	if (r < 0 || (r > 0 && said > body_len))
		return -EBADMSG;
	*ret_status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
	*ret_body = end + 4;
	*ret_len = r > 0 ? said : body_len;
	return 0;
}

/* Tells and frees. */
static void
finish(struct unix_http *h, int error)
{
	struct evbuffer *in = bufferevent_get_input(h->bev);
	struct unix_http_answer a = { .error = error };
	size_t len = evbuffer_get_length(in);
	char *text = NULL;

	if (error == 0) {
		text = len > 0 ? (char *)evbuffer_pullup(in, -1) : NULL;
		a.error = text != NULL ? unix_http_parse(text, len, &a.status, &a.body, &a.len) : -EBADMSG;
	}
	h->cb(&a, h->arg);
	if (text != NULL)
		explicit_bzero(text, len);
	unix_http_cancel(h);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	if (evbuffer_get_length(bufferevent_get_input(bev)) >= UNIX_HTTP_MAX)
		finish(arg, -EFBIG);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & BEV_EVENT_EOF)
		finish(arg, 0);
	else if (what & BEV_EVENT_ERROR)
		finish(arg, errno != 0 ? -errno : -EIO);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	finish(arg, -ETIMEDOUT);
}

/* A connect that failed at once is told from the loop, as all other answers are. */
static void
on_refused(evutil_socket_t fd, short what, void *arg)
{
	struct unix_http *h = arg;

	(void)fd;
	(void)what;
	finish(h, h->refused);
}

int
unix_http_get(struct event_base *base, const char *path, const char *target, uint32_t timeout_ms,
    unix_http_cb cb, void *arg, struct unix_http **ret)
{
	struct timeval in = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct unix_http *h;
	int fd;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	if (target[0] != '/' || target[strcspn(target, " \t\r\n")] != '\0')
		return -EINVAL;
	strcpy(to.sun_path, path);
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	h->cb = cb;
	h->arg = arg;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		int r = -errno;

		free(h);
		return r;
	}
	h->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (h->bev == NULL) {
		close(fd);
		free(h);
		return -ENOMEM;
	}
	/* A unix socket connects at once or not at all: with a full queue it says EAGAIN. */
	h->refused = connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
	h->deadline = evtimer_new(base, h->refused < 0 ? on_refused : on_deadline, h);
	if (h->refused < 0)
		in = (struct timeval){ 0 };
	if (h->deadline == NULL || event_add(h->deadline, &in) < 0 ||
	    (h->refused == 0 && (evbuffer_add_printf(bufferevent_get_output(h->bev),
		"GET %s HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n", target) < 0 ||
	    bufferevent_enable(h->bev, EV_READ | EV_WRITE) < 0))) {
		unix_http_cancel(h);
		return -ENOMEM;
	}
	bufferevent_setcb(h->bev, on_read, NULL, on_event, h);
	*ret = h;
	return 0;
}
