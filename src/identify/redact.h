/*
 * SPDX-License-Identifier: Apache-2.0
 * redact: removes passwords, tokens and keys from arguments before they leave correlate/.
 *
 * Recognised are options and assignments whose name implies a secret (--password x, --api-key=x,
 * AWS_SECRET_ACCESS_KEY=x, "password": "x"), the options and words of many clients (mysql -px,
 * curl -u user:x, wandb login x), HTTP headers (Authorization: Bearer x), credentials and signatures in URLs,
 * passwords in SQL, blocks of private keys, and tokens of a known shape; as arguments of their own, inside a script's
 * text (sh -c '...') with what it pipes into a program that reads a password, behind wrappers (srun mysql -px), and in
 * a title. Each value is replaced by REDACTED; a doubtful one too. The tables are in secret.c, shapes.def,
 * clients.def, and the rules `wrappers`. The user may add patterns, and may have arguments kept as a hash only, or not
 * at all.
 */
#ifndef SLUICE_IDENTIFY_REDACT_H
#define SLUICE_IDENTIFY_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define REDACTED "***"
#define REDACT_BUILTIN "builtin"
#define REDACT_HASH_PREFIX "sha256:"	/* begins the element that replaces the arguments after the first */

struct arena;
struct ruleset;

enum redact_keep {
	REDACT_KEEP_ALL,
	REDACT_KEEP_FIRST,	/* argv[0] only */
	REDACT_KEEP_HASH,	/* argv[0] and a hash of the other arguments */
};

struct redaction_options {
	/*
	 * REDACT_BUILTIN for the shipped patterns, and regular expressions that are searched in each
	 * argument: the group named "secret" is redacted, or without that group the whole match. Where
	 * the search takes too long, the whole argument is.
	 */
	const char *const *patterns;
	size_t n_patterns;
	enum redact_keep keep;
	const char *salt;	/* salt of the hashes: the host's id; NULL: none */
};

struct redaction;		/* how arguments are redacted; immutable */

/*
 * Creates a redaction from a copy of the options; the caller frees it. Returns 0, -EINVAL or -ENOMEM;
 * on failure a sentence is in error and *ret is untouched.
 */
int redaction_new(const struct redaction_options *options, struct redaction **ret, char *error,
    size_t error_size);
void redaction_free(struct redaction *r);	/* NULL is fine */

/*
 * Redacts argc UTF-8 arguments: where the text of one changes, its pointer in argv is replaced by a
 * string in a (or, where a is full, by the static REDACTED alone, so that nothing leaks for lack of
 * memory). The old strings are not written to. r NULL: the shipped patterns alone. rules NULL: no wrapper is
 * known. Returns the number of arguments that changed.
 */
size_t redaction_apply(const struct redaction *r, const struct ruleset *rules, const char **argv, size_t argc,
    struct arena *a);

/*
 * Drops the arguments that are not to be kept. Called after the program was identified, which needs
 * them, and after redaction_apply(), so that no secret is hashed. The hash is a string in a; without
 * memory it is left out. r NULL: all arguments are kept. Returns the new argc.
 */
size_t redaction_keep(const struct redaction *r, const char **argv, size_t argc, struct arena *a);
/* Returns whether redaction_keep() drops any arguments. */
bool redaction_drops(const struct redaction *r);

/* Redacts by the shipped patterns alone; otherwise like redaction_apply(). */
size_t redact_argv(const struct ruleset *rules, const char **argv, size_t argc, struct arena *a);

#endif
