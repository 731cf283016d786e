/*
 * SPDX-License-Identifier: Apache-2.0
 * patterns: secrets that their surroundings in a text tell: name=value, "name": "value", headers, URLs, SQL.
 *
 * Each character is read a bounded number of times: what is found to be a secret is not read again, and of what may be
 * one only the first characters are looked at.
 */
#include "identify/patterns.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/steps.h"

#define URL_TOKEN_MIN	20	/* a user name of that length in a URL is a token */
#define BEARER_MIN	8
#define NAME_STEPS	5	/* what a name is worth (base/steps.h) */
#define SQL_AHEAD	96	/* between SET PASSWORD and =, IDENTIFIED and BY */

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

static size_t
skip_blanks(struct slice t, size_t i)
{
	while (i < t.len && (t.p[i] == ' ' || t.p[i] == '\t'))
		i++;
	return i;
}

/* The characters that end an unquoted value; a shell's words end at its operators too. */
#define STOP_TEXT	"&;,\"' \t\r\n"
#define STOP_SCRIPT	"&;,|()<>\"' \t\r\n"
#define STOP_URL	"&;#\"'<> \t\r\n)"

/* Returns the end of a value that starts at i: before a backslash or a character of stop. */
static size_t
value_end(struct slice t, size_t i, const char *stop)
{
	while (i < t.len && (isalnum((unsigned char)t.p[i]) || (strchr(stop, t.p[i]) == NULL && t.p[i] != '\\')))
		i++;
	return i;
}

size_t
patterns_quoted_end(struct slice t, size_t i, char quote, bool is_escaped)
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
		end = patterns_quoted_end(t, start, t.p[i], is_escaped);
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

/* Returns the beginning of the value that starts at i, quoted or not, as far as it shows whether it is a secret. */
static struct slice
peek(struct slice t, size_t i, const char *stop)
{
	struct slice near = { t.p, t.len - i > SECRET_PEEK + 2 ? i + SECRET_PEEK + 2 : t.len };
	size_t end;

	if (i < near.len && near.p[i] == '\\')
		i++;
	if (i < near.len && (near.p[i] == '"' || near.p[i] == '\'')) {
		end = patterns_quoted_end(near, i + 1, near.p[i], false);
		i++;
	} else {
		end = value_end(near, i, stop);
	}
	return (struct slice){ t.p + i, end > i ? end - i : 0 };
}

/* Returns whether word, in any case, is at i. */
static bool
is_at(struct slice t, size_t i, const char *word)
{
	size_t n = strlen(word);

	return t.len - i >= n && strncasecmp(t.p + i, word, n) == 0;
}

/*
 * Reads SQL that sets a password: IDENTIFIED ... BY 'x', PASSWORD 'x', PASSWORD('x'), SET PASSWORD FOR user = 'x'. The
 * name that ends at end is its first word. Returns the offset to continue at; end: it is none of these.
 */
static size_t
read_sql(struct slice t, struct slice name, size_t end, struct secret_ranges *ranges)
{
	size_t i = skip_blanks(t, end), limit = t.len - end > SQL_AHEAD ? end + SQL_AHEAD : t.len;

	if (slice_equals(name, "identified")) {
		while (i < limit && !(is_at(t, i, "by ") && is_blank(t.p[i - 1])))
			i++;
		i = i < limit ? skip_blanks(t, i + 3) : t.len;
		if (i < t.len && is_at(t, i, "password "))
			i = skip_blanks(t, i + 9);
		return i < t.len ? redact_value(t, i, STOP_SCRIPT, ranges) : end;
	}
	if (!slice_equals(name, "password") || i >= t.len)
		return end;
	if (t.p[i] == '(' && i + 1 < t.len)
		i++;
	if (t.p[i] == '\'' && i > end)
		return redact_value(t, i, STOP_SCRIPT, ranges);
	if (!is_at(t, i, "for "))
		return end;
	while (i < limit && t.p[i] != '=' && t.p[i] != ';')
		i++;
	if (i >= limit || t.p[i] == ';')
		return end;
	i = skip_blanks(t, i + 1);
	return is_at(t, i, "password") ? i : redact_value(t, i, STOP_SCRIPT, ranges);
}

