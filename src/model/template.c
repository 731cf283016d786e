/*
 * SPDX-License-Identifier: Apache-2.0
 * template: a name made of parts.
 */
#include "model/template.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { PARTS_MAX = 64 };

struct part {
	const char *text;	/* the set's */
	size_t len;
	bool is_name;
};

struct template {
	size_t n;
	struct part parts[];
};

/* A step through the template's text. */
struct cursor {
	const char *start, *p, *end;
	char *error;
	size_t error_size;
};

static size_t
position(const struct cursor *c, const char *at)
{
	return (size_t)(at - c->start) + 1;
}

/* From behind '{' to behind '}'. */
static bool
read_name(struct cursor *c, struct part *ret)
{
	const char *name = c->p;

	while (c->p < c->end && (isalnum((unsigned char)*c->p) || *c->p == '_'))
		c->p++;
	if (c->p == c->end || *c->p != '}') {
		snprintf(c->error, c->error_size, "the { at character %zu begins no {name} of letters, digits "
		    "and _: write {{ for a brace", position(c, name - 1));
		return false;
	}
	if (c->p == name) {
		snprintf(c->error, c->error_size, "the {} at character %zu holds no name", position(c, name - 1));
		return false;
	}
	*ret = (struct part){ name, (size_t)(c->p - name), true };
	c->p++;
	return true;
}

/* A piece that ends where a name begins; of a doubled brace, behind the first of the two. */
static bool
read_piece(struct cursor *c, struct part *ret)
{
	const char *piece = c->p;

	while (c->p < c->end && *c->p != '{' && *c->p != '}')
		c->p++;
	if (c->p < c->end && (c->p + 1 < c->end && c->p[1] == *c->p)) {
		*ret = (struct part){ piece, (size_t)(c->p + 1 - piece), false };
		c->p += 2;
		return true;
	}
	if (c->p < c->end && *c->p == '}') {
		snprintf(c->error, c->error_size, "the } at character %zu ends no {name}: write }} for a brace",
		    position(c, c->p));
		return false;
	}
	*ret = (struct part){ piece, (size_t)(c->p - piece), false };
	return true;
}

static bool
read_parts(struct cursor *c, struct part parts[PARTS_MAX], size_t *ret_n)
{
	size_t n = 0;

	for (; c->p < c->end; n++) {
		bool is_name = *c->p == '{' && (c->p + 1 == c->end || c->p[1] != '{');

		if (n == PARTS_MAX) {
			snprintf(c->error, c->error_size, "more than %d names and pieces of text", PARTS_MAX);
			return false;
		}
		c->p += is_name;
		if (!(is_name ? read_name(c, &parts[n]) : read_piece(c, &parts[n])))
			return false;
	}
	*ret_n = n;
	return true;
}

const struct template *
template_new(struct ruleset *set, const char *text, size_t len, char *error, size_t error_size)
{
	struct cursor c = { text, text, text + len, error, error_size };
	struct part parts[PARTS_MAX];
	struct template *t;
	size_t n;

	if (!read_parts(&c, parts, &n))
		return NULL;
	snprintf(error, error_size, "no memory");
	t = ruleset_alloc(set, sizeof(*t) + n * sizeof(t->parts[0]));
	if (t == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		t->parts[i] = parts[i];
		t->parts[i].text = ruleset_string(set, parts[i].text, parts[i].len);
		if (t->parts[i].text == NULL)
			return NULL;
	}
	t->n = n;
	if (error_size > 0)
		error[0] = '\0';
	return t;
}

const char *
template_name(const struct template *t, size_t i)
{
	for (size_t part = 0; part < t->n; part++) {
		if (t->parts[part].is_name && i-- == 0)
			return t->parts[part].text;
	}
	return NULL;
}

/* False: it did not fit whole. A pattern's group may hold a part of a character: that is escaped. */
static bool
append(char *out, size_t size, size_t *len, const char *text, size_t text_len)
{
	for (size_t i = 0, n; i < text_len; i += n) {
		n = text_char(text + i, text_len - i);
		if (n > 0 && text[i] != '\0') {
			if (n >= size - *len)
				return false;
			memcpy(out + *len, text + i, n);
			*len += n;
			continue;
		}
		n = 1;
		if (size - *len <= 4)
			return false;
		*len += (size_t)sprintf(out + *len, "\\x%02x", (unsigned char)text[i]);
	}
	return true;
}

bool
template_fill(const struct template *t, char *out, size_t size,
    bool (*value)(const char *name, const char **ret, size_t *ret_len, void *arg), void *arg)
{
	bool fits = size > 0;
	size_t len = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct part *p = &t->parts[i];
		const char *text = p->text;
		size_t text_len = p->len;

		/* All are asked for, also behind the cut: is any unknown? */
		if (p->is_name && !value(p->text, &text, &text_len, arg)) {
			if (size > 0)
				out[0] = '\0';
			return false;
		}
		fits = fits && append(out, size, &len, text, text_len);
	}
	if (size > 0)
		out[len] = '\0';
	return true;
}
