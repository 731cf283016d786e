/*
 * SPDX-License-Identifier: Apache-2.0
 * glob: texts in which a star matches any bytes.
 */
#ifndef SLUICE_BASE_GLOB_H
#define SLUICE_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if glob matches all of text. */
bool glob_holds(const char *glob, size_t glob_len, const char *text, size_t len);

/*
 * Returns true if glob matches an absolute path or a folder above it. A star matches a part of one name, or a
 * whole name; trailing and repeated slashes are ignored.
 */
bool glob_holds_path(const char *glob, const char *path);

#endif
