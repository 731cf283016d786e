/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: which names, headers and values indicate a secret.
 */
#include "identify/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/steps.h"

#define VALUE_BYTES	8	/* of a value that are looked at in a step (base/steps.h) */
#define NAME_MAX_LEN	128	/* a longer "name" is data */
#define RANDOM_MIN_LEN	12	/* a shorter value may be anything */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A word at the end of a name. */
struct word {
	const char *text;
	size_t len;
	bool is_suffix;			/* a word that ends so is one, too: dbpassword */
};

#define WORD(text) { text, sizeof(text) - 1, false }
#define SUFFIX(text) { text, sizeof(text) - 1, true }

/* A name is secret if its last word is one of these. */
static const struct word secret_words[] = {
	SUFFIX("password"), SUFFIX("passwd"), SUFFIX("passphrase"), SUFFIX("apikey"), SUFFIX("secretkey"),
	SUFFIX("accesskey"), SUFFIX("accountkey"), SUFFIX("token"), SUFFIX("secret"), SUFFIX("storepass"), WORD("keypass"),
	WORD("sshpass"), WORD("dbpass"), WORD("userpass"), WORD("requirepass"), WORD("passin"), WORD("passout"),
	SUFFIX("pwd"), WORD("psk"), WORD("jwt"), WORD("passcode"),
};

/* The same for names behind which other things may be as well: only what looks random is a secret there. */
static const struct word doubtful_words[] = {
	SUFFIX("pass"), WORD("pw"), WORD("pin"), WORD("key"), SUFFIX("auth"), WORD("bearer"), WORD("cred"), WORD("creds"),
	WORD("credential"), WORD("credentials"), WORD("salt"), WORD("hmac"), WORD("otp"), WORD("assertion"),
	WORD("community"), SUFFIX("webhook"), WORD("pat"), WORD("login"),
};

/* A name is secret if its last word is "key" and the word before is one of these. */
static const char *const secret_key_words[] = {
	"api", "secret", "access", "account", "storage", "private", "encryption", "signing", "auth",
	"master", "shared", "subscription",
};

/* The same for "pass" and "pw": db_pass, --sftp-pass, rootpw; not --two-pass. */
static const char *const secret_pass_words[] = {
	"db", "user", "admin", "root", "become", "sudo", "ftp", "smtp", "imap", "mail", "ldap", "bind", "http", "proxy", "ssh",
	"keystore", "truststore", "login", "mysql", "postgres", "redis", "vnc", "rpc", "account", "wifi", "webdav", "client",
	"cert", "rabbitmq", "ipmi", "jenkins", "vault", "remote", "master", "svn",
};

/* Names that describe tokens and secrets, or are switches: never secret. */
static const char *const harmless[] = {
	"pad-token", "bos-token", "eos-token", "unk-token", "sep-token", "cls-token", "mask-token", "stop-token",
	"end-token", "max-token", "min-token", "new-token", "no-password", "no-token", "no-passphrase",
};

/* Query parameters with signatures and keys of URLs. */
static const char *const query_names[] = {
	"signature", "x-amz-signature", "x-goog-signature", "sig", "key", "auth", "code",
	"access_key", "credential", "x-amz-credential", "googleaccessid", "awsaccesskeyid",
};

static const char *const headers[] = {
	"authorization", "proxy-authorization", "x-api-key", "x-auth-token", "private-token",
	"cookie", "set-cookie", "x-auth-key", "x-vault-token", "job-token", "api-key", "apikey",
	"x-access-token", "x-goog-api-key", "x-amz-security-token", "dd-api-key", "dd-application-key",
	"ocp-apim-subscription-key",
};

bool
slice_equals(struct slice s, const char *word)
{
	return strlen(word) == s.len && strncasecmp(s.p, word, s.len) == 0;
}

/* Compares names, ignoring case; "-", "_" and "." in s are the same. */
static bool
name_equals(struct slice s, const char *word)
{
	for (size_t i = 0; i < s.len; i++, word++) {
		char c = s.p[i] == '_' || s.p[i] == '.' ? '-' : (char)tolower((unsigned char)s.p[i]);

		if (*word == '\0' || c != (*word == '_' ? '-' : *word))
			return false;
	}
	return *word == '\0';
}

