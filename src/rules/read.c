/*
 * SPDX-License-Identifier: Apache-2.0
 * read: single values of rules: read, checked, and told about where they are wrong.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"
#include "config/suggest.h"
#include "rules/reader.h"

enum { LIST_SIZE = 640 };	/* of what an error lists */

void
rules_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
{
	char what[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	config_error_add(r->errors, r->path, n != NULL ? n->line : 0, n != NULL ? n->column : 0, "%s", what);
}

/* At a node's name, where it has one: "exe" of `exe: sshd`. */
static const struct yaml_node *
at_name(const struct yaml_node *n, struct yaml_node *buf)
{
	if (n->name == NULL)
		return n;
	*buf = (struct yaml_node){ .line = n->name_line, .column = n->name_column };
	return buf;
}

/* How an error begins: "exe: ", or "" in a list. */
static const char *
prefix(const struct yaml_node *n, char *buf, size_t size)
{
	char show[SHOWN_SIZE];

	buf[0] = '\0';
	if (n->name != NULL)
		snprintf(buf, size, "%s: ", shown(n->name, show));
	return buf;
}

/* Names as a sentence has them: "a, b, c"; those that do not fit are left out. */
static char *
list_names(const char *const *names, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (; *names != NULL && len + strlen(*names) + 3 < size; names++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len > 0 ? ", " : "", *names);
	return buf;
}

static const char *
nearest(const char *wrong, const char *const *names)
{
	struct suggestion s = { 0 };

	for (; *names != NULL; names++)
		suggest_offer(&s, wrong, *names);
	return s.name;
}

static bool
is_one_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static void
wrong_kind(struct rules_reader *r, const struct yaml_node *n, const char *wanted)
{
	char of[SHOWN_SIZE + 8];

	if (n->kind == YAML_NODE_NULL)
		rules_error(r, n, "%snothing stands here: %s is wanted, or remove it", prefix(n, of, sizeof(of)),
		    wanted);
	else
		rules_error(r, n, "%sthis is %s: %s is wanted", prefix(n, of, sizeof(of)), yaml_node_kind_name(n),
		    wanted);
}

bool
rules_check_keys(struct rules_reader *r, const struct yaml_node *map, const char *const *keys)
{
	char all[LIST_SIZE], show[SHOWN_SIZE];
	bool is_good = true;
	struct yaml_node at;

	if (map->kind != YAML_NODE_MAP) {
		char wanted[LIST_SIZE + 32];

		snprintf(wanted, sizeof(wanted), "a mapping with %s", list_names(keys, all, sizeof(all)));
		wrong_kind(r, map, wanted);
		return false;
	}
	for (const struct yaml_node *n = map->first; n != NULL; n = n->next) {
		const char *near;

		if (is_one_of(n->name, keys))
			continue;
		is_good = false;
		near = nearest(n->name, keys);
		if (near != NULL)
			rules_error(r, at_name(n, &at), "no key '%s' here: did you mean '%s'?",
			    shown(n->name, show), near);
		else
			rules_error(r, at_name(n, &at), "no key '%s' here: there are %s", shown(n->name, show),
			    list_names(keys, all, sizeof(all)));
	}
	return is_good;
}

const struct yaml_node *
rules_child(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *n = map->kind == YAML_NODE_MAP ? map->first : NULL;

	while (n != NULL && strcmp(n->name, key) != 0)
		n = n->next;
	return n;
}

/* Without memory nothing further is read. */
static void *
no_memory(struct rules_reader *r)
{
	r->error = -ENOMEM;
	return NULL;
}

const char *
rules_text(struct rules_reader *r, const struct yaml_node *n)
{
	char of[SHOWN_SIZE + 8];
	const char *text;

	if (n == NULL)
		return NULL;
	if (n->kind != YAML_NODE_TEXT) {
		wrong_kind(r, n, "a single value");
		return NULL;
	}
	if (n->text[0] == '\0') {
		rules_error(r, n, "%sit is empty: give a value, or remove it", prefix(n, of, sizeof(of)));
		return NULL;
	}
	text = ruleset_string(r->set, n->text, strlen(n->text));
	return text != NULL ? text : no_memory(r);
}

const char *const *
rules_texts(struct rules_reader *r, const struct yaml_node *n, size_t *ret_n)
{
	const struct yaml_node *first;
	bool is_good = true;
	const char **list;
	size_t count = 1;

	if (n == NULL)
		return NULL;
	first = n;
	if (n->kind == YAML_NODE_LIST) {
		count = 0;
		for (first = n->first; first != NULL; first = first->next)
			count++;
		first = n->first;
		if (first == NULL) {
			wrong_kind(r, n, "a value, or a list of some");
			return NULL;
		}
	}
	list = ruleset_alloc(r->set, (count + 1) * sizeof(*list));
	if (list == NULL)
		return no_memory(r);
	/* Not to the end of first's list: a single value's next is the mapping's next key. */
	for (size_t i = 0; i < count; i++, first = first->next) {
		list[i] = rules_text(r, first);
		is_good = is_good && list[i] != NULL;
	}
	if (!is_good)
		return NULL;
	if (ret_n != NULL)
		*ret_n = count;
	return list;
}

bool
rules_bool(struct rules_reader *r, const struct yaml_node *n, bool *ret)
{
	char of[SHOWN_SIZE + 8], show[SHOWN_SIZE];

	if (n == NULL)
		return false;
	if (n->kind != YAML_NODE_TEXT) {
		wrong_kind(r, n, "true or false");
		return false;
	}
	if (!n->is_plain || (strcmp(n->text, "true") != 0 && strcmp(n->text, "false") != 0)) {
		rules_error(r, n, "%s'%s' is neither true nor false, without quotes", prefix(n, of, sizeof(of)),
		    shown(n->text, show));
		return false;
	}
	*ret = n->text[0] == 't';
	return true;
}

bool
rules_number(struct rules_reader *r, const struct yaml_node *n, double low, double high, double *ret)
{
	char of[SHOWN_SIZE + 8], show[SHOWN_SIZE];
	double value;
	char *end;

	if (n == NULL)
		return false;
	if (n->kind != YAML_NODE_TEXT) {
		wrong_kind(r, n, "a number");
		return false;
	}
	/* strtod would also take blanks, hexadecimals, "inf" and "nan". */
	if (!n->is_plain || n->text[0] == '\0' || n->text[strspn(n->text, "0123456789.eE+-")] != '\0') {
		rules_error(r, n, "%s'%s' is not a number", prefix(n, of, sizeof(of)), shown(n->text, show));
		return false;
	}
	value = strtod(n->text, &end);
	if (*end != '\0' || !isfinite(value)) {
		rules_error(r, n, "%s'%s' is not a number", prefix(n, of, sizeof(of)), shown(n->text, show));
		return false;
	}
	if (value < low || value > high) {
		rules_error(r, n, "%s'%s' is out of range: give %g to %g", prefix(n, of, sizeof(of)),
		    shown(n->text, show), low, high);
		return false;
	}
	*ret = value;
	return true;
}

struct pattern *
rules_pattern(struct rules_reader *r, const struct yaml_node *n)
{
	char of[SHOWN_SIZE + 8], error[256];
	const char *text = rules_text(r, n);
	struct pattern *p;

	if (text == NULL)
		return NULL;
	p = pattern_new(text, error, sizeof(error));
	if (p == NULL) {
		rules_error(r, n, "%snot a regular expression: %s", prefix(n, of, sizeof(of)), error);
		return NULL;
	}
	if (ruleset_keep_pattern(r->set, p) < 0)
		return no_memory(r);
	return p;
}

const struct template *
rules_template(struct rules_reader *r, const struct yaml_node *n, const char *const *names)
{
	char of[SHOWN_SIZE + 8], show[SHOWN_SIZE], all[LIST_SIZE], error[256];
	const char *text = rules_text(r, n), *name;
	const struct template *t;
	bool is_good = true;

	if (text == NULL)
		return NULL;
	t = template_new(r->set, text, strlen(text), error, sizeof(error));
	if (t == NULL) {
		rules_error(r, n, "%s%s", prefix(n, of, sizeof(of)), error);
		return NULL;
	}
	for (size_t i = 0; names != NULL && (name = template_name(t, i)) != NULL; i++) {
		const char *near;

		if (is_one_of(name, names))
			continue;
		is_good = false;
		near = nearest(name, names);
		if (near != NULL)
			rules_error(r, n, "%sno {%s} can stand here: did you mean {%s}?",
			    prefix(n, of, sizeof(of)), shown(name, show), near);
		else if (names[0] == NULL)
			rules_error(r, n, "%sno {%s} can stand here: there are no names", prefix(n, of, sizeof(of)),
			    shown(name, show));
		else
			rules_error(r, n, "%sno {%s} can stand here: there are %s", prefix(n, of, sizeof(of)),
			    shown(name, show), list_names(names, all, sizeof(all)));
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
		location.name = ruleset_string(r->set, buf, strlen(buf));
		if (location.name == NULL)
			no_memory(r);
	}
	return location;
}
