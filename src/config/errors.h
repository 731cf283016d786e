/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: everything that is wrong with a configuration, gathered. Private to config/.
 */
#ifndef SLUICE_CONFIG_ERRORS_H
#define SLUICE_CONFIG_ERRORS_H

#include "config/config.h"

/* Adds one. line and column from 1, or 0. Without memory it is counted as not_shown. */
void config_error_add(struct config_errors *e, const char *file, unsigned line, unsigned column,
    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* By place; file by file in the order of files. */
void config_errors_sort(struct config_errors *e, const struct config_strings *files);

#define SHOWN_SIZE 80

/*
 * What stands in a file, as an error shows it: cut when long, and on one line whatever it holds.
 * Returns buf, which has SHOWN_SIZE bytes.
 */
char *shown(const char *text, char *buf);

#endif
