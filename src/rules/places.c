/*
 * SPDX-License-Identifier: Apache-2.0
 * The sections `schedulers` and `containers`: lists of mappings, each a struct place_rule.
 */
#include <errno.h>
#include <string.h>

#include "model/place_rules.h"
#include "rules/reader.h"

/* Of the set's memory, as all that hangs on it. */
struct place_list {
	struct place_rule rule;
	struct place_list *next;
};

struct place_builder {
	struct place_list *first[2], **last[2];
	size_t n[2];
};

/* The two sections. */
struct kind {
	int index;
	const char *system;		/* key of the system's name */
	int first, end;			/* its fields */
	const char *const *keys;
	const char *const *program_keys;
};

static const char *const field_names[PLACE_FIELDS + 1] = {
	[PLACE_JOB] = "job", [PLACE_STEP] = "step", [PLACE_TASK] = "task", [PLACE_USER] = "user",
	[PLACE_CLUSTER] = "cluster", [PLACE_NODE] = "node", [PLACE_ID] = "id", [PLACE_POD] = "pod",
	[PLACE_NAME] = "name", [PLACE_IMAGE] = "image",
};

static const char *const job_fields[] = { "job", "step", "task", "user", "cluster", "node", NULL };
static const char *const container_fields[] = { "id", "pod", "name", "image", NULL };

static const struct kind schedulers = {
	.index = 0,
	.system = "scheduler",
	.first = 0,
	.end = PLACE_FIELDS_JOB,
	.keys = (const char *const[]){ "name", "scheduler", "batch", "cgroup", "values", "change",
	    "confidence", "programs", NULL },
	.program_keys = (const char *const[]){ "when", "argv_matches", "command_matches", "script_matches",
	    "exe_matches", "cwd_matches", "values", "change", "confidence", "source", NULL },
};

static const struct kind containers = {
	.index = 1,
	.system = "runtime",
	.first = PLACE_FIELDS_JOB,
	.end = PLACE_FIELDS,
	.keys = (const char *const[]){ "name", "runtime", "cgroup", "outside", "values", "change",
	    "confidence", "programs", NULL },
	.program_keys = (const char *const[]){ "when", "argv_matches", "command_matches", "script_matches",
	    "exe_matches", "cwd_matches", "values", "change", "confidence", "source", "outside",
	    "own_group", NULL },
};

/* In the order of enum place_text. */
static const struct {
	const char *key;
	const char *source;
	bool is_long;			/* searched in what may be megabytes: only with `when` */
} texts[] = {
	[PLACE_TEXT_NONE] = { NULL, "program", false },
	[PLACE_TEXT_ARGV] = { "argv_matches", "argv", true },
	[PLACE_TEXT_COMMAND] = { "command_matches", "argv", true },
	[PLACE_TEXT_SCRIPT] = { "script_matches", "script", false },
	[PLACE_TEXT_EXE] = { "exe_matches", "exe", false },
	[PLACE_TEXT_CWD] = { "cwd_matches", "cwd", false },
};

static const struct {
	const char *name;
	enum place_change change;
} changes[] = {
	{ "dashes", PLACE_DASHES },
	{ "unescape", PLACE_UNESCAPE },
};

/* What a rule or a program says of values, whatever found them. */
struct values {
	const struct yaml_node *map;
	const struct template *value[PLACE_FIELDS];
	uint8_t change[PLACE_FIELDS];
};

static int
field_of(const struct kind *k, const char *name)
{
	int i = k->first;

	while (i < k->end && strcmp(name, field_names[i]) != 0)
		i++;
	return i < k->end ? i : -1;
}

/* One name of a change, or a list of some. */
static bool
read_change(struct rules_reader *r, const struct yaml_node *n, uint8_t *ret)
{
	const char *const *names;
	size_t count = 0;

	names = rules_texts(r, n, &count);
	if (names == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < sizeof(changes) / sizeof(changes[0]) && strcmp(names[i], changes[k].name) != 0)
			k++;
		if (k == sizeof(changes) / sizeof(changes[0])) {
			rules_error(r, n, "change: no '%s' here: there are dashes, unescape", names[i]);
			return false;
		}
		*ret |= (uint8_t)changes[k].change;
	}
	return true;
}

