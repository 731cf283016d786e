/*
 * SPDX-License-Identifier: Apache-2.0
 * words: secrets that the words of a command tell: --password VALUE, mysql -pVALUE, wandb login VALUE.
 */
#include "identify/words.h"

#include <ctype.h>
#include <string.h>

#include "base/steps.h"
#include "identify/patterns.h"
#include "model/ruleset.h"
#include "model/wrapper_rules.h"

#define DEPTH_MAX	4	/* scripts inside scripts */
#define WORD_STEPS	4	/* what a word is worth (base/steps.h) */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Where a word is, and where its secrets are noted. */
struct place {
	struct slice whole;		/* the argument that holds it */
	int depth;			/* of scripts */
	bool has_names;			/* of secrets: otherwise no word of it is one */
	struct secret_ranges *ranges;
};

static void read_script(const struct ruleset *rules, const struct place *at, struct slice t);

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
has_blank(struct slice w)
{
	return memchr(w.p, ' ', w.len) != NULL || memchr(w.p, '\n', w.len) != NULL;
}

static void
add(const struct place *at, struct slice secret)
{
	size_t start = (size_t)(secret.p - at->whole.p);

	secret_ranges_add(at->ranges, start, start + secret.len);
}

static struct slice
basename_of(struct slice path)
{
	const char *slash = memrchr(path.p, '/', path.len);

	return slash == NULL ? path : (struct slice){ slash + 1, path.len - (size_t)(slash + 1 - path.p) };
}

static bool
is_one_of(struct slice word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (slice_is_command(word, list[i]))
			return true;
	}
	return false;
}

static const struct wrapper *
find_wrapper(const struct ruleset *rules, struct slice command)
{
	size_t low = 0, high = rules != NULL && rules->wrappers != NULL ? rules->wrappers->n : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wrapper *w = &rules->wrappers->list[middle];
		int order = strncmp(w->exe, command.p, command.len);

		if (order == 0 && w->exe[command.len] == '\0')
			return w;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool
is_shell(struct slice command)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "ash", "su" };

	return is_one_of(command, shells, COUNT(shells));
}

void
words_init(struct words *w, const struct ruleset *rules)
{
	w->rules = rules;
	w->command = w->name = (struct slice){ NULL, 0 };
	w->is_shell = w->is_wrapper = w->expects_script = w->expects_header = w->is_option = false;
	w->wraps_after = NULL;
	w->letter = '\0';
	client_init(&w->client, w->command);
}

void
words_set_command(struct words *w, struct slice path)
{
	struct slice command = basename_of(path);
	const struct wrapper *wrapper = command.len > 0 ? find_wrapper(w->rules, command) : NULL;

	words_init(w, w->rules);
	w->command = command;
	w->is_shell = is_shell(command);
	w->is_wrapper = wrapper != NULL && wrapper->after == NULL;
	w->wraps_after = wrapper != NULL ? wrapper->after : NULL;
	client_init(&w->client, command);
}

/* Takes a word behind a wrapper as the command that it runs, if it is one of which anything is known. */
static void
follow_wrapper(struct words *w, struct slice word)
{
	struct slice command = basename_of(word);

	/* The values of the wrapper's own options precede the command: only a known command is taken. */
	if (command.len > 1 &&
	    (is_shell(command) || client_is_known(command) || find_wrapper(w->rules, command) != NULL))
		words_set_command(w, word);
}

/* Returns whether w looks like an option rather than a secret that begins with a dash. */
static bool
is_option(struct slice w)
{
	if (w.len < 2 || w.p[0] != '-')
		return false;
	return w.p[1] == '-' || (w.len == 2 && isalpha((unsigned char)w.p[1]));
}

/* Returns whether it is an option by which a secret is read from standard input: --password-stdin. */
static bool
is_stdin_option(struct slice w)
{
	struct slice name = w;

	if (w.len < 9 || memcmp(w.p + w.len - 6, "-stdin", 6) != 0)
		return false;
	name.len -= 6;
	return secret_name(name) != SECRET_NO;
}

/* Reads a word that follows the name of a secret. True: it was the value. */
static bool
read_value(struct words *w, const struct place *at, struct slice name, struct slice word)
{
	static const char *const between[] = { "is", "to", "=", ":", "as", "with" };

	if (w->is_option) {
		if (is_option(word) || !secret_value(name, secret_name(name), word))
			return false;
		add(at, word);
		return true;
	}
	for (size_t i = 0; i < COUNT(between); i++) {
		if (slice_equals(word, between[i])) {
			w->name = name;		/* the password is ... */
			return true;
		}
	}
	if (secret_looks_random(word))
		add(at, word);
	return false;
}

