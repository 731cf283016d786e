/*
 * SPDX-License-Identifier: Apache-2.0
 * follow: the sections `include` and `exclude`: which programs to follow, and which to leave out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/follow_index.h"
#include "rules/reader.h"

enum { EXCLUDE = 1 << RULE_EXCLUDE };

/* The values of `trust`. */
static const struct {
	const char *name;
	bool trusts_any;
} trusts[] = {
	{ "system", false },		/* what the conditions need, see trust_of() */
	{ "any", true },
};

static bool
read_trust(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *name = rules_text(r, v->n);
	char show[SHOWN_SIZE];

	for (size_t i = 0; name != NULL && i < COUNT(trusts); i++) {
		if (strcmp(name, trusts[i].name) == 0) {
			*(bool *)into = trusts[i].trusts_any;
			return true;
		}
	}
	return name != NULL && rules_error(r, v->n, "trust: no '%s' here: there are system, any", shown(name, show));
}

/* A rule while it is read. */
struct reading {
	struct follow_rule rule;
	bool trusts_any;
};

static const struct rules_key with_when[] = {
	{ "name", RULES_ELSEWHERE },
	{ "trust", RULES_OWN, offsetof(struct reading, trusts_any), EXCLUDE, read_trust },
	{ "when", RULES_CONDITION, offsetof(struct reading, rule.when), EXCLUDE | 1 << RULE_INCLUDE },
	{ 0 },
};
/* Keys of a rule whose conditions are beside them. */
static const struct rules_key beside_conditions[] = {
	{ "trust", RULES_OWN, offsetof(struct reading, trusts_any), EXCLUDE, read_trust },
	{ 0 },
};

/*
 * The programs that a rule must trust to hold for them, by who could make its conditions true. A user chooses the name
 * and the folder of an own executable, and all arguments; but neither the user nor, outside of what systemd hands over
 * to users, the control group.
 */
static enum follow_trust
trust_of(const struct condition *c)
{
	enum follow_trust most = TRUST_ANY;

	switch (c->kind) {
	case CONDITION_ALL:
	case CONDITION_ANY:
	case CONDITION_NOT:
		for (const struct condition *child = c->first; child != NULL; child = child->next) {
			enum follow_trust t = trust_of(child);

			most = t > most ? t : most;
		}
		return most;
	case CONDITION_CGROUP:
	case CONDITION_UID:
		return TRUST_ANY;
	case CONDITION_EXE:
	case CONDITION_PATH:
		return TRUST_EXE;
	default:
		return TRUST_USER;
	}
}

/* Reads the conditions of a rule, beneath `when` or beside its name. False: an error was added. */
static bool
read_when(struct rules_reader *r, const struct yaml_node *item, unsigned in, struct reading *reading)
{
	const char *const others[] = { "name", in == EXCLUDE ? "trust" : NULL, NULL };
	const struct yaml_node *when = rules_child(item, "when");

	if (when == NULL) {
		reading->rule.when = rules_condition(r, item, 0, others);
		return reading->rule.when != NULL && rules_read_keys(r, item, beside_conditions, in, reading, NULL);
	}
	for (const struct yaml_node *n = item->first; n != NULL; n = n->next) {
		if (n == when || strcmp(n->name, "name") == 0)
			continue;
		if (strcmp(n->name, "when") == 0)
			return false;	/* yaml_read() has added an error for the second one */
		for (unsigned kind = 0; kind < CONDITION_KINDS; kind++) {
			if (strcmp(condition_kind_name(kind), n->name) == 0)
				return rules_name_error(r, n, "'%s' is beside `when`: move it under `when`", n->name);
		}
	}
	return rules_check_keys(r, item, with_when, in) && rules_read_keys(r, item, with_when, in, reading, NULL);
}

void
rules_read_follow(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	struct rules_follow_list *list = section == RULE_INCLUDE ? &r->include : &r->exclude;
	struct reading reading = { 0 };
	struct follow_rule *rule = &reading.rule, *more;

	if (!rules_want(r, item, YAML_NODE_MAP, "a rule is a mapping of conditions, such as {exe: sshd}"))
		return;
	rule->location = rules_location(r, item);
	if (!read_when(r, item, 1u << section, &reading) || r->error < 0)
		return;
	if (section == RULE_EXCLUDE && !reading.trusts_any && rule->when != NULL)
		rule->trust = trust_of(rule->when);
	if (list->n == list->cap) {
		list->cap = list->cap > 0 ? 2 * list->cap : 32;
		more = realloc(list->rules, list->cap * sizeof(*more));
		if (more == NULL) {
			r->error = -ENOMEM;
			return;
		}
		list->rules = more;
	}
	list->rules[list->n++] = *rule;
}

/* Copies a list into the set's memory, with an index. */
static void
finish_list(struct rules_reader *r, struct rules_follow_list *list, const struct follow_rule **ret, size_t *ret_n,
    const struct follow_index **ret_index)
{
	struct follow_rule *rules = r->error == 0 ? rules_alloc(r, (list->n + 1) * sizeof(*rules)) : NULL;

	if (rules != NULL) {
		if (list->n > 0)
			memcpy(rules, list->rules, list->n * sizeof(*rules));
		*ret = rules;
		*ret_n = list->n;
		*ret_index = follow_index_new(r->set, rules, list->n);
		if (*ret_index == NULL)
			r->error = -ENOMEM;
	}
	free(list->rules);
}

void
rules_finish_follow(struct rules_reader *r)
{
	struct follow_rules *f = &r->set->follow;

	finish_list(r, &r->include, &f->include, &f->n_include, &f->include_index);
	finish_list(r, &r->exclude, &f->exclude, &f->n_exclude, &f->exclude_index);
}
