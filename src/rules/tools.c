/*
 * SPDX-License-Identifier: Apache-2.0
 * tools: the section `tools`: the names of programs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "rules/reader.h"

/* Names that templates may use. */
static const char *const template_names[] = {
	"exe", "subcommand", "subcommand2", "script", "jar", "class", "first_arg", NULL,
};

/* Returns the node of the i-th text of a value that is one text or a list of them. */
static const struct yaml_node *
text_at(const struct yaml_node *n, size_t i)
{
	if (n->kind != YAML_NODE_LIST)
		return n;
	for (n = n->first; i > 0; i--)
		n = n->next;
	return n;
}

/* The forms of options that a key of `runs` accepts. */
enum {
	LETTERS = 1 << 0,		/* - or + and one letter */
	WORDS = 1 << 1,			/* --name */
	JAVA = 1 << 2,			/* beside `jar`, where all options are words that begin with one hyphen */
};

/* Reads the options of a key of `runs`. v->key->of: the bits above; v->context: whether there is a `jar`. */
static bool
read_options(struct rules_reader *r, const struct rules_value *v, void *into)
{
	bool java = *(bool *)v->context;
	struct tool_options *o = into;
	size_t count, n_letters = 0, n_words = 0;
	const char *const *list = rules_texts(r, v->n, &count);
	char *letters, show[SHOWN_SIZE];
	const char **words;

	letters = list != NULL ? rules_alloc(r, count + 1) : NULL;
	words = letters != NULL ? rules_alloc(r, (count + 1) * sizeof(*words)) : NULL;
	if (words == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *option = list[i];
		bool is_letter = (option[0] == '-' || option[0] == '+') && option[1] != '-' &&
		    option[1] != '\0' && option[2] == '\0';

		if (is_letter && (v->key->of & LETTERS) != 0 && !java) {
			if (strchr(letters, option[1]) == NULL)
				letters[n_letters++] = option[1];
		} else if (option[0] == '-' && option[1] != '\0' &&
		    (java || ((v->key->of & WORDS) != 0 && option[1] == '-'))) {
			words[n_words++] = option;
		} else {
			return rules_error(r, text_at(v->n, i), "%s: '%s' is not allowed here: give %s", v->key->name,
			    shown(option, show), java ? "one that begins with -" :
			    (v->key->of & WORDS) == 0 ? "- and one letter" : "- and one letter, or --name");
		}
	}
	o->letters = letters;
	o->words = n_words > 0 ? words : NULL;
	return true;
}

#define I(member) offsetof(struct tool_interpreter, member)
static const struct rules_key runs_keys[] = {
	{ "script", RULES_BOOL, I(has_script) },
	{ "inline", RULES_OWN, I(inline_), 0, read_options, LETTERS | WORDS },
	{ "module", RULES_OWN, I(module), 0, read_options, LETTERS | JAVA },
	{ "file", RULES_OWN, I(file), 0, read_options, LETTERS | WORDS },
	{ "value", RULES_OWN, I(value), 0, read_options, LETTERS | WORDS | JAVA },
	{ "attached", RULES_OWN, I(attached), 0, read_options, LETTERS },
	{ "next", RULES_OWN, I(next), 0, read_options, LETTERS },
	{ "jar", RULES_OWN, I(jar), 0, read_options, JAVA },
	{ 0 },
};

/* Reads `runs`: true, or the options by which the interpreter's script is found. */
static bool
read_runs(struct rules_reader *r, const struct rules_value *v, void *into)
{
	static const struct tool_options none = { "", NULL };
	const struct tool_interpreter **ret = into;
	struct tool_interpreter *in = rules_alloc(r, sizeof(*in));
	bool is_java = rules_child(v->n, "jar") != NULL, is_true;

	if (in == NULL)
		return false;
	*in = (struct tool_interpreter){ none, none, none, none, none, none, none, .has_script = true };
	*ret = in;
	if (v->n->kind == YAML_NODE_TEXT)
		return rules_bool(r, v->n, &is_true) &&
		    (is_true || rules_error(r, v->n, "runs: 'false' has no effect: remove it"));
	if (!rules_check_keys(r, v->n, runs_keys, 0))
		return false;
	for (const struct rules_key *k = runs_keys; is_java && k->name != NULL; k++) {
		const struct yaml_node *other = rules_child(v->n, k->name);

		if (other != NULL && (k->of & JAVA) == 0)
			return rules_error(r, other, "%s: cannot be combined with jar; only module and value can",
			    k->name);
	}
	return rules_read_keys(r, v->n, runs_keys, 0, in, &is_java);
}

