/*
 * SPDX-License-Identifier: Apache-2.0
 * read: reads and checks single values and linked lists of them, and adds errors.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "rules/reader.h"

void *
rules_alloc(struct rules_reader *r, size_t size)
{
	void *p = ruleset_alloc(r->set, size);

	if (p == NULL)
		r->error = -ENOMEM;
	return p;
}

const char *
rules_string(struct rules_reader *r, const char *text)
{
	const char *copy = ruleset_string(r->set, text, strlen(text));

	if (copy == NULL)
		r->error = -ENOMEM;
	return copy;
}

static void __attribute__((format(printf, 5, 0)))
add_error(struct rules_reader *r, unsigned line, unsigned column, const char *name, const char *format, va_list args)
{
	char what[1024], show[SHOWN_SIZE];

	vsnprintf(what, sizeof(what), format, args);
	config_error_add(r->errors, r->path, line, column, "%s%s%s", name != NULL ? shown(name, show) : "",
	    name != NULL ? ": " : "", what);
}

bool
rules_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_error(r, n->line, n->column, NULL, format, args);
	va_end(args);
	return false;
}

bool
rules_name_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_error(r, n->name_line, n->name_column, NULL, format, args);
	va_end(args);
	return false;
}

/* An error that begins with the name of the value's key, "exe: ", if it is not in a list. */
static bool __attribute__((format(printf, 3, 4)))
value_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_error(r, n->line, n->column, n->name, format, args);
	va_end(args);
	return false;
}

bool
rules_wrong_kind(struct rules_reader *r, const struct yaml_node *n, const char *wanted)
{
	if (n->kind == YAML_NODE_NULL)
		return value_error(r, n, "no value: give %s, or remove it", wanted);
	return value_error(r, n, "this is %s: expected %s", yaml_node_kind_name(n), wanted);
}

bool
rules_want(struct rules_reader *r, const struct yaml_node *n, enum yaml_node_kind kind, const char *wanted)
{
	return n->kind == kind || rules_error(r, n, "this is %s: %s", yaml_node_kind_name(n), wanted);
}

const struct yaml_node *
rules_child(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *n = map->kind == YAML_NODE_MAP ? map->first : NULL;

	while (n != NULL && strcmp(n->name, key) != 0)
		n = n->next;
	return n;
}

void
rules_set_pointer(void *field, const void *p)
{
	memcpy(field, &p, sizeof(p));
}

bool
rules_read_items(struct rules_reader *r, const struct rules_key *k, const struct yaml_node *n, void *field,
    void *context)
{
	bool is_one = k->type == RULES_ITEMS && n->kind != YAML_NODE_LIST, is_good = true;
	char *item;

	if ((k->type == RULES_LIST && !rules_want(r, n, YAML_NODE_LIST, k->wanted)) ||
	    (k->type == RULES_MAP && !rules_want(r, n, YAML_NODE_MAP, k->wanted)))
		return false;
	if (k->type == RULES_ITEMS && !is_one && n->first == NULL && k->wanted != NULL)
		return rules_error(r, n, "%s", k->wanted);
	for (memcpy(&item, field, sizeof(item)); item != NULL; memcpy(&item, field, sizeof(item)))
		field = item + k->next;
	for (const struct yaml_node *one = is_one ? n : n->first; one != NULL && r->error == 0;
	    one = is_one ? NULL : one->next) {
		item = rules_alloc(r, k->size);
		if (item == NULL)
			return false;
		is_good = k->read(r, &(struct rules_value){ one, k, context }, item) && is_good;
		rules_set_pointer(field, item);
		field = item + k->next;
	}
	return is_good && r->error == 0;
}

bool
rules_share(struct rules_reader *r, const struct yaml_node *n, double *ret)
{
	char show[SHOWN_SIZE], *end = NULL;
	double value;

	if (n->kind != YAML_NODE_TEXT)
		return rules_wrong_kind(r, n, "a number");
	shown(n->text, show);
	/* strtod would also take blanks, hexadecimals, "inf" and "nan". */
	value = strtod(n->text, &end);
	if (!n->is_plain || n->text[0] == '\0' || n->text[strspn(n->text, "0123456789.eE+-")] != '\0' ||
	    *end != '\0' || !isfinite(value))
		return value_error(r, n, "'%s' is not a number", show);
	if (value < 0 || value > 1)
		return value_error(r, n, "'%s' is out of range: give 0 to 1", show);
	*ret = value;
	return true;
}

