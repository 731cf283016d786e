/*
 * SPDX-License-Identifier: Apache-2.0
 * yaml: one YAML file as a tree of nodes with their source locations.
 */
#include "config/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/errors.h"

const struct yaml_form yaml_config = {
	.nodes_max = 4096,
	.beyond = "that is no configuration",
	.name = "interval",
	.line = "interval: 10s",
};

struct reader {
	const struct yaml_form *form;
	yaml_parser_t parser;
	yaml_event_t event;		/* owned while has_event */
	bool has_event;
	const char *file;
	const char *text;
	size_t len;
	struct config_errors *errors;
	unsigned nodes;
};

void
yaml_node_free(struct yaml_node *n)
{
	while (n != NULL) {
		struct yaml_node *next = n->next;

		yaml_node_free(n->first);	/* no deeper than YAML_DEPTH_MAX */
		free(n->text);
		free(n->name);
		free(n);
		n = next;
	}
}

const char *
yaml_node_kind_name(const struct yaml_node *n)
{
	static const char *const names[] = { "nothing", "a single value", "a list", "a mapping" };

	return names[n->kind];
}

/* Adds the error that libyaml found, with its location. */
static int
syntax_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	unsigned line = (unsigned)p->problem_mark.line + 1, column = (unsigned)p->problem_mark.column + 1;
	const char *problem = p->problem != NULL ? p->problem : "it is not YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR) {
		/* For invalid UTF-8, libyaml has only the offset. */
		line = column = 1;
		for (size_t i = 0; i < p->problem_offset && i < r->len; i++) {
			column = r->text[i] == '\n' ? 1 : column + 1;
			line += r->text[i] == '\n';
		}
	}
	if (strstr(problem, "cannot start any token") != NULL && p->problem_mark.index < r->len &&
	    memchr(r->text, '\t', r->len) != NULL)
		problem = "found a character that cannot start any token; YAML is indented by spaces, "
		    "not by tabs";
	if (p->context != NULL)
		config_error_add(r->errors, r->file, line, column, "not YAML: %s, %s (line %zu)",
		    problem, p->context, p->context_mark.line + 1);
	else
		config_error_add(r->errors, r->file, line, column, "not YAML: %s", problem);
	return -EINVAL;
}

static int __attribute__((format(printf, 2, 3)))
refuse(struct reader *r, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	config_error_add(r->errors, r->file, (unsigned)r->event.start_mark.line + 1,
	    (unsigned)r->event.start_mark.column + 1, "%s", what);
	return -EINVAL;
}

static int
next_event(struct reader *r)
{
	if (r->has_event)
		yaml_event_delete(&r->event);
	r->has_event = false;
	if (!yaml_parser_parse(&r->parser, &r->event))
		return syntax_error(r);
	r->has_event = true;
	return 0;
}

