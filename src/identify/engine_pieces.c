/*
 * SPDX-License-Identifier: Apache-2.0
 * engine_pieces: gathers options, words and the groups of patterns, then fills templates with them.
 */
#include "identify/engine_pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/steps.h"
#include "base/text.h"

#define FIELD_SIZE 4096		/* bytes of a field while it is built, before it is cut to size */
#define ID_MARK_SIZE 18		/* "~", 16 digits, NUL */
#define NUMBER_MAX 10000000	/* a larger number of an attempt is none */

void
pieces_init(struct engine_pieces *p, const struct candidate *s)
{
	p->s = s;
	p->n = 0;
	p->names_bits = 0;
	if (s->exe != NULL)
		p->names_bits |= rule_name_bit(text_base_name(s->exe));
	if (s->words.script != NULL)
		p->names_bits |= rule_name_bit(text_base_name(s->words.script));
	if (s->words.class != NULL)
		p->names_bits |= rule_name_bit(s->words.class);
	p->command.is_made = p->parent_command.is_made = false;
}

static void
command_make(struct engine_command *c, const struct candidate *s)
{
	if (c->is_made)
		return;
	c->is_made = true;
	c->len = 0;
	for (size_t i = 0; i < s->argc; i++) {
		size_t len = strlen(s->argv[i]), room = sizeof(c->text) - 1 - c->len;

		if (i > 0 && room > 0) {
			c->text[c->len++] = ' ';
			room--;
		}
		if (len > room)
			len = room;
		memcpy(c->text + c->len, s->argv[i], len);
		c->len += len;
	}
	c->text[c->len] = '\0';
}

static void
add(struct engine_pieces *p, const char *name, const char *at, size_t len)
{
	if (len > 0 && p->n < ENGINE_PIECES_MAX)
		p->list[p->n++] = (struct engine_piece){ name, at, len };
}

/* Returns the first piece of that name: the one found earliest counts. */
static const struct engine_piece *
find_piece(const struct engine_pieces *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->list[i].name, name) == 0)
			return &p->list[i];
	}
	return NULL;
}

/* Returns the value of "-w X" or "-w=X", or NULL. *ret_next: the value is, or would be, the next argument. */
static const char *
option_value(const struct candidate *s, size_t i, const char *const *words, bool *ret_next)
{
	const char *arg = s->argv[i];

	*ret_next = false;
	for (; words != NULL && *words != NULL; words++) {
		size_t len = strlen(*words);

		if (strncmp(arg, *words, len) != 0)
			continue;
		if (arg[len] == '=')
			return arg + len + 1;
		if (arg[len] == '\0') {
			*ret_next = true;
			return i + 1 < s->argc ? s->argv[i + 1] : NULL;
		}
	}
	return NULL;
}

static void
gather_options(struct engine_pieces *p, const struct engine_rule *rule)
{
	for (const struct engine_words *o = rule->options; o != NULL; o = o->next) {
		for (size_t i = 1; i < p->s->argc && steps_take(i % 4 == 0); i++) {
			bool is_next;
			const char *value = option_value(p->s, i, o->words, &is_next);

			if (value != NULL) {
				add(p, o->name, value, strlen(value));
				break;
			}
		}
	}
}

static bool
takes_next(const struct candidate *s, size_t i, const struct engine_rule *rule)
{
	bool is_next;

	for (const struct engine_words *o = rule->options; o != NULL; o = o->next) {
		option_value(s, i, o->words, &is_next);
		if (is_next)
			return true;
	}
	option_value(s, i, rule->values, &is_next);
	return is_next;
}

static bool
is_one_of(const char *arg, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strcmp(arg, *words) == 0 || strcmp(text_base_name(arg), *words) == 0)
			return true;
	}
	return false;
}

