/*
 * SPDX-License-Identifier: Apache-2.0
 * redact: removes passwords, tokens and keys from arguments before they leave correlate/.
 *
 * Each argument is read by up to two passes, which collect the ranges of text to redact:
 *   patterns	anywhere in the text: name=value, "name": "value", headers, URLs, token shapes
 *   words	word by word as a shell would: --password VALUE, mysql -pVALUE; the arguments
 *		themselves are words, and so are those inside an argument that is a script
 */
#include "identify/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "identify/secret.h"
#include "identify/secret_ranges.h"

#define DEPTH_MAX	3	/* scripts inside scripts */
#define URL_TOKEN_MIN	20	/* a user name of that length in a URL is a token */
#define BEARER_MIN	8

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* ---- patterns ---- */

/* The characters that end an unquoted value; a shell's words end at its operators too. */
#define STOP_TEXT	"&;,\"' \t\r\n"
#define STOP_SCRIPT	"&;,|()<>\"' \t\r\n"
#define STOP_URL	"&;#\"'<> \t\r\n)"

/* Returns the end of a value that starts at i: before a backslash or a character of stop. */
static size_t
value_end(struct slice t, size_t i, const char *stop)
{
	while (i < t.len && strchr(stop, t.p[i]) == NULL && t.p[i] != '\\')
		i++;
	return i;
}

/* Returns the end of a quoted value; the opening quote, which may be escaped, is before i. */
static size_t
quoted_end(struct slice t, size_t i, char quote, bool is_escaped)
{
	for (; i < t.len; i++) {
		if (is_escaped && t.p[i] == '\\' && i + 1 < t.len && t.p[i + 1] == quote)
			return i;
		if (!is_escaped && t.p[i] == quote)
			return i;
		if (!is_escaped && t.p[i] == '\\' && quote == '"')
			i++;
	}
	return t.len;
}

/* Redacts the value that starts at i, quoted or not; returns the offset to continue at. */
static size_t
redact_value(struct slice t, size_t i, const char *stop, struct secret_ranges *ranges)
{
	bool is_escaped = i + 1 < t.len && t.p[i] == '\\' && (t.p[i + 1] == '"' || t.p[i + 1] == '\'');
	size_t start, end;

	if (is_escaped)
		i++;
	if (i < t.len && (t.p[i] == '"' || t.p[i] == '\'')) {
		start = i + 1;
		end = quoted_end(t, start, t.p[i], is_escaped);
		i = end < t.len ? end + 1 + is_escaped : end;
		/* 'a'b: text that directly follows the quotes belongs to the value. */
		if (!is_escaped && value_end(t, i, stop) > i)
			i = end = value_end(t, i, stop);
	} else {
		start = i;
		/* A backslash and the character that it escapes belong to the value ... */
		while ((i = value_end(t, i, stop)) < t.len && t.p[i] == '\\') {
			/* ... except before the quote that encloses the value: "a \"b=x\"" */
			if (i + 1 < t.len && (t.p[i + 1] == '"' || t.p[i + 1] == '\''))
				break;
			i += i + 1 < t.len ? 2 : 1;
		}
		end = i;
	}
	secret_ranges_add(ranges, start, end);
	return i;
}

/* Redacts a header's value, up to the end of its line or to q, the quote that encloses the header. */
static size_t
redact_header(struct slice t, struct slice name, size_t i, char q, struct secret_ranges *ranges)
{
	static const char *const schemes[] = { "bearer", "basic", "token", "digest", "negotiate" };
	size_t end = i;

	while (i < t.len && (t.p[i] == ' ' || t.p[i] == '\t'))
		i++;
	for (end = i; end < t.len && t.p[end] != '\n' && t.p[end] != '\r'; end++) {
		if (q != '\0' && t.p[end] == q)
			break;
	}
	if (name.len > 12 && strncasecmp(name.p + name.len - 13, "authorization", 13) == 0) {
		for (size_t k = 0; k < COUNT(schemes); k++) {
			size_t n = strlen(schemes[k]);

			if (end - i > n && strncasecmp(t.p + i, schemes[k], n) == 0 &&
			    t.p[i + n] == ' ') {
				i += n + 1;
				break;
			}
		}
	}
	secret_ranges_add(ranges, i, end);
	return end;
}

