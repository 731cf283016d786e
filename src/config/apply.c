/*
 * SPDX-License-Identifier: Apache-2.0
 * apply: the values of one file, checked key by key and written over those of a configuration.
 */
#include "config/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"
#include "config/keys.h"
#include "config/properties.h"
#include "config/suggest.h"
#include "config/values.h"
#include "config/yaml.h"

enum {
	COMMAND_MAX = 64,	/* arguments of a secret's command */
	WHY_SIZE = 640,
	SECTION_SIZE = 64,
};

struct apply {
	struct config *c;
	struct config_errors *errors;
	unsigned file;
	const char *file_name;
};

#define WRONG(a, node, ...)                                                                        \
	config_error_add((a)->errors, (a)->file_name, (node)->line, (node)->column, __VA_ARGS__)
#define WRONG_NAME(a, node, ...)                                                                   \
	config_error_add((a)->errors, (a)->file_name, (node)->name_line, (node)->name_column, __VA_ARGS__)

static struct config_location
location_of(const struct apply *a, const struct yaml_node *n)
{
	return (struct config_location){ a->file, n->name_line, n->name_column };
}

/* What an error about a value of the wrong kind suggests for this key. */
static const char *
example(const struct key *k)
{
	switch (k->type) {
	case KEY_LIST:
		return "expected a list, such as [a, b]";
	case KEY_MAP:
		return "expected a mapping, such as {name: value}";
	case KEY_SECRETS:
		return "expected a mapping, such as {sasl.password: {file: /PATH}}";
	case KEY_SECTION:
		return "expected a mapping of its keys";
	default:
		return "expected a single value";
	}
}

static void
wrong_kind(struct apply *a, const struct key *k, const struct yaml_node *n)
{
	if (n->kind == YAML_NODE_NULL)
		WRONG(a, n, "%s: no value: give one, or remove the line", k->name);
	else
		WRONG(a, n, "%s: this is %s: %s", k->name, yaml_node_kind_name(n), example(k));
}

static int
apply_value(struct apply *a, const struct key *k, const struct yaml_node *n)
{
	char why[WHY_SIZE];
	int r;

	if (n->kind != YAML_NODE_TEXT) {
		wrong_kind(a, k, n);
		return 0;
	}
	if ((k->type == KEY_BOOL || k->type == KEY_NUMBER) && !n->is_plain) {
		WRONG(a, n, "%s: this is text in quotes: write it without", k->name);
		return 0;
	}
	r = value_set(k, key_field(k, a->c), n->text, why, sizeof(why));
	if (r == -EINVAL)
		WRONG(a, n, "%s: %s", k->name, why);
	return r == -ENOMEM ? r : 0;
}

/* Appends an item of a list to s. *ret_good becomes false where it is wrong. 0 or -ENOMEM. */
static int
read_item(struct apply *a, const struct key *k, const struct yaml_node *n, struct config_strings *s, bool *ret_good)
{
	char why[WHY_SIZE], show[SHOWN_SIZE];

	if (n->kind != YAML_NODE_TEXT) {
		WRONG(a, n, "%s: this item is %s: expected a single value", k->name, yaml_node_kind_name(n));
		*ret_good = false;
		return 0;
	}
	if (k->type == KEY_LIST && !value_check_text(k, n->text, why, sizeof(why))) {
		WRONG(a, n, "%s: %s", k->name, why);
		*ret_good = false;
		return 0;
	}
	for (size_t i = 0; k->type == KEY_LIST && i < s->n; i++) {
		if (strcmp(s->list[i], n->text) != 0)
			continue;
		WRONG(a, n, "%s: '%s' is already in the list: remove one", k->name, shown(n->text, show));
		*ret_good = false;
		return 0;
	}
	return strings_add(s, n->text);
}

/* Appends the texts of a list to s. *ret_good becomes false where one of them is wrong. 0 or -ENOMEM. */
static int
read_texts(struct apply *a, const struct key *k, const struct yaml_node *list, struct config_strings *s,
    bool *ret_good)
{
	int r = 0;

	for (const struct yaml_node *n = list->first; n != NULL && r == 0; n = n->next)
		r = read_item(a, k, n, s, ret_good);
	return r;
}

static size_t
count(const struct yaml_node *n)
{
	size_t i = 0;

	for (const struct yaml_node *child = n->first; child != NULL; child = child->next)
		i++;
	return i;
}

