/*
 * SPDX-License-Identifier: Apache-2.0
 * engines: the section `engines`: drivers, tasks and overhead of workflow engines.
 *
 * A template may only name pieces that its rule gathers, so that a misspelt name is an error rather than
 * a piece that is always empty.
 */
#include <string.h>

#include "base/pattern.h"
#include "rules/reader.h"

/* The kinds of rules of an engine, as bits of the tables' `in`. */
enum {
	DRIVER = 1 << 0,
	TASK = 1 << 1,
	OVERHEAD = 1 << 2,
};

/* The pieces that every program has. */
static const char *const own_names[] = {
	"cwd", "exe", "comm", "tool", "subcommand", "script", "jar", "class",
};

/* What patterns search, by enum engine_text; the last only names a key beside them. */
static const char *const texts[] = {
	[ENGINE_TEXT_CWD] = "cwd",
	[ENGINE_TEXT_ARGV] = "argv",
	[ENGINE_TEXT_COMMAND] = "command",
	[ENGINE_TEXT_EXE] = "exe",
	[ENGINE_TEXT_PARENT_COMMAND] = "parent_command",
	[ENGINE_TEXT_PARENT_CWD] = "parent_cwd",
	[ENGINE_TEXT_PIECE] = "optional",
};

/* The names of a rule's pieces in the order of their declaration, behind those that every program has. */
struct names {
	const char *list[COUNT(own_names) + ENGINE_PIECES_MAX + 1];	/* NULL-terminated */
	size_t n;
};

/* Index of name from the index `from` on; names->n: it is none of them. */
static size_t
names_find(const struct names *names, const char *name, size_t from)
{
	size_t i = from;

	while (i < names->n && strcmp(names->list[i], name) != 0)
		i++;
	return i;
}

/* Adds a name, which is the set's or a pattern's. Groups of several patterns may share one. */
static bool
names_add(struct rules_reader *r, const struct yaml_node *at, struct names *names, const char *name)
{
	char show[SHOWN_SIZE];

	if (names_find(names, name, COUNT(own_names)) < names->n)
		return true;
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (strcmp(texts[i], name) == 0)
			return rules_error(r, at, "'%s' is reserved for a text that patterns search: use another name",
			    shown(name, show));
	}
	if (names->n == COUNT(own_names) + ENGINE_PIECES_MAX)
		return rules_error(r, at, "more than %d names in one rule: make it two", ENGINE_PIECES_MAX);
	names->list[names->n++] = name;
	return true;
}

/* Reads NAME: WORD, or NAME: [WORD, WORD]. */
static bool
read_words(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct engine_words *w = into;

	w->name = rules_string(r, v->n->name);
	w->words = rules_texts(r, v->n, NULL);
	return w->name != NULL && names_add(r, v->n, v->context, w->name) && w->words != NULL;
}

/* A pattern of a `find`, and where its groups' names go. */
struct look {
	enum engine_text text;
	const char *piece;		/* ENGINE_TEXT_PIECE */
	struct names *names;
};

/* Finds the text that patterns search by their key: one of `texts`, or an earlier piece. */
static bool
read_text(struct rules_reader *r, const struct yaml_node *n, const struct names *pieces, struct look *ret)
{
	const char *all[COUNT(texts) + ENGINE_PIECES_MAX + 1] = { NULL }, *near;
	size_t n_pieces = pieces->n - COUNT(own_names), i = 0;
	char show[SHOWN_SIZE];

	memcpy(all, texts, ENGINE_TEXT_PIECE * sizeof(texts[0]));
	memcpy(all + ENGINE_TEXT_PIECE, pieces->list + COUNT(own_names), n_pieces * sizeof(all[0]));
	while (all[i] != NULL && strcmp(all[i], n->name) != 0)
		i++;
	ret->text = i < ENGINE_TEXT_PIECE ? (enum engine_text)i : ENGINE_TEXT_PIECE;
	ret->piece = i < ENGINE_TEXT_PIECE ? NULL : all[i];
	if (all[i] != NULL)
		return true;
	all[i] = texts[ENGINE_TEXT_PIECE];
	near = suggest_nearest(n->name, all);
	if (near != NULL)
		return rules_error(r, n, "'%s' cannot be searched: did you mean '%s'?", shown(n->name, show), near);
	return rules_error(r, n, "'%s' cannot be searched: give cwd, argv, command, exe, parent_command, "
	    "parent_cwd, or what options, after and earlier patterns of this rule name", shown(n->name, show));
}

