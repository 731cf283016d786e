/*
 * SPDX-License-Identifier: Apache-2.0
 * clients: where the programs of clients.def take secrets among their arguments.
 */
#include "identify/clients.h"

#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum client_kind {
	CLIENT_VALUE,
	CLIENT_ATTACHED,
	CLIENT_EXACT,
	CLIENT_GLUED,
	CLIENT_POSITION,
	CLIENT_PAIRS,
	CLIENT_STDIN,
};

struct client_rule {
	const char *command, *after, *word;
	enum client_kind kind;
	uint8_t position;
	char from, to;
	const char *behind, *flags;
};

#define CLIENT(...) { __VA_ARGS__ },
static const struct client_rule rows[] = {
#include "identify/clients.def"
};

/* Rows by the first letter of their commands: 1 + the first of them, and the next ones; 0: none. */
static uint16_t first_row[256], next_row[COUNT(rows)];
static once_flag is_built = ONCE_FLAG_INIT;

_Static_assert(COUNT(rows) < UINT16_MAX, "rows are counted in 16 bits");

static void
build(void)
{
	for (size_t i = COUNT(rows); i-- > 0;) {
		uint16_t *first = &first_row[(unsigned char)rows[i].command[0]];

		next_row[i] = *first;
		*first = (uint16_t)(i + 1);
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct slice command = { rows[i].command, strcspn(rows[i].command, "*") };
		size_t n = 0;

		for (uint16_t k = first_row[(unsigned char)command.p[0]]; k != 0; k = next_row[k - 1])
			n += slice_is_command(command, rows[k - 1].command);
		if (n > CLIENT_RULES_MAX)
			abort();	/* the data is a part of this program: enlarge struct client */
	}
}

/* Returns whether word is the pattern, which may begin or end with "*". */
static bool
is_word(struct slice word, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[0] == '*')
		return word.len >= n - 1 && memcmp(word.p + word.len - (n - 1), pattern + 1, n - 1) == 0;
	return slice_is_command(word, pattern);
}

bool
client_is_known(struct slice command)
{
	call_once(&is_built, build);
	for (uint16_t i = first_row[(unsigned char)command.p[0]]; i != 0; i = next_row[i - 1]) {
		if (slice_is_command(command, rows[i - 1].command))
			return true;
	}
	return false;
}

void
client_init(struct client *c, struct slice command)
{
	call_once(&is_built, build);
	c->n = 0;
	c->has_secret_input = false;
	c->waiting = NULL;
	if (command.len == 0)
		return;
	for (uint16_t i = first_row[(unsigned char)command.p[0]]; i != 0; i = next_row[i - 1]) {
		const struct client_rule *r = &rows[i - 1];

		if (!slice_is_command(command, r->command))
			continue;
		/* Standard input of the program itself: no word tells. */
		if (r->kind == CLIENT_STDIN && r->after == NULL && r->word == NULL)
			c->has_secret_input = true;
		c->rules[c->n] = r;
		c->behind[c->n++] = r->after == NULL;
	}
}

/* Returns the part of a value that is the secret. */
static struct slice
secret_part(const struct client_rule *r, struct slice value)
{
	const char *from = r->from != '\0' ? memchr(value.p, r->from, value.len) : NULL, *to;

	if (r->behind != NULL) {
		size_t n = strlen(r->behind);

		from = memmem(value.p, value.len, r->behind, n);
		return from == NULL ? (struct slice){ value.p, 0 } :
		    (struct slice){ from + n, value.len - (size_t)(from + n - value.p) };
	}

	/* A user's name alone: the program asks. sqlplus /nolog has none. */
	if (r->from != '\0' && (from == NULL || (r->from == '/' && from == value.p)))
		return (struct slice){ value.p, 0 };
	if (from != NULL)
		value = (struct slice){ from + 1, value.len - (size_t)(from + 1 - value.p) };
	to = r->to != '\0' ? memrchr(value.p, r->to, value.len) : NULL;
	if (to == NULL && r->to != '\0' && r->from == ':')
		return (struct slice){ value.p, 0 };		/* host:port */
	if (to != NULL)
		value.len = (size_t)(to - value.p);
	return value;
}

/* Returns the letter in a word of options without a value, the letters of flags; NULL: it is not there. */
static const char *
find_bundled(struct slice word, const char *flags, char letter)
{
	size_t k = 1;

	if (flags == NULL || word.len < 3 || word.p[0] != '-')
		return NULL;
	while (k < word.len && word.p[k] != letter && strchr(flags, word.p[k]) != NULL)
		k++;
	return k < word.len && word.p[k] == letter ? word.p + k : NULL;
}

/* Returns whether word is the option of the row. *ret_value: the value in the same word. */
static bool
is_option(const struct client_rule *r, struct slice word, struct slice *ret_value)
{
	size_t n = strlen(r->word);
	bool is_short = n == 2;
	const char *letter;

	if (word.len >= n && memcmp(word.p, r->word, n) == 0) {
		*ret_value = (struct slice){ word.p + n, word.len - n };
		if (ret_value->len == 0)
			return r->kind != CLIENT_GLUED;
		if (r->kind == CLIENT_EXACT)
			return false;
		if (is_short || r->kind == CLIENT_GLUED)
			return true;
		ret_value->p++;			/* --user=name:secret */
		ret_value->len--;
		return word.p[n] == '=';
	}
	letter = find_bundled(word, r->flags, r->word[1]);
	if (letter == NULL)
		return false;
	*ret_value = (struct slice){ letter + 1, word.len - (size_t)(letter + 1 - word.p) };
	return true;
}

/* Reads the word by row i. */
static bool
read_by(struct client *c, size_t i, struct slice word, struct slice *ret_secret)
{
	const struct client_rule *r = c->rules[i];
	bool is_plain = word.p[0] != '-' && word.p[0] != '+';
	struct slice value;

	if (c->behind[i] == 0) {
		if (is_word(word, r->after) || find_bundled(word, r->flags, r->after[1]) != NULL) {
			c->behind[i] = 1;
			if (r->kind == CLIENT_STDIN && r->word == NULL)
				c->has_secret_input = true;
		}
		return false;
	}
	switch (r->kind) {
	case CLIENT_POSITION:
		if (!is_plain) {
			if (r->after == NULL)
				c->behind[i] = UINT8_MAX;
			return false;
		}
		if (c->behind[i] == UINT8_MAX || c->behind[i]++ != r->position)
			return false;
		c->behind[i] = UINT8_MAX;
		*ret_secret = secret_part(r, word);
		return true;
	case CLIENT_PAIRS: {
		const char *equals = memchr(word.p, '=', word.len);

		if (!is_plain || equals == NULL)
			return false;
		*ret_secret = (struct slice){ equals + 1, word.len - (size_t)(equals + 1 - word.p) };
		return true;
	}
	case CLIENT_STDIN:
		c->has_secret_input |= r->word != NULL && (is_word(word, r->word) || is_option(r, word, &value));
		return false;
	default:
		if (!is_option(r, word, &value))
			return false;
		if (value.len > 0)
			*ret_secret = secret_part(r, value);
		else if (r->kind != CLIENT_ATTACHED)
			c->waiting = r;
		return true;
	}
}

bool
client_read(struct client *c, struct slice word, struct slice *ret_secret)
{
	*ret_secret = (struct slice){ word.p, 0 };
	if (c->waiting != NULL) {
		*ret_secret = secret_part(c->waiting, word);
		c->waiting = NULL;
		return true;
	}
	for (size_t i = 0; i < c->n; i++) {
		if (read_by(c, i, word, ret_secret))
			return true;
	}
	return false;
}
