/*
 * SPDX-License-Identifier: Apache-2.0
 * text: any bytes as valid UTF-8, reversibly.
 *
 * Valid UTF-8 stays unchanged, including control characters such as newline. Every other byte, and NUL, becomes
 * \xNN (lower-case hex). A backslash before "xNN" in the input becomes \x5c, so that every apparent escape in
 * the output is one; other backslashes stay.
 */
#ifndef SLUICE_BASE_TEXT_H
#define SLUICE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest number of bytes that text_escape() writes for len bytes, NUL included. */
#define TEXT_ESCAPE_MAX(len) (4 * (size_t)(len) + 1)

/*
 * Writes len bytes as UTF-8 to out, NUL-terminated; returns the length without the NUL. Output that does not fit
 * is left out, always a whole character or escape; *ret_used (may be NULL) is the number of input bytes that
 * were written, less than len when the text was cut. out_size 0 writes nothing. bytes may be NULL when len is 0.
 * The buffers must not overlap.
 */
size_t text_escape(const char *bytes, size_t len, char *out, size_t out_size, size_t *ret_used);

/*
 * Converts len bytes of escaped text back to the original, which may contain NUL. out needs at most len bytes
 * and may be text itself. Returns the number of bytes written; no NUL is appended.
 */
size_t text_unescape(const char *text, size_t len, char *out);

/* Returns the length (1 to 4) of the UTF-8 character at bytes, or 0 where no valid one starts. len must not be 0. */
size_t text_char(const char *bytes, size_t len);

/*
 * Joins words with single spaces; the first word that does not fit into size bytes, the NUL included, and all
 * after it are left out. Returns the length.
 */
size_t text_join(const char *const *words, size_t n, char *out, size_t size);

/* Parses a text of decimal digits alone. Returns false if it is none, or its number is above max. */
bool text_number(const char *text, uint64_t max, uint64_t *ret);

/* Returns the part of a path behind its last slash. */
static inline const char *
text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Returns true when text ends with end. */
bool text_ends_with(const char *text, const char *end);

/* Returns true when all bytes are valid UTF-8 without NUL that text_escape() leaves unchanged. */
bool text_is_plain(const char *bytes, size_t len);

#endif
