/*
 * SPDX-License-Identifier: Apache-2.0
 * format: numbers as people read them.
 *
 * Each function writes at most size bytes, NUL included, to buf, which is the caller's, and
 * returns buf. FORMAT_SIZE is always enough.
 */
#ifndef SLUICE_BASE_FORMAT_H
#define SLUICE_BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_SIZE 32

/* "0", "512 B", "310 MiB", "1.2 GiB": one decimal below 10, none above. */
char *format_bytes(uint64_t bytes, char *buf, size_t size);
/* "0s", "<1us", "250us", "480ms", "12.1s", "3m04s", "2h10m", "3d04h". */
char *format_duration(uint64_t ns, char *buf, size_t size);
/* "1,204". */
char *format_count(uint64_t count, char *buf, size_t size);
/* A share from 0 to 1 as "3%"; what is neither (NaN, below 0, far above 1) is clamped. */
char *format_percent(double share, char *buf, size_t size);
/* CPUs in use: "1.0", "0.04" below a tenth, "12" from ten on. No unit: see the caller. */
char *format_cores(double cores, char *buf, size_t size);

#endif
