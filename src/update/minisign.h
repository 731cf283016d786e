/*
 * SPDX-License-Identifier: Apache-2.0
 * minisign: keys and signatures in minisign's files, and whether a signature is of a key and a file.
 *
 * Of its two kinds of signature only the one that it makes by default is accepted, prehashed: Ed25519 over BLAKE2b-512
 * of the file. A second signature is over the first and the trusted comment. libcrypto has both algorithms, so that
 * libsodium, with which minisign(1) makes them, is not needed.
 */
#ifndef SLUICE_UPDATE_MINISIGN_H
#define SLUICE_UPDATE_MINISIGN_H

#include <stddef.h>
#include <stdint.h>

enum {
	MINISIGN_FILE_MAX = 4096,	/* of a key or a signature, in bytes */
	MINISIGN_COMMENT_MAX = 1024,
	MINISIGN_ID_SIZE = 8,
	MINISIGN_KEY_SIZE = 32,
	MINISIGN_SIGNATURE_SIZE = 64,
};

struct minisign_key {
	uint8_t id[MINISIGN_ID_SIZE];
	uint8_t key[MINISIGN_KEY_SIZE];
};

struct minisign_signature {
	uint8_t id[MINISIGN_ID_SIZE];	/* of the key that it claims to be by */
	uint8_t signature[MINISIGN_SIGNATURE_SIZE];
	uint8_t global[MINISIGN_SIGNATURE_SIZE];
	char comment[MINISIGN_COMMENT_MAX + 1];	/* the trusted one, without prefix; to be verified first */
};

/* Each parses the text of a file. 0; or -EINVAL with *ret untouched and a clause in why. */
int minisign_key_parse(const char *text, size_t len, struct minisign_key *ret, char *why, size_t why_size);
int minisign_signature_parse(const char *text, size_t len, struct minisign_signature *ret, char *why, size_t why_size);

/*
 * Returns 0 if the key signed both this data and the trusted comment; otherwise a negative errno with a clause in why:
 * -EKEYREJECTED: it did not; or another, such as -ENOMEM.
 */
int minisign_verify(const struct minisign_key *key, const struct minisign_signature *s, const void *data, size_t len,
    char *why, size_t why_size);

#endif
