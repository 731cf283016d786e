/*
 * SPDX-License-Identifier: Apache-2.0
 * client: one HTTP request at a time over libcurl's multi interface, on the caller's loop, to a host
 * or to a unix socket. Nothing here waits: libcurl resolves names on a thread of its own.
 *
 * One connection is kept for the next request. Answers are bounded in time and size; a redirect may
 * not change the scheme, and other hosts never see the credentials.
 */
#ifndef SLUICE_HTTP_CLIENT_H
#define SLUICE_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct http_client;

/* Nothing is copied: all must outlive the client. */
struct http_client_options {
	const char *ca_file;		/* NULL: libcurl's own */
	const char *cert_file;
	const char *key_file;
	const char *const *headers;	/* "Name: value", NULL behind the last; NULL: libcurl's own alone */
	uint32_t timeout_ms;		/* of a whole request */
	size_t body_max;		/* bytes of an answer's body; its headers may have 128 KiB */
};

/* Nothing is copied: all must stay until the answer. */
struct http_client_request {
	const char *url;
	const char *unix_socket;	/* path of the socket to connect to, in place of the URL's host, or NULL */
	const char *user;		/* basic auth, or NULL */
	const char *password;
	const char *token;		/* bearer, or NULL */
	const char *body;		/* a text, sent with POST; NULL: GET */
};

/* Valid during the callback, until it sends again; the body is wiped then. */
struct http_client_answer {
	int code;			/* CURLcode; 0: there is a status */
	int error;			/* the same as a negative errno; -EBADMSG: none fits */
	const char *detail;		/* libcurl's words, when code is not 0 */
	long status;
	int64_t retry_after_s;		/* 0 or less: the answer did not say when, or that it is now */
	const char *body;
	size_t len;
};

typedef void (*http_client_cb)(const struct http_client_answer *a, void *arg);

/* 0 or -ENOMEM. cb is called on the loop, once for each request; it may send again, but not close. */
int http_client_open(struct event_base *base, const struct http_client_options *o,
    http_client_cb cb, void *arg, struct http_client **ret);
void http_client_close(struct http_client *h);	/* NULL is fine; no callback for what is in flight */

/* 0: cb will be called. -EBUSY: one is in flight; -ENOMEM. */
int http_client_send(struct http_client *h, const struct http_client_request *q);

/* Lets go of the connection and of libcurl's memory until the next request. Not from within cb. */
void http_client_rest(struct http_client *h);

#endif