/* Makes the list of the template and its beginnings, each with one name less, for names that are unknown. */
static const struct template *const *
read_templates(struct rules_reader *r, const struct yaml_node *n, const char *text)
{
	const struct template *whole = rules_template(r, n, template_names);
	const struct template **list;
	size_t names = 0, filled = 0;

	if (whole == NULL)
		return NULL;
	while (template_name(whole, names) != NULL)
		names++;
	list = rules_alloc(r, (names + 2) * sizeof(*list));
	if (list == NULL)
		return NULL;
	list[filled++] = whole;
	for (size_t left = names; left-- > 0;) {
		char error[128];
		size_t at = 0;

		/* Find the brace that opens the name of that number. */
		for (size_t name = 0;; at++) {
			if (text[at] == '{' && text[at + 1] == '{')
				at++;
			else if (text[at] == '{' && name++ == left)
				break;
		}
		while (at > 0 && text[at - 1] == ' ')
			at--;
		if (at == 0)
			break;
		list[filled] = template_new(r->set, text, at, error, sizeof(error));
		if (list[filled++] == NULL) {
			r->error = -ENOMEM;
			return NULL;
		}
	}
	return list;
}

/* Reads `tool`: a plain name, or a template. */
static bool
read_tool(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *text = rules_text(r, v->n), *name;
	struct tool_rule *rule = into;

	if (text == NULL || strpbrk(text, "{}") == NULL) {
		rule->tool = text;
		return text != NULL;
	}
	rule->templates = read_templates(r, v->n, text);
	for (size_t i = 0; rule->templates != NULL && (name = template_name(rule->templates[0], i)) != NULL; i++)
		rule->has_subcommands |= strncmp(name, "subcommand", 10) == 0;
	return rule->templates != NULL;
}

static bool
read_subcommands(struct rules_reader *r, const struct rules_value *v, void *into)
{
	bool is_true = v->n->kind == YAML_NODE_TEXT && v->n->is_plain && strcmp(v->n->text, "true") == 0;
	struct tool_rule *rule = into;
	char show[SHOWN_SIZE];

	if (is_true || v->n->kind == YAML_NODE_LIST) {
		rule->has_subcommands = true;
		rule->subcommands = is_true ? NULL : rules_texts(r, v->n, NULL);
		return is_true || rule->subcommands != NULL;
	}
	if (v->n->kind != YAML_NODE_TEXT)
		return rules_error(r, v->n, "subcommands: this is %s: expected true, for any plain word, or a list, such "
		    "as [index, mem]", yaml_node_kind_name(v->n));
	return (v->n->is_plain && strcmp(v->n->text, "false") == 0) ||
	    rules_error(r, v->n, "subcommands: '%s' is neither true, for any plain word, nor a list, such as "
	    "[index, mem]", shown(v->n->text, show));
}

static bool
read_values(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *const **ret = into;
	char show[SHOWN_SIZE];

	*ret = rules_texts(r, v->n, NULL);
	for (size_t i = 0; *ret != NULL && (*ret)[i] != NULL; i++) {
		if ((*ret)[i][0] != '-' || (*ret)[i][1] == '\0')
			return rules_error(r, text_at(v->n, i), "values: '%s' is no option: give one that begins with -",
			    shown((*ret)[i], show));
	}
	return *ret != NULL;
}

static bool
read_role(struct rules_reader *r, const struct rules_value *v, void *into)
{
	const char *names[TOOL_ROLES + 1] = { NULL }, *text = rules_text(r, v->n);
	char show[SHOWN_SIZE], hint[SUGGEST_LIST_SIZE];
	enum tool_role *role = into;

	for (*role = 0; *role < TOOL_ROLES; (*role)++) {
		names[*role] = tool_role_name(*role);
		if (text != NULL && strcmp(text, names[*role]) == 0)
			return true;
	}
	return text != NULL && rules_error(r, v->n, "role: '%s' is not a role: %s", shown(text, show),
	    suggest_hint(text, names, "''", hint));
}

/* Returns "bioinformatics/samtools"; NULL: r->error is set. */
static const char *
rule_name(struct rules_reader *r, const char *name)
{
	const char *ret = NULL;
	struct bytes text = { 0 };

	/* Without printf: the shipped rules have thousands of names, which are read at each start. */
	if (bytes_append(&text, r->stem, strlen(r->stem)) == 0 && bytes_append(&text, "/", 1) == 0 &&
	    bytes_append(&text, name, strlen(name)) == 0)
		ret = ruleset_string(r->set, (const char *)text.data, text.len);
	bytes_done(&text);
	if (ret == NULL)
		r->error = -ENOMEM;
	return ret;
}

/* Adds a name that leads to the rule; NULL: none does. label: the rule's name; NULL: it is made of this name. */
static bool
add_key(struct rules_reader *r, const struct tool_rule *rule, enum tool_key_kind kind, const char *name,
    const char *label)
{
	struct tool_key *k = rules_alloc(r, sizeof(*k));

	if (k == NULL)
		return false;
	*k = (struct tool_key){ .kind = kind, .rule_name = label, .rule = rule };
	if (name == NULL) {
		*r->next_general = k;
		r->next_general = &k->next;
		return true;
	}
	if (label == NULL) {	/* one text serves both, since there are thousands */
		k->rule_name = rule_name(r, name);
		k->name = k->rule_name != NULL ? k->rule_name + strlen(r->stem) + 1 : NULL;
	} else {
		k->name = rules_string(r, name);
	}
	if (k->name == NULL)
		return false;
	k->hash = tool_key_hash(kind, name);
	k->next = r->last_key;
	r->last_key = k;
	r->n_keys++;
	return true;
}

