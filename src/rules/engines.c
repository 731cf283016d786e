/*
 * SPDX-License-Identifier: Apache-2.0
 * engines: the section `engines`: drivers, tasks and overhead of workflow engines.
 *
 * A template may only name what its rule gathers, so that a slip of the pen is an error and no name
 * that stays empty.
 */
#include <errno.h>
#include <string.h>

#include "config/errors.h"
#include "config/suggest.h"
#include "model/engine_rules.h"
#include "rules/reader.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum rule_kind {
	RULE_DRIVER,
	RULE_TASK,
	RULE_OVERHEAD,
};

/* What every program has by itself. */
static const char *const own_names[] = {
	"cwd", "exe", "comm", "tool", "subcommand", "script", "jar", "class",
};

static const struct {
	const char *name;
	enum engine_text text;
} texts[] = {
	{ "cwd", ENGINE_TEXT_CWD }, { "argv", ENGINE_TEXT_ARGV }, { "command", ENGINE_TEXT_COMMAND },
	{ "exe", ENGINE_TEXT_EXE }, { "parent_command", ENGINE_TEXT_PARENT_COMMAND },
	{ "parent_cwd", ENGINE_TEXT_PARENT_CWD },
};

struct engine_builder {
	struct engine_rules rules;
	struct engine *last;
};

/* The names of one rule's pieces as they are declared, behind those that every program has. */
struct names {
	const char *list[COUNT(own_names) + ENGINE_PIECES_MAX + 1];	/* NULL-terminated */
	size_t n;
};

static void *
alloc(struct rules_reader *r, size_t size)
{
	void *p = ruleset_alloc(r->set, size);

	if (p == NULL)
		r->error = -ENOMEM;
	return p;
}

static void
names_init(struct names *names)
{
	*names = (struct names){ .n = COUNT(own_names) };
	memcpy(names->list, own_names, sizeof(own_names));
}

static bool
is_named(const struct names *names, const char *name, size_t from)
{
	for (size_t i = from; i < names->n; i++) {
		if (strcmp(names->list[i], name) == 0)
			return true;
	}
	return false;
}

static bool
is_text_name(const char *name)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (strcmp(texts[i].name, name) == 0)
			return true;
	}
	return strcmp(name, "optional") == 0;
}

/* name: the set's, or a pattern's of it. Groups of several patterns may share one. */
static void
names_add(struct rules_reader *r, const struct yaml_node *at, struct names *names, const char *name)
{
	char show[SHOWN_SIZE];

	if (name == NULL || is_named(names, name, COUNT(own_names)))
		return;
	if (is_text_name(name)) {
		rules_error(r, at, "'%s' names what patterns look at: use another name", shown(name, show));
		return;
	}
	if (names->n == COUNT(own_names) + ENGINE_PIECES_MAX) {
		rules_error(r, at, "more than %d names in one rule: make it two", ENGINE_PIECES_MAX);
		return;
	}
	names->list[names->n++] = name;
}

static bool
want(struct rules_reader *r, const struct yaml_node *n, enum yaml_node_kind kind, const char *what)
{
	if (n->kind == kind)
		return true;
	rules_error(r, n, "this is %s: %s", yaml_node_kind_name(n), what);
	return false;
}

/* NAME: WORD, or NAME: [WORD, WORD]. */
static bool
read_words(struct rules_reader *r, const struct yaml_node *n, struct names *names, const char **ret_name,
    const char *const **ret_words)
{
	size_t n_words;

	*ret_name = ruleset_string(r->set, n->name, strlen(n->name));
	if (*ret_name == NULL)
		r->error = -ENOMEM;
	*ret_words = rules_texts(r, n, &n_words);
	names_add(r, n, names, *ret_name);
	return *ret_name != NULL && *ret_words != NULL;
}

static const struct engine_option *
read_options(struct rules_reader *r, const struct yaml_node *map, struct names *names)
{
	const struct engine_option *first = NULL, **end = &first;

	if (map == NULL || !want(r, map, YAML_NODE_MAP, "a mapping is wanted, such as {root: [-w, -work-dir]}"))
		return NULL;
	for (const struct yaml_node *n = map->first; n != NULL && r->error == 0; n = n->next) {
		struct engine_option *o = alloc(r, sizeof(*o));

		if (o == NULL || !read_words(r, n, names, &o->name, &o->words))
			continue;
		*end = o;
		end = &o->next;
	}
	return first;
}

