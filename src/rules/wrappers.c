/*
 * SPDX-License-Identifier: Apache-2.0
 * wrappers: the section `wrappers`: programs whose arguments hold the command of another. Tools with the role
 * wrapper are some of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/wrapper_rules.h"
#include "rules/reader.h"

/* A rule, until it becomes one struct wrapper for each of its names. */
struct wrapper_item {
	const char *const *exe;		/* NULL-terminated */
	const char *const *after;
	size_t order;
	struct wrapper_item *next;	/* the rule before it: the list is in reverse order */
};

static const struct rules_key keys[] = {
	{ "name", RULES_ELSEWHERE },
	{ "exe", RULES_TEXTS, offsetof(struct wrapper_item, exe) },
	{ "after", RULES_TEXTS, offsetof(struct wrapper_item, after) },
	{ 0 },
};

void
rules_read_wrapper(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	struct wrapper_item *w = rules_alloc(r, sizeof(*w));
	char show[SHOWN_SIZE];
	size_t n = 0;

	(void)section;
	if (w == NULL || !rules_check_keys(r, item, keys, 0) || !rules_read_keys(r, item, keys, 0, w, NULL))
		return;
	if (w->exe == NULL) {
		rules_error(r, item, "no program is selected: give exe");
		return;
	}
	for (; w->exe[n] != NULL; n++) {
		if (strchr(w->exe[n], '/') != NULL) {
			rules_error(r, rules_child(item, "exe"), "exe: '%s' has a path: give the base name of the program",
			    shown(w->exe[n], show));
			return;
		}
	}
	w->order = r->n_wrappers;
	w->next = r->last_wrapper;
	r->last_wrapper = w;
	r->n_wrappers += n;
}

static int
by_exe(const void *a, const void *b)
{
	const struct wrapper *left = a, *right = b;
	int order = strcmp(left->exe, right->exe);

	return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

void
rules_finish_wrappers(struct rules_reader *r)
{
	struct wrapper_rules *rules = r->error == 0 ? rules_alloc(r, sizeof(*rules)) : NULL;
	struct wrapper *list = rules != NULL ? rules_alloc(r, (r->n_wrappers + r->n_keys + 1) * sizeof(*list)) : NULL;
	size_t n = 0;

	if (list == NULL)
		return;
	for (const struct wrapper_item *w = r->last_wrapper; w != NULL; w = w->next) {
		for (size_t i = 0; w->exe[i] != NULL; i++)
			list[n++] = (struct wrapper){ w->exe[i], w->after, w->order };
	}
	for (const struct tool_key *k = r->last_key; k != NULL; k = k->next) {
		if (k->kind == TOOL_KEY_EXE && k->name != NULL && k->rule->role == TOOL_WRAPPER)
			list[n++] = (struct wrapper){ k->name, NULL, SIZE_MAX };
	}
	qsort(list, n, sizeof(*list), by_exe);
	/* The first rule with a name wins. */
	for (size_t i = 0; i < n; i++) {
		if (rules->n == 0 || strcmp(list[rules->n - 1].exe, list[i].exe) != 0)
			list[rules->n++] = list[i];
	}
	rules->list = list;
	r->set->wrappers = rules;
}
