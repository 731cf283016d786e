/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: the list of all faults of a configuration or of rules. Private to config/ and rules/.
 */
#ifndef SLUICE_CONFIG_ERRORS_H
#define SLUICE_CONFIG_ERRORS_H

#include "config/config.h"

/* Adds an error. line and column are from 1, or 0. Without memory it is only counted. */
void config_error_add(struct config_errors *e, const char *file, unsigned line, unsigned column,
    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Sorts errors by file, in the order of files, then by line and column. */
void config_errors_sort(struct config_errors *e, const struct config_strings *files);

#define SHOWN_SIZE 80

/*
 * Writes a text of a file as an error shows it: cut where it is long, and without control characters.
 * Returns buf, which has SHOWN_SIZE bytes.
 */
char *shown(const char *text, char *buf);

#endif
