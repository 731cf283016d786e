/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_base: base names of programs, and what is cut off them. Private to tool.
 */
#ifndef SLUICE_IDENTIFY_TOOL_BASE_H
#define SLUICE_IDENTIFY_TOOL_BASE_H

#include <stdbool.h>
#include <stddef.h>

#define TOOL_BASE_SIZE 256	/* NAME_MAX and a NUL; what is longer is cut */

/* The last component of path, trailing slashes aside; *ret_len may be 0. */
const char *tool_base_of(const char *path, size_t *ret_len);

/* Copies name, or the last component of a path; name may lie in base. */
void tool_base_set(char base[TOOL_BASE_SIZE], const char *name, size_t len);
void tool_base_set_path(char base[TOOL_BASE_SIZE], const char *path);

/* Cuts a suffix off, unless base is nothing else. */
bool tool_base_cut(char *base, const char *suffix);

/* Cuts a version off: samtools-1.19, x_v2.0. Without a dot (foo-2) only if any_version says so. */
void tool_base_cut_version(char *base, bool any_version);

/* Cuts what a launcher adds for the CPU it found: bwa-mem2.avx2. */
void tool_base_cut_cpu(char *base);

/* Cuts all digits, dots and hyphens off the end: python3.11. False: there are none, or nothing else. */
bool tool_base_cut_number(char *base);

#endif