static const struct engine_after *
read_after(struct rules_reader *r, const struct yaml_node *map, struct names *names)
{
	const struct engine_after *first = NULL, **end = &first;

	if (map == NULL || !want(r, map, YAML_NODE_MAP, "a mapping is wanted, such as {pipeline: run}"))
		return NULL;
	for (const struct yaml_node *n = map->first; n != NULL && r->error == 0; n = n->next) {
		struct engine_after *a = alloc(r, sizeof(*a));

		if (a == NULL || !read_words(r, n, names, &a->name, &a->words))
			continue;
		*end = a;
		end = &a->next;
	}
	return first;
}

/* The text that a pattern looks at, by its key. False with an error. */
static bool
read_text(struct rules_reader *r, const struct yaml_node *n, const struct names *names, struct engine_look *l)
{
	struct suggestion best = { 0 };
	char show[SHOWN_SIZE];

	for (size_t i = 0; i < COUNT(texts); i++) {
		if (strcmp(texts[i].name, n->name) == 0) {
			l->text = texts[i].text;
			return true;
		}
		suggest_offer(&best, n->name, texts[i].name);
	}
	for (size_t i = COUNT(own_names); i < names->n; i++) {
		if (strcmp(names->list[i], n->name) == 0) {
			l->text = ENGINE_TEXT_PIECE;
			l->piece = names->list[i];
			return true;
		}
		suggest_offer(&best, n->name, names->list[i]);
	}
	suggest_offer(&best, n->name, "optional");
	if (best.name != NULL)
		rules_error(r, n, "'%s' is nothing to look at: did you mean '%s'?", shown(n->name, show), best.name);
	else
		rules_error(r, n, "'%s' is nothing to look at: cwd, argv, command, exe, parent_command, parent_cwd, "
		    "or what options, after and earlier patterns of this rule name", shown(n->name, show));
	return false;
}

/* One pattern; its groups become names. */
static struct engine_look *
read_pattern(struct rules_reader *r, const struct yaml_node *n, const struct engine_look *like, struct names *names)
{
	struct engine_look *l = alloc(r, sizeof(*l));
	const char *group;

	if (l == NULL)
		return NULL;
	*l = *like;
	l->pattern = rules_pattern(r, n);
	if (l->pattern == NULL)
		return NULL;
	for (size_t i = 0; (group = pattern_group(l->pattern, i)) != NULL; i++) {
		if (i == ENGINE_PIECES_MAX) {
			rules_error(r, n, "more than %d named groups in one pattern: make it two", ENGINE_PIECES_MAX);
			return NULL;
		}
		names_add(r, n, names, group);
	}
	return l;
}

/* {cwd: PATTERN, argv: [PATTERN, PATTERN], optional: true} */
static struct engine_find *
read_find(struct rules_reader *r, const struct yaml_node *item, struct names *names)
{
	struct engine_find *f = alloc(r, sizeof(*f));
	const struct engine_look **end;
	struct names earlier = *names;
	bool has_look = false;

	if (f == NULL || !want(r, item, YAML_NODE_MAP, "a mapping is wanted, such as {cwd: 'PATTERN'}"))
		return NULL;
	end = &f->look;
	for (const struct yaml_node *n = item->first; n != NULL && r->error == 0; n = n->next) {
		struct engine_look like = { 0 };
		const struct yaml_node *one = n->kind == YAML_NODE_LIST ? n->first : n;

		if (strcmp(n->name, "optional") == 0) {
			rules_bool(r, n, &f->is_optional);
			continue;
		}
		has_look = has_look || one != NULL;
		if (!read_text(r, n, &earlier, &like))
			continue;
		for (; one != NULL && r->error == 0; one = n->kind == YAML_NODE_LIST ? one->next : NULL) {
			struct engine_look *l = read_pattern(r, one, &like, names);

			if (l == NULL)
				continue;
			*end = l;
			end = &l->next;
		}
	}
	if (!has_look)
		rules_error(r, item, "there is no pattern here: add one, such as cwd: 'PATTERN'");
	return f;
}

static const struct engine_find *
read_finds(struct rules_reader *r, const struct yaml_node *list, struct names *names)
{
	const struct engine_find *first = NULL, **end = &first;

	if (list == NULL || !want(r, list, YAML_NODE_LIST, "a list is wanted, lines such as - cwd: 'PATTERN'"))
		return NULL;
	for (const struct yaml_node *n = list->first; n != NULL && r->error == 0; n = n->next) {
		struct engine_find *f = read_find(r, n, names);

		if (f == NULL)
			continue;
		*end = f;
		end = &f->next;
	}
	return first;
}

