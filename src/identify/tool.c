/*
 * SPDX-License-Identifier: Apache-2.0
 * tool: the name that a user would give a program, from its exe, arguments and comm.
 *
 * Layers are removed one by one: an interpreter is replaced by the script that it runs, and that by the
 * name in its own rule. The rules define what belongs to which layer.
 */
#include "identify/tool.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "identify/match.h"
#include "identify/tool_base.h"
#include "identify/tool_script.h"

#define SUBCOMMAND_MAX	40	/* longer "subcommands" are data */
#define NESTING_MAX	4	/* python3 -> /usr/bin/R -> ...: interpreters of interpreters */
#define LINE_SIZE	(TOOL_BASE_SIZE + 1 + SUBCOMMAND_MAX + 1)

/* The program being named: a name and its arguments, which change as layers are removed. */
struct naming {
	const struct tool_rules *rules;	/* may be NULL */
	struct candidate *s;
	char base[TOOL_BASE_SIZE];
	const char *const *args;	/* arguments after the name */
	size_t n;
	const char *how;		/* source of base: exe, argv0, interpreter ... */
	const struct tool_key *key;	/* key of the rule that holds; NULL: none */
	struct tool_script script;	/* script that base runs, if it is an interpreter */
};

/* Returns whether arg is a plain word, as subcommands are: no path, number, assignment or long text. */
static bool
is_subcommand(const char *arg)
{
	size_t len = strnlen(arg, SUBCOMMAND_MAX + 1);
	bool has_letter = false;

	if (len == 0 || len > SUBCOMMAND_MAX || !(isalnum((unsigned char)arg[0]) || arg[0] == '+'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)arg[i]) && strchr("_-+:.", arg[i]) == NULL)
			return false;
		has_letter = has_letter || isalpha((unsigned char)arg[i]);
	}
	return has_letter;
}

static bool
is_listed(const char *word, const char *const *list)
{
	for (; list != NULL && *list != NULL; list++) {
		if (strcmp(word, *list) == 0)
			return true;
	}
	return false;
}

/*
 * Returns the index of the rule's subcommand in args, or n: none. It may follow options that the rule
 * does not list: one word after each may be its value, if that word cannot be the subcommand.
 */
static size_t
find_subcommand(const struct tool_rule *rule, const char *const *args, size_t n)
{
	bool may_be_value = false;

	for (size_t i = 0; i < n; i++) {
		const char *arg = args[i];

		if (arg[0] == '-') {
			may_be_value = true;
			if (is_listed(arg, rule->values)) {
				may_be_value = false;
				i++;
			}
			continue;
		}
		if (rule->skip != NULL && arg[0] != '\0' && strchr(rule->skip, arg[0]) != NULL)
			continue;
		if (rule->subcommands != NULL ? is_listed(arg, rule->subcommands) : is_subcommand(arg))
			return i;
		if (!may_be_value)
			return n;
		may_be_value = false;
	}
	return n;
}

/* Returns the index of the first argument of the script that an interpreter runs, or else of the program. */
static size_t
inner_args(const struct naming *n)
{
	return n->script.kind >= SCRIPT_FILE ? n->script.next : 0;
}

static void
set_words(struct naming *n)
{
	struct candidate_words *w = &n->s->words;

	if (n->script.kind == SCRIPT_FILE || n->script.kind == SCRIPT_MODULE)
		w->script = n->script.name;
	else if (n->script.kind == SCRIPT_JAR)
		w->jar = n->script.name;
	else if (n->script.kind == SCRIPT_CLASS)
		w->class = n->script.name;
}

/* Returns whether the rule holds. Its conditions see the words as the rule itself would parse them. */
static bool
holds(struct naming *n, const struct tool_rule *rule)
{
	struct candidate_words kept = n->s->words;
	size_t skip, i;
	bool result;

	if (rule->when == NULL)
		return true;
	skip = inner_args(n);
	set_words(n);
	i = find_subcommand(rule, n->args + skip, n->n - skip);
	if (skip + i < n->n)
		n->s->words.subcommand = n->args[skip + i];
	result = match(rule->when, n->s);
	n->s->words = kept;
	return result;
}

