/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: which names, headers and values indicate a secret.
 *
 * The tables are in secret.c; patterns.c and words.c find the positions in a text where they apply.
 */
#ifndef SLUICE_IDENTIFY_SECRET_H
#define SLUICE_IDENTIFY_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define SECRET_PEEK	64	/* the characters of a value that tell whether it is a secret */

/* A piece of text that is not terminated; not owned. */
struct slice {
	const char *p;
	size_t len;
};

/* What the name of a value says about it. */
enum secret_certainty {
	SECRET_NO,
	SECRET_MAYBE,		/* a secret if it looks random: secret_looks_random() */
	SECRET_YES,
};

/* Returns whether both are the same text, ignoring case. */
bool slice_equals(struct slice s, const char *word);
/* Returns whether command matches pattern: a command's name, or a prefix of one and "*". */
bool slice_is_command(struct slice command, const char *pattern);

/*
 * Returns whether the value of that name is a secret: password, --db-password, AWS_SECRET_ACCESS_KEY,
 * spring.api-key; but not --password-file or tokens. It may be one behind --key, pin or GCP_CREDENTIALS.
 */
enum secret_certainty secret_name(struct slice name);
/* Returns whether a value is made of letters and digits that change as often as those of a token do. */
bool secret_looks_random(struct slice value);
/* The same, but more strictly, where no name tells: there are two or more digits and letters of both cases. */
bool secret_looks_like_password(struct slice value);
/* Returns whether that value of that name is a secret. certainty: what secret_name() returned. */
bool secret_value(struct slice name, enum secret_certainty certainty, struct slice value);
/* Returns whether name is an HTTP header with a secret: Authorization, X-Api-Key. */
bool secret_header(struct slice name);
/* Returns whether a URL's parameter of that name is a secret, beyond secret_name(): sig, X-Amz-Signature. */
bool secret_query(struct slice name);

#endif