static bool
name_in(struct slice s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (name_equals(s, list[i]))
			return true;
	}
	return false;
}

/* Returns the part of s after its last word separator; *ret_rest is the part before it. */
static struct slice
last_word(struct slice s, struct slice *ret_rest)
{
	size_t start = s.len;

	while (start > 0 && s.p[start - 1] != '-' && s.p[start - 1] != '_' && s.p[start - 1] != '.')
		start--;
	*ret_rest = (struct slice){ s.p, start > 0 ? start - 1 : 0 };
	return (struct slice){ s.p + start, s.len - start };
}

/* Returns whether a word of s begins with "secret", unless s ends in a word such as "file" or "id". */
static bool
is_about_secret(struct slice s)
{
	static const char *const about[] = {
		"file", "path", "dir", "name", "id", "arn", "version", "region", "type", "length", "stdin",
	};
	struct slice rest, last;
	bool is_about = false;

	for (size_t i = 0; i + 6 <= s.len && !is_about; i++) {
		char after = i + 6 < s.len ? s.p[i + 6] : '\0';

		/* secret-key, SECRET_KEY, secretKey, secrets; not secretome */
		is_about = (i == 0 || !isalnum((unsigned char)s.p[i - 1])) &&
		    strncasecmp(s.p + i, "secret", 6) == 0 &&
		    (!islower((unsigned char)after) || (after == 's' && i + 7 == s.len));
	}
	last = last_word(s, &rest);
	for (size_t i = 0; i < COUNT(about) && is_about; i++)
		is_about = !slice_equals(last, about[i]);
	return is_about;
}

static bool
word_in(struct slice word, const struct word *list, size_t n)
{
	int last = word.len > 0 ? tolower((unsigned char)word.p[word.len - 1]) : 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = list[i].len;

		if (last == list[i].text[len - 1] && (word.len == len || (word.len > len && list[i].is_suffix)) &&
		    strncasecmp(word.p + word.len - len, list[i].text, len) == 0)
			return true;
	}
	return false;
}

/* Returns whether the name ends in "pass" or "pw" behind one of secret_pass_words, apart or not: sftp-pass, dbpw. */
static bool
is_pass_of_account(struct slice s)
{
	static const char *const ends[] = { "pass", "pw" };

	for (size_t i = 0; i < COUNT(ends); i++) {
		size_t n = strlen(ends[i]), len = s.len;

		if (len <= n || strncasecmp(s.p + len - n, ends[i], n) != 0)
			continue;
		len -= n;
		len -= s.p[len - 1] == '-' || s.p[len - 1] == '_' || s.p[len - 1] == '.';
		for (size_t k = 0; k < COUNT(secret_pass_words); k++) {
			size_t m = strlen(secret_pass_words[k]);

			if (len >= m && strncasecmp(s.p + len - m, secret_pass_words[k], m) == 0)
				return true;
		}
	}
	return false;
}

enum secret_certainty
secret_name(struct slice s)
{
	struct slice rest, last, before;
	bool is_option = s.len > 0 && s.p[0] == '-';

	while (s.len > 0 && s.p[0] == '-') {
		s.p++;
		s.len--;
	}
	while (s.len > 0 && isdigit((unsigned char)s.p[s.len - 1]))	/* --password2 */
		s.len--;
	if (s.len < 2 || s.len > NAME_MAX_LEN || name_in(s, harmless, COUNT(harmless)))
		return SECRET_NO;
	if (is_option && name_equals(s, "private-key"))		/* a path, for ssh and ansible */
		return SECRET_MAYBE;
	if (is_about_secret(s))
		return SECRET_YES;
	last = last_word(s, &rest);
	if (word_in(last, secret_words, COUNT(secret_words)))
		return SECRET_YES;
	/* DB_PASS=x and --pass x, but not --min-pass 3 */
	if (slice_equals(last, "pass") && (rest.len == 0 || memcmp(last.p, "PASS", 4) == 0))
		return SECRET_YES;
	if (is_pass_of_account(s))
		return SECRET_YES;
	if (s.len > 2 && strncasecmp(s.p, "x-", 2) == 0 && (slice_equals(last, "key") || slice_equals(last, "auth")))
		return SECRET_YES;		/* a header */
	if (slice_equals(last, "key")) {
		before = last_word(rest, &rest);
		for (size_t i = 0; i < COUNT(secret_key_words); i++) {
			if (slice_equals(before, secret_key_words[i]))
				return SECRET_YES;
		}
	}
	return word_in(last, doubtful_words, COUNT(doubtful_words)) ? SECRET_MAYBE : SECRET_NO;
}

