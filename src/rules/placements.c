/*
 * SPDX-License-Identifier: Apache-2.0
 * placements: the sections `schedulers` and `containers`: each rule is a struct placement_rule.
 */
#include <string.h>

#include "base/pattern.h"
#include "rules/reader.h"

/* The two sections, as bits of the tables' `in`. */
enum {
	SCHEDULER = 1 << RULE_SCHEDULERS,
	CONTAINER = 1 << RULE_CONTAINERS,
};

static const struct {
	const char *name;
	enum placement_change change;
} changes[] = {
	{ "dashes", PLACEMENT_DASHES },
	{ "unescape", PLACEMENT_UNESCAPE },
};

/* By enum placement_text. */
static const struct {
	const char *source;
	bool is_long;			/* the text may be megabytes: searched only with `when` */
} texts[] = {
	[PLACEMENT_TEXT_NONE] = { "program", false },
	[PLACEMENT_TEXT_ARGV] = { "argv", true },
	[PLACEMENT_TEXT_COMMAND] = { "argv", true },
	[PLACEMENT_TEXT_SCRIPT] = { "script", false },
	[PLACEMENT_TEXT_EXE] = { "exe", false },
	[PLACEMENT_TEXT_CWD] = { "cwd", false },
};

/* Reads one name of a change, or a list of them. */
static bool
read_change(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *const *names = rules_texts(r, v->n, NULL);
	uint8_t *change = into;
	char show[SHOWN_SIZE];

	for (size_t i = 0, c; names != NULL && names[i] != NULL; i++) {
		for (c = 0; c < COUNT(changes) && strcmp(names[i], changes[c].name) != 0; c++)
			;
		if (c == COUNT(changes))
			return rules_error(r, v->n, "change: no '%s' here: there are dashes, unescape",
			    shown(names[i], show));
		*change |= (uint8_t)changes[c].change;
	}
	return names != NULL;
}

/*
 * The fields of a rule, as keys of its mappings `values` and `change`; `of` is the enum placement_field. at: offset of
 * an array by enum placement_field in struct placement_finder, whose elements have size bytes.
 */
#define FIELD(name, type, at, size, field, in, read) { name, type, (at) + (field) * (size), (in), (read), (field) }
#define FIELDS(type, at, size, read)                                                               \
	FIELD("job", type, at, size, PLACEMENT_JOB, SCHEDULER, read),                              \
	FIELD("step", type, at, size, PLACEMENT_STEP, SCHEDULER, read),                            \
	FIELD("task", type, at, size, PLACEMENT_TASK, SCHEDULER, read),                            \
	FIELD("user", type, at, size, PLACEMENT_USER, SCHEDULER, read),                            \
	FIELD("cluster", type, at, size, PLACEMENT_CLUSTER, SCHEDULER, read),                      \
	FIELD("node", type, at, size, PLACEMENT_NODE, SCHEDULER, read),                            \
	FIELD("id", type, at, size, PLACEMENT_ID, CONTAINER, read),                                \
	FIELD("pod", type, at, size, PLACEMENT_POD, CONTAINER, read),                              \
	FIELD("name", type, at, size, PLACEMENT_NAME, CONTAINER, read),                            \
	FIELD("image", type, at, size, PLACEMENT_IMAGE, CONTAINER, read)
#define F(member) offsetof(struct placement_finder, member)
static const struct rules_key value_keys[] = { FIELDS(RULES_TEMPLATE, F(value), sizeof(void *), NULL), { 0 } };
static const struct rules_key change_keys[] = { FIELDS(RULES_OWN, F(change), sizeof(uint8_t), read_change), { 0 } };

/* The row of a field's name, for a section. NULL: it has no such field. */
static const struct rules_key *
field_key(unsigned in, const char *name)
{
	const struct rules_key *k = value_keys;

	while (k->name != NULL && (k->in != in || strcmp(k->name, name) != 0))
		k++;
	return k->name != NULL ? k : NULL;
}

/* Whether one of the templates uses the group. */
static bool
is_used(const char *group, const struct placement_finder *f)
{
	const char *name;

	for (int i = 0; i < PLACEMENT_FIELDS; i++) {
		for (size_t k = 0; f->value[i] != NULL && (name = template_name(f->value[i], k)) != NULL; k++) {
			if (strcmp(name, group) == 0)
				return true;
		}
	}
	return false;
}

