/*
 * SPDX-License-Identifier: Apache-2.0
 * engine_pieces: the named pieces of text that a rule of an engine takes from a program, and the
 * fields that are made of them.
 */
#ifndef SLUICE_IDENTIFY_ENGINE_PIECES_H
#define SLUICE_IDENTIFY_ENGINE_PIECES_H

#include "model/engine_rules.h"
#include "model/subject.h"

#define ENGINE_COMMAND_SIZE 16384	/* of longer commands only so much is searched */

/* All of argv, joined by spaces when it is first asked for. */
struct engine_command {
	bool is_made;
	size_t len;
	char text[ENGINE_COMMAND_SIZE];
};

struct engine_piece {
	const char *name;
	const char *at;			/* in the subject or in a command below */
	size_t len;
};

/* Of one program; large, and only what pieces_init() sets needs to be set. */
struct engine_pieces {
	const struct subject *s;
	uint64_t names_bits;
	size_t n;			/* of the rule under way */
	struct engine_piece list[ENGINE_PIECES_MAX];
	struct engine_command command, parent_command;
};

void pieces_init(struct engine_pieces *p, const struct subject *s);

/* False: the rule does not hold, for something that it needs is not there. */
bool pieces_gather(struct engine_pieces *p, const struct engine_rule *rule);

/* Each "" where it cannot be made. */
/* Cut at a whole character where it is too long. */
void pieces_name(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
/* Whoever differs has another one: of a long one the end becomes a number made of all of it. */
void pieces_id(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
/* Absolute, without . and .. and doubled slashes; s3://bucket and the like stay as they are. */
void pieces_path(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
bool pieces_number(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, int *ret);

/* len bytes of UTF-8, or nearly so, as valid UTF-8, cut at a whole character. */
void pieces_copy(char *out, size_t size, const char *from, size_t len);

#endif