/* One template or a list of them, the first of which that can be filled counts. */
static const struct engine_templates *
read_templates(struct rules_reader *r, const struct yaml_node *n, const struct names *names)
{
	const struct engine_templates *first = NULL, **end = &first;
	const struct yaml_node *one = n->kind == YAML_NODE_LIST ? n->first : n;

	if (n->kind == YAML_NODE_LIST && one == NULL)
		rules_error(r, n, "the list is empty: write a text such as \"{cwd}/work\"");
	for (; one != NULL && r->error == 0; one = n->kind == YAML_NODE_LIST ? one->next : NULL) {
		struct engine_templates *t = alloc(r, sizeof(*t));

		if (t == NULL)
			break;
		t->template = rules_template(r, one, names->list);
		if (t->template == NULL)
			continue;
		*end = t;
		end = &t->next;
	}
	return first;
}

static void
read_fields(struct rules_reader *r, const struct yaml_node *item, struct engine_rule *rule, const struct names *names)
{
	for (enum engine_field f = 0; f < ENGINE_FIELDS; f++) {
		const struct yaml_node *n = rules_child(item, engine_field_name(f));

		if (n != NULL)
			rule->fields[f] = read_templates(r, n, names);
	}
}

/* The names of which a program has to have one for the condition to hold; 0: it may have any. */
static uint64_t
wanted_names(const struct condition *c)
{
	uint64_t all = 0, bits;

	switch (c->kind) {
	case CONDITION_EXE:
	case CONDITION_SCRIPT:
	case CONDITION_CLASS:
		return engine_name_bit(c->text);
	case CONDITION_ANY:
		for (const struct condition *child = c->first; child != NULL; child = child->next) {
			bits = wanted_names(child);
			if (bits == 0)
				return 0;
			all |= bits;
		}
		return all;
	case CONDITION_ALL:
		for (const struct condition *child = c->first; child != NULL; child = child->next) {
			bits = wanted_names(child);
			if (bits != 0 && (all == 0 || __builtin_popcountll(bits) < __builtin_popcountll(all)))
				all = bits;
		}
		return all;
	default:
		return 0;
	}
}

/* Does anything have to hold? */
static bool
is_bound(const struct engine_rule *rule)
{
	if (rule->when != NULL)
		return true;
	for (const struct engine_find *f = rule->finds; f != NULL; f = f->next) {
		if (!f->is_optional)
			return true;
	}
	return false;
}

static const char *const *
keys_of(enum rule_kind kind)
{
	static const char *const driver[] = {
		"name", "when", "options", "values", "after", "find", "source", "confidence", "tasks", "pipeline",
		"run_name", "run_key", "root", "sample", NULL,
	};
	static const char *const task[] = {
		"name", "when", "options", "values", "after", "find", "source", "confidence", "joins", "names",
		"counts_attempts", "pipeline", "run_name", "run_key", "task_id", "task", "sample", "attempt", "root",
		"work_dir", "header", NULL,
	};
	static const char *const overhead[] = { "name", "when", "source", "confidence", NULL };

	return kind == RULE_DRIVER ? driver : kind == RULE_TASK ? task : overhead;
}

static struct engine_rule *
read_rule(struct rules_reader *r, const struct yaml_node *item, enum rule_kind kind)
{
	struct engine_rule *rule = alloc(r, sizeof(*rule));
	const struct yaml_node *n;
	struct names names;
	size_t errors = r->errors->n + r->errors->not_shown, n_values;

	if (rule == NULL || !want(r, item, YAML_NODE_MAP, "a mapping is wanted, with when: and what the rule tells") ||
	    !rules_check_keys(r, item, keys_of(kind)))
		return NULL;
	names_init(&names);
	rule->location = rules_location(r, item);
	n = rules_child(item, "when");
	if (n != NULL)
		rule->when = rules_condition(r, n, RULES_ANY_CONDITION);
	if (rule->when != NULL)
		rule->names_bits = wanted_names(rule->when);
	rule->options = read_options(r, rules_child(item, "options"), &names);
	rule->values = rules_texts(r, rules_child(item, "values"), &n_values);
	rule->after = read_after(r, rules_child(item, "after"), &names);
	rule->finds = read_finds(r, rules_child(item, "find"), &names);
	read_fields(r, item, rule, &names);

	rule->confidence = 0.9;
	if ((n = rules_child(item, "confidence")) != NULL)
		rules_number(r, n, 0, 1, &rule->confidence);
	n = rules_child(item, "source");
	rule->source = n != NULL ? rules_text(r, n) : rule->location.name;
	if ((n = rules_child(item, "tasks")) != NULL)
		rules_bool(r, n, &rule->has_tasks);
	if ((n = rules_child(item, "joins")) != NULL)
		rules_bool(r, n, &rule->joins);
	if ((n = rules_child(item, "names")) != NULL)
		rules_bool(r, n, &rule->names);
	if ((n = rules_child(item, "counts_attempts")) != NULL)
		rules_bool(r, n, &rule->counts_attempts);

	if (rule->joins && rule->names)
		rules_error(r, item, "a task cannot both join and name one that runs elsewhere: keep joins or names");
	if (r->errors->n + r->errors->not_shown == errors && !is_bound(rule))
		rules_error(r, item, "this rule would hold for every program: add when:, or a pattern that is not optional");
	return rule;
}