/* Returns the name's first rule that holds. is_cut: the version was removed, which the rule must allow. */
static const struct tool_key *
first_holding(struct naming *n, const struct tool_key *k, bool is_cut)
{
	while (k != NULL && ((is_cut && !k->rule->has_versions) || !holds(n, k->rule)))
		k = tool_key_next(k);
	return k;
}

/* Finds the script that the interpreter of that name, if it is one, runs: its rules may depend on it. */
static bool
look_inside(struct naming *n, const struct tool_key *k, bool is_cut)
{
	while (k != NULL && (k->rule->runs == NULL || (is_cut && !k->rule->has_versions)))
		k = tool_key_next(k);
	if (k != NULL)
		n->script = tool_script_find(k->rule->runs, n->args, n->n);
	return k != NULL;
}

static const struct tool_key *
keys_of(const struct naming *n, const char *name)
{
	return tool_rules_find(n->rules, TOOL_KEY_EXE, name);
}

/*
 * Returns the rule for n->base, and cuts suffixes off it that are not part of the name: python3.11 is
 * python, bwa-mem2.avx2 is bwa-mem2.
 */
static const struct tool_key *
find_key(struct naming *n)
{
	const struct tool_key *exact = keys_of(n, n->base), *of_cut = NULL, *of_stem = NULL, *k;
	char cut[TOOL_BASE_SIZE], stem[TOOL_BASE_SIZE];

	n->script = (struct tool_script){ .kind = SCRIPT_NONE };
	if (exact != NULL && exact->rule->when == NULL && exact->rule->runs == NULL)
		return exact;		/* the common case */
	strcpy(cut, n->base);
	tool_base_cut_cpu(cut);
	tool_base_cut_version(cut, false);
	if (strcmp(cut, n->base) != 0)
		of_cut = keys_of(n, cut);
	strcpy(stem, n->base);
	if (tool_base_cut_number(stem))
		of_stem = keys_of(n, stem);

	if (!look_inside(n, exact, false) && !look_inside(n, of_cut, false))
		look_inside(n, of_stem, true);
	k = first_holding(n, exact, false);
	if (k != NULL)
		return k;
	strcpy(n->base, cut);
	k = first_holding(n, of_cut, false);
	if (k == NULL && (k = first_holding(n, of_stem, true)) != NULL)
		strcpy(n->base, stem);
	return k;
}

/* Replaces the interpreter by the file, module, jar or class that it runs. */
static void
enter_script(struct naming *n)
{
	static const char *const how[] = {
		[SCRIPT_FILE] = "interpreter",
		[SCRIPT_MODULE] = "interpreter",
		[SCRIPT_JAR] = "java-jar",
		[SCRIPT_CLASS] = "java-class",
	};

	set_words(n);
	tool_script_base(&n->script, n->base);
	if (n->base[0] == '\0')
		strcpy(n->base, "java");
	n->how = how[n->script.kind];
	n->args += n->script.next;
	n->n -= n->script.next;
}

/* Returns the rule for the program that java(1) runs: by class or jar, else by the name derived from it. */
static const struct tool_key *
find_java_key(struct naming *n)
{
	const struct tool_script script = n->script;
	const enum tool_key_kind kind = script.kind == SCRIPT_CLASS ? TOOL_KEY_CLASS : TOOL_KEY_JAR;
	const struct tool_key *k = NULL;

	n->script = (struct tool_script){ .kind = SCRIPT_NONE };
	if (script.kind == SCRIPT_CLASS)
		k = first_holding(n, tool_rules_find(n->rules, TOOL_KEY_CLASS, script.name), false);
	if (k == NULL)
		k = first_holding(n, tool_rules_find(n->rules, kind, n->base), false);
	if (k == NULL)
		k = first_holding(n, keys_of(n, n->base), false);
	return k;
}

/* A rule without a name of its own takes precedence if it precedes the found one in the files. */
static void
find_general(struct naming *n)
{
	const struct tool_key *k = n->rules != NULL ? n->rules->general : NULL;
	size_t end = n->key != NULL ? n->key->rule->order : SIZE_MAX;

	while (k != NULL && k->rule->order < end && !holds(n, k->rule))
		k = k->next;
	if (k != NULL && k->rule->order < end)
		n->key = k;
}