/* Checks a name: a jar is found by its name without version and .jar, a program by its base name. */
static bool
check_name(struct rules_reader *r, const struct yaml_node *n, const struct rules_key *k)
{
	char show[SHOWN_SIZE];
	size_t len;

	if (n->kind != YAML_NODE_TEXT || n->text[0] == '\0')
		return rules_text(r, n) != NULL;	/* adds the error */
	len = strlen(n->text);
	if (strchr(n->text, '/') != NULL)
		return rules_error(r, n, "%s: '%s' is not a base name: give the part after the last /; to match one folder "
		    "only, add when: {path: ...}", k->name, shown(n->text, show));
	if (k->of == TOOL_KEY_JAR && len > 4 && strcmp(n->text + len - 4, ".jar") == 0)
		return rules_error(r, n, "jar: '%s' must be without version and .jar, such as gatk-package",
		    shown(n->text, show));
	return true;
}

#define T(member) offsetof(struct tool_rule, member)
static const struct rules_key keys[] = {
	{ "name", RULES_ELSEWHERE },
	{ "exe", RULES_ELSEWHERE, .of = TOOL_KEY_EXE },
	{ "jar", RULES_ELSEWHERE, .of = TOOL_KEY_JAR },
	{ "class", RULES_ELSEWHERE, .of = TOOL_KEY_CLASS },
	{ "when", RULES_CONDITION, T(when), .of = CONDITION_TOOL },
	{ "tool", RULES_OWN, 0, 0, read_tool },
	{ "subcommands", RULES_OWN, 0, 0, read_subcommands },
	{ "values", RULES_OWN, T(values), 0, read_values },
	{ "skip", RULES_TEXT, T(skip) },
	{ "role", RULES_OWN, T(role), 0, read_role },
	{ "runs", RULES_OWN, T(runs), 0, read_runs },
	{ "versions", RULES_BOOL, T(has_versions) },
	{ 0 },
};
static const struct rules_key *const first_name = &keys[1], *const last_name = &keys[3];

static bool
has_name(const struct yaml_node *item)
{
	return rules_child(item, "exe") != NULL || rules_child(item, "jar") != NULL || rules_child(item, "class") != NULL;
}

static void
add_keys(struct rules_reader *r, const struct yaml_node *item, const struct tool_rule *rule)
{
	const char *label = NULL;

	if (rules_child(item, "name") != NULL)
		label = rule_name(r, rule->location.name);
	else if (rule->tool != NULL)
		label = rule_name(r, rule->tool);
	if (r->error < 0)
		return;
	for (const struct rules_key *k = first_name; k <= last_name; k++) {
		const struct yaml_node *n = rules_child(item, k->name);

		if (n == NULL)
			continue;
		if (n->kind == YAML_NODE_LIST && n->first == NULL) {
			rules_texts(r, n, NULL);	/* adds the error */
			return;
		}
		/* A single value's next is the mapping's next key. */
		for (const struct yaml_node *name = n->kind == YAML_NODE_LIST ? n->first : n; name != NULL;
		    name = name != n ? name->next : NULL) {
			if (!check_name(r, name, k) || !add_key(r, rule, (enum tool_key_kind)k->of, name->text, label))
				return;
		}
	}
	/* A rule that no name leads to is called by its location, which includes the file. */
	if (!has_name(item))
		add_key(r, rule, TOOL_KEY_EXE, NULL, label != NULL ? label : rule->location.name);
}

void
rules_read_tool(struct rules_reader *r, const struct yaml_node *item, enum rule_section section)
{
	struct tool_rule *rule = rules_alloc(r, sizeof(*rule));

	(void)section;
	if (rule == NULL || !rules_check_keys(r, item, keys, 0))
		return;
	rule->location = rules_location(r, item);
	rule->order = r->n_tool_rules++;
	if (!has_name(item) && rules_child(item, "when") == NULL)
		rules_error(r, item, "no program is selected: give exe, jar, class or when");
	else if (rules_read_keys(r, item, keys, 0, rule, NULL))
		add_keys(r, item, rule);
}

void
rules_finish_tools(struct rules_reader *r)
{
	struct tool_rules *t = r->error == 0 ? rules_alloc(r, sizeof(*t)) : NULL;
	struct tool_key **buckets, *next;

	if (t == NULL)
		return;
	t->n_buckets = 1;
	while (t->n_buckets < r->n_keys)
		t->n_buckets *= 2;
	buckets = rules_alloc(r, t->n_buckets * sizeof(*buckets));
	if (buckets == NULL)
		return;
	/* From the last key to the first: each bucket has its keys in the order of the rules. */
	for (struct tool_key *k = r->last_key; k != NULL; k = next) {
		struct tool_key **bucket = &buckets[k->hash & (t->n_buckets - 1)];

		next = k->next;
		k->next = *bucket;
		*bucket = k;
	}
	t->buckets = (const struct tool_key *const *)buckets;
	t->general = r->first_general;
	t->n_rules = r->n_tool_rules;
	t->n_keys = r->n_keys;
	r->set->tools = t;
}
