/*
 * SPDX-License-Identifier: Apache-2.0
 * condition: reads conditions from a mapping whose keys must all hold.
 */
#include <pwd.h>
#include <string.h>

#include "rules/reader.h"

enum {
	COMM_LEN_MAX = 15,		/* bytes that the kernel keeps of a name */
	UID_MAX = UINT32_MAX - 1,	/* the last number means no user */
	OTHERS_MAX = 2,			/* keys beside conditions */
};

/* What a mapping of conditions may hold. */
struct conditions {
	enum condition_kind without;	/* the kind that may not be used; 0: none */
	const char *const *others;	/* keys that are no conditions, which are ignored; NULL-terminated, or NULL */
};

static const char a_mapping[] = "expected a mapping of conditions, such as {exe: bwa}";

static bool read_map(struct rules_reader *r, struct conditions *cs, const struct yaml_node *map, struct condition *all);

static bool
read_text(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	c->text = rules_text(r, n);
	return c->text != NULL;
}

static bool
read_pattern(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	c->pattern = rules_pattern(r, n);
	return c->pattern != NULL;
}

static bool
read_path(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	char show[SHOWN_SIZE];

	if (!read_text(r, n, c))
		return false;
	if (c->text[0] != '/')
		return rules_error(r, n, "%s: '%s' is not an absolute path: begin it with /", condition_kind_name(c->kind),
		    shown(c->text, show));
	if (c->kind != CONDITION_CGROUP && strchr(c->text, '*') != NULL)
		return rules_error(r, n, "%s: takes no *: end it in / to mean all below, or use %s",
		    condition_kind_name(c->kind), c->kind == CONDITION_CWD ? "cwd_matches" : "exe");
	return true;
}

static bool
read_base_name(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	char show[SHOWN_SIZE];

	if (!read_text(r, n, c))
		return false;
	if (strchr(c->text, '/') != NULL)
		return rules_error(r, n, "%s: '%s' is a path: give its last part%s", condition_kind_name(c->kind),
		    shown(c->text, show), c->kind == CONDITION_EXE ? ", or write path:" : "");
	if (strchr(c->text, '*') != NULL)
		return rules_error(r, n, "%s: takes no *: list the names, or use command_matches",
		    condition_kind_name(c->kind));
	return true;
}

