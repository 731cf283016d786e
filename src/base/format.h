/*
 * SPDX-License-Identifier: Apache-2.0
 * format: numbers, and signals, as people read them.
 *
 * Each function that takes buf writes at most size bytes, the NUL included, to it and returns it. FORMAT_SIZE bytes are
 * always enough.
 */
#ifndef SLUICE_BASE_FORMAT_H
#define SLUICE_BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_SIZE 32

/* Formats a size: "0", "512 B", "310 MiB", "1.2 GiB"; one decimal below 10, none above. */
char *format_bytes(uint64_t bytes, char *buf, size_t size);
/* Formats a duration: "0s", "<1us", "250us", "480ms", "12.1s", "3m04s", "2h10m", "3d04h". */
char *format_duration(uint64_t ns, char *buf, size_t size);
/* Formats a count with separators: "1,204". */
char *format_count(uint64_t count, char *buf, size_t size);
/* Formats a share from 0 to 1 as "3%"; NaN, negative values and values far above 1 are clamped. */
char *format_percent(double share, char *buf, size_t size);
/* Formats a number of CPUs in use, without a unit: "1.0", "0.04" below a tenth, "12" from ten on. */
char *format_cores(double cores, char *buf, size_t size);
/* Returns the name of a signal without SIG, "KILL", or NULL for one without a name, as glibc's sigabbrev_np(3). */
const char *format_signal(int signo);

#endif
