/*
 * SPDX-License-Identifier: Apache-2.0
 * minisign: keys and signatures in minisign's files, and whether a signature is of a key and a file.
 */
#include "update/minisign.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#define UNTRUSTED "untrusted comment:"
#define TRUSTED "trusted comment: "

enum {
	ALGORITHM_SIZE = 2,
	KEY_BYTES = ALGORITHM_SIZE + MINISIGN_ID_SIZE + MINISIGN_KEY_SIZE,
	SIGNATURE_BYTES = ALGORITHM_SIZE + MINISIGN_ID_SIZE + MINISIGN_SIGNATURE_SIZE,
	BYTES_MAX = 80,			/* of one line, decoded and with its padding */
	HASH_SIZE = 64,
	LINES_MAX = 4,
};

#define BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)
#define REFUSE(...) (snprintf(why, why_size, __VA_ARGS__), -EINVAL)

struct line {
	const char *text;
	size_t len;
};

/* Splits a text into exactly n lines, of which the last may lack its newline. False where it is another number. */
static bool
split(const char *text, size_t len, struct line *lines, size_t n)
{
	size_t at = 0;

	if (len > MINISIGN_FILE_MAX || memchr(text, '\0', len) != NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *end = memchr(text + at, '\n', len - at);

		if (at == len)
			return false;
		lines[i].text = text + at;
		lines[i].len = end != NULL ? (size_t)(end - text) - at : len - at;
		at += lines[i].len + (end != NULL);
		if (lines[i].len > 0 && lines[i].text[lines[i].len - 1] == '\r')
			lines[i].len--;
	}
	return at == len;
}

static bool
begins_with(const struct line *line, const char *prefix)
{
	return line->len >= strlen(prefix) && memcmp(line->text, prefix, strlen(prefix)) == 0;
}

/* Decodes a line of exactly so many bytes. False for everything that an encoder does not write. */
static bool
decode(const struct line *line, uint8_t *ret, size_t size)
{
	unsigned char bytes[BYTES_MAX + 3], again[BASE64_LEN(BYTES_MAX) + 1];

	if (size > BYTES_MAX || line->len != BASE64_LEN(size) ||
	    EVP_DecodeBlock(bytes, (const unsigned char *)line->text, (int)line->len) < (int)size)
		return false;
	/* libcrypto's decoder accepts spaces around it, and bits that no byte has. */
	if (EVP_EncodeBlock(again, bytes, (int)size) != (int)line->len || memcmp(again, line->text, line->len) != 0)
		return false;
	memcpy(ret, bytes, size);
	return true;
}

int
minisign_key_parse(const char *text, size_t len, struct minisign_key *ret, char *why, size_t why_size)
{
	struct line lines[LINES_MAX];
	uint8_t bytes[KEY_BYTES];

	if (!split(text, len, lines, 2) || !begins_with(&lines[0], UNTRUSTED))
		return REFUSE("it is no public key of minisign, which has two lines, the first of them a comment");
	if (!decode(&lines[1], bytes, sizeof(bytes)) || memcmp(bytes, "Ed", ALGORITHM_SIZE) != 0)
		return REFUSE("its second line is no public key of minisign");
	memcpy(ret->id, bytes + ALGORITHM_SIZE, sizeof(ret->id));
	memcpy(ret->key, bytes + ALGORITHM_SIZE + MINISIGN_ID_SIZE, sizeof(ret->key));
	return 0;
}

int
minisign_signature_parse(const char *text, size_t len, struct minisign_signature *ret, char *why, size_t why_size)
{
	const size_t prefix = strlen(TRUSTED);
	uint8_t bytes[SIGNATURE_BYTES], global[MINISIGN_SIGNATURE_SIZE];
	struct line lines[LINES_MAX];

	if (!split(text, len, lines, 4) || !begins_with(&lines[0], UNTRUSTED) || !begins_with(&lines[2], TRUSTED))
		return REFUSE("it is no signature of minisign, which has four lines, two of them comments");
	if (lines[2].len - prefix > MINISIGN_COMMENT_MAX)
		return REFUSE("its trusted comment is longer than %d bytes", MINISIGN_COMMENT_MAX);
	if (!decode(&lines[1], bytes, sizeof(bytes)) || !decode(&lines[3], global, sizeof(global)))
		return REFUSE("its second or fourth line is no signature");
	if (memcmp(bytes, "Ed", ALGORITHM_SIZE) == 0)
		return REFUSE("it is of minisign's former kind, over the file itself: sign without -l");
	if (memcmp(bytes, "ED", ALGORITHM_SIZE) != 0)
		return REFUSE("its algorithm is unknown");
	memcpy(ret->id, bytes + ALGORITHM_SIZE, sizeof(ret->id));
	memcpy(ret->signature, bytes + ALGORITHM_SIZE + MINISIGN_ID_SIZE, sizeof(ret->signature));
	memcpy(ret->global, global, sizeof(ret->global));
	memcpy(ret->comment, lines[2].text + prefix, lines[2].len - prefix);
	ret->comment[lines[2].len - prefix] = '\0';
	return 0;
}

/* Returns 1 if the key signed these bytes, 0 if it did not, or -ENOMEM. */
static int
is_signed(EVP_PKEY *key, const uint8_t *signature, const void *data, size_t len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int r = -ENOMEM;

	if (ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1)
		r = EVP_DigestVerify(ctx, signature, MINISIGN_SIGNATURE_SIZE, data, len) == 1;
	EVP_MD_CTX_free(ctx);
	return r;
}

int
minisign_verify(const struct minisign_key *key, const struct minisign_signature *s, const void *data, size_t len,
    char *why, size_t why_size)
{
	uint8_t hash[HASH_SIZE], all[MINISIGN_SIGNATURE_SIZE + MINISIGN_COMMENT_MAX];
	size_t comment_len = strlen(s->comment);
	unsigned hash_len = sizeof(hash);
	EVP_PKEY *pkey;
	int r;

	if (memcmp(key->id, s->id, sizeof(key->id)) != 0) {
		snprintf(why, why_size, "it is by another key");
		return -EKEYREJECTED;
	}
	pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->key, sizeof(key->key));
	if (pkey == NULL || EVP_Digest(data, len, hash, &hash_len, EVP_blake2b512(), NULL) != 1) {
		EVP_PKEY_free(pkey);
		snprintf(why, why_size, "libcrypto has no Ed25519 or BLAKE2b-512, or no memory");
		return -ENOMEM;
	}
	r = is_signed(pkey, s->signature, hash, sizeof(hash));
	if (r == 0)
		snprintf(why, why_size, "it is not of this file");
	if (r > 0) {
		memcpy(all, s->signature, MINISIGN_SIGNATURE_SIZE);
		memcpy(all + MINISIGN_SIGNATURE_SIZE, s->comment, comment_len);
		r = is_signed(pkey, s->global, all, MINISIGN_SIGNATURE_SIZE + comment_len);
		if (r == 0)
			snprintf(why, why_size, "its trusted comment was changed");
	}
	if (r < 0)
		snprintf(why, why_size, "out of memory");
	EVP_PKEY_free(pkey);
	return r > 0 ? 0 : r == 0 ? -EKEYREJECTED : r;
}
