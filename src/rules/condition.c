/*
 * SPDX-License-Identifier: Apache-2.0
 * condition: conditions, out of a mapping whose keys must all hold.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"
#include "config/suggest.h"
#include "rules/reader.h"

enum {
	COMM_LEN_MAX = 15,		/* what the kernel keeps of a name */
	UID_MAX = UINT32_MAX - 1,	/* the last stands for none */
};

struct conditions {
	struct rules_reader *r;
	uint64_t kinds;			/* that may be there */
	const char *const *others;	/* keys that are none, and are left alone */
};

static struct condition *read_map(const struct conditions *c, const struct yaml_node *map);

static struct condition *
new_condition(struct rules_reader *r, enum condition_kind kind)
{
	struct condition *c = ruleset_alloc(r->set, sizeof(*c));

	if (c == NULL)
		r->error = -ENOMEM;
	else
		c->kind = kind;
	return c;
}

/* What can never hold is told here, while somebody looks. */
static bool
check_text(struct rules_reader *r, enum condition_kind kind, const char *key, const struct yaml_node *n)
{
	const char *text = n->text;
	char show[SHOWN_SIZE];

	shown(text, show);
	switch (kind) {
	case CONDITION_PATH:
	case CONDITION_CWD:
	case CONDITION_CGROUP:
		if (text[0] != '/') {
			rules_error(r, n, "%s: '%s' is not an absolute path: begin it with /", key, show);
			return false;
		}
		if (kind != CONDITION_CGROUP && strchr(text, '*') != NULL) {
			rules_error(r, n, "%s: takes no *: end it in / to mean all below, or use %s", key,
			    kind == CONDITION_CWD ? "cwd_matches" : "exe");
			return false;
		}
		return true;
	case CONDITION_EXE:
	case CONDITION_SCRIPT:
	case CONDITION_JAR:
		if (strchr(text, '/') != NULL) {
			rules_error(r, n, "%s: '%s' is a path: give its last part%s", key, show,
			    kind == CONDITION_EXE ? ", or write path:" : "");
			return false;
		}
		if (strchr(text, '*') != NULL) {
			rules_error(r, n, "%s: takes no *: list the names, or use command_matches", key);
			return false;
		}
		return true;
	case CONDITION_COMM:
		if (strlen(text) > COMM_LEN_MAX) {
			rules_error(r, n, "comm: the kernel keeps %d bytes of a name: write '%.*s'", COMM_LEN_MAX,
			    COMM_LEN_MAX, text);
			return false;
		}
		return true;
	default:
		return true;
	}
}

static bool
parse_uid(const char *text, size_t len, uint32_t *ret)
{
	uint64_t value = 0;

	if (len == 0 || len > 10)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*ret = (uint32_t)value;
	return value <= UID_MAX;
}

/* 1000, 1000-60000 or a user's name, which may have a hyphen too. */
static bool
read_uid(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	const char *hyphen = strchr(n->text, '-');
	size_t len = strlen(n->text);
	const struct passwd *user;
	char show[SHOWN_SIZE];

	if (parse_uid(n->text, len, &c->low)) {
		c->high = c->low;
		return true;
	}
	if (hyphen != NULL && parse_uid(n->text, (size_t)(hyphen - n->text), &c->low) &&
	    parse_uid(hyphen + 1, len - (size_t)(hyphen + 1 - n->text), &c->high)) {
		if (c->low > c->high) {
			rules_error(r, n, "uid: no number is in '%s': write the lower one first",
			    shown(n->text, show));
			return false;
		}
		return true;
	}
	if (n->text[strspn(n->text, "0123456789-")] == '\0') {
		rules_error(r, n, "uid: '%s' is no uid: give a number up to %u, two of them as 1000-60000, or a "
		    "user's name", shown(n->text, show), UID_MAX);
		return false;
	}
	user = getpwnam(n->text);
	if (user == NULL) {
		rules_error(r, n, "uid: no user '%s' on this host: give a name that it knows, or a number",
		    shown(n->text, show));
		return false;
	}
	c->low = c->high = user->pw_uid;
	return true;
}

/* One value of a key. */
static struct condition *
read_value(const struct conditions *cs, enum condition_kind kind, const char *key, const struct yaml_node *n)
{
	struct condition *c;
	bool is_good;

	switch (kind) {
	case CONDITION_ANY:
	case CONDITION_ALL:
	case CONDITION_NOT:
	case CONDITION_PARENT:
		return read_map(cs, n);
	default:
		break;
	}
	c = new_condition(cs->r, kind);
	if (c == NULL)
		return NULL;
	switch (kind) {
	case CONDITION_ARGV_MATCHES:
	case CONDITION_COMMAND_MATCHES:
	case CONDITION_CWD_MATCHES:
	case CONDITION_CGROUP_MATCHES:
		c->pattern = rules_pattern(cs->r, n);
		is_good = c->pattern != NULL;
		break;
	case CONDITION_UID:
		c->text = rules_text(cs->r, n);
		is_good = c->text != NULL && read_uid(cs->r, n, c);
		break;
	default:
		c->text = rules_text(cs->r, n);
		is_good = c->text != NULL && check_text(cs->r, kind, key, n);
	}
	return is_good ? c : NULL;
}

