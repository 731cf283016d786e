/*
 * SPDX-License-Identifier: Apache-2.0
 * crc32c: the Castagnoli checksum, by the CPU's own instruction where it has one.
 */
#ifndef SLUICE_BASE_CRC32C_H
#define SLUICE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc is 0, or what the call on the bytes before returned. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* The same without the instruction: what CPUs without it run, and what tests compare with. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);

#endif
