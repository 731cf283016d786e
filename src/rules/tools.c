/*
 * SPDX-License-Identifier: Apache-2.0
 * tools: the rules `tools`: what programs are called.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/errors.h"
#include "config/suggest.h"
#include "model/tool_rules.h"
#include "rules/reader.h"

/* Names that may stand in braces. */
static const char *const template_names[] = {
	"exe", "subcommand", "subcommand2", "script", "jar", "class", "first_arg", NULL,
};

struct tool_builder {
	const char *stem;		/* of the file under way: its name without .yaml; the set's */
	struct tool_key *first, **end;	/* keys in their order, through next; the set's */
	struct tool_key *general, **general_end;
	size_t n_keys, n_rules;
};

/* Keys are const to all others, and linked here. */
static struct tool_key **
link_of(struct tool_key *k)
{
	return (struct tool_key **)(void *)&k->next;
}

static struct tool_builder *
builder_of(struct rules_reader *r)
{
	struct tool_builder *b = r->tools;

	if (b == NULL && (b = r->tools = calloc(1, sizeof(*b))) != NULL) {
		b->end = &b->first;
		b->general_end = &b->general;
	}
	if (b == NULL)
		r->error = -ENOMEM;
	return b;
}

/* What rules of this file are called in front of their names. */
static bool
begin_file(struct rules_reader *r)
{
	struct tool_builder *b = builder_of(r);
	size_t len = strlen(r->file);

	if (b == NULL)
		return false;
	if (len > 5 && strcmp(r->file + len - 5, ".yaml") == 0)
		len -= 5;
	b->stem = ruleset_string(r->set, r->file, len);
	if (b->stem == NULL)
		r->error = -ENOMEM;
	return b->stem != NULL;
}

/* Of a value that is one text or a list of them: the node of the i-th. */
static const struct yaml_node *
text_at(const struct yaml_node *n, size_t i)
{
	if (n->kind != YAML_NODE_LIST)
		return n;
	for (n = n->first; i > 0; i--)
		n = n->next;
	return n;
}

static void *
set_alloc(struct rules_reader *r, size_t size)
{
	void *p = ruleset_alloc(r->set, size);

	if (p == NULL)
		r->error = -ENOMEM;
	return p;
}

/* Options of one key of `runs`: letters, NULL where the key takes none, and whole words. */
static bool
read_options(struct rules_reader *r, const struct yaml_node *n, bool is_java, const char **letters,
    const char *const **words)
{
	const char *const *list;
	size_t count, n_letters = 0, n_words = 0;
	const char **long_ones;
	char *short_ones;

	if (n == NULL)
		return true;
	list = rules_texts(r, n, &count);
	if (list == NULL)
		return false;
	short_ones = set_alloc(r, count + 1);
	long_ones = set_alloc(r, (count + 1) * sizeof(*long_ones));
	if (short_ones == NULL || long_ones == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *option = list[i];
		bool is_letter = (option[0] == '-' || option[0] == '+') && option[1] != '-' &&
		    option[1] != '\0' && option[2] == '\0';

		if (is_letter && letters != NULL && !is_java) {
			if (strchr(short_ones, option[1]) == NULL)
				short_ones[n_letters++] = option[1];
		} else if (words != NULL && option[0] == '-' && option[1] != '\0' && (is_java || option[1] == '-')) {
			long_ones[n_words++] = option;
		} else {
			char buf[SHOWN_SIZE];

			rules_error(r, text_at(n, i), "%s: '%s' is no option that can stand here: give %s", n->name,
			    shown(option, buf), is_java ? "one that begins with -" :
			    words == NULL ? "- and one letter" : "- and one letter, or --name");
			return false;
		}
	}
	if (letters != NULL)
		*letters = short_ones;
	if (words != NULL && n_words > 0)
		*words = long_ones;
	return true;
}