bool
secret_looks_random(struct slice s)
{
	enum { NONE, DIGIT, LOWER, UPPER } before = NONE, now;
	size_t n = 0, changes = 0, digits = 0, letters = 0;

	if (s.len < RANDOM_MIN_LEN || s.p[0] == '/' || s.p[0] == '.' || s.p[0] == '~')
		return false;
	if (s.len > SECRET_PEEK)
		s.len = SECRET_PEEK;
	for (size_t i = 0; i < s.len; i++, before = now) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '<' || c == '(' || c == '{' || c == ',')
			return false;
		now = isdigit(c) ? DIGIT : islower(c) ? LOWER : isupper(c) ? UPPER : NONE;
		if (now == NONE)
			continue;
		n++;
		digits += now == DIGIT;
		letters += now != DIGIT;
		changes += before != NONE && before != now;
	}
	return digits > 1 && letters > 1 && 4 * changes >= n && 2 * n >= s.len;
}

bool
secret_looks_like_password(struct slice s)
{
	size_t upper = 0, lower = 0, digits = 0;

	for (size_t i = 0; i < s.len && i < SECRET_PEEK; i++) {
		upper += isupper((unsigned char)s.p[i]) != 0;
		lower += islower((unsigned char)s.p[i]) != 0;
		digits += isdigit((unsigned char)s.p[i]) != 0;
	}
	return upper > 1 && lower > 1 && digits > 1 && memchr(s.p, '/', s.len) == NULL && secret_looks_random(s);
}

/* Returns whether value is the number of a card or a device: behind pin and otp, four digits or more. */
static bool
is_number(struct slice name, struct slice value)
{
	struct slice rest, last = last_word(name, &rest);
	size_t i = 0;

	while (i < value.len && isdigit((unsigned char)value.p[i]))
		i++;
	return i == value.len && i >= 4 && (slice_equals(last, "pin") || slice_equals(last, "otp"));
}

bool
secret_value(struct slice name, enum secret_certainty certainty, struct slice value)
{
	const char *colon;

	steps_take(1 + value.len / VALUE_BYTES);
	if (certainty == SECRET_NO || value.len == 0)
		return false;
	if (certainty == SECRET_YES) {
		struct slice rest, last = last_word(name, &rest), number = value;

		/* PWD=/home/x, --pwd /data: the working folder */
		if (last.len >= 3 && strncasecmp(last.p + last.len - 3, "pwd", 3) == 0 && (value.p[0] == '/' || value.p[0] == '.'))
			return false;
		/* a number of tokens, or an assignment in a program: BEGIN{pass=0} */
		while (number.len > 1 && strchr("})];,", number.p[number.len - 1]) != NULL)
			number.len--;
		return number.len > 2 || !isdigit((unsigned char)number.p[0]) ||
		    !isdigit((unsigned char)number.p[number.len - 1]);
	}
	colon = memchr(value.p, ':', value.len);	/* user:password */
	return secret_looks_random(value) || is_number(name, value) || (colon != NULL && colon[1] != '/' &&
	    secret_looks_random((struct slice){ colon + 1, value.len - (size_t)(colon + 1 - value.p) }));
}

bool
slice_is_command(struct slice command, const char *pattern)
{
	size_t i = 0;

	while (i < command.len && pattern[i] == command.p[i])
		i++;
	return (pattern[i] == '*' && pattern[i + 1] == '\0') || (pattern[i] == '\0' && i == command.len);
}

bool
secret_header(struct slice name)
{
	return name_in(name, headers, COUNT(headers));
}

bool
secret_query(struct slice name)
{
	return name_in(name, query_names, COUNT(query_names));
}
