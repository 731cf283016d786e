/*
 * SPDX-License-Identifier: Apache-2.0
 * script: parses just enough of the shell's language to separate commands from quotes, substitutions,
 * redirections, assignments, comments and the words of control structures.
 */
#include "identify/script.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "identify/tool.h"

#define SCRIPT_MAX 4096
#define WORDS_MAX 32		/* of one command */
#define PIPELINE_MAX 3		/* tools in a name */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Words that precede the command to name, as in "if ! time bwa index". */
static const char *const introductions[] = {
	"time", "exec", "if", "elif", "then", "else", "while", "until", "do", "!", "{", "}", "command", "builtin",
};

/* Commands that do no work of their own, and whose arguments are no commands. */
static const char *const prologues[] = {
	"set", "source", ".", ":", "export", "cd", "pushd", "popd", "mkdir", "echo", "printf", "module",
	"trap", "ulimit", "umask", "for", "case", "esac", "in", "select", "function", "true", "false",
	"test", "[", "[[", "]]", "local", "declare", "typeset", "readonly", "eval", "wait", "rm", "touch",
	"ln", "unset", "shopt", "alias", "fi", "done", "read", "let", "shift", "exit", "return", "break",
	"continue", "hash", "type",
};

/* The words of one command, without their quotes. */
struct words {
	char text[SCRIPT_MAX + 2];
	char *out;		/* end of the words so far */
	const char *at[WORDS_MAX];
	size_t n;
};

static bool
is_one_of(const char *word, size_t len, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(list[i]) == len && memcmp(list[i], word, len) == 0)
			return true;
	}
	return false;
}

/* Returns the text after the quote that closes the one at s, or the end. */
static const char *
skip_quotes(const char *s)
{
	char quote = *s++;

	while (*s != '\0' && *s != quote)
		s += *s == '\\' && quote != '\'' && s[1] != '\0' ? 2 : 1;
	return *s != '\0' ? s + 1 : s;
}

/* Returns the text after the parenthesis that closes the one before s, or the end. */
static const char *
skip_parentheses(const char *s)
{
	for (size_t depth = 1; *s != '\0' && depth > 0;) {
		if (*s == '\'' || *s == '"') {
			s = skip_quotes(s);
			continue;
		}
		if (*s == '\\' && s[1] != '\0')
			s++;
		else if (*s == '(')
			depth++;
		else if (*s == ')')
			depth--;
		s++;
	}
	return s;
}

static const char *
skip_blanks(const char *s)
{
	while (*s == ' ' || *s == '\t' || (*s == '\\' && s[1] == '\n'))
		s += *s == '\\' ? 2 : 1;
	return s;
}

/* Reads the word at *at into w->out and advances both. Returns the word, or NULL where none begins. */
static const char *
read_word(struct words *w, const char **at)
{
	const char *s = skip_blanks(*at), *end = w->text + sizeof(w->text) - 1;
	char *begin = w->out;
	char quote = '\0';

	*at = s;
	if (*s == '\0' || strchr("|&;\n()<>#", *s) != NULL || w->out >= end)
		return NULL;
	while (*s != '\0' && w->out < end) {
		if (quote == '\0' && strchr(" \t\n|&;()<>", *s) != NULL)
			break;
		if (quote == '\0' && (*s == '\'' || *s == '"')) {
			quote = *s++;
		} else if (quote != '\0' && *s == quote) {
			quote = '\0';
			s++;
		} else if (quote != '\'' && *s == '$' && s[1] == '(') {
			*w->out++ = '$';	/* marks a value that is not known */
			s = skip_parentheses(s + 2);
		} else if (quote != '\'' && *s == '`') {
			*w->out++ = '$';
			s = skip_quotes(s);
		} else {
			if (*s == '\\' && quote != '\'' && *++s == '\0')
				break;
			*w->out++ = *s++;
		}
	}
	*w->out++ = '\0';
	*at = s;
	return begin;
}

/* Returns whether word is VAR=value, as before a command. */
static bool
is_assignment(const char *word)
{
	size_t n = 0;

	while (isalnum((unsigned char)word[n]) || word[n] == '_')
		n++;
	return n > 0 && !isdigit((unsigned char)word[0]) && (word[n] == '=' || (word[n] == '+' && word[n + 1] == '='));
}

