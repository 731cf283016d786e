/*
 * SPDX-License-Identifier: Apache-2.0
 * shapes: finds tokens of a known shape in one pass over a text, and whether it may hold other secrets.
 */
#include "identify/shapes.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <threads.h>

#include "base/steps.h"

#define TOKEN_MAX	4096	/* characters of a part that are read; a longer one ends there */
#define BEFORE_MAX	128	/* the same of a part before the literal */
#define BLOCK_LINE_MAX	64	/* characters of the line that begins a block of a key */
#define GROUPS		64	/* of characters, for the table over the first two of a literal */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	SHAPE_INSIDE = 1 << 0,
	SHAPE_LAST = 1 << 1,
	SHAPE_MIXED = 1 << 2,
	SHAPE_BLOCK = 1 << 3,
	SHAPE_AT = 1 << 4,
	SHAPE_MARK = 1 << 5,	/* no shape, but SHAPES_NAME; any case */
	SHAPE_SPACE = 1 << 6,	/* the same, SHAPES_BLANK */
};

struct shape {
	const char *before, *literal, *after;
	unsigned len, flags;
};

#define SHAPE(name, before, literal, after, flags) { before, literal, after, sizeof(literal) - 1, flags },
#define MARK(literal, flag) { "", literal, "", sizeof(literal) - 1, flag },
static const struct shape shapes[] = {
#include "identify/shapes.def"
};

/* The characters of each class, see shapes.def. */
static const struct shape_class {
	char name;
	const char *extra;
	bool has_digits, has_upper, has_lower;
} shape_classes[] = {
	{ 'd', "", true, false, false }, { 'x', "abcdef", true, false, false },
	{ 'X', "abcdefABCDEF", true, false, false }, { 'a', "", false, true, true },
	{ 'u', "", true, true, false }, { 'n', "", true, true, true }, { 'w', "_", true, true, true },
	{ 'v', "_-", true, true, true }, { 't', "_-=.~", true, true, true }, { 'b', "+/=_-.", true, true, true },
	{ 'p', "/_-=.~@%", true, true, true }, { 'Q', "!#$%&()*+,-./:;<=>?[]^_{|}~", true, true, true },
};

/* What the data above becomes once, in build(). */
static uint8_t group_of[256];			/* 0: of no literal's first two characters */
static uint16_t first_of[GROUPS * GROUPS];	/* 1 + the first entry of two groups; 0: none */
static struct entry {
	uint16_t row, next;			/* of shapes; as first_of */
} entries[1 << 10];
static size_t n_entries;
static uint16_t class_bits[256];		/* bits of shape_classes that hold a character */
static once_flag is_built = ONCE_FLAG_INIT;

static unsigned char
folded(char c)
{
	return (unsigned char)tolower((unsigned char)c);
}

static void
build_classes(void)
{
	for (size_t k = 0; k < COUNT(shape_classes); k++) {
		const struct shape_class *s = &shape_classes[k];

		for (int c = 1; c < 128; c++) {
			if ((s->has_digits && isdigit(c)) || (s->has_upper && isupper(c)) ||
			    (s->has_lower && islower(c)) || strchr(s->extra, c) != NULL)
				class_bits[c] |= (uint16_t)(1u << k);
		}
	}
}

/* Puts a row before those of its two groups. */
static void
push(unsigned a, unsigned b, size_t row)
{
	uint16_t *first = &first_of[a * GROUPS + b];

	if (n_entries == COUNT(entries))
		abort();		/* the data is a part of this program: enlarge the tables */
	entries[n_entries++] = (struct entry){ (uint16_t)row, *first };
	*first = (uint16_t)n_entries;
}