static const struct engine_rule *
read_rules(struct rules_reader *r, const struct yaml_node *list, enum rule_kind kind)
{
	const struct engine_rule *first = NULL, **end = &first;

	if (list == NULL || !want(r, list, YAML_NODE_LIST, "a list of rules is wanted, each beginning with a hyphen"))
		return NULL;
	for (const struct yaml_node *n = list->first; n != NULL && r->error == 0; n = n->next) {
		struct engine_rule *rule = read_rule(r, n, kind);

		if (rule == NULL)
			continue;
		*end = rule;
		end = &rule->next;
	}
	return first;
}

static bool
has_group(const struct pattern *pattern, const char *name)
{
	const char *group;

	for (size_t i = 0; i < ENGINE_PIECES_MAX && (group = pattern_group(pattern, i)) != NULL; i++) {
		if (strcmp(group, name) == 0)
			return true;
	}
	return false;
}

/* One pattern or a list of them. */
static const struct engine_header *
read_headers(struct rules_reader *r, const struct yaml_node *n)
{
	const struct engine_header *first = NULL, **end = &first;
	const struct yaml_node *one;

	if (n == NULL)
		return NULL;
	for (one = n->kind == YAML_NODE_LIST ? n->first : n; one != NULL && r->error == 0;
	    one = n->kind == YAML_NODE_LIST ? one->next : NULL) {
		struct engine_header *h = alloc(r, sizeof(*h));

		if (h == NULL)
			break;
		h->pattern = rules_pattern(r, one);
		if (h->pattern == NULL)
			continue;
		if (!has_group(h->pattern, "task"))
			rules_error(r, one, "the pattern names no task: put (?<task>...) around its name");
		*end = h;
		end = &h->next;
	}
	return first;
}

static void
read_engine(struct rules_reader *r, const struct yaml_node *item)
{
	static const char *const keys[] = { "engine", "strength", "drivers", "tasks", "overhead", "header", "titles",
		NULL };
	struct engine *e = alloc(r, sizeof(*e));
	const struct yaml_node *n;
	const char *strength;
	char show[SHOWN_SIZE];

	if (e == NULL || !want(r, item, YAML_NODE_MAP, "a mapping is wanted, such as {engine: make, drivers: [...]}") ||
	    !rules_check_keys(r, item, keys))
		return;
	n = rules_child(item, "engine");
	if (n == NULL) {
		rules_error(r, item, "the engine has no name: add engine: NAME");
		return;
	}
	e->name = rules_text(r, n);
	n = rules_child(item, "strength");
	strength = n != NULL ? rules_text(r, n) : NULL;
	if (strength != NULL && strcmp(strength, "weak") == 0)
		e->is_weak = true;
	else if (strength != NULL && strcmp(strength, "engine") != 0)
		rules_error(r, n, "'%s' is no strength: engine, or weak for what is a run only where nothing else is",
		    shown(strength, show));
	e->drivers = read_rules(r, rules_child(item, "drivers"), RULE_DRIVER);
	e->tasks = read_rules(r, rules_child(item, "tasks"), RULE_TASK);
	e->overhead = read_rules(r, rules_child(item, "overhead"), RULE_OVERHEAD);
	e->headers = read_headers(r, rules_child(item, "header"));
	n = rules_child(item, "titles");
	if (n != NULL)
		e->titles = rules_condition(r, n, RULES_ANY_CONDITION);
	if (r->engines->last != NULL)
		r->engines->last->next = e;
	else
		r->engines->rules.first = e;
	r->engines->last = e;
}

void
rules_read_engines(struct rules_reader *r, const struct yaml_node *section)
{
	if (r->engines == NULL)
		r->engines = alloc(r, sizeof(*r->engines));
	if (r->engines == NULL || section->kind == YAML_NODE_NULL ||
	    !want(r, section, YAML_NODE_LIST, "a list of engines is wanted, each beginning with - engine: NAME"))
		return;
	for (const struct yaml_node *n = section->first; n != NULL && r->error == 0; n = n->next)
		read_engine(r, n);
}

void
rules_finish_engines(struct rules_reader *r)
{
	if (r->engines == NULL)
		r->engines = alloc(r, sizeof(*r->engines));
	if (r->engines != NULL)
		r->set->engines = &r->engines->rules;
	r->engines = NULL;
}