static int
apply_list(struct apply *a, const struct key *k, const struct yaml_node *n)
{
	struct config_strings *field = key_field(k, a->c), new = { 0 };
	bool good = true, is_one = k->may_be_one && n->kind == YAML_NODE_TEXT;
	size_t items = count(n);
	char show[SHOWN_SIZE];
	int r;

	if (n->kind == YAML_NODE_TEXT && !is_one) {
		/* Only a valid text is shown: another may hold a password. */
		char why[WHY_SIZE];

		if (value_check_text(k, n->text, why, sizeof(why)))
			WRONG(a, n, "%s: expected a list: write [\"%s\"]", k->name, shown(n->text, show));
		else
			WRONG(a, n, "%s: expected a list, such as [a, b]; and %s", k->name, why);
		return 0;
	}
	if (n->kind != YAML_NODE_LIST && !is_one) {
		wrong_kind(a, k, n);
		return 0;
	}
	if (!is_one && (items < k->min || items > k->max)) {
		if (items < k->min)
			WRONG(a, n, "%s: the list is empty: it needs at least one item", k->name);
		else
			WRONG(a, n, "%s: %zu items are too many: give at most %u", k->name, items,
			    (unsigned)k->max);
		return 0;
	}
	r = is_one ? read_item(a, k, n, &new, &good) : read_texts(a, k, n, &new, &good);
	if (r < 0 || !good) {
		strings_done(&new);
		return r;
	}
	strings_done(field);
	*field = new;
	return 0;
}

/* Reads {file: PATH} or {command: [ARGV…]}, which replaces the earlier secret as a whole. 0 or -ENOMEM. */
static int
apply_secret(struct apply *a, const struct key *k, const char *name, struct config_secret *field,
    const struct yaml_node *n)
{
	const struct yaml_node *source = n->kind == YAML_NODE_MAP ? n->first : NULL;
	static const struct key path = { .what = "path", .check = NULL };
	struct config_secret new = { 0 };
	bool good = true;
	char why[WHY_SIZE], show[SHOWN_SIZE];
	int r = 0;

	if (n->kind != YAML_NODE_MAP || source == NULL || source->next != NULL ||
	    (strcmp(source->name, "file") != 0 && strcmp(source->name, "command") != 0)) {
		WRONG(a, n, "%s: a secret must not be written here: use {file: /PATH} or {command: [/PATH, ARG]}",
		    shown(name, show));
		return 0;
	}
	if (strcmp(source->name, "file") == 0) {
		if (source->kind != YAML_NODE_TEXT) {
			WRONG(a, source, "%s: file is %s: expected a path", shown(name, show),
			    yaml_node_kind_name(source));
			return 0;
		}
		if (source->text[0] != '/' || !value_check_text(&path, source->text, why, sizeof(why))) {
			WRONG(a, source, "%s: file is not an absolute path: begin it with /",
			    shown(name, show));
			return 0;
		}
		new.file = strdup(source->text);
		r = new.file == NULL ? -ENOMEM : 0;
	} else {
		size_t words = count(source);

		if (source->kind != YAML_NODE_LIST || words == 0 || words > COMMAND_MAX) {
			WRONG(a, source, "%s: command is a list of words, run without a shell: write "
			    "[/PATH, ARG]", shown(name, show));
			return 0;
		}
		r = read_texts(a, k, source, &new.command, &good);
		if (r == 0 && good && new.command.list[0][0] != '/') {
			WRONG(a, source->first, "%s: a command begins with the absolute path of the program",
			    shown(name, show));
			good = false;
		}
	}
	if (r < 0 || !good) {
		secret_done(&new);
		return r;
	}
	secret_done(field);
	*field = new;
	return 0;
}

/* Reads the value of one property; ret is as it was where that is wrong. 0 or -ENOMEM. */
static int
read_pair(struct apply *a, const struct key *k, const struct yaml_node *n, struct config_pair *ret)
{
	bool is_secret = k->type == KEY_SECRETS;
	char why[WHY_SIZE], show[SHOWN_SIZE];

	if (!is_secret && n->kind != YAML_NODE_TEXT) {
		WRONG(a, n, "%s: '%s' is %s: expected a single value", k->name, shown(n->name, show),
		    yaml_node_kind_name(n));
		return 0;
	}
	if (is_secret ? !property_check_name(n->name, why, sizeof(why)) :
	    !property_check(n->name, n->text, why, sizeof(why))) {
		WRONG_NAME(a, n, "%s: %s", k->name, why);
		return 0;
	}
	if (is_secret)
		return apply_secret(a, k, n->name, &ret->secret, n);
	ret->value = strdup(n->text);
	return ret->value != NULL ? 0 : -ENOMEM;
}

static int
apply_mapping(struct apply *a, const struct key *k, const struct yaml_node *map)
{
	struct config_pairs *field = key_field(k, a->c);
	size_t names = count(map);
	int r = 0;

	if (map->kind != YAML_NODE_MAP) {
		wrong_kind(a, k, map);
		return 0;
	}
	if (names > k->max) {
		WRONG(a, map, "%s: %zu names are too many: give at most %u", k->name, names,
		    (unsigned)k->max);
		return 0;
	}
	for (const struct yaml_node *n = map->first; n != NULL && r == 0; n = n->next) {
		struct config_pair new = { .location = location_of(a, n) };

		r = read_pair(a, k, n, &new);
		if (r < 0 || (new.value == NULL && !config_secret_is_set(&new.secret)))
			continue;
		new.name = strdup(n->name);
		r = new.name != NULL ? pairs_set(field, &new) : -ENOMEM;
		if (r < 0)
			pair_done(&new);
	}
	return r;
}

