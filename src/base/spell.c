/*
 * SPDX-License-Identifier: Apache-2.0
 * spell: text of others as people may read it.
 */
#include "base/spell.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/*
 * Characters that are not seen: those that reorder text (bidirectional marks, embeddings, overrides, isolates), that
 * have no width, and that end a line or annotate. In order; C0, DEL and C1 are in the code.
 */
static const struct {
	uint32_t first;
	uint32_t last;
} unseen[] = {
	{ 0xad, 0xad },			/* soft hyphen */
	{ 0x34f, 0x34f },		/* combining grapheme joiner */
	{ 0x61c, 0x61c },		/* Arabic letter mark */
	{ 0x115f, 0x1160 },		/* fillers of Hangul */
	{ 0x17b4, 0x17b5 },		/* inherent vowels of Khmer */
	{ 0x180b, 0x180f },		/* Mongolian selectors and vowel separator */
	{ 0x200b, 0x200f },		/* zero width space, joiners, marks of direction */
	{ 0x2028, 0x202e },		/* separators of lines and paragraphs, embeddings, overrides */
	{ 0x2060, 0x206f },		/* word joiner, invisible operators, isolates */
	{ 0x3164, 0x3164 },		/* filler of Hangul */
	{ 0xfe00, 0xfe0f },		/* variation selectors */
	{ 0xfeff, 0xfeff },		/* byte order mark */
	{ 0xffa0, 0xffa0 },		/* filler of Hangul, half width */
	{ 0xfff0, 0xfffb },		/* annotations, and what is not assigned before them */
	{ 0x1d173, 0x1d17a },		/* formatting of music */
	{ 0xe0000, 0xe0fff },		/* tags, and more variation selectors */
};

/* Returns the code point of a valid character. */
static uint32_t
code_of(const char *at, size_t width)
{
	const unsigned char *p = (const unsigned char *)at;

	switch (width) {
	case 1:
		return p[0];
	case 2:
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	case 3:
		return (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	default:
		return (p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
	}
}

bool
spell_is_hidden(const char *at, size_t width)
{
	uint32_t code;

	if (width == 0)
		return true;
	code = code_of(at, width);
	if (code < 0xa0)
		return code < 0x20 || code >= 0x7f;
	for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]) && unseen[i].first <= code; i++) {
		if (code <= unseen[i].last)
			return true;
	}
	return false;
}

size_t
spell_out(const char *at, size_t width, char out[SPELL_CHAR_MAX + 1])
{
	size_t n = width > 0 ? width : 1, o = 0;

	if (at[0] == '\n' || at[0] == '\t')
		return (size_t)sprintf(out, "\\%c", at[0] == '\n' ? 'n' : 't');
	for (size_t i = 0; i < n; i++)
		o += (size_t)sprintf(out + o, "\\x%02x", (unsigned char)at[i]);
	return o;
}

/* What a hidden character becomes: spell_out(), itself, or \uXXXX in JSON. Returns its length. */
typedef size_t (*spell_fn)(const char *at, size_t width, char out[SPELL_CHAR_MAX + 1]);

/* Spells the beginning of text, at least a character of it. Returns the bytes read; *ret is *ret_len long. */
static size_t
next_piece(const char *text, size_t len, spell_fn spell, char spelt[SPELL_CHAR_MAX + 1], const char **ret,
    size_t *ret_len)
{
	size_t n = 0, width;

	while (n < len && text[n] >= 0x20 && text[n] < 0x7f)	/* most of it */
		n++;
	*ret = text;
	*ret_len = n;
	if (n > 0)
		return n;
	width = text_char(text, len);
	*ret_len = width;
	if (spell_is_hidden(text, width)) {
		*ret = spelt;
		*ret_len = spell(text, width, spelt);
	}
	return width > 0 ? width : 1;
}

static size_t
spell_in_lines(const char *at, size_t width, char out[SPELL_CHAR_MAX + 1])
{
	if (at[0] != '\n')
		return spell_out(at, width, out);
	out[0] = '\n';
	return 1;
}

static bool
spell_into(const char *text, spell_fn spell, char *out, size_t size)
{
	char spelt[SPELL_CHAR_MAX + 1];
	const char *piece;
	size_t left = strlen(text), o = 0, n, len;

	for (; left > 0; text += n, left -= n) {
		n = next_piece(text, left, spell, spelt, &piece, &len);
		if (len >= size - o) {
			if (piece != spelt && (unsigned char)piece[0] < 0x80) {	/* may be cut anywhere */
				memcpy(out + o, piece, size - 1 - o);
				o = size - 1;
			}
			break;
		}
		memcpy(out + o, piece, len);
		o += len;
	}
	out[o] = '\0';
	return left == 0;
}

bool
spell_text(const char *text, char *out, size_t size)
{
	return spell_into(text, spell_out, out, size);
}

bool
spell_lines(const char *text, char *out, size_t size)
{
	return spell_into(text, spell_in_lines, out, size);
}

static void
write_spelt(FILE *f, const char *text, spell_fn spell)
{
	char spelt[SPELL_CHAR_MAX + 1];
	const char *piece;
	size_t left = strlen(text), n, len;

	for (; left > 0; text += n, left -= n) {
		n = next_piece(text, left, spell, spelt, &piece, &len);
		fwrite(piece, 1, len, f);
	}
}

void
spell_to(FILE *f, const char *text)
{
	write_spelt(f, text, spell_out);
}

void
spell_line(FILE *f, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0) {
		fputs("no memory\n", f);
		return;
	}
	if (len > 0 && text[len - 1] == '\n') {
		text[len - 1] = '\0';
		spell_to(f, text);
		fputc('\n', f);
	} else {
		spell_to(f, text);
	}
	free(text);
}

void
spell_lines_to(FILE *f, const char *text)
{
	write_spelt(f, text, spell_in_lines);
}

size_t
spell_json_char(const char *at, size_t width, char out[SPELL_JSON_MAX + 1])
{
	uint32_t code = code_of(at, width);

	if (code < 0x10000)
		return (size_t)sprintf(out, "\\u%04x", code & 0xffffu);
	code -= 0x10000;
	return (size_t)sprintf(out, "\\u%04x\\u%04x", 0xd800u | (code >> 10 & 0x3ffu), 0xdc00u | (code & 0x3ffu));
}

/* Outside of its strings JSON has no hidden characters but newlines and tabs; in them these are escaped already. */
static size_t
spell_in_json(const char *at, size_t width, char out[SPELL_CHAR_MAX + 1])
{
	if (width == 0 || at[0] == '\n' || at[0] == '\t' || at[0] == '\r') {
		out[0] = at[0];
		return 1;
	}
	return spell_json_char(at, width, out);
}

void
spell_json_to(FILE *f, const char *json)
{
	write_spelt(f, json, spell_in_json);
}
