/*
 * SPDX-License-Identifier: Apache-2.0
 * kubelet: names of pods, their namespaces and containers, requested from the kubelet of this node: GET /pods.
 *
 * One request is in flight at a time, on the caller's loop, and only while something is unknown. An answer replaces the
 * one before it. No two requests begin within KUBELET_EACH_MS, nor before the loop has spent a hundred times as long on
 * something else as it spent on the last answer; after a failure none for KUBELET_SKIP_MS.
 */
#ifndef SLUICE_RUNTIME_KUBELET_H
#define SLUICE_RUNTIME_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/pods.h"

struct event_base;
struct kubelet;

enum {
	KUBELET_EACH_MS = 5000,
	KUBELET_SKIP_MS = 30000,
	KUBELET_TIMEOUT_MS = 5000,
	KUBELET_ANSWER_MAX = 16 << 20,
	KUBELET_KEPT = 4096,		/* what was wanted; the oldest is then forgotten */
	KUBELET_TRIES = 6,		/* answers without a container until it is unknown */
	KUBELET_NOT_ASKED = 1,
};

struct kubelet_options {
	const char *url;		/* https://127.0.0.1:10250 */
	/* For which name its certificate must be valid; NULL: the URL's host, or if that is local, this host's name. */
	const char *server_name;
	const char *ca_file;		/* NULL: libcurl's default */
	const char *token_file;		/* of a bearer token; read for each request, since it is renewed. NULL: none */
};

/* Called on the loop after each answer: what was unknown may be known now, and else is to be asked for again. */
typedef void (*kubelet_cb)(void *arg);

struct kubelet_counts {
	uint64_t requests;
	uint64_t failed;	/* requests without a valid answer */
	uint64_t named;		/* pods and containers that were not known when they were first wanted */
	uint64_t unknown;	/* those that KUBELET_TRIES answers did not have */
	uint64_t pods;		/* in the last answer */
	uint64_t left_out;	/* of it, beyond a limit */
};

/* Creates one; options are copied, and nothing is requested yet. 0, -EINVAL: the URL is none, or -ENOMEM. */
int kubelet_open(struct event_base *base, const struct kubelet_options *options, kubelet_cb cb, void *arg,
    struct kubelet **ret);
void kubelet_close(struct kubelet *k);		/* NULL is fine */

/*
 * Finds the names of a pod by its uid, and of a container in it by its id ("": of the pod alone). Returns true if both
 * are known; else what is known is in *ret, and the rest is requested. Strings are valid until the next turn of the
 * loop.
 */
bool kubelet_find(struct kubelet *k, const char *uid, const char *container, struct pod_names *ret);

/* Returns the result of the last request: 0, KUBELET_NOT_ASKED, or a negative errno; -EACCES: it refuses the token. */
int kubelet_state(const struct kubelet *k);
/* Returns a sentence about a failure, or "". It never has the token. */
const char *kubelet_error(const struct kubelet *k);
/* Returns the counters, which are the kubelet's. */
const struct kubelet_counts *kubelet_counts(const struct kubelet *k);

#endif