/* `runs`: true, or how to find what the interpreter runs. */
static const struct tool_interpreter *
read_runs(struct rules_reader *r, const struct yaml_node *n)
{
	static const char *const keys[] = {
		"script", "inline", "module", "file", "value", "attached", "next", "jar", NULL,
	};
	struct tool_interpreter *in = set_alloc(r, sizeof(*in));
	bool is_java, has_script = true, is_true = true;

	if (in == NULL)
		return NULL;
	in->inline_ = in->module = in->value = in->attached = in->next = in->file = "";
	if (n->kind == YAML_NODE_TEXT) {
		if (!rules_bool(r, n, &is_true))
			return NULL;
		if (!is_true)
			rules_error(r, n, "runs: 'false' says nothing: remove it");
		return in;
	}
	if (!rules_check_keys(r, n, keys))
		return NULL;
	is_java = rules_child(n, "jar") != NULL;
	if (is_java) {
		static const char *const others[] = { "script", "inline", "file", "attached", "next", NULL };

		for (size_t i = 0; others[i] != NULL; i++) {
			const struct yaml_node *other = rules_child(n, others[i]);

			if (other != NULL) {
				rules_error(r, other, "%s: it cannot stand beside jar: there are module and value",
				    others[i]);
				return NULL;
			}
		}
	}
	if (!read_options(r, rules_child(n, "inline"), false, &in->inline_, &in->long_inline) ||
	    !read_options(r, rules_child(n, "module"), is_java, &in->module, is_java ? &in->long_module : NULL) ||
	    !read_options(r, rules_child(n, "file"), false, &in->file, &in->long_file) ||
	    !read_options(r, rules_child(n, "value"), is_java, &in->value, &in->long_value) ||
	    !read_options(r, rules_child(n, "attached"), false, &in->attached, NULL) ||
	    !read_options(r, rules_child(n, "next"), false, &in->next, NULL) ||
	    !read_options(r, rules_child(n, "jar"), is_java, NULL, &in->jar) ||
	    (rules_child(n, "script") != NULL && !rules_bool(r, rules_child(n, "script"), &has_script)))
		return NULL;
	in->is_without_script = !has_script;
	return in;
}