const char *
rules_text(struct rules_reader *r, const struct yaml_node *n)
{
	if (n->kind != YAML_NODE_TEXT) {
		rules_wrong_kind(r, n, "a single value");
		return NULL;
	}
	if (n->text[0] == '\0') {
		value_error(r, n, "it is empty: give a value, or remove it");
		return NULL;
	}
	return rules_string(r, n->text);
}

const char *const *
rules_texts(struct rules_reader *r, const struct yaml_node *n, size_t *ret_n)
{
	const struct yaml_node *first = n->kind == YAML_NODE_LIST ? n->first : n;
	bool is_good = true;
	const char **list;
	size_t count = 1;

	if (first == NULL) {
		rules_wrong_kind(r, n, "a value or a list of values");
		return NULL;
	}
	/* A single value's next is the next key of its mapping. */
	for (const struct yaml_node *c = first->next; n->kind == YAML_NODE_LIST && c != NULL; c = c->next)
		count++;
	list = rules_alloc(r, (count + 1) * sizeof(*list));
	if (list == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++, first = first->next) {
		list[i] = rules_text(r, first);
		is_good = is_good && list[i] != NULL;
	}
	if (ret_n != NULL)
		*ret_n = count;
	return is_good ? list : NULL;
}

bool
rules_bool(struct rules_reader *r, const struct yaml_node *n, bool *ret)
{
	char show[SHOWN_SIZE];

	if (n->kind != YAML_NODE_TEXT)
		return rules_wrong_kind(r, n, "true or false");
	if (!n->is_plain || (strcmp(n->text, "true") != 0 && strcmp(n->text, "false") != 0))
		return value_error(r, n, "'%s' is neither true nor false, without quotes", shown(n->text, show));
	*ret = n->text[0] == 't';
	return true;
}

struct pattern *
rules_pattern(struct rules_reader *r, const struct yaml_node *n)
{
	const char *text = rules_text(r, n);
	struct pattern *p;
	char error[256];

	if (text == NULL)
		return NULL;
	p = pattern_new(text, error, sizeof(error));
	if (p == NULL) {
		value_error(r, n, "not a regular expression: %s", error);
		return NULL;
	}
	if (ruleset_keep_pattern(r->set, p) < 0) {
		r->error = -ENOMEM;
		return NULL;
	}
	return p;
}

const struct template *
rules_template(struct rules_reader *r, const struct yaml_node *n, const char *const *names)
{
	char show[SHOWN_SIZE], hint[SUGGEST_LIST_SIZE], error[256];
	const char *text = rules_text(r, n), *name;
	const struct template *t;
	bool is_good = true;

	if (text == NULL)
		return NULL;
	t = template_new(r->set, text, strlen(text), error, sizeof(error));
	if (t == NULL) {
		value_error(r, n, "%s", error);
		return NULL;
	}
	for (size_t i = 0; names != NULL && (name = template_name(t, i)) != NULL; i++) {
		size_t k = 0;

		while (names[k] != NULL && strcmp(names[k], name) != 0)
			k++;
		if (names[k] != NULL)
			continue;
		is_good = value_error(r, n, "{%s} is not allowed here: %s", shown(name, show),
		    suggest_hint(name, names, "{}", hint));
	}
	return is_good ? t : NULL;
}

struct rule_location
rules_location(struct rules_reader *r, const struct yaml_node *item)
{
	const struct yaml_node *name = rules_child(item, "name");
	struct rule_location location = { .file = r->file, .line = item->line };
	char buf[512];

	if (name != NULL)
		location.name = rules_text(r, name);
	if (location.name == NULL) {
		snprintf(buf, sizeof(buf), "%s:%u", r->file, item->line);
		location.name = rules_string(r, buf);
	}
	return location;
}