/* Reads the value of an option of one letter that often takes a secret: -p x, -u user:x. */
static void
read_letter(const struct place *at, char letter, struct slice word)
{
	const char *colon = memchr(word.p, ':', word.len);

	if (letter == 'u' && colon == NULL)
		return;
	if (letter == 'u')
		word = (struct slice){ colon + 1, word.len - (size_t)(colon + 1 - word.p) };
	if (secret_looks_like_password(word))
		add(at, word);
}

/* Reads what follows -H in the same word, with or without quotes: -HX-Token:x, -H'Token:x'. */
static void
read_attached_header(const struct place *at, struct slice header)
{
	char quote = header.p[0];

	if (quote == '\'' || quote == '"') {
		header.p++;
		header.len -= header.p[header.len - 2] == quote ? 2 : 1;
	}
	patterns_find_header(at->whole, header, at->ranges);
}

/* Reads an option that is a word of its own. */
static void
read_option(struct words *w, const struct place *at, struct slice word)
{
	if (at->has_names && word.len > 2 && memchr(word.p, '=', word.len) == NULL && secret_name(word) != SECRET_NO) {
		w->name = word;
		w->is_option = true;
	}
	if (word.len == 2 && strchr("pPwWkKatu", word.p[1]) != NULL)
		w->letter = word.p[1];
	else if (at->has_names && slice_equals(word, "--user"))
		w->letter = 'u';
	if (w->is_shell && word.len > 1 && word.p[1] != '-' && word.p[word.len - 1] == 'c')
		w->expects_script = true;
	w->expects_header = slice_equals(word, "-H") || slice_equals(word, "--header");
	if (at->has_names && word.len > 4 && memcmp(word.p, "-H", 2) == 0)
		read_attached_header(at, (struct slice){ word.p + 2, word.len - 2 });
	if (at->has_names && is_stdin_option(word))
		w->client.has_secret_input = true;
}

/* Reads text that may be a script: ssh host "mysql -px", --wrap="mysql -px". */
static void
read_text(const struct ruleset *rules, const struct place *at, struct slice t)
{
	const char *equals = t.p[0] == '-' ? memchr(t.p, '=', t.len) : NULL;
	struct place inner = { at->whole, at->depth + 1, at->has_names, at->ranges };

	if (at->depth >= DEPTH_MAX)
		return;
	if (equals != NULL && !has_blank((struct slice){ t.p, (size_t)(equals - t.p) }))
		t = (struct slice){ equals + 1, t.len - (size_t)(equals + 1 - t.p) };
	read_script(rules, &inner, t);
}

/* Reads one word without the quotes around it. */
static void
read_word(struct words *w, const struct place *at, struct slice word)
{
	bool was_script = w->expects_script;
	struct slice name = w->name, secret;
	char letter = w->letter;

	w->expects_script = false;
	w->letter = '\0';
	w->name.len = 0;
	if (word.len == 0)
		return;
	if (w->expects_header)
		patterns_find_header(at->whole, word, at->ranges);
	w->expects_header = false;
	if (w->client.n > 0 && client_read(&w->client, word, &secret)) {
		add(at, secret);
		return;
	}
	if (name.len > 0 && read_value(w, at, name, word))
		return;
	if (letter != '\0')
		read_letter(at, letter, word);
	if (was_script || has_blank(word)) {
		read_text(w->rules, at, word);
		return;
	}
	for (const char *const *after = w->wraps_after; after != NULL && *after != NULL; after++)
		w->is_wrapper |= slice_equals(word, *after);
	if (word.p[0] == '-') {
		read_option(w, at, word);
	} else if (memchr(word.p, '=', word.len) != NULL) {
		return;			/* an assignment, or data */
	} else if (w->command.len == 0) {
		words_set_command(w, word);
	} else if (word.len > 3 && memcmp(word.p, "/p:", 3) == 0) {
		secret = (struct slice){ word.p + 3, word.len - 3 };
		if (secret_looks_random(secret))
			add(at, secret);
	} else {
		if (at->has_names && secret_name(word) != SECRET_NO) {
			w->name = word;		/* a value behind it is one if it looks so */
			w->is_option = false;
		}
		if (w->is_wrapper)
			follow_wrapper(w, word);
	}
}