static void
gather_after(struct engine_pieces *p, const struct engine_rule *rule)
{
	const struct candidate *s = p->s;

	for (const struct engine_words *a = rule->after; a != NULL; a = a->next) {
		size_t i = 0;

		while (i < s->argc && steps_take(1) && !is_one_of(s->argv[i], a->words))
			i++;
		for (i++; i < s->argc; i++) {
			if (strcmp(s->argv[i], "--") == 0) {
				if (i + 1 < s->argc)
					add(p, a->name, s->argv[i + 1], strlen(s->argv[i + 1]));
				break;
			}
			if (s->argv[i][0] != '-') {
				add(p, a->name, s->argv[i], strlen(s->argv[i]));
				break;
			}
			if (takes_next(s, i, rule))
				i++;
		}
	}
}

static bool
find_in(struct engine_pieces *p, const struct pattern *pattern, const char *text, size_t len)
{
	struct pattern_part parts[ENGINE_PIECES_MAX];
	const char *name;

	if (!pattern_find(pattern, text, len, parts, ENGINE_PIECES_MAX))
		return false;
	for (size_t i = 0; i < ENGINE_PIECES_MAX && (name = pattern_group(pattern, i)) != NULL; i++) {
		if (parts[i].at != NULL)
			add(p, name, parts[i].at, parts[i].len);
	}
	return true;
}

static bool
find_in_text(struct engine_pieces *p, const struct pattern *pattern, const char *text)
{
	return text != NULL && find_in(p, pattern, text, strlen(text));
}

static bool
look(struct engine_pieces *p, const struct engine_look *l)
{
	const struct candidate *s = p->s, *parent = s->parent;
	const struct engine_piece *piece;

	switch (l->text) {
	case ENGINE_TEXT_CWD:
		return find_in_text(p, l->pattern, s->cwd);
	case ENGINE_TEXT_ARGV:
		for (size_t i = 0; i < s->argc; i++) {
			if (find_in_text(p, l->pattern, s->argv[i]))
				return true;
		}
		return false;
	case ENGINE_TEXT_COMMAND:
		command_make(&p->command, s);
		return find_in(p, l->pattern, p->command.text, p->command.len);
	case ENGINE_TEXT_EXE:
		return find_in_text(p, l->pattern, s->exe);
	case ENGINE_TEXT_PARENT_COMMAND:
		if (parent == NULL)
			return false;
		command_make(&p->parent_command, parent);
		return find_in(p, l->pattern, p->parent_command.text, p->parent_command.len);
	case ENGINE_TEXT_PARENT_CWD:
		return parent != NULL && find_in_text(p, l->pattern, parent->cwd);
	case ENGINE_TEXT_PIECE:
		piece = find_piece(p, l->piece);
		return piece != NULL && find_in(p, l->pattern, piece->at, piece->len);
	}
	return false;
}

bool
pieces_gather(struct engine_pieces *p, const struct engine_rule *rule)
{
	p->n = 0;
	gather_options(p, rule);
	gather_after(p, rule);
	for (const struct engine_find *f = rule->finds; f != NULL; f = f->next) {
		const struct engine_look *l = f->look;

		while (l != NULL && !look(p, l))
			l = l->next;
		if (l == NULL && !f->is_optional)
			return false;
	}
	return true;
}

/* Returns the value of a name in a template: a piece, or a property of the program. */
static bool
value_of(const char *name, const char **ret, size_t *ret_len, void *arg)
{
	const struct engine_pieces *p = arg;
	const struct engine_piece *piece = find_piece(p, name);
	const struct candidate *s = p->s;
	const struct {
		const char *name, *text;
	} own[] = {
		{ "cwd", s->cwd }, { "exe", s->exe }, { "comm", s->comm }, { "tool", s->tool },
		{ "subcommand", s->words.subcommand }, { "script", s->words.script },
		{ "jar", s->words.jar }, { "class", s->words.class },
	};

	if (piece != NULL) {
		*ret = piece->at;
		*ret_len = piece->len;
		return true;
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (strcmp(own[i].name, name) == 0) {
			*ret = own[i].text;
			*ret_len = *ret != NULL ? strlen(*ret) : 0;
			return *ret_len > 0;
		}
	}
	return false;
}