/* Reads 'name', 'value' and name="name" value="value"; i: behind the quoted name. Returns end if it is neither. */
static size_t
read_pair(struct slice t, struct slice name, size_t i, size_t end, struct secret_ranges *ranges)
{
	bool is_xml = is_at(t, i, "value=");

	i = is_xml ? i + 6 : skip_blanks(t, i + 1);
	if (i >= t.len || (t.p[i] != '"' && t.p[i] != '\'') || secret_name(name) == SECRET_NO)
		return end;
	if (!is_xml && !secret_looks_random(peek(t, i, "")))
		return end;
	return redact_value(t, i, STOP_TEXT, ranges);
}

/* A name in a text, and what surrounds it. */
struct named {
	struct slice name;
	size_t start, end;		/* of the name */
	char before;			/* the character before it; NUL: none */
	char quote;			/* the quote before it; NUL: none */
	bool is_quoted;			/* "name": the quote follows it, too */
	bool is_header;			/* of HTTP, with a secret */
	enum secret_certainty certainty;
	const char *stop;		/* the characters that end an unquoted value */
};

/* Redacts the value if it is a secret; i: where it begins. Returns the offset to continue at. */
static size_t
redact_if_secret(struct slice t, const struct named *n, size_t i, struct secret_ranges *ranges)
{
	if (!n->is_header && !secret_value(n->name, n->certainty, peek(t, i, n->stop)))
		return n->end;
	return redact_value(t, i, n->stop, ranges);
}

/* Reads name=value; i: the equals sign. Returns the offset to continue at. */
static size_t
read_assignment(struct slice t, const struct named *n, size_t i, bool is_script, struct secret_ranges *ranges)
{
	bool is_close = i == n->end;
	struct slice rest = { t.p + i + 1, t.len - i - 1 };

	if (rest.len > 0 && rest.p[0] == '=')		/* a comparison */
		return n->end;
	if (is_close && n->start == 0 && !is_script) {	/* --password=all of this argument */
		if (!n->is_header && !secret_value(n->name, n->certainty, rest))
			return n->end;
		secret_ranges_add(ranges, i + 1, t.len);
		return t.len;
	}
	if (is_close && n->quote != '\0') {		/* '--password=a b' */
		size_t end;

		if (!n->is_header && !secret_value(n->name, n->certainty, peek(t, i + 1, (char[]){ n->quote, '\0' })))
			return n->end;
		end = patterns_quoted_end(t, i + 1, n->quote, false);
		secret_ranges_add(ranges, i + 1, end);
		return end;
	}
	if (is_close && rest.len > 0 && is_blank(rest.p[0]))
		return n->end;				/* PASSWORD= COMMAND: an empty value */
	if (n->is_quoted && rest.len > 0 && rest.p[0] == '>')
		i++;					/* "name" => "value" */
	return redact_if_secret(t, n, skip_blanks(t, i + 1), ranges);
}

/* Returns whether the colon at i, behind a name, makes a value of what follows: "name": x, password: x, --password:x. */
static bool
is_value_colon(struct slice t, const struct named *n, size_t i)
{
	if (n->is_quoted)
		return true;
	if (i + 1 == t.len)
		return false;
	if (is_blank(t.p[i + 1]))
		return n->before != '/';		/* a regular expression: /token: / */
	return i == n->end && (t.p[n->start] == '-' || (n->start == 1 && t.p[0] == '/') || is_at(t, n->start, "x-") ||
	    secret_looks_random(peek(t, i + 1, STOP_TEXT)));
}

/*
 * Redacts the value of the name at [start, end) if it is a secret; returns the offset to continue at.
 * is_script: the text is a shell script, where a value ends at a blank.
 */