/* The mappings `values` and `change`. False: an error was added. */
static bool
read_values(struct rules_reader *r, const struct kind *k, const struct yaml_node *item, struct values *ret)
{
	const char *const *names = k->index == 0 ? job_fields : container_fields;
	const struct yaml_node *change = rules_child(item, "change");
	bool is_right = true;

	memset(ret, 0, sizeof(*ret));
	ret->map = rules_child(item, "values");
	if ((ret->map != NULL && !rules_check_keys(r, ret->map, names)) ||
	    (change != NULL && !rules_check_keys(r, change, names)))
		return false;
	for (const struct yaml_node *n = ret->map != NULL ? ret->map->first : NULL; n != NULL; n = n->next) {
		int i = field_of(k, n->name);

		ret->value[i] = rules_template(r, n, NULL);
		is_right = is_right && ret->value[i] != NULL;
	}
	for (const struct yaml_node *n = change != NULL ? change->first : NULL; n != NULL; n = n->next)
		is_right = read_change(r, n, &ret->change[field_of(k, n->name)]) && is_right;
	return is_right;
}

static bool
has_group(const struct pattern *p, const char *name)
{
	const char *group;

	for (size_t i = 0; p != NULL && (group = pattern_group(p, i)) != NULL; i++)
		if (strcmp(group, name) == 0)
			return true;
	return false;
}

/* Does one of the templates name the group? */
static bool
is_used(const char *group, const struct values *values)
{
	const char *name;

	for (int i = 0; i < PLACE_FIELDS; i++)
		for (size_t k = 0; values->value[i] != NULL &&
		    (name = template_name(values->value[i], k)) != NULL; k++)
			if (strcmp(name, group) == 0)
				return true;
	return false;
}

/* Each name in a template is a group of one of the patterns. */
static bool
check_values(struct rules_reader *r, const struct kind *k, const struct values *values,
    const struct place_finder *finders, size_t n_finders)
{
	bool is_right = true;
	const char *name;

	for (const struct yaml_node *n = values->map != NULL ? values->map->first : NULL; n != NULL; n = n->next) {
		const struct template *t = values->value[field_of(k, n->name)];

		for (size_t i = 0; (name = template_name(t, i)) != NULL; i++) {
			bool is_group = false;

			for (size_t f = 0; f < n_finders; f++)
				is_group = is_group || has_group(finders[f].pattern, name);
			if (is_group)
				continue;
			rules_error(r, n, "%s: {%s} is no named group, such as (?<%s>...), of the pattern", n->name,
			    name, name);
			is_right = false;
		}
	}
	return is_right;
}

/* Reads a pattern, NULL: none, and finds out which group tells what. False: an error was added. */
static bool
read_finder(struct rules_reader *r, const struct kind *k, const struct yaml_node *n,
    const struct values *values, struct place_finder *ret)
{
	const char *group;

	memset(ret->group, -1, sizeof(ret->group));
	memcpy(ret->value, values->value, sizeof(ret->value));
	memcpy(ret->change, values->change, sizeof(ret->change));
	if (n == NULL)
		return true;
	ret->pattern = rules_pattern(r, n);
	if (ret->pattern == NULL)
		return false;
	for (size_t i = 0; (group = pattern_group(ret->pattern, i)) != NULL; i++) {
		int field = field_of(k, group);

		if (i >= PLACE_GROUPS_MAX) {
			rules_error(r, n, "more than %d named groups", PLACE_GROUPS_MAX);
			return false;
		}
		if (field >= 0)
			ret->group[field] = (int8_t)i;
		if (field < 0 && !is_used(group, values)) {
			rules_error(r, n, "the group %s tells nothing: name it %s, or use it in `values`", group,
			    k->index == 0 ? "job, step, task, user, cluster or node" : "id, pod, name or image");
			return false;
		}
	}
	return true;
}

