/*
 * SPDX-License-Identifier: Apache-2.0
 * program: whether bytes are the program that they should be.
 */
#ifndef SLUICE_UPDATE_PROGRAM_H
#define SLUICE_UPDATE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "update/manifest.h"

/* Returns the architecture that this program was built for, as it is in the names of a release: "x86_64". */
const char *program_architecture(void);

/* Returns whether the bytes have this checksum. */
bool program_has_sha256(const void *data, size_t len, const uint8_t sha256[MANIFEST_SHA256_SIZE]);

/* Returns whether the bytes begin as an ELF program for this architecture does. */
bool program_is_ours(const void *data, size_t len);

#endif
