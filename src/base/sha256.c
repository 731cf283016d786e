/*
 * SPDX-License-Identifier: Apache-2.0
 * sha256: as FIPS 180-4 writes it, in its names.
 */
#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* 6.2.2 */
static void
add_block(uint32_t H[8], const uint8_t *block)
{
	uint32_t W[64], s[8];	/* s: a to h */

	for (int t = 0; t < 16; t++)
		W[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		    (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (int t = 16; t < 64; t++) {
		uint32_t s0 = rotr(W[t - 15], 7) ^ rotr(W[t - 15], 18) ^ W[t - 15] >> 3;
		uint32_t s1 = rotr(W[t - 2], 17) ^ rotr(W[t - 2], 19) ^ W[t - 2] >> 10;

		W[t] = s1 + W[t - 7] + s0 + W[t - 16];
	}
	memcpy(s, H, sizeof(s));
	for (int t = 0; t < 64; t++) {
		uint32_t S1 = rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25);
		uint32_t S0 = rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22);
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t T1 = s[7] + S1 + choice + K[t] + W[t];

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += T1;
		s[0] = T1 + S0 + majority;
	}
	for (int i = 0; i < 8; i++)
		H[i] += s[i];
	explicit_bzero(W, sizeof(W));
}

void
sha256_init(struct sha256 *h)
{
	/* The same of the square roots of the first 8 primes (5.3.3). */
	*h = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
		0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void
sha256_add(struct sha256 *h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0) {
		size_t have = h->bytes % 64, n = len < 64 - have ? len : 64 - have;

		memcpy(h->block + have, p, n);
		h->bytes += n;
		p += n;
		len -= n;
		if (have + n == 64)
			add_block(h->state, h->block);
	}
}

void
sha256_done(struct sha256 *h, uint8_t out[SHA256_SIZE])
{
	uint64_t bits = h->bytes * 8;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(h, "\x80", 1);
	while (h->bytes % 64 != 56)
		sha256_add(h, "", 1);
	sha256_add(h, length, 8);
	for (int i = 0; i < SHA256_SIZE; i++)
		out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
	explicit_bzero(h, sizeof(*h));
}
