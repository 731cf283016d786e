/*
 * SPDX-License-Identifier: Apache-2.0
 * sha256: the hash of FIPS 180-4, for telling texts apart without keeping them.
 */
#ifndef SLUICE_BASE_SHA256_H
#define SLUICE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];	/* what is not hashed yet: bytes % 64 of it */
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
/* Ends it: h holds nothing afterwards of what it was given. */
void sha256_done(struct sha256 *h, uint8_t out[SHA256_SIZE]);

#endif
