/*
 * SPDX-License-Identifier: Apache-2.0
 * keys: reads mappings by their tables of keys.
 */
#include <stdio.h>
#include <string.h>

#include "rules/reader.h"

enum { KEYS_MAX = 32 };		/* in one mapping */

static bool
is_in(const struct rules_key *k, unsigned in)
{
	return k->in == 0 || (k->in & in) != 0;
}

bool
rules_check_keys(struct rules_reader *r, const struct yaml_node *map, const struct rules_key *keys, unsigned in)
{
	char hint[SUGGEST_LIST_SIZE], wanted[SUGGEST_LIST_SIZE + 32], show[SHOWN_SIZE];
	const char *names[KEYS_MAX + 1];
	bool is_good = true;
	size_t n_names = 0;

	for (const struct rules_key *k = keys; k->name != NULL && n_names < KEYS_MAX; k++) {
		if (is_in(k, in))
			names[n_names++] = k->name;
	}
	names[n_names] = NULL;
	if (map->kind != YAML_NODE_MAP) {
		snprintf(wanted, sizeof(wanted), "a mapping with %s", suggest_list(names, hint));
		return rules_wrong_kind(r, map, wanted);
	}
	for (const struct yaml_node *n = map->first; n != NULL; n = n->next) {
		size_t i = 0;

		while (i < n_names && strcmp(names[i], n->name) != 0)
			i++;
		if (i < n_names)
			continue;
		is_good = rules_name_error(r, n, "no key '%s' here: %s", shown(n->name, show),
		    suggest_hint(n->name, names, "''", hint));
	}
	return is_good;
}

static bool
read_key(struct rules_reader *r, const struct rules_key *k, const struct yaml_node *n, unsigned in, void *field,
    void *context)
{
	const void *p;

	switch (k->type) {
	case RULES_ELSEWHERE:
		return true;
	case RULES_TEXT:
		p = rules_text(r, n);
		break;
	case RULES_TEXTS:
		p = rules_texts(r, n, NULL);
		break;
	case RULES_TEMPLATE:
		p = rules_template(r, n, NULL);
		break;
	case RULES_CONDITION:
		p = rules_condition(r, n, (enum condition_kind)k->of, NULL);
		break;
	case RULES_BOOL:
		return rules_bool(r, n, field);
	case RULES_SHARE:
		return rules_share(r, n, field);
	case RULES_KEYS:
		return rules_check_keys(r, n, k->keys, in) && rules_read_keys(r, n, k->keys, in, field, context);
	case RULES_OWN:
		return k->read(r, &(struct rules_value){ n, k, context }, field);
	default:
		return rules_read_items(r, k, n, field, context);
	}
	rules_set_pointer(field, p);
	return p != NULL;
}

bool
rules_read_keys(struct rules_reader *r, const struct yaml_node *map, const struct rules_key *keys, unsigned in,
    void *into, void *context)
{
	bool is_good = true;

	for (const struct rules_key *k = keys; k->name != NULL && r->error == 0; k++) {
		const struct yaml_node *n = is_in(k, in) ? rules_child(map, k->name) : NULL;

		if (n != NULL)
			is_good = read_key(r, k, n, in, (char *)into + k->field, context) && is_good;
	}
	return is_good && r->error == 0;
}
