/*
 * SPDX-License-Identifier: Apache-2.0
 * print_json: one JSON object as the output of a command.
 */
#ifndef SLUICE_CLI_PRINT_JSON_H
#define SLUICE_CLI_PRINT_JSON_H

#include <jansson.h>
#include <stdio.h>

/* Prints root, indented, with a newline; what a terminal would obey is \uXXXX. Returns 0, or -1 without memory. */
int print_json(FILE *f, const json_t *root);

#endif