/* Groups the characters that literals begin with, both cases of a letter in one, and lists the rows of two groups. */
static void
build(void)
{
	size_t n_groups = 1;

	build_classes();
	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (size_t k = 0; k < 2 && k < shapes[i].len; k++) {
			unsigned char c = folded(shapes[i].literal[k]);

			if (group_of[c] != 0)
				continue;
			if (n_groups == GROUPS)
				abort();
			group_of[c] = group_of[toupper(c)] = (uint8_t)n_groups++;
		}
	}
	for (size_t i = COUNT(shapes); i-- > 0;) {
		const char *literal = shapes[i].literal;
		unsigned a = group_of[folded(literal[0])];

		if (shapes[i].len > 1)
			push(a, group_of[folded(literal[1])], i);
		for (unsigned b = 0; shapes[i].len == 1 && b < n_groups; b++)
			push(a, b, i);
	}
}

/* One part of a row's before or after. */
struct part {
	const char *text;	/* NULL: of a class */
	size_t n;		/* characters of text; else at least or exactly so many of the class */
	uint16_t bit;
	bool is_exact;
};

/* Reads the part that begins at *at, and moves it. False: there is none left. */
static bool
next_part(const char **at, struct part *ret)
{
	const char *p = *at;

	if (*p == '\0')
		return false;
	*ret = (struct part){ 0 };
	if (*p == '\'') {
		ret->text = ++p;
		ret->n = strcspn(p, "'");
		*at = p + ret->n + 1;
		return true;
	}
	for (size_t k = 0; k < COUNT(shape_classes); k++) {
		if (shape_classes[k].name == *p)
			ret->bit = (uint16_t)(1u << k);
	}
	ret->is_exact = *++p == '=';
	p += ret->is_exact;
	for (; isdigit((unsigned char)*p); p++)
		ret->n = 10 * ret->n + (size_t)(*p - '0');
	*at = p;
	return true;
}

static bool
is_of(const struct part *part, char c)
{
	return (class_bits[(unsigned char)c] & part->bit) != 0;
}

static bool
is_alnum(char c)
{
	return isalnum((unsigned char)c) != 0;
}

/* Returns where what `after` describes ends if it begins at i, or 0. *ret_last: where its last part begins. */
static size_t
match_after(struct slice t, size_t i, const char *after, size_t *ret_last)
{
	struct part part;

	while (next_part(&after, &part)) {
		size_t begin = i, max = part.is_exact ? part.n : TOKEN_MAX;

		*ret_last = i;
		if (part.text != NULL) {
			if (t.len - i < part.n || memcmp(t.p + i, part.text, part.n) != 0)
				return 0;
			i += part.n;
			continue;
		}
		while (i < t.len && i - begin < max && is_of(&part, t.p[i]))
			i++;
		if (i - begin < part.n || (part.is_exact && *after == '\0' && i < t.len && is_alnum(t.p[i])))
			return 0;
	}
	return i;
}

/* Returns whether what `before` describes ends at i; *ret_begin: where it begins. */
static bool
match_before(struct slice t, size_t i, const char *before, size_t *ret_begin)
{
	struct part parts[4];
	size_t n = 0;

	while (n < COUNT(parts) && next_part(&before, &parts[n]))
		n++;
	while (n-- > 0) {
		const struct part *part = &parts[n];
		size_t end = i, max = part->is_exact ? part->n : BEFORE_MAX;

		if (part->text != NULL) {
			if (i < part->n || memcmp(t.p + i - part->n, part->text, part->n) != 0)
				return false;
			i -= part->n;
			continue;
		}
		while (i > 0 && end - i < max && is_of(part, t.p[i - 1]))
			i--;
		if (end - i < part->n)
			return false;
	}
	*ret_begin = i;
	return true;
}

static bool
has_letters_and_digits(struct slice t, size_t begin, size_t end)
{
	bool has_digit = false, has_letter = false;

	for (size_t i = begin; i < end; i++) {
		has_digit |= isdigit((unsigned char)t.p[i]) != 0;
		has_letter |= isalpha((unsigned char)t.p[i]) != 0;
	}
	return has_digit && has_letter;
}

/*
 * Adds the block of a key: in PEM and its like, what is between the line "-----BEGIN ... PRIVATE KEY-----" and
 * "-----END", or else the end of the text; of PuTTY's, all that follows. i: after the literal. Returns its end, or 0.
 */