/* Replaces busybox by the applet that argv[0], or else the first argument, names. */
static void
enter_applet(struct naming *n, const char *argv0)
{
	char applet[TOOL_BASE_SIZE] = "";
	bool is_first_arg = false;

	if (argv0 != NULL)
		tool_base_set_path(applet, argv0 + (argv0[0] == '-'));
	if (strcmp(applet, n->base) == 0 && n->n > 0 && is_subcommand(n->args[0])) {
		tool_base_set_path(applet, n->args[0]);
		is_first_arg = true;
	}
	if (applet[0] == '\0')
		return;
	strcpy(n->base, applet);
	n->args += is_first_arg;
	n->n -= is_first_arg;
}

/* Takes the name from the file, the arguments or the kernel. Returns false where there is none. */
static bool
start(struct naming *n, const struct ruleset *rules, struct candidate *s)
{
	const char *argv0 = s->argv != NULL && s->argc > 0 ? s->argv[0] : NULL;
	static const char *const no_args[] = { NULL };
	const char *memfd;

	*n = (struct naming){ .rules = rules != NULL ? rules->tools : NULL, .s = s, .args = no_args, .how = "exe" };
	if (argv0 != NULL) {
		n->args = s->argv + 1;
		n->n = s->argc - 1;
	}
	if (s->exe != NULL && !tool_script_is_fd(s->exe)) {
		memfd = strncmp(s->exe, "/memfd:", 7) == 0 ? s->exe + 7 :
		    strncmp(s->exe, "memfd:", 6) == 0 ? s->exe + 6 : NULL;
		tool_base_set_path(n->base, memfd != NULL ? memfd : s->exe);
		if (strcmp(n->base, " (deleted)") == 0)		/* a memfd without a name */
			n->base[0] = '\0';
		tool_base_cut(n->base, " (deleted)");
	}
	if (n->base[0] == '\0' && argv0 != NULL) {
		n->how = "argv0";
		tool_base_set_path(n->base, argv0 + (argv0[0] == '-'));	/* a login shell */
	}
	if (n->base[0] == '\0' && s->comm != NULL) {
		n->how = "comm";
		tool_base_set(n->base, s->comm, strlen(s->comm));
	}
	if (n->base[0] != '\0' && tool_role(rules, n->base) == TOOL_MULTI_CALL)
		enter_applet(n, argv0);
	return n->base[0] != '\0';
}

/* Skips the arguments up to the script's, and keeps the interpreter's name. */
static void
keep_interpreter(struct naming *n)
{
	set_words(n);
	n->args += inner_args(n);
	n->n -= inner_args(n);
	n->script.kind = SCRIPT_NONE;
}

/* Removes layer by layer, down to the rule that names the program. */
static void
find_rule(struct naming *n)
{
	for (int depth = 0;; depth++) {
		n->key = find_key(n);
		if (n->script.kind < SCRIPT_FILE || depth == NESTING_MAX)
			break;
		/* The rule names this script by its interpreter, or the conditions do not hold. */
		if (n->key == NULL || n->key->rule->runs == NULL) {
			keep_interpreter(n);
			break;
		}
		enter_script(n);
		if (n->script.kind >= SCRIPT_JAR) {
			n->key = find_java_key(n);
			break;
		}
	}
	find_general(n);
}

/* A line of text under construction. */
struct line {
	char text[LINE_SIZE];
	size_t len;
};

static void
append(struct line *l, const char *text, size_t max)
{
	size_t n = strnlen(text, max), left = sizeof(l->text) - l->len;

	if (n > left)
		n = left;
	memcpy(l->text + l->len, text, n);
	l->len += n;
}

/* Returns the value of a name in braces. */
static bool
template_value(const char *name, const char **ret, size_t *ret_len, void *arg)
{
	const struct naming *n = arg;
	const struct candidate_words *w = &n->s->words;
	const char *at = NULL;

	if (strcmp(name, "exe") == 0) {
		at = n->base;
	} else if (strcmp(name, "subcommand") == 0) {
		at = w->subcommand;
	} else if (strcmp(name, "subcommand2") == 0) {
		size_t i = find_subcommand(n->key->rule, n->args, n->n) + 1;

		at = i < n->n && is_subcommand(n->args[i]) ? n->args[i] : NULL;
	} else if (strcmp(name, "class") == 0) {
		at = w->class;
	} else if (strcmp(name, "first_arg") == 0) {
		at = n->n > 0 && is_subcommand(n->args[0]) ? n->args[0] : NULL;
	} else if (strcmp(name, "script") == 0 || strcmp(name, "jar") == 0) {
		at = name[0] == 's' ? w->script : w->jar;
		if (at != NULL) {
			*ret = tool_base_of(at, ret_len);
			return *ret_len > 0;
		}
	}
	if (at == NULL || at[0] == '\0')
		return false;
	*ret = at;
	*ret_len = strlen(at);
	return true;
}

