/*
 * SPDX-License-Identifier: Apache-2.0
 * endian: little-endian numbers at unaligned addresses, as files and messages contain them.
 */
#ifndef SLUICE_BASE_ENDIAN_H
#define SLUICE_BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Writes 2 bytes. */
static inline void
le_put16(uint8_t *to, uint16_t v)
{
	v = htole16(v);
	memcpy(to, &v, sizeof(v));
}

/* Reads 2 bytes. */
static inline uint16_t
le_get16(const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return le16toh(v);
}

/* Writes 4 bytes. */
static inline void
le_put32(uint8_t *to, uint32_t v)
{
	v = htole32(v);
	memcpy(to, &v, sizeof(v));
}

/* Reads 4 bytes. */
static inline uint32_t
le_get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return le32toh(v);
}

/* Writes 8 bytes. */
static inline void
le_put64(uint8_t *to, uint64_t v)
{
	v = htole64(v);
	memcpy(to, &v, sizeof(v));
}

/* Reads 8 bytes. */
static inline uint64_t
le_get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return le64toh(v);
}

#endif
