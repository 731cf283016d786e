/*
 * SPDX-License-Identifier: Apache-2.0
 * http: one POST at a time over libcurl's multi interface, on the caller's loop.
 *
 * One connection, kept for the next request. Answers are bounded in time and size; a redirect may
 * not change the scheme, and other hosts never see the credentials.
 */
#ifndef SLUICE_REGISTRY_REGISTRY_HTTP_H
#define SLUICE_REGISTRY_REGISTRY_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct registry_http;

enum { REGISTRY_HTTP_MAX = 1024 * 1024 };	/* bytes of an answer's body */

/* Strings are copied. */
struct registry_http_options {
	const char *ca_file;		/* NULL: libcurl's own */
	const char *cert_file;
	const char *key_file;
	uint32_t timeout_ms;		/* of a whole request */
};

/* Nothing is copied: all must stay until the answer. */
struct registry_http_request {
	const char *url;
	const char *user;		/* basic auth, or NULL */
	const char *password;
	const char *token;		/* bearer, or NULL */
	const char *body;		/* a text */
};

/* Valid during the callback, until it posts again. */
struct registry_http_answer {
	int code;			/* CURLcode; 0: there is a status */
	const char *detail;		/* libcurl's words, when code is not 0 */
	long status;
	int64_t retry_after_s;		/* 0 or less: the answer did not say when, or that it is now */
	const char *body;
	size_t len;
};

typedef void (*registry_http_cb)(const struct registry_http_answer *a, void *arg);

/* 0 or -ENOMEM. cb is called on the loop, once for each post; it may post again, but not close. */
int registry_http_open(struct event_base *base, const struct registry_http_options *o,
    registry_http_cb cb, void *arg, struct registry_http **ret);
void registry_http_close(struct registry_http *h);	/* NULL is fine; no callback for what is in flight */

/* 0: cb will be called. -EBUSY: one is in flight; -ENOMEM. */
int registry_http_post(struct registry_http *h, const struct registry_http_request *q);

/* Lets go of the connection and of libcurl's memory until the next post. Not from within cb. */
void registry_http_rest(struct registry_http *h);

#endif
