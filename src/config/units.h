/*
 * SPDX-License-Identifier: Apache-2.0
 * units: durations and sizes as people write them, in the configuration and in arguments.
 */
#ifndef SLUICE_CONFIG_UNITS_H
#define SLUICE_CONFIG_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNITS_TEXT_SIZE 32

/*
 * Parses "10s", "1.5h": one number, which may have a fraction, and one of ms, s, m, h, d. Only 0 may
 * be without a unit. False: why has the fault and a hint.
 */
bool duration_parse(const char *text, uint64_t *ret_ms, char *why, size_t why_size);
/* Parses "32KiB", "10MB": B, KiB to TiB (powers of 1024), kB to TB (powers of 1000). */
bool size_parse(const char *text, uint64_t *ret_bytes, char *why, size_t why_size);

/* Writes the shortest text that parses to the same value into UNITS_TEXT_SIZE bytes. Returns buf. */
char *duration_text(uint64_t ms, char *buf);
/* Writes a size likewise, in the largest unit that divides it. */
char *size_text(uint64_t bytes, char *buf);

#endif
