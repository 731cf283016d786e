/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_base: base names of programs, and suffixes that are cut off them. Private to tool.
 */
#ifndef SLUICE_IDENTIFY_TOOL_BASE_H
#define SLUICE_IDENTIFY_TOOL_BASE_H

#include <stdbool.h>
#include <stddef.h>

#define TOOL_BASE_SIZE 256	/* NAME_MAX and a NUL; a longer name is cut */

/* Returns the last component of path, ignoring trailing slashes; it points into path. *ret_len may be 0. */
const char *tool_base_of(const char *path, size_t *ret_len);

/* Copies len bytes of name, which may point into base. */
void tool_base_set(char base[TOOL_BASE_SIZE], const char *name, size_t len);
/* Copies the last component of path, which may point into base. */
void tool_base_set_path(char base[TOOL_BASE_SIZE], const char *path);

/* Cuts a suffix off, unless base consists of it alone. Returns whether it did. */
bool tool_base_cut(char *base, const char *suffix);

/* Cuts a version off: samtools-1.19, x_v2.0; and if any_version, one without a dot too: foo-2. */
void tool_base_cut_version(char *base, bool any_version);

/* Cuts off the suffix of a build for one kind of CPU: bwa-mem2.avx2. */
void tool_base_cut_cpu(char *base);

/* Cuts all digits, dots and hyphens off the end: python3.11. Returns false where there are none, or no others. */
bool tool_base_cut_number(char *base);

#endif
