/*
 * SPDX-License-Identifier: Apache-2.0
 * words: secrets that the words of a command tell: --password VALUE, mysql -pVALUE, wandb login VALUE.
 *
 * The arguments of a program are words, and so are those inside an argument that is a script, or may be one. What a
 * wrapper runs is read as the command that it is.
 */
#ifndef SLUICE_IDENTIFY_WORDS_H
#define SLUICE_IDENTIFY_WORDS_H

#include <stdbool.h>

#include "identify/clients.h"
#include "identify/secret.h"
#include "identify/secret_ranges.h"

struct ruleset;

/* The state of reading the words of an argv, or of one command in a script. */
struct words {
	const struct ruleset *rules;	/* NULL: no wrapper is known */
	struct slice command;		/* base name of the command; empty: not read yet */
	struct client client;		/* what the command is known for */
	bool is_shell;			/* the command is a shell: -c takes a script */
	bool is_wrapper;		/* another command follows: env, sudo */
	const char *const *wraps_after;	/* it follows one of these words; NULL: none */
	bool expects_script;		/* the next word is a shell's -c */
	bool expects_header;		/* the next word is the value of -H */
	bool is_option;			/* name is one, otherwise a plain word */
	char letter;			/* of the word before, if it is an option such as -p; else NUL */
	struct slice name;		/* the word before, if it is the name of a secret; empty: it is not */
};

/* Begins with no words read. */
void words_init(struct words *w, const struct ruleset *rules);
/* Takes the first word of an argv. */
void words_set_command(struct words *w, struct slice path);
/* Returns whether the next word is to be read even if it holds nothing that looks like a secret. */
bool words_are_expected(const struct words *w);
/* Reads the next argument of an argv, and adds its secrets. has_names: SHAPES_NAME was found in it. */
void words_read(struct words *w, struct slice argument, bool has_names, struct secret_ranges *ranges);
/* Reads an argument as a script or as prose, whatever precedes it. */
void words_read_text(const struct ruleset *rules, struct slice argument, bool has_names,
    struct secret_ranges *ranges);

#endif
