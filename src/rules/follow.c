/*
 * SPDX-License-Identifier: Apache-2.0
 * follow: the sections `include` and `exclude`: which programs to follow, and which to leave out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/follow_index.h"
#include "rules/reader.h"

static const struct rules_key with_when[] = {
	{ "name", RULES_ELSEWHERE },
	{ "when", RULES_CONDITION, offsetof(struct follow_rule, when) },
	{ 0 },
};

/* Reads the conditions of a rule, beneath `when` or beside its name. False: an error was added. */
static bool
read_when(struct rules_reader *r, const struct yaml_node *item, struct follow_rule *rule)
{
	const struct yaml_node *when = rules_child(item, "when");

	if (when == NULL) {
		rule->when = rules_condition(r, item, 0, true);
		return rule->when != NULL;
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
	return rules_check_keys(r, item, with_when, 0) && rules_read_keys(r, item, with_when, 0, rule, NULL);
}

void
rules_read_follow(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	struct rules_follow_list *list = section == RULE_INCLUDE ? &r->include : &r->exclude;
	struct follow_rule rule = { 0 }, *more;

	if (!rules_want(r, item, YAML_NODE_MAP, "a rule is a mapping of conditions, such as {exe: sshd}"))
		return;
	rule.location = rules_location(r, item);
	if (!read_when(r, item, &rule) || r->error < 0)
		return;
	if (list->n == list->cap) {
		list->cap = list->cap > 0 ? 2 * list->cap : 32;
		more = realloc(list->rules, list->cap * sizeof(*more));
		if (more == NULL) {
			r->error = -ENOMEM;
			return;
		}
		list->rules = more;
	}
	list->rules[list->n++] = rule;
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