/* Checks that each name in the templates of `values` is a group of one of the patterns of the list. */
static bool
check_values(struct rules_reader *r, const struct yaml_node *item, unsigned in, const struct placement_finder *values,
    const struct placement_finder *finders)
{
	const struct yaml_node *map = rules_child(item, "values");
	bool is_good = true;
	const char *name;

	for (const struct yaml_node *n = map != NULL ? map->first : NULL; n != NULL; n = n->next) {
		const struct template *t = values->value[field_key(in, n->name)->of];

		for (size_t i = 0; (name = template_name(t, i)) != NULL; i++) {
			const struct placement_finder *f = finders;

			while (f != NULL && (f->pattern == NULL || !pattern_has_group(f->pattern, name)))
				f = f->next;
			if (f == NULL)
				is_good = rules_error(r, n, "%s: {%s} is no named group, such as (?<%s>...), of the pattern",
				    n->name, name, name);
		}
	}
	return is_good;
}

/* Reads a pattern into a finder that has its values, and maps its groups to fields. */
static bool
read_pattern(struct rules_reader *r, unsigned in, const struct yaml_node *n, struct placement_finder *f)
{
	const char *group;

	f->pattern = rules_pattern(r, n);
	for (size_t i = 0; f->pattern != NULL && (group = pattern_group(f->pattern, i)) != NULL; i++) {
		const struct rules_key *field = field_key(in, group);

		if (i >= PLACEMENT_GROUPS_MAX)
			return rules_error(r, n, "more than %d named groups", PLACEMENT_GROUPS_MAX);
		if (field != NULL)
			f->group[field->of] = (int8_t)i;
		else if (!is_used(group, f))
			return rules_error(r, n, "the group %s is not used: name it %s, or use it in `values`", group,
			    in == SCHEDULER ? "job, step, task, user, cluster or node" : "id, pod, name or image");
	}
	return f->pattern != NULL;
}

#define P(member) offsetof(struct placement_program, member)
static const struct rules_key program_keys[] = {
	{ "when", RULES_CONDITION, P(when) },
	{ "argv_matches", RULES_ELSEWHERE, .of = PLACEMENT_TEXT_ARGV },
	{ "command_matches", RULES_ELSEWHERE, .of = PLACEMENT_TEXT_COMMAND },
	{ "script_matches", RULES_ELSEWHERE, .of = PLACEMENT_TEXT_SCRIPT },
	{ "exe_matches", RULES_ELSEWHERE, .of = PLACEMENT_TEXT_EXE },
	{ "cwd_matches", RULES_ELSEWHERE, .of = PLACEMENT_TEXT_CWD },
	{ "values", RULES_KEYS, P(find), .keys = value_keys },
	{ "change", RULES_KEYS, P(find), .keys = change_keys },
	{ "confidence", RULES_SHARE, P(find.confidence) },
	{ "source", RULES_TEXT, P(find.source) },
	{ "outside", RULES_BOOL, P(is_outside), CONTAINER },
	{ "own_group", RULES_BOOL, P(has_group), CONTAINER },
	{ 0 },
};

/* Reads an item of `programs`; v->key->of: the section. */
static bool
read_program(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const struct rules_key *text = NULL;
	const struct yaml_node *pattern = NULL;
	struct placement_program *p = into;
	bool is_good;

	if (!rules_check_keys(r, v->n, program_keys, v->key->of))
		return false;
	memset(p->find.group, -1, sizeof(p->find.group));
	p->find.confidence = 0.9;
	is_good = rules_read_keys(r, v->n, program_keys, v->key->of, p, NULL);
	for (const struct rules_key *t = program_keys; t->name != NULL; t++) {
		const struct yaml_node *n = t->of != PLACEMENT_TEXT_NONE ? rules_child(v->n, t->name) : NULL;

		if (n == NULL)
			continue;
		if (text != NULL)
			return rules_error(r, n, "%s and %s: only one of them is searched", t->name, text->name);
		text = t;
		pattern = n;
		p->text = (enum placement_text)t->of;
		if (texts[p->text].is_long && rules_child(v->n, "when") == NULL)
			is_good = rules_error(r, n, "%s needs `when`, such as when: {exe: NAME}, or the arguments of every "
			    "program would be searched", t->name);
	}
	if (pattern == NULL && rules_child(v->n, "when") == NULL)
		return rules_error(r, v->n, "neither `when` nor a pattern: it would hold for every program");
	if (p->when != NULL)
		p->exes = rules_name_bits(p->when, UINT64_C(1) << CONDITION_EXE);
	if (p->find.source == NULL)
		p->find.source = texts[p->text].source;
	if (pattern != NULL)
		is_good = read_pattern(r, v->key->of, pattern, &p->find) && is_good;
	if (p->has_group && !p->is_outside)
		return rules_error(r, rules_child(v->n, "own_group"), "own_group requires outside");
	return is_good && check_values(r, v->n, v->key->of, &p->find, &p->find);
}