/* Redacts a URL's password, or a user name that is a token; i is after "://". */
static void
redact_url_user(struct slice t, size_t i, struct secret_ranges *ranges)
{
	size_t at = t.len, colon = t.len;
	bool is_port = true;

	for (size_t end = i; end < t.len; end++) {
		char c = t.p[end];

		if (is_blank(c) || strchr("\"'<>", c) != NULL)
			break;
		if (t.len - end > 3 && memcmp(t.p + end, "://", 3) == 0)
			break;		/* another URL: stop, so that each character is read once */
		if (c == '/' || c == '?' || c == '#') {
			/* The end of the host, unless a password contains it unescaped: user:pa/ss@host */
			if (at != t.len || colon == t.len || is_port)
				break;
		} else if (c == '@') {
			at = end;
		} else if (c == ':' && colon == t.len) {
			colon = end;
		} else if (colon != t.len && !isdigit((unsigned char)c)) {
			is_port = false;
		}
	}
	if (at == t.len)
		return;
	if (colon < at)
		secret_ranges_add(ranges, colon + 1, at);
	else if (at - i >= URL_TOKEN_MIN)
		secret_ranges_add(ranges, i, at);
}

/*
 * Redacts the value of the name at [start, end) if it is a secret; returns the offset to continue at.
 * is_script: the text is a shell script, where a value ends at a blank.
 */
static size_t
read_name(struct slice t, size_t start, size_t end, bool is_script, struct secret_ranges *ranges)
{
	struct slice name = { t.p + start, end - start };
	char before = start > 0 ? t.p[start - 1] : '\0';
	char quote = before == '"' || before == '\'' ? before : '\0';
	bool in_url = before == '?' || before == '&';
	bool is_quoted = false;		/* "name": "value" */
	bool is_header = false;
	size_t i = end;

	if (quote != '\0') {
		size_t k = i + (i < t.len && t.p[i] == '\\');

		is_quoted = k < t.len && t.p[k] == quote;
		if (is_quoted)
			i = k + 1;
	}
	while (i < t.len && (t.p[i] == ' ' || t.p[i] == '\t'))
		i++;
	if (i >= t.len || (t.p[i] != '=' && t.p[i] != ':'))
		return end;
	if (t.p[i] == '=' && in_url && secret_query(name))
		return redact_value(t, i + 1, STOP_URL, ranges);
	is_header = secret_header(name);
	if (is_header && t.p[i] == ':' && !is_quoted)
		return redact_header(t, name, i + 1, quote, ranges);
	if (!is_header && !secret_name(name))
		return end;
	if (i != end && !is_quoted && slice_equals(name, "pass"))	/* a program's own variable */
		return end;
	if (t.p[i] == '=') {
		if (i + 1 < t.len && t.p[i + 1] == '=')		/* a comparison */
			return end;
		if (i == end && start == 0 && !is_script) {
			secret_ranges_add(ranges, i + 1, t.len);	/* --password=all of this argument */
			return t.len;
		}
		if (i == end && quote != '\0') {		/* '--password=a b' */
			size_t stop = quoted_end(t, i + 1, quote, false);

			secret_ranges_add(ranges, i + 1, stop);
			return stop;
		}
		if (i == end && i + 1 < t.len && is_blank(t.p[i + 1]))
			return end;			/* PASSWORD= COMMAND: an empty value */
	} else if (!is_quoted && !(i + 1 < t.len && is_blank(t.p[i + 1]))) {
		return end;				/* password:x is not an assignment */
	}
	i++;
	while (i < t.len && (t.p[i] == ' ' || t.p[i] == '\t'))
		i++;
	return redact_value(t, i, in_url ? STOP_URL : is_script ? STOP_SCRIPT : STOP_TEXT, ranges);
}

static void
read_patterns(struct slice t, bool is_script, struct secret_ranges *ranges)
{
	for (size_t i = 0; i < t.len;) {
		size_t end = i;

		if (!is_name_char(t.p[i])) {
			if (t.len - i > 3 && memcmp(t.p + i, "://", 3) == 0) {
				redact_url_user(t, i + 3, ranges);
				i += 2;
			}
			i++;
			continue;
		}
		while (end < t.len && is_name_char(t.p[end]))
			end++;
		if (secret_token((struct slice){ t.p + i, end - i })) {
			secret_ranges_add(ranges, i, end);
			i = end;
			continue;
		}
		if (end - i == 6 && strncasecmp(t.p + i, "bearer", 6) == 0 && end < t.len &&
		    t.p[end] == ' ') {
			size_t stop = value_end(t, end + 1, STOP_SCRIPT);

			if (stop - end > BEARER_MIN)
				secret_ranges_add(ranges, end + 1, stop);
			i = stop;
			continue;
		}
		i = read_name(t, i, end, is_script, ranges);
	}
}

/* ---- words ---- */