/* The template's beginnings, each without one more of its names, for those that are unknown. */
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
	list = set_alloc(r, (names + 2) * sizeof(*list));
	if (list == NULL)
		return NULL;
	list[filled++] = whole;
	for (size_t left = names; left-- > 0;) {
		char error[128];
		size_t at = 0;

		/* Up to the brace that opens the name of that number. */
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

/* `tool`: a plain name, or a template. */
static bool
read_tool(struct rules_reader *r, const struct yaml_node *n, struct tool_rule *rule)
{
	const char *text = rules_text(r, n);

	if (text == NULL)
		return false;
	if (strpbrk(text, "{}") == NULL) {
		rule->tool = text;
		return true;
	}
	rule->templates = read_templates(r, n, text);
	if (rule->templates == NULL)
		return false;
	for (size_t i = 0; template_name(rule->templates[0], i) != NULL; i++)
		rule->has_subcommands |= strncmp(template_name(rule->templates[0], i), "subcommand", 10) == 0;
	return true;
}

static bool
read_subcommands(struct rules_reader *r, const struct yaml_node *n, struct tool_rule *rule)
{
	char buf[SHOWN_SIZE];
	size_t count;

	if (n->kind == YAML_NODE_LIST) {
		rule->subcommands = rules_texts(r, n, &count);
		rule->has_subcommands = true;
		return rule->subcommands != NULL;
	}
	if (n->kind == YAML_NODE_TEXT && n->is_plain && strcmp(n->text, "true") == 0) {
		rule->has_subcommands = true;
		return true;
	}
	if (n->kind == YAML_NODE_TEXT && n->is_plain && strcmp(n->text, "false") == 0)
		return true;
	if (n->kind == YAML_NODE_TEXT)
		rules_error(r, n, "subcommands: '%s' is neither true, for any plain word, nor a list, such as "
		    "[index, mem]", shown(n->text, buf));
	else
		rules_error(r, n, "subcommands: this is %s: true, for any plain word, or a list is wanted, such "
		    "as [index, mem]", yaml_node_kind_name(n));
	return false;
}

static bool
read_values(struct rules_reader *r, const struct yaml_node *n, struct tool_rule *rule)
{
	size_t count;

	rule->values = rules_texts(r, n, &count);
	if (rule->values == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		char buf[SHOWN_SIZE];

		if (rule->values[i][0] != '-' || rule->values[i][1] == '\0') {
			rules_error(r, text_at(n, i), "values: '%s' is no option: give one that begins with -",
			    shown(rule->values[i], buf));
			return false;
		}
	}
	return true;
}

static bool
read_role(struct rules_reader *r, const struct yaml_node *n, struct tool_rule *rule)
{
	const char *text = rules_text(r, n);
	struct suggestion near = { 0 };
	char buf[SHOWN_SIZE];

	if (text == NULL)
		return false;
	for (enum tool_role role = 0; role < TOOL_ROLES; role++) {
		if (strcmp(text, tool_role_name(role)) == 0) {
			rule->role = role;
			return true;
		}
		suggest_offer(&near, text, tool_role_name(role));
	}
	if (near.name != NULL)
		rules_error(r, n, "role: '%s' is none: did you mean '%s'?", shown(text, buf), near.name);
	else
		rules_error(r, n, "role: '%s' is none: there are tool, shell, wrapper, glue, multi_call",
		    shown(text, buf));
	return false;
}

/* "bioinformatics/samtools"; NULL: out of memory. */
static const char *
rule_name(struct rules_reader *r, const char *name)
{
	const char *ret;
	char *text;

	if (asprintf(&text, "%s/%s", r->tools->stem, name) < 0) {
		r->error = -ENOMEM;
		return NULL;
	}
	ret = ruleset_string(r->set, text, strlen(text));
	free(text);
	if (ret == NULL)
		r->error = -ENOMEM;
	return ret;
}

/* Another name that leads to the rule; NULL: none does. label: the rule's name; NULL: made of this. */
static bool
add_key(struct rules_reader *r, const struct tool_rule *rule, enum tool_key_kind kind, const char *name,
    const char *label)
{
	struct tool_builder *b = r->tools;
	struct tool_key *k = set_alloc(r, sizeof(*k));

	if (k == NULL)
		return false;
	*k = (struct tool_key){ .kind = kind, .rule_name = label, .rule = rule };
	if (name == NULL) {
		*b->general_end = k;
		b->general_end = link_of(k);
		return true;
	}
	if (label == NULL) {	/* one text for both: there are thousands */
		k->rule_name = rule_name(r, name);
		k->name = k->rule_name != NULL ? k->rule_name + strlen(b->stem) + 1 : NULL;
	} else {
		k->name = ruleset_string(r->set, name, strlen(name));
	}
	if (k->name == NULL) {
		r->error = -ENOMEM;
		return false;
	}
	k->hash = tool_key_hash(kind, name);
	*b->end = k;
	b->end = link_of(k);
	b->n_keys++;
	return true;
}

/* A jar is found by its name without version and .jar, a program by its base name. */
static bool
check_name(struct rules_reader *r, const struct yaml_node *n, const char *key, enum tool_key_kind kind)
{
	size_t len;
	char buf[SHOWN_SIZE];

	if (n->kind != YAML_NODE_TEXT || n->text[0] == '\0') {
		rules_text(r, n);	/* says what is wrong */
		return false;
	}
	len = strlen(n->text);
	if (strchr(n->text, '/') != NULL) {
		rules_error(r, n, "%s: '%s' is no base name: give what stands behind the last /, and add "
		    "when: {path: ...} if it is to count only there", key, shown(n->text, buf));
		return false;
	}
	if (kind == TOOL_KEY_JAR && len > 4 && strcmp(n->text + len - 4, ".jar") == 0) {
		rules_error(r, n, "jar: '%s' is found without version and .jar: give such as gatk-package",
		    shown(n->text, buf));
		return false;
	}
	return true;
}

static const struct {
	const char *key;
	enum tool_key_kind kind;
} key_kinds[] = {
	{ "exe", TOOL_KEY_EXE },
	{ "jar", TOOL_KEY_JAR },
	{ "class", TOOL_KEY_CLASS },
};

static bool
add_keys(struct rules_reader *r, const struct yaml_node *item, const struct tool_rule *rule)
{
	const char *label = NULL;
	bool has_key = false;

	if (rules_child(item, "name") != NULL)
		label = rule_name(r, rule->location.name);
	else if (rule->tool != NULL)
		label = rule_name(r, rule->tool);
	if (r->error < 0)
		return false;
	for (size_t i = 0; i < sizeof(key_kinds) / sizeof(key_kinds[0]); i++) {
		const struct yaml_node *n = rules_child(item, key_kinds[i].key);

		if (n == NULL)
			continue;
		has_key = true;
		if (n->kind == YAML_NODE_LIST && n->first == NULL) {
			rules_texts(r, n, NULL);	/* says what is wrong */
			return false;
		}
		/* A single value's next is the mapping's next key. */
		for (const struct yaml_node *name = n->kind == YAML_NODE_LIST ? n->first : n; name != NULL;
		    name = name != n ? name->next : NULL) {
			if (!check_name(r, name, key_kinds[i].key, key_kinds[i].kind) ||
			    !add_key(r, rule, key_kinds[i].kind, name->text, label))
				return false;
		}
	}
	/* Without any name it is told by where it stands, which says its file. */
	return has_key || add_key(r, rule, TOOL_KEY_EXE, NULL, label != NULL ? label : rule->location.name);
}

static void
read_rule(struct rules_reader *r, const struct yaml_node *item)
{
	static const char *const keys[] = {
		"name", "exe", "jar", "class", "when", "tool", "subcommands", "values", "skip", "role", "runs",
		"versions", NULL,
	};
	struct tool_builder *b = r->tools;
	struct tool_rule *rule;
	const struct yaml_node *n;

	if (!rules_check_keys(r, item, keys))
		return;
	rule = set_alloc(r, sizeof(*rule));
	if (rule == NULL)
		return;
	rule->location = rules_location(r, item);
	rule->order = b->n_rules++;
	if (r->error < 0 || rule->location.name == NULL)
		return;
	n = rules_child(item, "when");
	if (n == NULL && rules_child(item, "exe") == NULL && rules_child(item, "jar") == NULL &&
	    rules_child(item, "class") == NULL) {
		rules_error(r, item, "nothing here says which programs the rule names: give exe, jar, class or when");
		return;
	}
	if (n != NULL) {
		rule->when = rules_condition(r, n, RULES_ANY_CONDITION & ~(UINT64_C(1) << CONDITION_TOOL));
		if (rule->when == NULL)
			return;
	}
	if ((n = rules_child(item, "tool")) != NULL && !read_tool(r, n, rule))
		return;
	if ((n = rules_child(item, "subcommands")) != NULL && !read_subcommands(r, n, rule))
		return;
	if ((n = rules_child(item, "values")) != NULL && !read_values(r, n, rule))
		return;
	if ((n = rules_child(item, "skip")) != NULL && (rule->skip = rules_text(r, n)) == NULL)
		return;
	if ((n = rules_child(item, "role")) != NULL && !read_role(r, n, rule))
		return;
	if ((n = rules_child(item, "runs")) != NULL && (rule->runs = read_runs(r, n)) == NULL)
		return;
	if ((n = rules_child(item, "versions")) != NULL && !rules_bool(r, n, &rule->has_versions))
		return;
	add_keys(r, item, rule);
}

void
rules_read_tools(struct rules_reader *r, const struct yaml_node *section)
{
	if (r->error < 0 || !begin_file(r))
		return;
	if (section->kind == YAML_NODE_NULL)
		return;
	if (section->kind != YAML_NODE_LIST) {
		rules_error(r, section, "tools: this is %s: a list of rules is wanted, such as "
		    "[{exe: samtools, subcommands: true}]", yaml_node_kind_name(section));
		return;
	}
	for (const struct yaml_node *item = section->first; item != NULL && r->error == 0; item = item->next)
		read_rule(r, item);
}

/* Spreads the keys over buckets, at least as many; in each they keep their order. */
static const struct tool_key *const *
fill_buckets(struct rules_reader *r, size_t n_buckets)
{
	struct tool_key **buckets = set_alloc(r, n_buckets * sizeof(*buckets));
	struct tool_key ***ends = calloc(n_buckets, sizeof(*ends));
	struct tool_key *next;

	if (buckets == NULL || ends == NULL) {
		r->error = -ENOMEM;
		free(ends);
		return NULL;
	}
	for (size_t i = 0; i < n_buckets; i++)
		ends[i] = &buckets[i];
	for (struct tool_key *k = r->tools->first; k != NULL; k = next) {
		size_t i = k->hash & (n_buckets - 1);

		next = *link_of(k);
		k->next = NULL;
		*ends[i] = k;
		ends[i] = link_of(k);
	}
	free(ends);
	return (const struct tool_key *const *)buckets;
}

void
rules_finish_tools(struct rules_reader *r)
{
	struct tool_builder *b = r->error == 0 ? builder_of(r) : r->tools;
	struct tool_rules *t;
	size_t n_buckets = 1;

	if (r->error < 0 || b == NULL)
		goto out;
	t = set_alloc(r, sizeof(*t));
	if (t == NULL)
		goto out;
	while (n_buckets < b->n_keys)
		n_buckets *= 2;
	t->buckets = fill_buckets(r, n_buckets);
	if (t->buckets == NULL)
		goto out;
	t->n_buckets = n_buckets;
	t->general = b->general;
	t->n_rules = b->n_rules;
	t->n_keys = b->n_keys;
	r->set->tools = t;
out:
	free(r->tools);
	r->tools = NULL;
}
