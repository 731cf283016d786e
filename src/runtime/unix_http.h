/*
 * SPDX-License-Identifier: Apache-2.0
 * unix_http: one GET over a unix socket, on the caller's loop, bounded in time and size.
 */
#ifndef SLUICE_RUNTIME_UNIX_HTTP_H
#define SLUICE_RUNTIME_UNIX_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct unix_http;

enum { UNIX_HTTP_MAX = 256 * 1024 };	/* bytes of an answer, headers too */

/* Valid during the callback. */
struct unix_http_answer {
	int error;		/* 0: there is a status; else a negative errno */
	int status;
	const char *body;	/* wiped after the callback: it may say more than was wanted */
	size_t len;
};

/* Called once on the loop, never from within unix_http_get(); the request is gone when it returns. */
typedef void (*unix_http_cb)(const struct unix_http_answer *a, void *arg);

/*
 * path: of the socket. target: as it stands in the request, without blanks. 0, or a negative errno
 * without a callback: -ENAMETOOLONG, -EINVAL, -ENOMEM; whether somebody answers the callback tells.
 */
int unix_http_get(struct event_base *base, const char *path, const char *target, uint32_t timeout_ms,
    unix_http_cb cb, void *arg, struct unix_http **ret);

/* Gives it up, without a callback. Not from within cb. NULL is fine. */
void unix_http_cancel(struct unix_http *h);

/*
 * Status and body of a whole HTTP/1.0 answer, which ends with its connection. 0, or -EBADMSG: it is
 * none, or is shorter than it says.
 */
int unix_http_parse(const char *text, size_t len, int *ret_status, const char **ret_body, size_t *ret_len);

#endif