/* The state of reading the words of an argv, or of one command in a script. */
struct words {
	struct slice command;		/* base name of the command; empty: not read yet */
	bool is_shell;			/* the command is a shell: -c takes a script */
	bool is_wrapper;		/* the command runs another that follows: env, sudo */
	bool has_options;		/* the command has options of its own, see secret_option() */
	bool expects_secret;		/* the next word is the value of --password */
	bool expects_script;		/* the next word is a shell's -c */
	bool is_login;			/* "login" was the subcommand */
	bool has_subcommand;
	const struct secret_option *option;	/* the option whose value is the next word; NULL: none */
};

static void read_script(struct slice whole, struct slice t, int depth, struct secret_ranges *ranges);

static struct slice
basename_of(struct slice path)
{
	for (size_t i = path.len; i > 0; i--) {
		if (path.p[i - 1] == '/')
			return (struct slice){ path.p + i, path.len - i };
	}
	return path;
}

static void
set_command(struct words *state, struct slice path)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "ash", "su" };
	static const char *const wrappers[] = {
		"env", "sudo", "time", "nice", "nohup", "setsid", "timeout", "stdbuf", "exec",
		"command", "xargs", "ionice", "taskset", "doas", "numactl", "strace", "unshare",
		"busybox",
	};
	struct slice command = basename_of(path);

	*state = (struct words){ .command = command };
	for (size_t i = 0; i < COUNT(shells); i++)
		state->is_shell |= slice_is_command(command, shells[i]);
	for (size_t i = 0; i < COUNT(wrappers); i++)
		state->is_wrapper |= slice_is_command(command, wrappers[i]);
	state->has_options = secret_has_options(command);
}

/* Returns whether w looks like an option rather than a secret that begins with a dash. */
static bool
is_option(struct slice w)
{
	if (w.len < 2 || w.p[0] != '-')
		return false;
	return w.p[1] == '-' || (w.len == 2 && isalpha((unsigned char)w.p[1]));
}

/* Redacts w, a part of whole: all of it, or only the text after its first character `from`. */
static void
redact_word(struct slice whole, struct slice w, char from, struct secret_ranges *ranges)
{
	size_t start = (size_t)(w.p - whole.p), end = start + w.len;

	if (from != '\0') {
		const char *found = memchr(w.p, from, w.len);

		if (found == NULL)
			return;		/* a user name alone: the program asks for the password */
		start = (size_t)(found - whole.p) + 1;
	}
	secret_ranges_add(ranges, start, end);
}

/* Reads an option of a command that has options of its own with secrets. */
static void
read_option(struct words *state, struct slice whole, struct slice w, struct secret_ranges *ranges)
{
	struct slice value;
	const struct secret_option *o = secret_option(state->command, w, state->is_login, &value);

	if (o == NULL)
		return;
	if (value.len > 0)
		redact_word(whole, value, o->from, ranges);
	else if (!o->attached_only)
		state->option = o;
}

/* Reads one word without the quotes around it. whole: the argument that contains it. */
static void
read_word(struct words *state, struct slice whole, struct slice w, int depth, struct secret_ranges *ranges)
{
	bool was_secret = state->expects_secret, was_script = state->expects_script;
	const struct secret_option *option = state->option;
	bool has_equals = memchr(w.p, '=', w.len) != NULL;

	state->expects_secret = false;
	state->expects_script = false;
	state->option = NULL;
	if (w.len == 0)
		return;
	if (option != NULL) {
		redact_word(whole, w, option->from, ranges);
		return;
	}
	if (was_secret && !is_option(w)) {
		redact_word(whole, w, '\0', ranges);
		return;
	}
	if (was_script || memchr(w.p, ' ', w.len) != NULL || memchr(w.p, '\n', w.len) != NULL) {
		/* A script, or text that may be one: ssh host "mysql -px". */
		if (depth < DEPTH_MAX)
			read_script(whole, w, depth + 1, ranges);
		return;
	}
	if (w.p[0] == '-') {
		if (w.len > 4 && !has_equals)	/* --password x, -storepass x */
			state->expects_secret = secret_name(w);
		if (state->is_shell && w.len > 1 && w.p[1] != '-' && w.p[w.len - 1] == 'c')
			state->expects_script = true;
		if (state->has_options && !state->expects_secret)
			read_option(state, whole, w, ranges);
	} else if (has_equals) {
		return;			/* an assignment, or data */
	} else if (state->command.len == 0) {
		set_command(state, w);
	} else if (state->is_wrapper) {
		struct words next;

		/* The values of its own options precede the command: only a known command is taken. */
		set_command(&next, w);
		if (next.is_shell || next.has_options)
			*state = next;
	} else if (!state->has_subcommand || slice_equals(w, "login")) {
		state->has_subcommand = true;
		state->is_login = slice_equals(w, "login");
	}
}

