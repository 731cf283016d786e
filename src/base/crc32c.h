/*
 * SPDX-License-Identifier: Apache-2.0
 * crc32c: the Castagnoli checksum, by the CPU's own instruction where it has one.
 */
#ifndef SLUICE_BASE_CRC32C_H
#define SLUICE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of data; crc is 0, or the result for the bytes before data. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* Computes crc32c() without the instruction, for CPUs that lack it and for tests to compare with. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);

#endif
