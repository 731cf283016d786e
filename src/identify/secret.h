/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: which names, headers, options and shapes of text stand for a secret.
 *
 * The tables are in secret.c; redact.c finds the places where they apply.
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
 * A short option that carries a secret, by command. from: the value is secret after its first such
 * character (user:password); 0: all of it.
 */
struct secret_option {
	const char *command;	/* a prefix when it ends in "*" */
	const char *option;	/* one letter's may have its value attached */
	bool attached_only;	/* alone it means: ask */
	char from;
	bool after_login;	/* only as an option of the subcommand "login" */
};

/* The same text, in either case. */
bool slice_equals(struct slice s, const char *word);
/* pattern: a command's name, or a prefix of it and "*". */
bool slice_is_command(struct slice command, const char *pattern);

/* password, --db-password, AWS_SECRET_ACCESS_KEY, spring.api-key; not --password-file, tokens. */
bool secret_name(struct slice name);
/* An HTTP header's name: Authorization, X-Api-Key. */
bool secret_header(struct slice name);
/* A parameter's name in a URL, beyond secret_name(): sig, X-Amz-Signature. */
bool secret_query(struct slice name);
/* A run of letters, digits and "-_." that is a token by its shape: ghp_... */
bool secret_token(struct slice run);

/* Has the command options of its own that carry secrets? */
bool secret_has_options(struct slice command);
/* The one that word is, or NULL; *ret_value is what of the value is in the same word. */
const struct secret_option *secret_option(struct slice command, struct slice word, bool is_login,
    struct slice *ret_value);

#endif
