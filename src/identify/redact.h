/*
 * SPDX-License-Identifier: Apache-2.0
 * redact: takes passwords, tokens and keys out of arguments before they leave correlate/.
 *
 * What is recognised: options and assignments whose name says so (--password x, --api-key=x,
 * AWS_SECRET_ACCESS_KEY=x, "password": "x"), the short options of a few clients (mysql -px,
 * curl -u user:x), HTTP headers (Authorization: Bearer x), credentials and signatures in URLs, and
 * tokens whose shape gives them away; in arguments of their own and inside a script's text
 * (sh -c '...'). Each value becomes REDACTED; where in doubt, it goes. The tables are in secret.c.
 * To these come the user's own patterns; and where even that says too much, arguments are kept as a
 * hash only, or not at all.
 */
#ifndef SLUICE_IDENTIFY_REDACT_H
#define SLUICE_IDENTIFY_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define REDACTED "***"
#define REDACT_BUILTIN "builtin"
#define REDACT_HASH_PREFIX "sha256:"	/* what stands for the arguments behind the first */

struct arena;

enum redact_keep {
	REDACT_KEEP_ALL,
	REDACT_KEEP_FIRST,	/* argv[0] only */
	REDACT_KEEP_HASH,	/* argv[0], and one element for the others: equal where they are */
};

struct redaction_options {
	/*
	 * REDACT_BUILTIN for the patterns that are shipped, and regular expressions over an argument:
	 * what the group named "secret" takes of it goes, or without that group all that is found. Of
	 * one that takes too long to search the whole argument goes.
	 */
	const char *const *patterns;
	size_t n_patterns;
	enum redact_keep keep;
	const char *salt;	/* of hashes: the host's id; NULL: none */
};

struct redaction;		/* how arguments are redacted; never changed once it is made */

/* All is copied. 0; -EINVAL with a sentence in error, or -ENOMEM: then *ret is untouched. */
int redaction_new(const struct redaction_options *options, struct redaction **ret, char *error,
    size_t error_size);
void redaction_free(struct redaction *r);	/* NULL is fine */

/*
 * Redacts argc arguments, UTF-8, in place: a pointer in argv is replaced where its text changes, by
 * a string in a (or, where a is full, by the static REDACTED alone, so that nothing leaks for lack
 * of memory). The old strings are not written to. r NULL: the shipped patterns alone. Returns how
 * many arguments changed.
 */
size_t redaction_apply(const struct redaction *r, const char **argv, size_t argc, struct arena *a);

/*
 * Drops what is not to be kept, once nothing more is named after it; argv was redacted, so that no
 * secret is in a hash. A string that it makes is in a; without room there, or memory, there is none. r NULL:
 * all is kept. Returns the new argc.
 */
size_t redaction_keep(const struct redaction *r, const char **argv, size_t argc, struct arena *a);
bool redaction_drops(const struct redaction *r);	/* does that change anything? */

/* By the shipped patterns alone. */
size_t redact_argv(const char **argv, size_t argc, struct arena *a);

#endif
