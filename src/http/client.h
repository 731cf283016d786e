/*
 * SPDX-License-Identifier: Apache-2.0
 * client: one HTTP request at a time over libcurl's multi interface, on the caller's loop, to a host or to a
 * unix socket. No call waits: libcurl resolves names in a thread of its own.
 *
 * One connection is kept for the next request. Answers are bounded in time and size; a redirect may not change
 * the scheme, and other hosts never see the credentials.
 */
#ifndef SLUICE_HTTP_CLIENT_H
#define SLUICE_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct http_client;

/* Options of a client. Nothing is copied: all must outlive the client. */
struct http_client_options {
	const char *ca_file;		/* NULL: libcurl's default */
	const char *cert_file;
	const char *key_file;
	const char *const *headers;	/* "Name: value", ended by NULL; NULL: only libcurl's own */
	uint32_t timeout_ms;		/* for a whole request */
	size_t body_max;		/* limit of an answer's body; headers: 128 KiB */
	/*
	 * Takes each part of a body as it arrives, with the callback's arg; the body is then not kept. Whether the
	 * answer is complete, and its status, are known only in the callback. False: ends the request. NULL: the body
	 * is kept.
	 */
	bool (*part)(const char *data, size_t len, void *arg);
};

/* A request. Nothing is copied: all must stay valid until the callback. */
struct http_client_request {
	const char *url;
	const char *unix_socket;	/* socket to connect to instead of the URL's host, or NULL */
	const char *connect_to;		/* the same: "NAME:PORT:HOST:PORT", the URL's name and port first, or NULL */
	bool is_direct;			/* follows no redirect and uses no proxy; so do all to a unix socket */
	const char *user;		/* basic auth, or NULL */
	const char *password;
	const char *token;		/* bearer, or NULL */
	const char *body;		/* text sent with POST; NULL: GET */
	const char *method;		/* another one, such as PUT, which then has no body; NULL: as body says */
	const char *header;		/* "Name: value", sent beside those of the client, or NULL */
};

/* An answer. It is valid during the callback, until another request is sent; then the body is wiped. */
struct http_client_answer {
	int code;			/* CURLcode; 0: status is set */
	int error;			/* code as a negative errno; -EBADMSG: no errno fits */
	const char *detail;		/* libcurl's message if code is not 0 */
	long status;
	int64_t retry_after_s;		/* 0 or less: no Retry-After, or at once */
	const char *body;
	size_t len;
};

typedef void (*http_client_cb)(const struct http_client_answer *a, void *arg);

/*
 * Creates a client. cb is called on the loop, once for each request; it may send another, but not close the
 * client. 0 or -ENOMEM.
 */
int http_client_open(struct event_base *base, const struct http_client_options *o,
    http_client_cb cb, void *arg, struct http_client **ret);
void http_client_close(struct http_client *h);	/* NULL is fine; cb is not called for a request in flight */

/* Sends a request. 0: cb will be called; -EBUSY: one is in flight; or -ENOMEM. */
int http_client_send(struct http_client *h, const struct http_client_request *q);

/* Returns how many bytes of the body of the request in flight have come. */
size_t http_client_received(const struct http_client *h);

/* Closes the connection and frees libcurl's memory until the next request. Not from within cb. */
void http_client_disconnect(struct http_client *h);

#endif