bool
words_are_expected(const struct words *w)
{
	return w->name.len > 0 || w->letter != '\0' || w->expects_script || w->expects_header || w->is_shell ||
	    w->is_wrapper || w->wraps_after != NULL || w->client.n > 0;
}

void
words_read(struct words *w, struct slice argument, bool has_names, struct secret_ranges *ranges)
{
	read_word(w, &(struct place){ argument, 0, has_names, ranges }, argument);
}

void
words_read_text(const struct ruleset *rules, struct slice argument, bool has_names, struct secret_ranges *ranges)
{
	read_text(rules, &(struct place){ argument, 0, has_names, ranges }, argument);
}

/* ---- scripts ---- */

/* One command of a script, and what is piped into it. */
struct command {
	struct words words;
	bool is_echo;			/* it prints its arguments */
	bool is_filter;			/* it prints what it reads, more or less */
	bool is_here;			/* the next word is a here-string */
	struct slice printed;		/* the arguments that echo prints, or what a group printed; empty: none yet */
	struct slice input;		/* what is printed into the command; empty: unknown */
};

/* What the commands of ( ... ), { ...; }, if ... fi and do ... done read and print. */
struct group {
	int depth;			/* of groups */
	struct slice input;		/* of the outermost one */
	struct slice printed;		/* from the first that is printed to the last; empty: none yet */
};

/* Words that precede a command, those that begin a group, and those that end it. */
static const char *const introductions[] = { "!", "then", "else", "elif", "while", "until" };
static const char *const openings[] = { "{", "if", "do" };
static const char *const closings[] = { "}", "fi", "done" };
static const char *const printers[] = { "echo", "printf", "yes" };
static const char *const filters[] = { "cat", "tee", "tr", "head", "tail", "sed", "cut", "rev", "base64", "iconv" };

static void
command_begin(struct command *c, const struct ruleset *rules, struct slice input)
{
	words_init(&c->words, rules);
	c->is_echo = c->is_filter = c->is_here = false;
	c->printed = (struct slice){ NULL, 0 };
	c->input = input;
}

/* Notes the next argument of echo or printf. */
static void
note_printed(struct command *c, struct slice word)
{
	if (c->printed.len == 0 && word.p[0] != '-')
		c->printed = word;
	else if (c->printed.len > 0)
		c->printed.len = (size_t)(word.p + word.len - c->printed.p);
}

/* Returns what the command prints, as far as it is known; empty: it is not. */
static struct slice
command_output(const struct command *c)
{
	return c->is_filter ? c->input : c->printed;
}

/* Notes what a command of a group prints. */
static void
group_note(struct group *g, const struct command *c)
{
	struct slice printed = command_output(c);

	if (g->depth == 0 || printed.len == 0)
		return;
	if (g->printed.len == 0)
		g->printed = printed;
	else if (printed.p > g->printed.p)	/* what a group inside this one printed is noted already */
		g->printed.len = (size_t)(printed.p + printed.len - g->printed.p);
}

static void
group_begin(struct group *g, const struct command *c)
{
	if (g->depth++ == 0)
		g->input = c->input;
}

/* Ends a group: what its commands printed is what the command that begins here has printed. */
static void
group_end(struct group *g, struct command *c)
{
	if (g->depth == 0)
		return;
	c->printed = g->printed;
	if (--g->depth == 0)
		g->input.len = g->printed.len = 0;
}

/* Returns whether the first word of a command belongs to a control structure, and the command is still to come. */
static bool
group_read(struct group *g, struct command *c, struct slice word)
{
	if (is_one_of(word, openings, COUNT(openings))) {
		group_begin(g, c);
		return true;
	}
	if (is_one_of(word, closings, COUNT(closings))) {
		group_end(g, c);
		return true;
	}
	return is_one_of(word, introductions, COUNT(introductions));
}

/* Begins the next command of a script, behind the separator at i. */
static void
command_next(struct command *c, struct group *g, const struct ruleset *rules, struct slice t, size_t i)
{
	bool is_pipe = t.p[i] == '|' && (i + 1 == t.len || t.p[i + 1] != '|') && (i == 0 || t.p[i - 1] != '|');
	struct slice input = g->input;

	if (is_pipe)
		input = command_output(c);
	else if (c->words.command.len == 0 && (t.p[i] == '\n' || t.p[i] == '('))
		input = c->input;		/* a pipe precedes the line or the group */
	if (!is_pipe)
		group_note(g, c);
	command_begin(c, rules, input);
	if (t.p[i] == '(')
		group_begin(g, c);
	else if (t.p[i] == ')')
		group_end(g, c);
}