/* Each item of a list, as children of a condition. */
static struct condition *
read_list(const struct conditions *cs, enum condition_kind kind, enum condition_kind joined_by,
    const struct yaml_node *list)
{
	struct condition *all = new_condition(cs->r, joined_by), *child;
	const struct condition **end;
	bool is_good = all != NULL;

	if (all == NULL)
		return NULL;
	if (list->first == NULL) {
		rules_error(cs->r, list, "%s: the list is empty: give a value, or remove it", list->name);
		return NULL;
	}
	end = &all->first;
	for (const struct yaml_node *n = list->first; n != NULL && cs->r->error == 0; n = n->next) {
		child = read_value(cs, kind, list->name, n);
		is_good = is_good && child != NULL;
		if (child == NULL)
			continue;
		*end = child;
		end = &child->next;
	}
	return is_good && cs->r->error == 0 ? all : NULL;
}

/* What stands behind a condition's key. */
static struct condition *
read_key(const struct conditions *cs, enum condition_kind kind, const struct yaml_node *n)
{
	struct condition *c, *child;

	if (kind == CONDITION_ANY || kind == CONDITION_ALL) {
		if (n->kind != YAML_NODE_LIST) {
			rules_error(cs->r, n, "%s: this is %s: a list of mappings is wanted, such as "
			    "[{exe: a}, {exe: b}]", n->name, yaml_node_kind_name(n));
			return NULL;
		}
		return read_list(cs, kind, kind, n);
	}
	if (kind == CONDITION_NOT || kind == CONDITION_PARENT) {
		child = read_map(cs, n);
		c = child != NULL ? new_condition(cs->r, kind) : NULL;
		if (c != NULL)
			c->first = child;
		return c;
	}
	return n->kind == YAML_NODE_LIST ? read_list(cs, kind, CONDITION_ANY, n) : read_value(cs, kind, n->name, n);
}

static bool
is_other(const struct conditions *cs, const char *name)
{
	for (const char *const *other = cs->others; other != NULL && *other != NULL; other++) {
		if (strcmp(*other, name) == 0)
			return true;
	}
	return false;
}

static void
unknown_key(const struct conditions *cs, const struct yaml_node *n, bool is_misplaced)
{
	const struct yaml_node at = { .line = n->name_line, .column = n->name_column };
	char show[SHOWN_SIZE], all[512] = "";
	struct suggestion s = { 0 };

	for (const char *const *other = cs->others; other != NULL && *other != NULL; other++)
		suggest_offer(&s, n->name, *other);
	for (unsigned kind = 0; kind < CONDITION_KINDS; kind++) {
		const char *name = condition_kind_name(kind);
		size_t len = strlen(all);

		if ((cs->kinds >> kind & 1) == 0)
			continue;
		suggest_offer(&s, n->name, name);
		snprintf(all + len, sizeof(all) - len, "%s%s", len > 0 ? ", " : "", name);
	}
	shown(n->name, show);
	if (is_misplaced)
		rules_error(cs->r, &at, "condition '%s' cannot stand here: there are %s", show, all);
	else if (s.name != NULL)
		rules_error(cs->r, &at, "no condition '%s': did you mean '%s'?", show, s.name);
	else
		rules_error(cs->r, &at, "no condition '%s': there are %s", show, all);
}

/* CONDITION_KINDS: an error was added. */
static enum condition_kind
kind_of_key(const struct conditions *cs, const struct yaml_node *n)
{
	unsigned kind = 0;

	while (kind < CONDITION_KINDS && strcmp(condition_kind_name(kind), n->name) != 0)
		kind++;
	if (kind < CONDITION_KINDS && (cs->kinds >> kind & 1) != 0)
		return kind;
	unknown_key(cs, n, kind < CONDITION_KINDS);
	return CONDITION_KINDS;
}

static struct condition *
read_map(const struct conditions *cs, const struct yaml_node *map)
{
	struct conditions below = *cs;
	struct condition *all, *child;
	const struct condition **end;
	bool is_good = true;

	below.others = NULL;	/* only where a rule has them */
	if (map->kind != YAML_NODE_MAP) {
		rules_error(cs->r, map, "this is %s: a mapping of conditions is wanted, such as {exe: bwa}",
		    yaml_node_kind_name(map));
		return NULL;
	}
	all = new_condition(cs->r, CONDITION_ALL);
	if (all == NULL)
		return NULL;
	end = &all->first;
	for (const struct yaml_node *n = map->first; n != NULL && cs->r->error == 0; n = n->next) {
		enum condition_kind kind;

		if (is_other(cs, n->name))
			continue;
		kind = kind_of_key(cs, n);
		child = kind < CONDITION_KINDS ? read_key(&below, kind, n) : NULL;
		is_good = is_good && child != NULL;
		if (child == NULL)
			continue;
		*end = child;
		end = &child->next;
	}
	if (!is_good || cs->r->error < 0)
		return NULL;
	if (all->first == NULL) {
		rules_error(cs->r, map, "there is no condition here: it would hold for every program; give one, "
		    "such as exe: bwa");
		return NULL;
	}
	/* A single one needs no list around it. */
	return all->first->next == NULL ? (struct condition *)all->first : all;
}

const struct condition *
rules_condition_beside(struct rules_reader *r, const struct yaml_node *item, uint64_t kinds,
    const char *const *others)
{
	const struct conditions cs = { r, kinds, others };

	return item != NULL && r->error == 0 ? read_map(&cs, item) : NULL;
}

const struct condition *
rules_condition(struct rules_reader *r, const struct yaml_node *n, uint64_t kinds)
{
	return rules_condition_beside(r, n, kinds, NULL);
}