static bool
is_null(const char *text)
{
	return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
	    strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static int
check_decoration(struct reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		return refuse(r, "anchors (&name) are not allowed: write the value out");
	if (tag != NULL)
		return refuse(r, "tags (!name) are not allowed: remove the tag");
	return 0;
}

static struct yaml_node *
new_node(struct reader *r, enum yaml_node_kind kind)
{
	struct yaml_node *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->kind = kind;
	n->line = (unsigned)r->event.start_mark.line + 1;
	n->column = (unsigned)r->event.start_mark.column + 1;
	return n;
}

static int
read_scalar(struct reader *r, struct yaml_node **ret)
{
	const char *text = (const char *)r->event.data.scalar.value;
	struct yaml_node *n;

	if (strlen(text) != r->event.data.scalar.length)
		return refuse(r, "the value holds a NUL character: remove it");
	n = new_node(r, YAML_NODE_TEXT);
	if (n == NULL)
		return -ENOMEM;
	n->is_plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (n->is_plain && is_null(text)) {
		n->kind = YAML_NODE_NULL;
	} else {
		n->text = strdup(text);
		if (n->text == NULL) {
			free(n);
			return -ENOMEM;
		}
	}
	*ret = n;
	return 0;
}

static int read_node(struct reader *r, unsigned depth, struct yaml_node **ret);

static int
read_list(struct reader *r, unsigned depth, struct yaml_node *list)
{
	struct yaml_node **end = &list->first;
	int e;

	for (;;) {
		e = next_event(r);
		if (e < 0 || r->event.type == YAML_SEQUENCE_END_EVENT)
			return e;
		e = read_node(r, depth, end);
		if (e < 0)
			return e;
		end = &(*end)->next;
	}
}

static void
check_duplicate(struct reader *r, const struct yaml_node *map, const struct yaml_node *child)
{
	char show[SHOWN_SIZE];

	for (const struct yaml_node *n = map->first; n != child; n = n->next) {
		if (strcmp(n->name, child->name) == 0) {
			config_error_add(r->errors, r->file, child->name_line, child->name_column,
			    "'%s' is set twice, first in line %u: remove one",
			    shown(child->name, show), n->name_line);
			return;
		}
	}
}

static int
read_map(struct reader *r, unsigned depth, struct yaml_node *map)
{
	struct yaml_node **end = &map->first, *key;
	unsigned names = 0;
	int e;

	for (;;) {
		char *name = NULL;

		e = next_event(r);
		if (e < 0 || r->event.type == YAML_MAPPING_END_EVENT)
			return e;
		if (r->event.type != YAML_SCALAR_EVENT && r->event.type != YAML_ALIAS_EVENT)
			return refuse(r, "expected a name, such as `%s:`", r->form->name);
		if (++names > YAML_NAMES_MAX)
			return refuse(r, "more than %d names in one mapping", YAML_NAMES_MAX);
		e = read_node(r, depth, &key);
		if (e < 0)
			return e;
		name = key->text != NULL ? key->text : strdup("");
		key->text = NULL;
		if (name == NULL)
			e = -ENOMEM;
		if (e == 0)
			e = next_event(r);
		if (e == 0)
			e = read_node(r, depth, end);
		if (e < 0) {
			free(name);
			yaml_node_free(key);
			return e;
		}
		(*end)->name = name;
		(*end)->name_line = key->line;
		(*end)->name_column = key->column;
		yaml_node_free(key);
		check_duplicate(r, map, *end);
		end = &(*end)->next;
	}
}

/* Reads the node that begins with the current event. On failure *ret is NULL. */
static int
read_node(struct reader *r, unsigned depth, struct yaml_node **ret)
{
	const yaml_event_t *event = &r->event;
	struct yaml_node *n;
	bool is_map;
	int e;

	if (++r->nodes > r->form->nodes_max)
		return refuse(r, "more than %u values in one file: %s", r->form->nodes_max, r->form->beyond);
	if (depth > YAML_DEPTH_MAX)
		return refuse(r, "nested more than 16 levels deep; no key needs that");
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return refuse(r, "aliases (*name) are not allowed: write the value out");
	case YAML_SCALAR_EVENT:
		e = check_decoration(r, event->data.scalar.anchor, event->data.scalar.tag);
		return e < 0 ? e : read_scalar(r, ret);
	case YAML_SEQUENCE_START_EVENT:
		is_map = false;
		e = check_decoration(r, event->data.sequence_start.anchor,
		    event->data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		is_map = true;
		e = check_decoration(r, event->data.mapping_start.anchor, event->data.mapping_start.tag);
		break;
	default:
		return refuse(r, "expected a value");
	}
	if (e < 0)
		return e;
	n = new_node(r, is_map ? YAML_NODE_MAP : YAML_NODE_LIST);
	if (n == NULL)
		return -ENOMEM;
	e = is_map ? read_map(r, depth + 1, n) : read_list(r, depth + 1, n);
	if (e < 0) {
		yaml_node_free(n);
		return e;
	}
	*ret = n;
	return 0;
}

/* Reads the only document of the stream, which may be absent. */
static int
read_stream(struct reader *r, struct yaml_node **ret)
{
	int e = next_event(r);

	if (e == 0)
		e = next_event(r);	/* behind the stream's start */
	if (e < 0)
		return e;
	if (r->event.type == YAML_STREAM_END_EVENT) {
		*ret = new_node(r, YAML_NODE_MAP);
		return *ret != NULL ? 0 : -ENOMEM;
	}
	e = next_event(r);
	if (e == 0)
		e = read_node(r, 1, ret);
	if (e == 0)
		e = next_event(r);	/* the document's end */
	if (e == 0)
		e = next_event(r);
	if (e < 0)
		return e;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return refuse(r, "a second document begins here: one file has one; remove the ---");
	if ((*ret)->kind == YAML_NODE_NULL)
		(*ret)->kind = YAML_NODE_MAP;	/* a lone --- or ~ */
	if ((*ret)->kind != YAML_NODE_MAP) {
		config_error_add(r->errors, r->file, (*ret)->line, (*ret)->column,
		    "the file is %s: it must be a mapping, lines such as `%s`", yaml_node_kind_name(*ret),
		    r->form->line);
		return -EINVAL;
	}
	return 0;
}

int
yaml_read(const struct yaml_form *form, const char *file, const char *text, size_t len,
    struct yaml_node **ret, struct config_errors *errors)
{
	struct reader r = { .form = form, .file = file, .text = text, .len = len, .errors = errors };
	struct yaml_node *root = NULL;
	int e;

	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	e = read_stream(&r, &root);
	if (r.has_event)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (e < 0) {
		yaml_node_free(root);
		return e;
	}
	*ret = root;
	return 0;
}