static size_t
read_name(struct slice t, size_t start, size_t end, bool is_script, struct secret_ranges *ranges)
{
	struct named n = { .name = { t.p + start, end - start }, .start = start, .end = end,
		.before = start > 0 ? t.p[start - 1] : '\0', .stop = is_script ? STOP_SCRIPT : STOP_TEXT };
	bool in_url = n.before == '?' || n.before == '&';
	size_t i = end;

	if (in_url)
		n.stop = STOP_URL;
	if (n.before == '"' || n.before == '\'') {
		size_t k = i + (i < t.len && t.p[i] == '\\');

		n.quote = n.before;
		n.is_quoted = k < t.len && t.p[k] == n.quote;
		if (n.is_quoted)
			i = k + 1;
		if (n.is_quoted && i < t.len && t.p[i] == ']')	/* environ["name"] = */
			i++;
	} else if (n.before == '{' && i < t.len && t.p[i] == '}') {	/* $ENV{name} = */
		i++;
	}
	i = skip_blanks(t, i);
	if (i >= t.len)
		return end;
	if (n.is_quoted && (t.p[i] == ',' || t.p[i] == 'v'))
		return read_pair(t, n.name, i, end, ranges);
	if (t.p[i] != '=' && t.p[i] != ':')
		return n.is_quoted ? end : read_sql(t, n.name, end, ranges);
	if (t.p[i] == '=' && in_url && secret_query(n.name))
		return redact_value(t, i + 1, STOP_URL, ranges);
	n.is_header = secret_header(n.name);
	if (n.is_header && t.p[i] == ':' && !n.is_quoted)
		return redact_header(t, n.name, i + 1, n.quote, ranges);
	n.certainty = n.is_header ? SECRET_YES : secret_name(n.name);
	if (n.certainty == SECRET_NO)
		return end;
	if (i != end && !n.is_quoted && slice_equals(n.name, "pass"))	/* a program's own variable */
		return end;
	if (t.p[i] == '=')
		return read_assignment(t, &n, i, is_script, ranges);
	return is_value_colon(t, &n, i) ? redact_if_secret(t, &n, skip_blanks(t, i + 1), ranges) : end;
}

/* Returns whether the text is a manifest of Kubernetes with the kind Secret. */
static bool
has_manifest(struct slice t)
{
	const char *p = t.p, *end = t.p + t.len;

	while ((p = memmem(p, (size_t)(end - p), "kind", 4)) != NULL) {
		size_t i = (size_t)(p - t.p) + 4;

		while (i < t.len && strchr("\"': \t", t.p[i]) != NULL)
			i++;
		if (is_at(t, i, "secret") && (i + 6 == t.len || !is_name_char(t.p[i + 6])))
			return true;
		p += 4;
	}
	return false;
}

/* Redacts the value behind a name in a manifest of a Secret, unless the name is one that all manifests have. */
static size_t
read_in_manifest(struct slice t, size_t start, size_t end, struct secret_ranges *ranges)
{
	static const char *const others[] = { "apiVersion", "kind", "metadata", "name", "namespace", "type", "data", "stringData" };
	size_t i = end + (end < t.len && t.p[end] == '"');

	if (i + 1 >= t.len || t.p[i] != ':' || (t.p[i + 1] != ' ' && t.p[i + 1] != '"'))
		return end;
	for (size_t k = 0; k < COUNT(others); k++) {
		if (slice_equals((struct slice){ t.p + start, end - start }, others[k]))
			return end;
	}
	i = skip_blanks(t, i + 1);
	return i < t.len && t.p[i] != '{' ? redact_value(t, i, STOP_TEXT, ranges) : end;
}

void
patterns_find(struct slice t, bool is_script, struct secret_ranges *ranges)
{
	bool is_manifest = has_manifest(t);

	for (size_t i = 0; i < t.len && !steps_are_spent();) {
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
		if (end - i == 6 && strncasecmp(t.p + i, "bearer", 6) == 0 && end < t.len &&
		    t.p[end] == ' ') {
			size_t stop = value_end(t, end + 1, STOP_SCRIPT);

			if (stop - end > BEARER_MIN)
				secret_ranges_add(ranges, end + 1, stop);
			i = stop;
			continue;
		}
		if (is_manifest) {
			size_t next = read_in_manifest(t, i, end, ranges);

			if (next != end) {
				i = next;
				continue;
			}
		}
		steps_take(NAME_STEPS);
		i = read_name(t, i, end, is_script, ranges);
	}
}

void
patterns_find_header(struct slice whole, struct slice header, struct secret_ranges *ranges)
{
	size_t start = (size_t)(header.p - whole.p), i = start, end = start + header.len;
	struct slice name;

	while (i < end && is_name_char(whole.p[i]))
		i++;
	name = (struct slice){ header.p, i - start };
	if (i < end && whole.p[i] == ':' && (secret_header(name) || secret_name(name) != SECRET_NO))
		redact_header((struct slice){ whole.p, end }, name, i + 1, '\0', ranges);
}