static bool
read_cgroup(struct rules_reader *r, const struct kind *k, const struct yaml_node *item,
    const struct values *values, double confidence, struct place_rule *rule)
{
	const struct yaml_node *n = rules_child(item, "cgroup"), *one;
	struct place_finder *finders;
	size_t n_finders = 1;
	bool is_right = true;

	if (n == NULL)
		return true;
	one = n;
	if (n->kind == YAML_NODE_LIST) {
		one = n->first;
		n_finders = 0;
		for (const struct yaml_node *c = n->first; c != NULL; c = c->next)
			n_finders++;
		if (n_finders == 0) {
			rules_error(r, n, "an empty list: give at least one regular expression");
			return false;
		}
	}
	finders = ruleset_alloc(r->set, n_finders * sizeof(*finders));
	if (finders == NULL) {
		r->error = -ENOMEM;
		return false;
	}
	for (size_t i = 0; i < n_finders; i++, one = one->next) {
		is_right = read_finder(r, k, one, values, &finders[i]) && is_right;
		finders[i].confidence = confidence;
		finders[i].source = "cgroup";
	}
	rule->cgroup = finders;
	rule->n_cgroup = n_finders;
	return is_right;
}

/* 0: it may hold for any executable. */
static uint64_t
exes_of(const struct condition *c)
{
	uint64_t all = 0, one;

	if (c->kind == CONDITION_EXE)
		return place_exe_bit(c->text);
	if (c->kind != CONDITION_ALL && c->kind != CONDITION_ANY)
		return 0;
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		one = exes_of(child);
		if (c->kind == CONDITION_ANY && one == 0)
			return 0;
		if (c->kind == CONDITION_ALL && one != 0)
			return one;
		all |= one;
	}
	return all;
}

static bool
read_program(struct rules_reader *r, const struct kind *k, const struct yaml_node *item, struct place_program *ret)
{
	struct values values;
	const struct yaml_node *when, *text = NULL, *n;
	double confidence = 0.9;
	bool is_right;

	if (!rules_check_keys(r, item, k->program_keys))
		return false;
	is_right = read_values(r, k, item, &values);
	when = rules_child(item, "when");
	if (when != NULL) {
		ret->when = rules_condition(r, when, RULES_ANY_CONDITION);
		is_right = is_right && ret->when != NULL;
		ret->exes = ret->when != NULL ? exes_of(ret->when) : 0;
	}
	for (size_t i = 1; i < sizeof(texts) / sizeof(texts[0]); i++) {
		n = rules_child(item, texts[i].key);
		if (n == NULL)
			continue;
		if (text != NULL) {
			rules_error(r, n, "%s beside %s: one of them is searched", texts[i].key,
			    texts[ret->text].key);
			return false;
		}
		text = n;
		ret->text = (enum place_text)i;
		if (texts[i].is_long && when == NULL) {
			rules_error(r, n, "%s needs `when`, such as when: {exe: NAME}, or the arguments of every program "
			    "would be searched", texts[i].key);
			is_right = false;
		}
	}
	if (text == NULL && when == NULL) {
		rules_error(r, item, "neither `when` nor a pattern: it would hold for every program");
		return false;
	}
	is_right = read_finder(r, k, text, &values, &ret->find) && is_right;
	if (is_right)
		is_right = check_values(r, k, &values, &ret->find, 1);
	rules_number(r, rules_child(item, "confidence"), 0, 1, &confidence);
	ret->find.confidence = confidence;
	n = rules_child(item, "source");
	ret->find.source = n != NULL ? rules_text(r, n) : texts[ret->text].source;
	rules_bool(r, rules_child(item, "outside"), &ret->is_outside);
	n = rules_child(item, "own_group");
	if (rules_bool(r, n, &ret->has_group) && !ret->is_outside) {
		rules_error(r, n, "own_group without outside: it says when what the program starts is inside");
		is_right = false;
	}
	return is_right && ret->find.source != NULL;
}

static bool
read_programs(struct rules_reader *r, const struct kind *k, const struct yaml_node *item, struct place_rule *rule)
{
	const struct yaml_node *n = rules_child(item, "programs");
	struct place_program *programs;
	bool is_right = true;
	size_t i = 0;

	if (n == NULL)
		return true;
	if (n->kind != YAML_NODE_LIST || n->first == NULL) {
		rules_error(r, n, "`programs` is a list of mappings, not %s",
		    n->kind == YAML_NODE_LIST ? "an empty one" : yaml_node_kind_name(n));
		return false;
	}
	for (const struct yaml_node *c = n->first; c != NULL; c = c->next)
		rule->n_programs++;
	programs = ruleset_alloc(r->set, rule->n_programs * sizeof(*programs));
	if (programs == NULL) {
		r->error = -ENOMEM;
		return false;
	}
	for (const struct yaml_node *c = n->first; c != NULL; c = c->next)
		is_right = read_program(r, k, c, &programs[i++]) && is_right;
	rule->programs = programs;
	return is_right;
}

