/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice dead-letters: errors that concern one place in one file.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/exit_codes.h"
#include "base/spell.h"
#include "cli/dead_letters.h"

void
dead_letters_report(struct dead_letters_command *c, const char *file, uint64_t offset, const char *text)
{
	fflush(stdout);
	spell_line(stderr, DEAD_LETTERS_WHO ": %s/%s: byte %" PRIu64 ": %s; it is left alone\n", c->folder, file, offset, text);
	c->status = EXIT_NO;
}

void
dead_letters_report_damage(struct dead_letters_command *c, const char *file, uint64_t offset, const char *text)
{
	dead_letters_report(c, file, offset, text);
	c->damaged++;
}
