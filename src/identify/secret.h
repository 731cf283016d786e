/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: which names, headers, options and shapes of text indicate a secret.
 *
 * The tables are in secret.c; redact.c finds the positions in a text where they apply.
 */
#ifndef SLUICE_IDENTIFY_SECRET_H
#define SLUICE_IDENTIFY_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of text that is not terminated; not owned. */
struct slice {
	const char *p;
	size_t len;
};

/*
 * An option of a command whose value is a secret. from: the secret begins after the first such character
 * of the value (user:password); 0: the whole value is secret.
 */
struct secret_option {
	const char *command;	/* a prefix when it ends in "*" */
	const char *option;	/* a one-letter option may have its value attached */
	bool attached_only;	/* without an attached value the program asks */
	char from;
	bool after_login;	/* only as an option of the subcommand "login" */
};

/* Returns whether both are the same text, ignoring case. */
bool slice_equals(struct slice s, const char *word);
/* Returns whether command matches pattern: a command's name, or a prefix of one and "*". */
bool slice_is_command(struct slice command, const char *pattern);

/*
 * Returns whether the value of that name is a secret: password, --db-password, AWS_SECRET_ACCESS_KEY,
 * spring.api-key; but not --password-file or tokens.
 */
bool secret_name(struct slice name);
/* Returns whether name is an HTTP header with a secret: Authorization, X-Api-Key. */
bool secret_header(struct slice name);
/* Returns whether a URL's parameter of that name is a secret, beyond secret_name(): sig, X-Amz-Signature. */
bool secret_query(struct slice name);
/* Returns whether run, letters, digits and "-_.", has the shape of a known token: ghp_... */
bool secret_token(struct slice run);

/* Returns whether the command has options of its own with secrets. */
bool secret_has_options(struct slice command);
/* Returns the command's option that word is, or NULL. *ret_value: the part of its value in the same word. */
const struct secret_option *secret_option(struct slice command, struct slice word, bool is_login,
    struct slice *ret_value);

#endif