/* Reads the words of the shell script t, which is a part of whole. */
static void
read_script(struct slice whole, struct slice t, int depth, struct secret_ranges *ranges)
{
	struct words state = { .command = { NULL, 0 } };
	size_t i = 0;

	while (i < t.len) {
		size_t start = i, end;
		char quote;

		if (t.p[i] == '\\' && i + 1 < t.len && t.p[i + 1] == '\n') {
			i += 2;			/* the line continues */
			continue;
		}
		if (is_blank(t.p[i]) || strchr(";|&()`", t.p[i]) != NULL) {
			if (t.p[i] != ' ' && t.p[i] != '\t')	/* another command starts */
				state = (struct words){ .command = { NULL, 0 } };
			i++;
			continue;
		}
		while (i < t.len && !is_blank(t.p[i]) && strchr(";|&()`", t.p[i]) == NULL) {
			char c = t.p[i++];

			if (c == '\\') {
				i += i < t.len;
			} else if (c == '"' || c == '\'') {
				end = quoted_end(t, i, c, false);
				if (end < t.len)	/* otherwise it is prose, or truncated */
					i = end + 1;
			}
		}
		end = i;
		quote = t.p[start];
		if (quote == '"' || quote == '\'') {
			start++;
			if (end > start && t.p[end - 1] == quote)
				end--;
		}
		if (end > start)
			read_word(&state, whole, (struct slice){ t.p + start, end - start }, depth, ranges);
	}
}

/* ---- arguments ---- */

/* A quick test whether an argument may contain a secret: true for each one that the patterns would change. */
static bool
is_suspect(const char *s)
{
	/* Indexed by first letter. Every entry of the tables in secret.c contains one of these. */
	static const char *const marks['z' + 1][8] = {
		[':'] = { "://" },
		['a'] = { "auth", "accessid" },
		['b'] = { "bearer" },
		['c'] = { "cookie", "credential", "code=" },
		['d'] = { "dckr_pat_" },
		['e'] = { "eyj" },
		['g'] = { "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-" },
		['h'] = { "hf_" },
		['k'] = { "key" },
		['p'] = { "pass", "pwd", "pypi-" },
		['s'] = { "secret", "sig", "sk-" },
		['t'] = { "token" },
		['x'] = { "xoxb-", "xoxp-" },
		[' '] = { " " }, ['\n'] = { "\n" },	/* may be a script, whose words must be read */
	};

	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;
		const char *const *list;

		if (c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c > 'z')
			continue;
		for (list = marks[c]; *list != NULL; list++) {
			if (((*list)[1] == '\0' || (*list)[1] == (s[1] >= 'A' && s[1] <= 'Z' ?
			    s[1] | 0x20 : s[1])) && strncasecmp(s, *list, strlen(*list)) == 0)
				return true;
		}
	}
	return false;
}

/* Applies the shipped patterns to argument i. state: of the arguments before it. */
static void
find_builtin(struct words *state, struct slice t, size_t i, struct secret_ranges *ranges)
{
	bool suspect = is_suspect(t.p);

	/* Most arguments: neither they nor the ones before can contain or announce a secret. */
	if (i > 0 && !suspect && !state->expects_secret && !state->expects_script &&
	    state->option == NULL && !state->is_shell && !state->is_wrapper && !state->has_options)
		return;
	if (suspect)
		read_patterns(t, state->expects_script, ranges);
	if (i == 0)
		set_command(state, (struct slice){ t.p + (t.p[0] == '-'), t.len - (t.p[0] == '-') });
	else
		read_word(state, t, t, 0, ranges);
}

size_t
redaction_apply(const struct redaction *r, const char **argv, size_t argc, struct arena *a)
{
	struct words state = { .command = { NULL, 0 } };
	bool has_builtin = redaction_has_builtin(r), has_patterns = redaction_has_patterns(r);
	unsigned strikes = 0;
	struct secret_ranges ranges;
	size_t changed = 0;

	for (size_t i = 0; i < argc; i++) {
		struct slice t = { argv[i], strlen(argv[i]) };

		secret_ranges_init(&ranges, t.len);
		if (has_builtin)
			find_builtin(&state, t, i, &ranges);
		if (has_patterns)
			redaction_find(r, t, &strikes, &ranges);
		if (ranges.n > 0) {
			argv[i] = secret_ranges_replace(argv[i], &ranges, a);
			changed++;
		}
	}
	return changed;
}

size_t
redact_argv(const char **argv, size_t argc, struct arena *a)
{
	return redaction_apply(NULL, argv, argc, a);
}
