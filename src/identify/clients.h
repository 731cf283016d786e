/*
 * SPDX-License-Identifier: Apache-2.0
 * clients: where the programs of clients.def take secrets among their arguments.
 *
 * One struct client follows the words of one command. It is set up by its name, and then sees each word.
 */
#ifndef SLUICE_IDENTIFY_CLIENTS_H
#define SLUICE_IDENTIFY_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "identify/secret.h"

#define CLIENT_RULES_MAX 16	/* rows of one command at most */

struct client_rule;		/* a row of clients.def */

struct client {
	const struct client_rule *rules[CLIENT_RULES_MAX];
	uint8_t behind[CLIENT_RULES_MAX];	/* 1 + plain words behind the row's `after`; 0: it was not read */
	uint8_t n;				/* 0: the command has no rows */
	bool has_secret_input;			/* it reads a secret from standard input */
	const struct client_rule *waiting;	/* the row whose value is the next word; NULL: none */
};

/* Returns whether the command of that base name has rows. */
bool client_is_known(struct slice command);
/* Begins with the command of that base name. */
void client_init(struct client *c, struct slice command);
/*
 * Reads the next word, if the command has rows. Returns whether the word is accounted for: it is an option of a row, or
 * a value. *ret_secret: the part of it that is a secret; empty: none.
 */
bool client_read(struct client *c, struct slice word, struct slice *ret_secret);

#endif