/* Continues the command whose $( ... ) or ` ... ` ends at i, and began at `begin`. */
static void
command_resume(struct command *c, const struct command *outer, struct slice t, size_t begin, size_t i)
{
	*c = *outer;
	if (c->is_echo && c->printed.len == 0)
		c->printed.p = t.p + begin;
	if (c->is_echo)
		c->printed.len = (size_t)(t.p + i + 1 - c->printed.p);
}

/* Reads a word of a command. */
static void
command_read(struct command *c, struct group *g, const struct place *at, struct slice word)
{
	struct slice known;
	size_t fd = 0;			/* digits of 3<<<text */

	while (fd < word.len && isdigit((unsigned char)word.p[fd]))
		fd++;
	if (c->is_here) {
		c->input = word;
		c->is_here = false;
	} else if (word.len - fd >= 3 && memcmp(word.p + fd, "<<<", 3) == 0) {
		c->input = (struct slice){ word.p + fd + 3, word.len - fd - 3 };
		c->is_here = word.len == fd + 3;
	} else if (c->words.command.len > 0 || !group_read(g, c, word)) {
		if (c->is_echo)
			note_printed(c, word);
		read_word(&c->words, at, word);
		known = c->words.is_wrapper ? word : c->words.command;
		c->is_echo |= is_one_of(known, printers, COUNT(printers));
		c->is_filter |= is_one_of(known, filters, COUNT(filters));
	}
	if (c->words.client.has_secret_input && c->input.len > 0) {
		add(at, c->input);
		c->input.len = 0;
	}
}

/* Returns the end of the word that begins at i. */
static size_t
word_end(struct slice t, size_t i)
{
	while (i < t.len && !is_blank(t.p[i]) && strchr(";|&()`", t.p[i]) == NULL) {
		char c = t.p[i++];

		if (c == '\\') {
			i += i < t.len;
		} else if (c == '"' || c == '\'') {
			size_t end = patterns_quoted_end(t, i, c, false);

			if (end < t.len)	/* otherwise it is prose, or truncated */
				i = end + 1;
		}
	}
	return i;
}

/* Reads the words of the shell script t, which is a part of the whole. */
static void
read_script(const struct ruleset *rules, const struct place *at, struct slice t)
{
	static const struct slice nothing;
	struct command command, outer;
	struct group group = { 0 };
	size_t i = 0, begin = 0;
	char closing = '\0';		/* of the substitution in outer; NUL: there is none */
	int depth = 0;			/* of groups, in outer */

	command_begin(&command, rules, nothing);
	outer = command;
	while (i < t.len) {
		size_t start = i, end;
		char quote = t.p[i];

		if (t.p[i] == '\\' && i + 1 < t.len && t.p[i + 1] == '\n') {
			i += 2;			/* the line continues */
			continue;
		}
		if (is_blank(t.p[i]) || strchr(";|&()`", t.p[i]) != NULL) {
			bool is_redirection = t.p[i] == '&' && ((i > 0 && strchr("<>|", t.p[i - 1]) != NULL) ||
			    (i + 1 < t.len && t.p[i + 1] == '>'));	/* 2>&1, |&, &> */

			if (t.p[i] != ' ' && t.p[i] != '\t' && !is_redirection) {	/* another command starts */
				bool is_over = closing != '\0' && t.p[i] == closing;

				if (closing == '\0' &&
				    (t.p[i] == '`' || (t.p[i] == '(' && i > 0 && t.p[i - 1] == '$'))) {
					outer = command;
					closing = t.p[i] == '(' ? ')' : '`';
					depth = group.depth;
					begin = i;
				}
				command_next(&command, &group, rules, t, i);
				if (is_over && (closing == '`' || group.depth == depth)) {
					command_resume(&command, &outer, t, begin, i);
					closing = '\0';
				}
			}
			i++;
			continue;
		}
		i = end = word_end(t, i);
		if (!steps_take(WORD_STEPS))
			return;
		if (quote == '"' || quote == '\'') {
			start++;
			if (end > start && t.p[end - 1] == quote)
				end--;
		}
		if (end > start)
			command_read(&command, &group, at, (struct slice){ t.p + start, end - start });
	}
}