static bool
read_comm(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	return read_text(r, n, c) && (strlen(c->text) <= COMM_LEN_MAX ||
	    rules_error(r, n, "comm: the kernel keeps %d bytes of a name: write '%.*s'", COMM_LEN_MAX,
	    COMM_LEN_MAX, c->text));
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

/* Reads 1000, 1000-60000 or a user's name, which may have a hyphen too. */
static bool
read_uid(struct rules_reader *r, const struct yaml_node *n, struct condition *c)
{
	const struct passwd *user;
	const char *hyphen;
	char show[SHOWN_SIZE];
	size_t len;

	if (!read_text(r, n, c))
		return false;
	shown(c->text, show);
	len = strlen(c->text);
	hyphen = strchr(c->text, '-');
	if (parse_uid(c->text, len, &c->low)) {
		c->high = c->low;
		return true;
	}
	if (hyphen != NULL && parse_uid(c->text, (size_t)(hyphen - c->text), &c->low) &&
	    parse_uid(hyphen + 1, len - (size_t)(hyphen + 1 - c->text), &c->high))
		return c->low <= c->high ||
		    rules_error(r, n, "uid: no number is in '%s': write the lower one first", show);
	if (c->text[strspn(c->text, "0123456789-")] == '\0')
		return rules_error(r, n, "uid: '%s' is no uid: give a number up to %u, two of them as 1000-60000, or a "
		    "user's name", show, UID_MAX);
	user = getpwnam(c->text);
	if (user == NULL)
		return rules_error(r, n, "uid: no user '%s' on this host: give a name that it knows, or a number", show);
	c->low = c->high = user->pw_uid;
	return true;
}

/* Reads one value of a condition into it; NULL: its value is a mapping of conditions. */
static bool (*const readers[CONDITION_KINDS])(struct rules_reader *r, const struct yaml_node *n,
    struct condition *c) = {
	[CONDITION_EXE] = read_base_name,
	[CONDITION_PATH] = read_path,
	[CONDITION_COMM] = read_comm,
	[CONDITION_TOOL] = read_text,
	[CONDITION_ARGV] = read_text,
	[CONDITION_ARGV_CONTAINS] = read_text,
	[CONDITION_ARGV_MATCHES] = read_pattern,
	[CONDITION_COMMAND_MATCHES] = read_pattern,
	[CONDITION_FIRST_ARG] = read_text,
	[CONDITION_SUBCOMMAND] = read_text,
	[CONDITION_SCRIPT] = read_base_name,
	[CONDITION_JAR] = read_base_name,
	[CONDITION_CLASS] = read_text,
	[CONDITION_CWD] = read_path,
	[CONDITION_CWD_MATCHES] = read_pattern,
	[CONDITION_CGROUP] = read_path,
	[CONDITION_CGROUP_MATCHES] = read_pattern,
	[CONDITION_UID] = read_uid,
	[CONDITION_IMAGE] = read_text,
};

/* Reads one item of a list; v->key->of: the kind. */
static bool
read_item(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct condition *c = into;

	c->kind = (enum condition_kind)v->key->of;
	return readers[c->kind] != NULL ? readers[c->kind](r, v->n, c) : read_map(r, v->context, v->n, c);
}

/* Reads the condition of one key. A list of values holds where one of them does. */
static bool
read_key(struct rules_reader *r, struct conditions *cs, enum condition_kind kind, const struct yaml_node *n,
    struct condition *c)
{
	const struct rules_key items = { NULL, RULES_ITEMS, 0, 0, read_item, kind, RULES_LIST_OF(condition) };
	bool is_list = n->kind == YAML_NODE_LIST;

	c->kind = kind;
	if (kind == CONDITION_ANY || kind == CONDITION_ALL) {
		if (!is_list)
			return rules_error(r, n, "%s: this is %s: expected a list of mappings, such as "
			    "[{exe: a}, {exe: b}]", n->name, yaml_node_kind_name(n));
	} else if (readers[kind] == NULL) {
		if (!rules_want(r, n, YAML_NODE_MAP, a_mapping))
			return false;
	} else if (is_list) {
		c->kind = CONDITION_ANY;
	} else {
		return readers[kind](r, n, c);
	}
	if (is_list && n->first == NULL)
		return rules_error(r, n, "%s: the list is empty: give a value, or remove it", n->name);
	return rules_read_items(r, &items, n, &c->first, cs);
}

/* The kind of condition that a key is; CONDITION_KINDS: an error was added. */
static enum condition_kind
kind_of_key(struct rules_reader *r, const struct conditions *cs, const struct yaml_node *n)
{
	const char *names[CONDITION_KINDS + OTHERS_MAX + 1], *const *kinds, *near;
	char show[SHOWN_SIZE], all[SUGGEST_LIST_SIZE];
	enum condition_kind kind = 0;
	size_t n_names = 0;

	while (kind < CONDITION_KINDS && strcmp(condition_kind_name(kind), n->name) != 0)
		kind++;
	if (kind < CONDITION_KINDS && (kind != cs->without || cs->without == 0))
		return kind;
	for (const char *const *name = cs->others; name != NULL && *name != NULL && n_names < OTHERS_MAX; name++)
		names[n_names++] = *name;
	kinds = names + n_names;
	for (unsigned i = 0; i < CONDITION_KINDS; i++) {
		if (i != cs->without || i == 0)
			names[n_names++] = condition_kind_name(i);
	}
	names[n_names] = NULL;
	shown(n->name, show);
	near = suggest_nearest(n->name, names);
	if (kind < CONDITION_KINDS)
		rules_name_error(r, n, "condition '%s' is not allowed here; allowed: %s", show,
		    suggest_list(kinds, all));
	else if (near != NULL)
		rules_name_error(r, n, "no condition '%s': did you mean '%s'?", show, near);
	else
		rules_name_error(r, n, "no condition '%s': there are %s", show, suggest_list(kinds, all));
	return CONDITION_KINDS;
}

static bool
is_other(const struct conditions *cs, const char *key)
{
	const char *const *name = cs->others;

	while (name != NULL && *name != NULL && strcmp(*name, key) != 0)
		name++;
	return name != NULL && *name != NULL;
}

static bool
read_map(struct rules_reader *r, struct conditions *cs, const struct yaml_node *map, struct condition *all)
{
	struct conditions below = { cs->without, NULL };
	const struct condition **end = &all->first;
	bool is_good = true;

	if (!rules_want(r, map, YAML_NODE_MAP, a_mapping))
		return false;
	all->kind = CONDITION_ALL;
	for (const struct yaml_node *n = map->first; n != NULL && r->error == 0; n = n->next) {
		struct condition *child;
		enum condition_kind kind;

		if (is_other(cs, n->name))
			continue;
		kind = kind_of_key(r, cs, n);
		child = kind < CONDITION_KINDS ? rules_alloc(r, sizeof(*child)) : NULL;
		is_good = child != NULL && read_key(r, &below, kind, n, child) && is_good;
		if (child == NULL)
			continue;
		*end = child;
		end = &child->next;
	}
	if (!is_good)
		return false;
	if (all->first == NULL)
		return rules_error(r, map, "there is no condition here: it would hold for every program; give one, "
		    "such as exe: bwa");
	/* A single condition needs no CONDITION_ALL around it. */
	if (all->first->next == NULL)
		*all = *all->first;
	return true;
}

const struct condition *
rules_condition(struct rules_reader *r, const struct yaml_node *n, enum condition_kind without,
    const char *const *others)
{
	struct conditions cs = { without, others };
	struct condition *c = rules_alloc(r, sizeof(*c));

	return c != NULL && read_map(r, &cs, n, c) && r->error == 0 ? c : NULL;
}

uint64_t
rules_name_bits(const struct condition *c, uint64_t kinds)
{
	uint64_t all = 0;

	if (kinds >> c->kind & 1)
		return rule_name_bit(c->text);
	if (c->kind != CONDITION_ANY && c->kind != CONDITION_ALL)
		return 0;
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		uint64_t bits = rules_name_bits(child, kinds);

		if (c->kind == CONDITION_ANY && bits == 0)
			return 0;
		if (c->kind == CONDITION_ANY)
			all |= bits;
		else if (bits != 0 && (all == 0 || __builtin_popcountll(bits) < __builtin_popcountll(all)))
			all = bits;
	}
	return all;
}