/* Reads one pattern, whose groups become names. */
static bool
read_look(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const struct look *look = v->context;
	struct engine_look *l = into;
	const char *group;
	bool is_good = true;

	l->text = look->text;
	l->piece = look->piece;
	l->pattern = rules_pattern(r, v->n);
	for (size_t i = 0; l->pattern != NULL && (group = pattern_group(l->pattern, i)) != NULL; i++) {
		if (i == ENGINE_PIECES_MAX)
			return rules_error(r, v->n, "more than %d named groups in one pattern: make it two", ENGINE_PIECES_MAX);
		is_good = names_add(r, v->n, look->names, group) && is_good;
	}
	return is_good && l->pattern != NULL;
}

static const struct rules_key looks = { NULL, RULES_ITEMS, RULES_LIST_OF(engine_look), .read = read_look };

/* Reads {cwd: PATTERN, argv: [PATTERN, PATTERN], optional: true}. */
static bool
read_find(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const struct names earlier = *(const struct names *)v->context;
	struct engine_find *f = into;
	bool has_look = false, is_good = true;

	if (!rules_want(r, v->n, YAML_NODE_MAP, "expected a mapping, such as {cwd: 'PATTERN'}"))
		return false;
	for (const struct yaml_node *n = v->n->first; n != NULL && r->error == 0; n = n->next) {
		struct look look = { .names = v->context };

		if (strcmp(n->name, "optional") == 0) {
			is_good = rules_bool(r, n, &f->is_optional) && is_good;
			continue;
		}
		has_look = has_look || n->kind != YAML_NODE_LIST || n->first != NULL;
		is_good = read_text(r, n, &earlier, &look) &&
		    rules_read_items(r, &looks, n, &f->look, &look) && is_good;
	}
	if (!has_look)
		return rules_error(r, v->n, "there is no pattern here: add one, such as cwd: 'PATTERN'");
	return is_good;
}

static bool
read_template(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct engine_templates *t = into;

	t->template = rules_template(r, v->n, ((const struct names *)v->context)->list);
	return t->template != NULL;
}

#define R(member) offsetof(struct engine_rule, member)
/* A field of the verdict: one template, or a list of which the first that can be filled counts. */
#define FIELD(name, field, in)                                                                     \
	{ name, RULES_ITEMS, R(fields[field]), (in), read_template, RULES_LIST_OF(engine_templates),          \
	    .wanted = "the list is empty: write a text such as \"{cwd}/work\"" }

static const struct rules_key rule_keys[] = {
	{ "name", RULES_ELSEWHERE },
	{ "when", RULES_CONDITION, R(when) },
	{ "options", RULES_MAP, R(options), DRIVER | TASK, read_words, RULES_LIST_OF(engine_words),
	    .wanted = "expected a mapping, such as {root: [-w, -work-dir]}" },
	{ "values", RULES_TEXTS, R(values), DRIVER | TASK },
	{ "after", RULES_MAP, R(after), DRIVER | TASK, read_words, RULES_LIST_OF(engine_words),
	    .wanted = "expected a mapping, such as {pipeline: run}" },
	{ "find", RULES_LIST, R(finds), DRIVER | TASK, read_find, RULES_LIST_OF(engine_find),
	    .wanted = "expected a list, lines such as - cwd: 'PATTERN'" },
	{ "source", RULES_TEXT, R(source) },
	{ "confidence", RULES_SHARE, R(confidence) },
	{ "tasks", RULES_BOOL, R(has_tasks), DRIVER },
	{ "joins", RULES_BOOL, R(joins), TASK },
	{ "names", RULES_BOOL, R(names), TASK },
	{ "counts_attempts", RULES_BOOL, R(counts_attempts), TASK },
	FIELD("pipeline", ENGINE_FIELD_PIPELINE, DRIVER | TASK),
	FIELD("run_name", ENGINE_FIELD_RUN_NAME, DRIVER | TASK),
	FIELD("run_key", ENGINE_FIELD_RUN_KEY, DRIVER | TASK),
	FIELD("root", ENGINE_FIELD_ROOT, DRIVER),
	FIELD("task_id", ENGINE_FIELD_TASK_ID, TASK),
	FIELD("task", ENGINE_FIELD_TASK, TASK),
	FIELD("sample", ENGINE_FIELD_SAMPLE, DRIVER | TASK),
	FIELD("attempt", ENGINE_FIELD_ATTEMPT, TASK),
	FIELD("root", ENGINE_FIELD_ROOT, TASK),
	FIELD("work_dir", ENGINE_FIELD_WORK_DIR, TASK),
	FIELD("header", ENGINE_FIELD_HEADER, TASK),
	{ 0 },
};