/* Skips the redirection at *at and its target. Returns false where there is none. */
static bool
read_redirection(struct words *w, const char **at)
{
	const char *s = *at;
	char *mark = w->out;

	if (*s == '&' && s[1] == '>')		/* &> file */
		s++;
	if (*s != '<' && *s != '>')
		return false;
	if (s[1] == '(') {			/* <(command) */
		*at = skip_parentheses(s + 2);
		return true;
	}
	s += strspn(s, "<>");
	if (*s == '&' || *s == '|')		/* >&2, >| file */
		s++;
	*at = s;
	read_word(w, at);
	w->out = mark;
	return true;
}

/* Reads one command at *at and advances past it. */
static void
read_command(struct words *w, const char **at)
{
	w->out = w->text;
	w->n = 0;
	for (;;) {
		const char *word;

		*at = skip_blanks(*at);
		if (read_redirection(w, at))
			continue;
		word = read_word(w, at);
		if (word == NULL)
			break;
		if (w->n == 0 && is_assignment(word))
			continue;
		if (strspn(word, "0123456789") == strlen(word) && (**at == '<' || **at == '>'))
			continue;		/* 2> file */
		if (w->n < WORDS_MAX)
			w->at[w->n++] = word;
	}
}

/* Names the command; false where it is no tool, or cannot be named from its words. */
static bool
name_command(const struct ruleset *rules, const struct words *w, const char *at, char *name, size_t name_size)
{
	struct candidate s = { .argv = w->at, .argc = w->n };

	if (w->n == 0 || w->at[0][0] == '-' || w->at[0][0] == '\0' || strpbrk(w->at[0], "$*?") != NULL)
		return false;
	if (w->n == 1 && *at == '(')		/* name() { ... */
		return false;
	s.exe = w->at[0];
	return tool_name(rules, &s, name, name_size, NULL);
}

/* Skips "if !", "time -p" and other words before a command. */
static const char *
skip_introductions(const char *at)
{
	for (;;) {
		size_t n;

		at = skip_blanks(at);
		n = strcspn(at, " \t\n;|&()<>");
		if (!is_one_of(at, n, introductions, COUNT(introductions)))
			return at;
		at = skip_blanks(at + n);
		while (*at == '-')		/* time -p, exec -a */
			at = skip_blanks(at + strcspn(at, " \t\n;|&()<>"));
		at += strspn(at, " \t\n(");
	}
}

bool
script_name(const struct ruleset *rules, const char *script, char *name, size_t name_size)
{
	char text[SCRIPT_MAX + 1];
	size_t used = 0, tools = 0, len = strnlen(script, SCRIPT_MAX);
	const char *at = text;

	memcpy(text, script, len);
	text[len] = '\0';
	name[0] = '\0';
	while (tools < PIPELINE_MAX) {
		char tool[TOOL_NAME_SIZE];
		struct words words;
		bool is_prologue;
		int n;

		at = skip_blanks(at);
		if (*at == '|' && at[1] != '|') {
			at += at[1] == '&' ? 2 : 1;
			at += strspn(at, " \t\n");
		} else if (*at == '\0' || tools > 0) {
			break;			/* the pipeline is over */
		} else if (strchr("\n;&()|", *at) != NULL) {
			if (*at != '&' || at[1] != '>') {
				at++;
				continue;
			}
		} else if (*at == '#') {
			at += strcspn(at, "\n");
			continue;
		}
		at = skip_introductions(at);
		n = (int)strcspn(at, " \t\n;|&()<>");
		is_prologue = is_one_of(at, (size_t)n, prologues, COUNT(prologues));
		read_command(&words, &at);
		if (is_prologue || !name_command(rules, &words, at, tool, sizeof(tool)))
			continue;
		n = snprintf(name + used, name_size - used, "%s%s", tools > 0 ? " | " : "", tool);
		if (n < 0 || (size_t)n >= name_size - used) {
			name[used] = '\0';
			break;
		}
		used += (size_t)n;
		tools++;
	}
	return tools > 0;
}