static size_t
find_block(struct slice t, size_t i, const struct shape *s, struct secret_ranges *ranges)
{
	size_t line = i;

	if (s->literal[0] != 'B') {
		secret_ranges_add(ranges, i, t.len);
		return t.len;
	}
	if (i < 10 || memcmp(t.p + i - 10, "-----", 5) != 0)
		return 0;
	while (line < t.len && line - i < BLOCK_LINE_MAX && t.p[line] != '-')
		line++;
	while (line < t.len && (t.p[line] == '-' || ((unsigned char)t.p[line] & 0xc0) == 0x80))
		line++;
	if (memmem(t.p + i, line - i, "PRIVATE KEY", 11) == NULL)
		return 0;
	i = line;
	while (i < t.len && !(t.p[i] == '-' && t.len - i >= 8 && memcmp(t.p + i, "-----END", 8) == 0))
		i++;
	secret_ranges_add(ranges, line, i);
	return i;
}

/* Adds the password of user:password@host, without a scheme, if it looks like one; i: the "@". Returns 0. */
static size_t
find_before_at(struct slice t, size_t i, struct secret_ranges *ranges)
{
	size_t start = i;

	while (start > 0 && i - start < SECRET_PEEK && t.p[start - 1] != ':' && t.p[start - 1] > ' ')
		start--;
	if (start > 0 && t.p[start - 1] == ':' && secret_looks_like_password((struct slice){ t.p + start, i - start }))
		secret_ranges_add(ranges, start, i);
	return 0;
}

/* Adds the token whose literal is at i if it has the shape. Returns where what was read ends, or 0. */
static size_t
find_token(struct slice t, size_t i, const struct shape *s, struct secret_ranges *ranges)
{
	size_t begin = i, end, last = i;

	if (memcmp(t.p + i, s->literal, s->len) != 0)
		return 0;
	if ((s->flags & SHAPE_BLOCK) != 0)
		return find_block(t, i + s->len, s, ranges);
	if ((s->flags & SHAPE_AT) != 0)
		return find_before_at(t, i, ranges);
	/* What precedes is asked first: it is bounded, and rarely right. */
	if (s->before[0] != '\0' ? !match_before(t, i, s->before, &begin) :
	    (s->flags & SHAPE_INSIDE) == 0 && i > 0 && is_alnum(t.p[i - 1]))
		return 0;
	end = match_after(t, i + s->len, s->after, &last);
	if (end == 0)
		return 0;
	if ((s->flags & SHAPE_MIXED) == 0 || has_letters_and_digits(t, last, end))
		secret_ranges_add(ranges, (s->flags & SHAPE_LAST) != 0 ? last : begin, end);
	return end;
}

unsigned
shapes_find(struct slice t, struct secret_ranges *ranges)
{
	const unsigned char *p = (const unsigned char *)t.p;
	unsigned group, next;
	unsigned found = 0;

	call_once(&is_built, build);
	if (!steps_walk(t.len))
		return 0;
	group = group_of[p[0]];
	for (size_t i = 0; i < t.len; i++, group = next) {
		const struct entry *e;

		next = group_of[p[i + 1]];
		for (unsigned k = first_of[group * GROUPS + next]; k != 0; k = e->next) {
			const struct shape *s;
			size_t end;

			e = &entries[k - 1];
			s = &shapes[e->row];
			if (s->len > t.len - i)
				continue;
			if ((s->flags & SHAPE_SPACE) != 0) {
				found |= SHAPES_BLANK;
				continue;
			}
			if ((s->flags & SHAPE_MARK) != 0) {
				if ((found & SHAPES_NAME) == 0 && strncasecmp(t.p + i, s->literal, s->len) == 0)
					found |= SHAPES_NAME;
				continue;
			}
			if (!steps_take(1))
				return found;
			end = find_token(t, i, s, ranges);
			if (end > i + 1) {
				found |= SHAPES_NAME;	/* its marks are not looked at */
				i = end - 1;
				next = group_of[p[end]];
				break;
			}
		}
	}
	return found;
}
