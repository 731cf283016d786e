/*
 * SPDX-License-Identifier: Apache-2.0
 * manifest: which version a signed release is of, and the checksum of one of its files.
 */
#ifndef SLUICE_UPDATE_MANIFEST_H
#define SLUICE_UPDATE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

enum {
	MANIFEST_BYTES_MAX = 256 << 10,
	MANIFEST_LINES_MAX = 1000,
	MANIFEST_NAME_MAX = 200,
	MANIFEST_SHA256_SIZE = 32,
	VERSION_SIZE = 24,
};

/* A version as text, MAJOR.MINOR.PATCH, and its numbers. */
struct version {
	char text[VERSION_SIZE];
	uint32_t numbers[3];
};

/* Parses "1.2.3": numbers of at most six digits without leading zeros. 0 or -EINVAL. */
int version_parse(const char *text, struct version *ret);
/* Returns less than, equal to or more than 0 as a is older than, the same as or newer than b. */
int version_compare(const struct version *a, const struct version *b);

/* Parses the trusted comment of a release, "sluice VERSION". 0; or -EINVAL with a clause in why. */
int manifest_version(const char *comment, struct version *ret, char *why, size_t why_size);

/*
 * Finds the checksum of a file in a text as sha256sum(1) writes it, all lines of which are checked. 0; or a negative
 * errno with a clause in why: -EINVAL: no such text; -ENOENT: it has no such file.
 */
int manifest_find(const char *text, size_t len, const char *name, uint8_t ret[MANIFEST_SHA256_SIZE], char *why,
    size_t why_size);

#endif
