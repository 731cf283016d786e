/*
 * SPDX-License-Identifier: Apache-2.0
 * follow: the sections include and exclude: what to follow, and what to leave out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/follow_index.h"
#include "rules/reader.h"

struct rule_list {
	struct follow_rule *rules;	/* owned */
	size_t n, cap;
};

struct follow_builder {
	struct rule_list include, exclude;
};

static struct rule_list *
list_of(struct rules_reader *r, bool is_include)
{
	if (r->follow == NULL)
		r->follow = calloc(1, sizeof(*r->follow));
	if (r->follow == NULL) {
		r->error = -ENOMEM;
		return NULL;
	}
	return is_include ? &r->follow->include : &r->follow->exclude;
}

static void
add_rule(struct rules_reader *r, struct rule_list *list, const struct follow_rule *rule)
{
	if (list->n == list->cap) {
		size_t cap = list->cap > 0 ? 2 * list->cap : 32;
		struct follow_rule *more = realloc(list->rules, cap * sizeof(*more));

		if (more == NULL) {
			r->error = -ENOMEM;
			return;
		}
		list->rules = more;
		list->cap = cap;
	}
	list->rules[list->n++] = *rule;
}

/* The conditions of a rule: beneath `when`, or beside its name. NULL with an error added. */
static const struct condition *
read_when(struct rules_reader *r, const struct yaml_node *item)
{
	static const char *const with_when[] = { "name", "when", NULL };
	static const char *const beside[] = { "name", NULL };
	const struct yaml_node *when = rules_child(item, "when");

	if (when == NULL)
		return rules_condition_beside(r, item, RULES_ANY_CONDITION, beside);
	for (const struct yaml_node *n = item->first; n != NULL; n = n->next) {
		if (n != when && strcmp(n->name, "name") != 0) {
			const struct yaml_node at = { .line = n->name_line, .column = n->name_column };

			if (strcmp(n->name, "when") == 0)
				return NULL;	/* twice: told already */
			for (unsigned kind = 0; kind < CONDITION_KINDS; kind++) {
				if (strcmp(condition_kind_name(kind), n->name) == 0) {
					rules_error(r, &at, "'%s' stands beside `when`: put it beneath that, or "
					    "leave `when` out", n->name);
					return NULL;
				}
			}
		}
	}
	return rules_check_keys(r, item, with_when) ? rules_condition(r, when, RULES_ANY_CONDITION) : NULL;
}

static void
read_section(struct rules_reader *r, const struct yaml_node *section, bool is_include)
{
	struct rule_list *list = list_of(r, is_include);

	if (section->kind != YAML_NODE_LIST) {
		rules_error(r, section, "%s is a list of rules, each a line such as `- exe: sshd`, not %s",
		    is_include ? "include" : "exclude", yaml_node_kind_name(section));
		return;
	}
	for (const struct yaml_node *n = section->first; n != NULL && r->error == 0; n = n->next) {
		struct follow_rule rule = { 0 };

		if (n->kind != YAML_NODE_MAP) {
			rules_error(r, n, "this is %s: a rule is a mapping of conditions, such as {exe: sshd}",
			    yaml_node_kind_name(n));
			continue;
		}
		rule.location = rules_location(r, n);
		rule.when = read_when(r, n);
		if (rule.when != NULL && r->error == 0)
			add_rule(r, list, &rule);
	}
}

void
rules_read_include(struct rules_reader *r, const struct yaml_node *section)
{
	read_section(r, section, true);
}

void
rules_read_exclude(struct rules_reader *r, const struct yaml_node *section)
{
	read_section(r, section, false);
}

/* Into the set's memory, with an index. */
static void
finish_list(struct rules_reader *r, const struct rule_list *list, const struct follow_rule **ret, size_t *ret_n,
    const struct follow_index **ret_index)
{
	struct follow_rule *rules = ruleset_alloc(r->set, (list->n + 1) * sizeof(*rules));
	const struct follow_index *index;

	if (rules == NULL) {
		r->error = -ENOMEM;
		return;
	}
	if (list->n > 0)
		memcpy(rules, list->rules, list->n * sizeof(*rules));
	index = follow_index_new(r->set, rules, list->n);
	if (index == NULL) {
		r->error = -ENOMEM;
		return;
	}
	*ret = rules;
	*ret_n = list->n;
	*ret_index = index;
}

void
rules_finish_follow(struct rules_reader *r)
{
	static const struct rule_list none;
	struct follow_builder *b = r->follow;
	struct follow_rules *f = &r->set->follow;

	finish_list(r, b != NULL ? &b->include : &none, &f->include, &f->n_include, &f->include_index);
	finish_list(r, b != NULL ? &b->exclude : &none, &f->exclude, &f->n_exclude, &f->exclude_index);
	if (b != NULL) {
		free(b->include.rules);
		free(b->exclude.rules);
		free(b);
		r->follow = NULL;
	}
}
