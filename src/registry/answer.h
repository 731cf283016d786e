/*
 * SPDX-License-Identifier: Apache-2.0
 * answer: what a schema registry's answer means, and the sentence that explains it; how an
 * URL is taken apart; how long to wait. Pure: bytes in, values out.
 */
#ifndef SLUICE_REGISTRY_ANSWER_H
#define SLUICE_REGISTRY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A base URL. All zero is valid and empty; done with registry_url_done(). */
struct registry_url {
	char *base;		/* owned; "https://host:8081/path": no credentials, no slash at the end */
	char *user;		/* owned; those that stood in it, decoded, or NULL */
	char *password;
	bool is_https;
};

/* 0, -ENOMEM, or -EINVAL with a sentence that shows no credentials. */
int registry_url_parse(const char *text, struct registry_url *ret, char *error, size_t error_size);
void registry_url_done(struct registry_url *u);

/* Where to ask for a schema under a subject; malloc'd, NULL without memory. */
char *registry_url_of_subject(const char *base, const char *subject, bool lookup_only);

/* The request's body, {"schema": "…"}; malloc'd. NULL: no memory, or not UTF-8. */
char *registry_question(const char *schema);

enum registry_verdict {
	REGISTRY_ID,		/* it gave an id */
	REGISTRY_NO,		/* it knows us, and does not take or have this schema */
	REGISTRY_DENIED,	/* it answered no, but not about the schema: credentials, a wrong path */
	REGISTRY_NONE,		/* no answer */
};

enum { REGISTRY_SENTENCE = 1024 };	/* bytes of a sentence, with the NUL */

struct registry_answer {
	enum registry_verdict verdict;
	int32_t id;			/* with REGISTRY_ID */
	char sentence[REGISTRY_SENTENCE];	/* else: what is wrong and the mend */
};

/* What was asked, and of whom. All the caller's. */
struct registry_asked {
	const char *base;
	const char *subject;
	bool lookup_only;
	uint32_t timeout_ms;
	const char *ca;			/* the CA file in use, or NULL */
	const char *user;		/* sent with secrets[0], or NULL */
	const char *secrets[2];		/* what was sent to prove who we are; NULL where nothing was */
};

/* What came back. body need not be terminated. */
void registry_answer_read(const struct registry_asked *q, long status, const char *body, size_t len,
    struct registry_answer *ret);

/* No answer at all: why, in libcurl's code and words. */
void registry_answer_failed(const struct registry_asked *q, int curl_code, const char *detail,
    struct registry_answer *ret);

/*
 * How long to wait after the round'th failure in a row (from 0): a random part of min doubled round
 * times, at most max ("full jitter": many hosts that lost their registry at once do not come back
 * at once). random: any 32 bits.
 */
uint32_t registry_wait_ms(uint32_t min_ms, uint32_t max_ms, unsigned round, uint32_t random);

#endif