/* Writes the rule's name: the first of its templates whose names are all known, or else the base name. */
static void
fill_templates(struct naming *n, struct line *line)
{
	char name[LINE_SIZE];

	for (const struct template *const *t = n->key->rule->templates; *t != NULL; t++) {
		if (template_fill(*t, name, sizeof(name), template_value, n) && name[0] != '\0') {
			append(line, name, sizeof(name));
			return;
		}
	}
	append(line, n->base, sizeof(n->base));
}

static void
write_line(struct line *l, char *tool, size_t tool_size)
{
	for (size_t i = 0; i < l->len; i++) {
		if (iscntrl((unsigned char)l->text[i]))
			l->text[i] = '?';
	}
	text_escape(l->text, l->len, tool, tool_size, NULL);
}

/* Writes the name by the rule that holds. */
static void
name_by_rule(struct naming *n, struct line *line, struct tool_reason *ret)
{
	const struct tool_rule *rule = n->key->rule;
	struct candidate_words *words = &n->s->words;
	bool is_inline = rule->runs != NULL && n->script.kind == SCRIPT_INLINE && rule->role == TOOL_PLAIN;
	size_t i;

	ret->location = &rule->location;
	ret->role = rule->role;
	ret->rule = is_inline ? "inline" : n->key->rule_name;
	if (rule->role == TOOL_SHELL || rule->role == TOOL_WRAPPER || rule->role == TOOL_GLUE)
		ret->rule = tool_role_name(rule->role);
	if (rule->has_subcommands) {
		i = find_subcommand(rule, n->args, n->n);
		if (i < n->n)
			words->subcommand = n->args[i];
	}
	if (rule->templates != NULL) {
		fill_templates(n, line);
	} else {
		append(line, rule->tool != NULL ? rule->tool : n->base, TOOL_BASE_SIZE);
		if (words->subcommand != NULL && words->subcommand[0] != '\0') {
			append(line, " ", 1);
			append(line, words->subcommand, SUBCOMMAND_MAX);
		}
	}
	if (is_inline) {
		append(line, " -", 2);
		append(line, &n->script.letter, 1);
	}
}

bool
tool_explain(const struct ruleset *rules, struct candidate *s, char *tool, size_t tool_size,
    struct tool_reason *ret)
{
	struct line line;
	struct naming n;
	bool is_known;

	line.len = 0;
	/* With arguments, a word that is not among them is known to be "", not unknown. */
	s->words = s->argv != NULL ? (struct candidate_words){ "", "", "", "" } : (struct candidate_words){ 0 };
	s->tool = NULL;
	s->is_tool = false;
	is_known = start(&n, rules, s);
	*ret = (struct tool_reason){ .rule = n.how };
	if (is_known)
		find_rule(&n);
	if (n.key != NULL) {
		name_by_rule(&n, &line, ret);
	} else {
		ret->rule = n.how;
		append(&line, n.base, sizeof(n.base));
	}
	write_line(&line, tool, tool_size);
	s->tool = tool[0] != '\0' ? tool : NULL;
	s->is_tool = is_known && (ret->role == TOOL_PLAIN || ret->role == TOOL_MULTI_CALL);
	return s->is_tool;
}

bool
tool_name(const struct ruleset *rules, struct candidate *s, char *tool, size_t tool_size, const char **ret_rule)
{
	struct tool_reason reason;
	bool is_tool = tool_explain(rules, s, tool, tool_size, &reason);

	if (ret_rule != NULL)
		*ret_rule = reason.rule;
	return is_tool;
}

enum tool_role
tool_role(const struct ruleset *rules, const char *base)
{
	const struct tool_key *k = tool_rules_find(rules != NULL ? rules->tools : NULL, TOOL_KEY_EXE, base);

	while (k != NULL && k->rule->when != NULL)
		k = tool_key_next(k);
	return k != NULL ? k->rule->role : TOOL_PLAIN;
}