/* Reads an item of `cgroup`; v->key->of: the section. v->context: a finder with the values of the rule. */
static bool
read_cgroup(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct placement_finder *f = into;

	*f = *(const struct placement_finder *)v->context;
	return read_pattern(r, v->key->of, v->n, f);
}

/* A rule while it is read, and the values that all its patterns of control groups share. */
struct reading {
	struct placement_rule rule;
	struct placement_finder values;
};

#define R(member) offsetof(struct reading, member)
static const struct rules_key rule_keys[] = {
	{ "name", RULES_ELSEWHERE },
	{ "scheduler", RULES_TEXT, R(rule.system), SCHEDULER },
	{ "runtime", RULES_TEXT, R(rule.system), CONTAINER },
	{ "batch", RULES_BOOL, R(rule.is_batch), SCHEDULER },
	{ "cgroup", RULES_ELSEWHERE },
	{ "outside", RULES_BOOL, R(rule.is_outside), CONTAINER },
	{ "daemons", RULES_TEXTS, R(rule.daemons), SCHEDULER },
	{ "values", RULES_KEYS, R(values), .keys = value_keys },
	{ "change", RULES_KEYS, R(values), .keys = change_keys },
	{ "confidence", RULES_SHARE, R(values.confidence) },
	{ "programs", RULES_ELSEWHERE },
	{ 0 },
};

void
rules_read_placement(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	const struct placement_rule ***next = section == RULE_SCHEDULERS ? &r->next_scheduler : &r->next_container;
	unsigned in = 1u << section;
	const struct rules_key cgroups = { NULL, RULES_ITEMS, 0, 0, read_cgroup, in, RULES_LIST_OF(placement_finder),
	    .wanted = "an empty list: give at least one regular expression" };
	const struct rules_key programs = { NULL, RULES_ITEMS, 0, 0, read_program, in,
	    RULES_LIST_OF(placement_program) };
	struct reading reading = { .values = { .source = "cgroup", .confidence = 0.95 } };
	struct placement_rule *rule = rules_alloc(r, sizeof(*rule));
	const struct yaml_node *n;
	bool is_good;

	if (rule == NULL || !rules_check_keys(r, item, rule_keys, in))
		return;
	memset(reading.values.group, -1, sizeof(reading.values.group));
	is_good = rules_read_keys(r, item, rule_keys, in, &reading, NULL);
	*rule = reading.rule;
	rule->location = rules_location(r, item);
	if (rule->system == NULL && in == SCHEDULER)
		rules_error(r, item, "a scheduler without a name: add `scheduler: NAME`, such as slurm");
	n = rules_child(item, "cgroup");
	if (n != NULL)
		is_good = rules_read_items(r, &cgroups, n, &rule->cgroup, &reading.values) && is_good;
	if (is_good)
		is_good = check_values(r, item, in, &reading.values, rule->cgroup);
	n = rules_child(item, "programs");
	if (n != NULL && (n->kind != YAML_NODE_LIST || n->first == NULL))
		rules_error(r, n, "`programs` is a list of mappings, not %s",
		    n->kind == YAML_NODE_LIST ? "an empty one" : yaml_node_kind_name(n));
	else if (n != NULL)
		rules_read_items(r, &programs, n, &rule->programs, NULL);
	else if (rules_child(item, "cgroup") == NULL)
		rules_error(r, item, "no way to recognize it: add `cgroup` or `programs`");
	**next = rule;
	*next = &rule->next;
}