/* One rule. Where anything is wrong with it, errors has it, and it is left out. */
static void
read_rule(struct rules_reader *r, const struct kind *k, const struct yaml_node *item)
{
	struct values values;
	struct place_list *list;
	struct place_rule *rule;
	const struct yaml_node *n;
	double confidence = 0.95;
	bool is_right;

	if (!rules_check_keys(r, item, k->keys))
		return;
	list = ruleset_alloc(r->set, sizeof(*list));
	if (list == NULL) {
		r->error = -ENOMEM;
		return;
	}
	rule = &list->rule;
	rule->location = rules_location(r, item);
	n = rules_child(item, k->system);
	if (n != NULL)
		rule->system = rules_text(r, n);
	else if (k->index == 0)
		rules_error(r, item, "a scheduler without a name: add `scheduler: NAME`, such as slurm");
	is_right = rule->system != NULL || (n == NULL && k->index != 0);
	rules_bool(r, rules_child(item, "batch"), &rule->is_batch);
	rules_bool(r, rules_child(item, "outside"), &rule->is_outside);
	rules_number(r, rules_child(item, "confidence"), 0, 1, &confidence);
	is_right = read_values(r, k, item, &values) && is_right;
	is_right = read_cgroup(r, k, item, &values, confidence, rule) && is_right;
	if (is_right)
		is_right = check_values(r, k, &values, rule->cgroup, rule->n_cgroup);
	is_right = read_programs(r, k, item, rule) && is_right;
	if (is_right && rule->n_cgroup == 0 && rule->n_programs == 0) {
		rules_error(r, item, "nothing to find it by: add `cgroup` or `programs`");
		is_right = false;
	}
	if (!is_right)
		return;
	*r->places->last[k->index] = list;
	r->places->last[k->index] = &list->next;
	r->places->n[k->index]++;
}

static bool
builder(struct rules_reader *r)
{
	if (r->places != NULL)
		return true;
	r->places = ruleset_alloc(r->set, sizeof(*r->places));
	if (r->places == NULL) {
		r->error = -ENOMEM;
		return false;
	}
	for (int i = 0; i < 2; i++)
		r->places->last[i] = &r->places->first[i];
	return true;
}

static void
read_section(struct rules_reader *r, const struct kind *k, const struct yaml_node *section)
{
	if (!builder(r) || section->kind == YAML_NODE_NULL)
		return;
	if (section->kind != YAML_NODE_LIST) {
		rules_error(r, section, "`%ss` is a list of mappings, not %s", k->index == 0 ? "scheduler" : "container",
		    yaml_node_kind_name(section));
		return;
	}
	for (const struct yaml_node *n = section->first; n != NULL && r->error == 0; n = n->next)
		read_rule(r, k, n);
}

void
rules_read_schedulers(struct rules_reader *r, const struct yaml_node *section)
{
	read_section(r, &schedulers, section);
}

void
rules_read_containers(struct rules_reader *r, const struct yaml_node *section)
{
	read_section(r, &containers, section);
}

/* The list as an array of the set. */
static const struct place_rule *
array_of(struct rules_reader *r, int index, size_t *ret_n)
{
	struct place_rule *rules;
	size_t i = 0;

	*ret_n = 0;
	if (r->places->n[index] == 0)
		return NULL;
	rules = ruleset_alloc(r->set, r->places->n[index] * sizeof(*rules));
	if (rules == NULL) {
		r->error = -ENOMEM;
		return NULL;
	}
	for (const struct place_list *l = r->places->first[index]; l != NULL; l = l->next)
		rules[i++] = l->rule;
	*ret_n = i;
	return rules;
}

void
rules_finish_places(struct rules_reader *r)
{
	struct place_rules *places;

	if (!builder(r))
		return;
	places = ruleset_alloc(r->set, sizeof(*places));
	if (places == NULL) {
		r->error = -ENOMEM;
		return;
	}
	places->schedulers = array_of(r, 0, &places->n_schedulers);
	places->containers = array_of(r, 1, &places->n_containers);
	r->set->places = places;
	r->places = NULL;
}