/* Writes the names of all keys of a section, as many as fit. */
static void
list_keys(const char *section, char *buf, size_t size)
{
	buf[0] = '\0';
	for (size_t i = 0; i < config_keys_n; i++) {
		if (key_is_in(&config_keys[i], section))
			snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", buf[0] != '\0' ? ", " : "",
			    key_leaf(&config_keys[i]));
	}
}

static void
unknown_key(struct apply *a, const char *section, const struct yaml_node *n)
{
	const struct key *elsewhere = key_find(n->name);
	struct suggestion near = { 0 }, far = { 0 };
	char show[SHOWN_SIZE], all[512], in[SECTION_SIZE + 8] = "";

	if (section[0] != '\0')
		snprintf(in, sizeof(in), " in %s", section);
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];

		if (key_is_in(k, section))
			suggest_offer(&near, n->name, key_leaf(k));
		else if (strcmp(key_leaf(k), n->name) == 0 && elsewhere == NULL)
			elsewhere = k;
		suggest_offer(&far, n->name, k->name);
	}
	if (near.name == NULL && elsewhere == NULL && far.name != NULL)
		elsewhere = key_find(far.name);
	list_keys(section, all, sizeof(all));
	if (elsewhere != NULL && strcmp(elsewhere->name, n->name) == 0 && strchr(n->name, '.'))
		WRONG_NAME(a, n, "no key '%s'%s: write `%s:` under `%.*s:`", shown(n->name, show), in,
		    key_leaf(elsewhere), (int)(key_leaf(elsewhere) - elsewhere->name - 1), elsewhere->name);
	else if (near.name != NULL)
		WRONG_NAME(a, n, "no key '%s'%s: did you mean '%s'?", shown(n->name, show), in, near.name);
	else if (elsewhere != NULL && key_leaf(elsewhere) != elsewhere->name)
		WRONG_NAME(a, n, "no key '%s'%s: did you mean '%s', which is `%s:` under `%.*s:`?",
		    shown(n->name, show), in, elsewhere->name, key_leaf(elsewhere),
		    (int)(key_leaf(elsewhere) - elsewhere->name - 1), elsewhere->name);
	else if (elsewhere != NULL)
		WRONG_NAME(a, n, "no key '%s'%s: '%s' is a top-level key", shown(n->name, show), in,
		    elsewhere->name);
	else
		WRONG_NAME(a, n, "no key '%s'%s: there are %s", shown(n->name, show), in, all);
}

/* Returns whether an earlier entry of map sets k by its other name. yaml.c refuses an entry with the same name. */
static bool
is_set_by_another_name(const struct yaml_node *map, const struct yaml_node *n, const struct key *k)
{
	const char *former = k->former != NULL ? strrchr(k->former, '.') : NULL;

	for (const struct yaml_node *m = map->first; former != NULL && m != n; m = m->next) {
		if (strcmp(m->name, n->name) != 0 &&
		    (strcmp(m->name, key_leaf(k)) == 0 || strcmp(m->name, former + 1) == 0))
			return true;
	}
	return false;
}

static int
apply_section(struct apply *a, const char *section, const struct yaml_node *map)
{
	int r = 0;

	for (const struct yaml_node *n = map->first; n != NULL && r == 0; n = n->next) {
		char name[SECTION_SIZE];
		const struct key *k = NULL;
		struct config_location *at;

		if ((size_t)snprintf(name, sizeof(name), "%s%s%s", section, section[0] != '\0' ? "." : "",
		    n->name) < sizeof(name))
			k = key_find(name);
		/* Names with dots are properties of librdkafka: none selects a key of a section. */
		if (k == NULL || strchr(n->name, '.') != NULL) {
			unknown_key(a, section, n);
			continue;
		}
		at = &a->c->locations[k - config_keys];
		if (is_set_by_another_name(map, n, k)) {
			WRONG_NAME(a, n, "'%s' is the same key as the one in line %u: remove one", n->name, at->line);
			continue;
		}
		*at = location_of(a, n);
		switch (k->type) {
		case KEY_SECTION:
			if (k->field != NO_FIELD)
				*(bool *)key_field(k, a->c) = true;
			if (n->kind == YAML_NODE_MAP || n->kind == YAML_NODE_NULL)
				r = apply_section(a, k->name, n);
			else
				wrong_kind(a, k, n);
			break;
		case KEY_LIST:
			r = apply_list(a, k, n);
			break;
		case KEY_MAP:
		case KEY_SECRETS:
			r = apply_mapping(a, k, n);
			break;
		case KEY_SECRET:
			r = apply_secret(a, k, k->name, key_field(k, a->c), n);
			break;
		default:
			r = apply_value(a, k, n);
		}
	}
	return r;
}

int
config_apply(struct config *c, unsigned file, const struct yaml_node *root, struct config_errors *errors)
{
	struct apply a = { c, errors, file, c->files.list[file] };

	return apply_section(&a, "", root);
}
