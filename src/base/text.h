/*
 * SPDX-License-Identifier: Apache-2.0
 * text: bytes of any kind as valid UTF-8, reversibly.
 *
 * Valid UTF-8 stays as it is, control characters such as newline too. Every other byte, and NUL,
 * becomes \xNN (lower-case hex). A backslash that stands before "xNN" in the input becomes \x5c,
 * so that what looks like an escape in the output always is one; other backslashes stay.
 */
#ifndef SLUICE_BASE_TEXT_H
#define SLUICE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The most that text_escape() writes for len bytes, NUL included. */
#define TEXT_ESCAPE_MAX(len) (4 * (size_t)(len) + 1)

/*
 * Writes len bytes as UTF-8 to out, NUL-terminated; returns the length without the NUL. What does
 * not fit is left out, always a whole character or escape; *ret_used (may be NULL) tells how many
 * input bytes were written, less than len when the text was cut. out_size 0 writes nothing. bytes
 * may be NULL when len is 0. The buffers must not overlap.
 */
size_t text_escape(const char *bytes, size_t len, char *out, size_t out_size, size_t *ret_used);

/*
 * The inverse: len bytes of escaped text back to the original, which may hold NUL. out needs len
 * bytes at most and may be text itself; returns how many were written. Nothing is terminated.
 */
size_t text_unescape(const char *text, size_t len, char *out);

/* Length (1 to 4) of the UTF-8 character at bytes, or 0 where no valid one starts. len > 0. */
size_t text_char(const char *bytes, size_t len);

/*
 * Words with a space between each two, whole ones only: what no longer fits into size bytes, its NUL
 * included, is left out with all behind it. Returns the length.
 */
size_t text_join(const char *const *words, size_t n, char *out, size_t size);

/* True when all of it is valid UTF-8 without NUL and holds nothing that text_escape() changes. */
bool text_is_plain(const char *bytes, size_t len);

#endif
