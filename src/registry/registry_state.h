/*
 * SPDX-License-Identifier: Apache-2.0
 * registry_state: the one struct behind registry.h; included by registry.c and requests.c alone.
 */
#ifndef SLUICE_REGISTRY_REGISTRY_STATE_H
#define SLUICE_REGISTRY_REGISTRY_STATE_H

#include "registry/answer.h"
#include "registry/ids.h"
#include "registry/registry.h"

struct event;
struct http_client;
struct registry_cache;

struct url {
	struct registry_url parts;	/* owned */
	int64_t		 not_before_us;	/* monotonic; requested by Retry-After */
};

struct registry {
	void		(*on_change)(void *arg);
	void		*arg;		/* the caller's */
	struct http_client *http;	/* owned */
	struct registry_cache *cache;	/* owned */
	struct event	*wake;		/* owned; the only timer */
	struct url	*urls;		/* owned */
	size_t		 n_urls;
	size_t		 url;		/* index of the URL in use */
	char		*user;		/* owned, like the next five */
	char		*password;
	char		*token;
	char		*ca_file;	/* NULL: none */
	char		*cert_file;
	char		*key_file;
	bool		 lookup_only;
	uint32_t	 timeout_ms;
	uint32_t	 retry_min_ms;
	struct registry_ids ids;	/* with the times of its own */

	struct registry_entry *in_flight;	/* entry of the request in flight, or NULL */
	char		*request_url;	/* owned */
	unsigned	 away;		/* requests in a row without an answer */
	int64_t		 away_until_us;	/* monotonic; no request before */
	int64_t		 away_since_us;	/* monotonic; the first of these requests ended; with away */
	int64_t		 last_us;	/* monotonic; of the last answer */
	int64_t		 wake_us;	/* monotonic; the timer's; 0: it is not set */
	bool		 is_put_off;	/* trust was put off as the timer was late, and there was no verdict since */
	bool		 is_save_reported;	/* a failed save of the cache was reported */

	char		 error[REGISTRY_SENTENCE];
	int64_t		 error_us;	/* wall clock */
	uint64_t	 requests;
	uint64_t	 failures;
};

/* requests.c: asks for ids, one at a time */

/* Makes what sends requests, of the options in r. 0 or a negative errno. */
int registry_requests_open(struct registry *r, struct event_base *base);
void registry_requests_close(struct registry *r);	/* copes with any prefix of the steps of open */
/* Has the loop send the next request that is due. Negative: libevent has no memory for it. */
int registry_requests_wake(struct registry *r);
enum registry_state registry_requests_state(const struct registry *r);

#endif
