/*
 * SPDX-License-Identifier: Apache-2.0
 * spell: text of others as people may read it: what it contains cannot act on a terminal, nor hide there.
 *
 * The names of programs, arguments, folders and control groups are any bytes, chosen by the user who runs them.
 * Everything that is written for people passes through here: the log, tables, and answers of commands. Spelt out are
 * control characters (C0, DEL, C1), bytes that are not UTF-8, and characters that cannot be seen where they are: those
 * without width, and those that reorder the text around them. A newline becomes \n, a tab \t, and any other
 * each of its bytes as \xNN. A backslash stays as it is: spelling twice is the same as once, but cannot be undone.
 *
 * JSON has escapes of its own, which a reader of JSON undoes: there the same characters become \uXXXX.
 */
#ifndef SLUICE_BASE_SPELL_H
#define SLUICE_BASE_SPELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SPELL_CHAR_MAX 16	/* bytes of one character when it is spelt out: four of \xNN */
#define SPELL_JSON_MAX 12	/* the same in JSON: two of \uXXXX */
/* The largest number of bytes that spell_text() writes for len bytes, NUL included. */
#define SPELL_TEXT_MAX(len) (4 * (size_t)(len) + 1)

/* Returns true if the character at `at`, of width bytes as text_char() tells, is spelt out; it is where width is 0. */
bool spell_is_hidden(const char *at, size_t width);

/* Spells the character at `at` out, whichever it is; width 0 is a byte that is not UTF-8. Returns the length. */
size_t spell_out(const char *at, size_t width, char out[SPELL_CHAR_MAX + 1]);

/*
 * Writes text to out, NUL-terminated, and spells out what is hidden. Returns false if it did not fit and was cut,
 * between characters. size must not be 0.
 */
bool spell_text(const char *text, char *out, size_t size);

/* Writes text of several lines to out, as spell_text() does: newlines stay. */
bool spell_lines(const char *text, char *out, size_t size);

/* Writes text to f, and spells out what is hidden. */
void spell_to(FILE *f, const char *text);

/* Formats and writes one line to f, and spells out what is hidden in it; a newline at its end stays. */
void spell_line(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes text of several lines to f: newlines stay. */
void spell_lines_to(FILE *f, const char *text);

/* Writes the character at `at`, of width bytes and valid, as one or two \uXXXX of JSON. Returns the length. */
size_t spell_json_char(const char *at, size_t width, char out[SPELL_JSON_MAX + 1]);

/* Writes valid JSON to f; what is hidden in its strings becomes \uXXXX, so that the value stays the same. */
void spell_json_to(FILE *f, const char *json);

#endif
