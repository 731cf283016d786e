/*
 * SPDX-License-Identifier: Apache-2.0
 * redaction: the user's settings for arguments: patterns of their own, and how many arguments are kept.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/arena.h"
#include "base/pattern.h"
#include "identify/redact.h"
#include "identify/secret_ranges.h"

#define SECRET_GROUP "secret"
#define PARTS_MAX 64		/* most named groups that a pattern can have */
#define FINDS_MAX 256		/* matches in an argument; after the last one, the rest of it is redacted */
#define STRIKES_MAX 3		/* slow searches after which the rest is redacted unread: redaction_find() */
#define HASH_BYTES 16		/* bytes of the hash that are kept: enough to avoid collisions */
#define HASH_SIZE (sizeof(REDACT_HASH_PREFIX) + 2 * HASH_BYTES)

struct user_pattern {
	struct pattern *pattern;	/* owned */
	size_t secret;			/* index of the group SECRET_GROUP; PARTS_MAX: none */
};

struct redaction {
	bool has_builtin;
	enum redact_keep keep;
	char *salt;			/* owned; NULL none */
	EVP_MD *sha256;			/* owned; NULL unless keep is REDACT_KEEP_HASH */
	struct user_pattern *patterns;	/* owned */
	size_t n;
};

void
redaction_free(struct redaction *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++)
		pattern_free(r->patterns[i].pattern);
	free(r->patterns);
	free(r->salt);
	EVP_MD_free(r->sha256);
	free(r);
}

static size_t
secret_group(const struct pattern *p)
{
	const char *name;

	for (size_t i = 0; i < PARTS_MAX && (name = pattern_group(p, i)) != NULL; i++) {
		if (strcmp(name, SECRET_GROUP) == 0)
			return i;
	}
	return PARTS_MAX;
}

int
redaction_new(const struct redaction_options *o, struct redaction **ret, char *error, size_t error_size)
{
	struct redaction *r = calloc(1, sizeof(*r));
	char why[256];

	snprintf(error, error_size, "no memory");
	if (r == NULL)
		return -ENOMEM;
	r->keep = o->keep;
	r->patterns = calloc(o->n_patterns + 1, sizeof(*r->patterns));
	r->salt = o->salt != NULL ? strdup(o->salt) : NULL;
	if (r->patterns == NULL || (r->salt == NULL && o->salt != NULL)) {
		redaction_free(r);
		return -ENOMEM;
	}
	/* Fetched here, since the first fetch reads OpenSSL's configuration and takes a millisecond. */
	if (r->keep == REDACT_KEEP_HASH && (r->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL)) == NULL) {
		snprintf(error, error_size, "this system's OpenSSL has no SHA-256, which is needed to hash arguments");
		redaction_free(r);
		return -EINVAL;
	}
	for (size_t i = 0; i < o->n_patterns; i++) {
		struct pattern *p;

		if (strcmp(o->patterns[i], REDACT_BUILTIN) == 0) {
			r->has_builtin = true;
			continue;
		}
		p = pattern_new(o->patterns[i], why, sizeof(why));
		if (p == NULL) {
			snprintf(error, error_size, "'%s': %s", o->patterns[i], why);
			redaction_free(r);
			return -EINVAL;
		}
		r->patterns[r->n++] = (struct user_pattern){ p, secret_group(p) };
	}
	if (error_size > 0)
		error[0] = '\0';
	*ret = r;
	return 0;
}

bool
redaction_has_builtin(const struct redaction *r)
{
	return r == NULL || r->has_builtin;
}

bool
redaction_has_patterns(const struct redaction *r)
{
	return r != NULL && r->n > 0;
}

static bool
is_inside_char(struct slice t, size_t i)
{
	return i < t.len && ((unsigned char)t.p[i] & 0xc0) == 0x80;
}

/* Extends the range to whole characters: patterns match bytes, but the result must be valid UTF-8. */
static void
add_chars(struct slice t, size_t start, size_t end, struct secret_ranges *ranges)
{
	while (start > 0 && is_inside_char(t, start))
		start--;
	while (is_inside_char(t, end))
		end++;
	secret_ranges_add(ranges, start, end);
}

static void
add_part(struct slice t, struct pattern_part part, struct secret_ranges *ranges)
{
	size_t start;

	if (part.at == NULL || part.len == 0)
		return;
	start = (size_t)(part.at - t.p);
	add_chars(t, start, start + part.len, ranges);
}

/* Adds every match of one pattern; false where the search took too long. */
static bool
find_all(const struct user_pattern *u, struct slice t, struct secret_ranges *ranges)
{
	struct pattern_part whole, parts[PARTS_MAX];
	size_t from = 0;

	for (unsigned finds = 0; from <= t.len; finds++) {
		size_t end;
		int found;

		if (finds == FINDS_MAX) {
			add_chars(t, from, t.len, ranges);
			return true;
		}
		found = pattern_find_from(u->pattern, t.p, t.len, from, &whole, parts, PARTS_MAX);
		if (found <= 0)
			return found == 0;
		add_part(t, u->secret < PARTS_MAX ? parts[u->secret] : whole, ranges);
		end = (size_t)(whole.at - t.p) + whole.len;
		from = end > from ? end : from + 1;
	}
	return true;
}

void
redaction_find(const struct redaction *r, struct slice t, unsigned *strikes, struct secret_ranges *ranges)
{
	for (size_t i = 0; i < r->n; i++) {
		if (*strikes < STRIKES_MAX && find_all(&r->patterns[i], t, ranges))
			continue;
		*strikes += *strikes < STRIKES_MAX;
		secret_ranges_add(ranges, 0, t.len);
		return;
	}
}

bool
redaction_drops(const struct redaction *r)
{
	return r != NULL && r->keep != REDACT_KEEP_ALL;
}

/* Hashes each argument with its NUL, so that no two lists are the same bytes. False without memory. */
static bool
hash_of(const struct redaction *r, const char **argv, size_t argc, unsigned char out[EVP_MAX_MD_SIZE])
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool is_ok = c != NULL && EVP_DigestInit_ex(c, r->sha256, NULL);

	if (r->salt != NULL)
		is_ok = is_ok && EVP_DigestUpdate(c, r->salt, strlen(r->salt) + 1);
	for (size_t i = 0; i < argc; i++)
		is_ok = is_ok && EVP_DigestUpdate(c, argv[i], strlen(argv[i]) + 1);
	is_ok = is_ok && EVP_DigestFinal_ex(c, out, NULL);
	EVP_MD_CTX_free(c);
	return is_ok;
}

size_t
redaction_keep(const struct redaction *r, const char **argv, size_t argc, struct arena *a)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	char *text, *at;

	if (!redaction_drops(r) || argc <= 1)
		return argc;
	if (r->keep == REDACT_KEEP_FIRST)
		return 1;
	text = arena_bytes(a, HASH_SIZE);
	if (text == NULL || !hash_of(r, argv + 1, argc - 1, hash))
		return 1;
	at = stpcpy(text, REDACT_HASH_PREFIX);
	for (size_t i = 0; i < HASH_BYTES; i++)
		at += sprintf(at, "%02x", hash[i]);
	argv[1] = text;
	return 2;
}