/* Whether the rule has a condition or a pattern that must hold. */
static bool
is_bound(const struct engine_rule *rule)
{
	const struct engine_find *f = rule->finds;

	while (f != NULL && f->is_optional)
		f = f->next;
	return rule->when != NULL || f != NULL;
}

/* v->key->of: the kind of rule. */
static bool
read_rule(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct engine_rule *rule = into;
	struct names names = { .n = COUNT(own_names) };
	bool is_good;

	if (!rules_want(r, v->n, YAML_NODE_MAP, "expected a mapping with when: and the fields of the rule") ||
	    !rules_check_keys(r, v->n, rule_keys, v->key->of))
		return false;
	memcpy(names.list, own_names, sizeof(own_names));
	rule->location = rules_location(r, v->n);
	rule->source = rule->location.name;
	rule->confidence = 0.9;
	is_good = rules_read_keys(r, v->n, rule_keys, v->key->of, rule, &names);
	if (rule->when != NULL)
		rule->names_bits = rules_name_bits(rule->when, UINT64_C(1) << CONDITION_EXE |
		    UINT64_C(1) << CONDITION_SCRIPT | UINT64_C(1) << CONDITION_CLASS);
	if (rule->joins && rule->names)
		return rules_error(r, v->n,
		    "a task cannot both join and name one that runs elsewhere: keep joins or names");
	if (is_good && !is_bound(rule))
		return rules_error(r, v->n,
		    "this rule would hold for every program: add when:, or a pattern that is not optional");
	return is_good;
}

static bool
read_strength(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *strength = rules_text(r, v->n);
	bool *is_weak = into;
	char show[SHOWN_SIZE];

	*is_weak = strength != NULL && strcmp(strength, "weak") == 0;
	if (strength != NULL && !*is_weak && strcmp(strength, "engine") != 0)
		return rules_error(r, v->n, "'%s' is not a strength: give engine, or weak for a run only where nothing "
		    "else is one", shown(strength, show));
	return strength != NULL;
}

static bool
read_jobs(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *format = rules_text(r, v->n);
	bool *keeps_jobs = into;
	char show[SHOWN_SIZE];

	*keeps_jobs = format != NULL && strcmp(format, "snakemake") == 0;
	if (format != NULL && !*keeps_jobs)
		return rules_error(r, v->n, "'%s' is not a format of job records: give snakemake, the only one",
		    shown(format, show));
	return format != NULL;
}

static bool
read_header(struct rules_reader *r, const struct rules_value *v, void *into)
{
	struct engine_header *h = into;

	h->pattern = rules_pattern(r, v->n);
	if (h->pattern != NULL && !pattern_has_group(h->pattern, "task"))
		return rules_error(r, v->n, "the pattern names no task: put (?<task>...) around its name");
	return h->pattern != NULL;
}

#define E(member) offsetof(struct engine, member)
#define RULES(name, member, kind)                                                                  \
	{ name, RULES_LIST, E(member), 0, read_rule, (kind), RULES_LIST_OF(engine_rule),                      \
	    .wanted = "expected a list of rules, each beginning with a hyphen" }

static const struct rules_key engine_keys[] = {
	{ "engine", RULES_TEXT, E(name) },
	{ "strength", RULES_OWN, E(is_weak), 0, read_strength },
	RULES("drivers", drivers, DRIVER),
	RULES("tasks", tasks, TASK),
	RULES("overhead", overhead, OVERHEAD),
	{ "header", RULES_ITEMS, E(headers), 0, read_header, RULES_LIST_OF(engine_header) },
	{ "titles", RULES_CONDITION, E(titles) },
	{ "jobs", RULES_OWN, E(keeps_jobs), 0, read_jobs },
	{ 0 },
};

void
rules_read_engine(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	struct engine *e = rules_alloc(r, sizeof(*e));

	(void)section;
	if (e == NULL || !rules_want(r, item, YAML_NODE_MAP, "expected a mapping, such as {engine: make, drivers: [...]}") ||
	    !rules_check_keys(r, item, engine_keys, 0))
		return;
	if (rules_child(item, "engine") == NULL)
		rules_error(r, item, "the engine has no name: add engine: NAME");
	else
		rules_read_keys(r, item, engine_keys, 0, e, NULL);
	*r->next_engine = e;
	r->next_engine = &e->next;
}
