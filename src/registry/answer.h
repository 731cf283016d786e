/*
 * SPDX-License-Identifier: Apache-2.0
 * answer: interprets a schema registry's answers and explains them in a sentence; parses URLs; computes retry
 * delays. No input or output: values in, values out.
 */
#ifndef SLUICE_REGISTRY_ANSWER_H
#define SLUICE_REGISTRY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A base URL. All zero is valid and empty. Free it with registry_url_done(). */
struct registry_url {
	char *base;		/* owned; "https://host:8081/path": no credentials, no slash at the end */
	char *user;		/* owned; from the URL, decoded; NULL: none */
	char *password;
	bool is_https;
};

/* Parses a base URL. 0, -ENOMEM, or -EINVAL with a sentence that shows no credentials. */
int registry_url_parse(const char *text, struct registry_url *ret, char *error, size_t error_size);
/* Frees what u owns, but not u itself. */
void registry_url_done(struct registry_url *u);

/* Returns the URL that looks up or registers a schema under a subject; malloc'd, NULL: no memory. */
char *registry_url_of_subject(const char *base, const char *subject, bool lookup_only);

/* Returns the request's body, {"schema": "…"}; malloc'd. NULL: no memory, or not UTF-8. */
char *registry_request_body(const char *schema);

enum registry_verdict {
	REGISTRY_ID,		/* the answer has an id */
	REGISTRY_REJECTED,	/* the registry does not accept or have this schema */
	REGISTRY_DENIED,	/* the request was refused, not the schema: credentials, a wrong path */
	REGISTRY_UNAVAILABLE,	/* no answer, or the registry failed */
};

enum { REGISTRY_SENTENCE = 1024 };	/* size of a sentence, with the NUL */

struct registry_answer {
	enum registry_verdict verdict;
	int32_t id;			/* with REGISTRY_ID */
	char sentence[REGISTRY_SENTENCE];	/* otherwise: the error, with a hint */
};

/* A request, for its answer's sentence. All members are the caller's. */
struct registry_request {
	const char *base;
	const char *subject;
	bool lookup_only;
	uint32_t timeout_ms;
	const char *ca;			/* CA file in use, or NULL */
	const char *user;		/* sent with secrets[0], or NULL */
	const char *secrets[2];		/* password and token that were sent; NULL: none */
};

/* Interprets an answer. body need not be NUL-terminated. */
void registry_answer_read(const struct registry_request *q, long status, const char *body, size_t len,
    struct registry_answer *ret);

/* Explains why there is no answer, from libcurl's code and message. */
void registry_answer_failed(const struct registry_request *q, int curl_code, const char *detail,
    struct registry_answer *ret);

/*
 * Returns the delay after the round'th failure in a row (from 0): a random part of min_ms doubled round times,
 * limited to max_ms ("full jitter": hosts that lost their registry at once do not retry at once). random: any
 * 32 bits.
 */
uint32_t registry_wait_ms(uint32_t min_ms, uint32_t max_ms, unsigned round, uint32_t random);

#endif
