/*
 * SPDX-License-Identifier: Apache-2.0
 * secret: which names, headers, options and shapes of text indicate a secret.
 */
#include "identify/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN	128	/* a longer "name" is data */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A name is secret if its last word is one of these, or ends in one that is marked "*". */
static const char *const secret_words[] = {
	"*password", "*passwd", "*passphrase", "*apikey", "*secretkey", "*accesskey", "*token",
	"*secret", "storepass", "keypass", "sshpass", "passin", "passout", "pwd",
};

/* A name is secret if its last word is "key" and the word before is one of these. */
static const char *const secret_key_words[] = {
	"api", "secret", "access", "account", "storage", "private", "encryption", "signing", "auth",
	"master", "shared", "subscription",
};

/* Names that describe tokens and secrets, or are switches: never secret. */
static const char *const harmless[] = {
	"pwd", "oldpwd", "pad-token", "bos-token", "eos-token", "unk-token", "sep-token",
	"cls-token", "mask-token", "stop-token", "end-token", "no-password", "no-token",
	"no-passphrase",
};

/* Query parameters with signatures and keys of URLs. */
static const char *const query_names[] = {
	"signature", "x-amz-signature", "x-goog-signature", "sig", "key", "auth", "code",
	"access_key", "credential", "x-amz-credential", "googleaccessid", "awsaccesskeyid",
};

static const char *const headers[] = {
	"authorization", "proxy-authorization", "x-api-key", "x-auth-token", "private-token",
	"cookie", "set-cookie", "x-auth-key", "x-vault-token", "job-token", "api-key", "apikey",
	"x-access-token", "x-goog-api-key", "x-amz-security-token",
};

/* Tokens that their prefix identifies. */
static const struct {
	const char *prefix;
	size_t min_len;
} token_shapes[] = {
	{ "ghp_", 20 }, { "gho_", 20 }, { "ghu_", 20 }, { "ghs_", 20 }, { "ghr_", 20 },
	{ "github_pat_", 24 }, { "glpat-", 16 }, { "xoxb-", 16 }, { "xoxp-", 16 }, { "hf_", 30 },
	{ "sk-", 32 }, { "eyJ", 40 /* a JWT's header */ }, { "dckr_pat_", 20 }, { "pypi-", 40 },
};

static const struct secret_option secret_options[] = {
	{ "mysql*", "-p", true }, { "mariadb*", "-p", true }, { "mycli", "-p", true },
	{ "mongo*", "-p" }, { "sshpass", "-p" }, { "redis-cli", "-a" }, { "ldap*", "-w" },
	{ "zip", "-P" }, { "unzip", "-P" }, { "7z*", "-p", true }, { "sqlcmd", "-P" },
	{ "bcp", "-P" }, { "ncftp*", "-p" }, { "cqlsh", "-p" }, { "influx", "-t" },
	{ "curl", "-u", .from = ':' }, { "curl", "--user", .from = ':' },
	{ "curl", "-U", .from = ':' }, { "curl", "--proxy-user", .from = ':' },
	{ "curl", "-b" }, { "curl", "--cookie" }, { "curl", "--oauth2-bearer" },
	{ "lftp", "-u", .from = ',' }, { "smbclient", "-U", .from = '%' },
	{ "docker", "-p", .after_login = true }, { "podman", "-p", .after_login = true },
	{ "helm", "-p", .after_login = true }, { "oras", "-p", .after_login = true },
	{ "skopeo", "-p", .after_login = true }, { "az", "-p", .after_login = true },
	{ "singularity", "-p", .after_login = true }, { "apptainer", "-p", .after_login = true },
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
		"file", "path", "dir", "name", "id", "arn", "version", "region", "type", "length",
	};
	struct slice rest, last = last_word(s, &rest);

	for (size_t i = 0; i < COUNT(about); i++) {
		if (slice_equals(last, about[i]))
			return false;
	}
	for (size_t i = 0; i + 6 <= s.len; i++) {
		char after = i + 6 < s.len ? s.p[i + 6] : '\0';

		/* secret-key, SECRET_KEY, secretKey, secrets; not secretome */
		if ((i == 0 || !isalnum((unsigned char)s.p[i - 1])) &&
		    strncasecmp(s.p + i, "secret", 6) == 0 &&
		    (!islower((unsigned char)after) || (after == 's' && i + 7 == s.len)))
			return true;
	}
	return false;
}

bool
secret_name(struct slice s)
{
	struct slice rest, last, before;
	bool is_option = s.len > 0 && s.p[0] == '-';

	while (s.len > 0 && s.p[0] == '-') {
		s.p++;
		s.len--;
	}
	if (s.len < 3 || s.len > NAME_MAX_LEN || name_in(s, harmless, COUNT(harmless)))
		return false;
	if (is_option && name_equals(s, "private-key"))		/* a path, for ssh and ansible */
		return false;
	if (is_about_secret(s))
		return true;
	last = last_word(s, &rest);
	for (size_t i = 0; i < COUNT(secret_words); i++) {
		const char *word = secret_words[i];
		size_t n;

		if (word[0] != '*') {
			if (slice_equals(last, word))
				return true;
			continue;
		}
		n = strlen(++word);
		if (last.len >= n && strncasecmp(last.p + last.len - n, word, n) == 0)
			return true;
	}
	/* DB_PASS=x and --pass x, but not --min-pass 3 */
	if (slice_equals(last, "pass"))
		return rest.len == 0 || memcmp(last.p, "PASS", 4) == 0;
	if (!slice_equals(last, "key"))
		return false;
	before = last_word(rest, &rest);
	for (size_t i = 0; i < COUNT(secret_key_words); i++) {
		if (slice_equals(before, secret_key_words[i]))
			return true;
	}
	return false;
}

bool
secret_token(struct slice run)
{
	for (size_t i = 0; i < COUNT(token_shapes); i++) {
		size_t n = strlen(token_shapes[i].prefix);

		if (run.len >= token_shapes[i].min_len && strncmp(run.p, token_shapes[i].prefix, n) == 0)
			return true;
	}
	return false;
}

bool
slice_is_command(struct slice command, const char *pattern)
{
	size_t n;

	if (command.len == 0 || command.p[0] != pattern[0])	/* the common case */
		return false;
	n = strlen(pattern);
	if (pattern[n - 1] == '*')
		return command.len >= n - 1 && memcmp(command.p, pattern, n - 1) == 0;
	return command.len == n && memcmp(command.p, pattern, n) == 0;
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

bool
secret_has_options(struct slice command)
{
	for (size_t i = 0; i < COUNT(secret_options); i++) {
		if (slice_is_command(command, secret_options[i].command))
			return true;
	}
	return false;
}

const struct secret_option *
secret_option(struct slice command, struct slice word, bool is_login, struct slice *ret_value)
{
	for (size_t i = 0; i < COUNT(secret_options); i++) {
		const struct secret_option *o = &secret_options[i];
		size_t n = strlen(o->option);
		struct slice value;

		if (!slice_is_command(command, o->command) || word.len < n ||
		    memcmp(word.p, o->option, n) != 0 || (o->after_login && !is_login))
			continue;
		value = (struct slice){ word.p + n, word.len - n };
		if (value.len > 0 && n > 2) {		/* --user=name:secret */
			if (value.p[0] != '=')
				continue;
			value.p++;
			value.len--;
		}
		*ret_value = value;
		return o;
	}
	return NULL;
}
