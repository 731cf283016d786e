/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letters: what the parts of `sluice dead-letters` share.
 */
#ifndef SLUICE_CLI_DEAD_LETTERS_H
#define SLUICE_CLI_DEAD_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "deliver/dead_letter_read.h"

struct config;

#define DEAD_LETTERS_WHO "sluice dead-letters"

struct dead_letters_command {
	const struct config *config;
	const char *folder;
	int dir_fd;			/* of the folder */
	const char *socket;		/* NULL: the one that the configuration names */
	struct dead_letter_filter filter;
	bool as_json;
	bool is_raw;
	bool is_dry;
	uint64_t damaged;		/* places in files that cannot be read */
	int status;
};

/* dead_letters_report.c */
/* Prints what is wrong at a byte of a file, which stays as it is. The second function counts it as damaged, too. */
void dead_letters_report(struct dead_letters_command *c, const char *file, uint64_t offset, const char *text);
void dead_letters_report_damage(struct dead_letters_command *c, const char *file, uint64_t offset, const char *text);

/* dead_letters_replay.c: `sluice dead-letters replay`. Returns the exit status. */
int dead_letters_replay(struct dead_letters_command *c);

#endif
