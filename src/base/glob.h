/*
 * SPDX-License-Identifier: Apache-2.0
 * glob: texts in which a star stands for any bytes.
 */
#ifndef SLUICE_BASE_GLOB_H
#define SLUICE_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Does it stand for all of that text? */
bool glob_holds(const char *glob, size_t glob_len, const char *text, size_t len);

/*
 * Is an absolute path what it stands for, or below that? A star is a part of one name, or a whole
 * one; slashes at the end, or two in a row, say nothing.
 */
bool glob_holds_path(const char *glob, const char *path);

#endif