/* Fills the field's first usable template into text (FIELD_SIZE bytes). False: none can be filled. */
static bool
make_field(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *text)
{
	const struct engine_templates *t = rule->fields[field];
	const struct engine_piece *piece;

	for (; t != NULL; t = t->next) {
		if (template_fill(t->template, text, FIELD_SIZE, value_of, (void *)p) && text[0] != '\0')
			return true;
	}
	if (rule->fields[field] != NULL)
		return false;
	piece = find_piece(p, engine_field_name(field));
	if (piece == NULL)
		return false;
	pieces_copy(text, FIELD_SIZE, piece->at, piece->len);
	return true;
}

void
pieces_copy(char *out, size_t size, const char *from, size_t len)
{
	size_t used = 0;

	for (size_t i = 0, width; i < len; i += width) {
		bool is_valid;

		width = text_char(from + i, len - i);
		is_valid = width > 0 && from[i] != '\0';
		if (!is_valid)
			width = 1;	/* a pattern split a character */
		if (used + width >= size)
			break;
		if (is_valid)
			memcpy(out + used, from + i, width);
		else
			out[used] = '?';
		used += width;
	}
	out[used] = '\0';
}

void
pieces_name(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size)
{
	char text[FIELD_SIZE];

	out[0] = '\0';
	if (make_field(p, rule, field, text))
		pieces_copy(out, size, text, strlen(text));
}

void
pieces_id(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size)
{
	char text[FIELD_SIZE];
	uint64_t hash = UINT64_C(0xcbf29ce484222325);	/* FNV-1a */
	size_t len;

	out[0] = '\0';
	if (!make_field(p, rule, field, text))
		return;
	len = strlen(text);
	if (len < size) {
		pieces_copy(out, size, text, len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	pieces_copy(out, size - (ID_MARK_SIZE - 1), text, len);
	len = strlen(out);
	snprintf(out + len, size - len, "~%016" PRIx64, hash);
}

/* An address has a colon before any slash: "s3://bucket", "aws:us-west-2:store". */
static bool
is_address(const char *text)
{
	return text[strcspn(text, ":/")] == ':';
}

/* Appends the components of path to out, which is an absolute path or "" for /. False: no room. */
static bool
append_path(char *out, size_t size, size_t *used, const char *path)
{
	while (*path != '\0') {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (*used > 0 && out[--*used] != '/')
				;
		} else if (len > 0 && !(len == 1 && path[0] == '.')) {
			if (*used + 1 + len >= size)
				return false;
			out[(*used)++] = '/';
			memcpy(out + *used, path, len);
			*used += len;
		}
		path += len;
		path += strspn(path, "/");
	}
	out[*used] = '\0';
	return true;
}

void
pieces_path(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, char *out,
    size_t size)
{
	char text[FIELD_SIZE];
	size_t used = 0;

	out[0] = '\0';
	if (!make_field(p, rule, field, text))
		return;
	if (is_address(text)) {
		if (strlen(text) < size)
			pieces_copy(out, size, text, strlen(text));
		return;
	}
	/* A path that is cut off names another file, so none is better. */
	if (text[0] != '/' && (p->s->cwd == NULL || p->s->cwd[0] != '/' ||
	    !append_path(out, size, &used, p->s->cwd))) {
		out[0] = '\0';
		return;
	}
	if (!append_path(out, size, &used, text))
		out[0] = '\0';
	else if (used == 0)
		memcpy(out, "/", 2);
}

bool
pieces_number(const struct engine_pieces *p, const struct engine_rule *rule, enum engine_field field, int *ret)
{
	char text[FIELD_SIZE];
	uint64_t number;

	if (!make_field(p, rule, field, text) || !text_number(text, NUMBER_MAX, &number))
		return false;
	*ret = (int)number;
	return true;
}
