/*
 * SPDX-License-Identifier: Apache-2.0
 * engine_pieces: the named pieces of text that an engine's rule extracts from a program, and the
 * fields that are built from them.
 */
#ifndef SLUICE_IDENTIFY_ENGINE_PIECES_H
#define SLUICE_IDENTIFY_ENGINE_PIECES_H

#include "model/engine_rules.h"
#include "model/candidate.h"

#define ENGINE_COMMAND_SIZE 16384	/* bytes of a command that are searched; the rest is ignored */

/* The arguments joined by spaces, built on first use. */
struct engine_command {
	bool is_made;
	size_t len;
	char text[ENGINE_COMMAND_SIZE];
};

struct engine_piece {
	const char *name;
	const char *at;			/* points into the candidate or into a command below */
	size_t len;
};

/* The pieces of one program. Large: pieces_init() sets only the members that need a value. */
struct engine_pieces {
	const struct candidate *s;
	uint64_t names_bits;
	size_t n;			/* pieces of the current rule */
	struct engine_piece list[ENGINE_PIECES_MAX];
	struct engine_command command, parent_command;
};

/* Prepares *p for the program s, which must outlive it. */
void pieces_init(struct engine_pieces *p, const struct candidate *s);

/* Extracts the rule's pieces. Returns false where a required one is missing: the rule does not hold. */
bool pieces_gather(struct engine_pieces *p, const struct engine_rule *rule);

/* Builds a field as a name, cut at a whole character where it is too long; "" where it cannot be built. */
void pieces_name(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
/* Builds a field as an id: the end of one that is too long becomes a hash of all of it, so that ids stay distinct. */
void pieces_id(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
/*
 * Builds a field as an absolute path without . and .. and doubled slashes, or "" where it does not fit.
 * An address such as s3://bucket is left as it is.
 */
void pieces_path(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size);
/* Builds a field as a decimal number; false where it cannot be built or is none. */
bool pieces_number(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, int *ret);

/* Copies len bytes to out as valid UTF-8 ("?" for each invalid byte), cut at a whole character. */
void pieces_copy(char *out, size_t size, const char *from, size_t len);

#endif
