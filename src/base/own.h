/*
 * SPDX-License-Identifier: Apache-2.0
 * own: the resources that this process itself uses. Its CPU time is clock_ns(CLOCK_PROCESS_CPUTIME_ID).
 */
#ifndef SLUICE_BASE_OWN_H
#define SLUICE_BASE_OWN_H

#include <stdint.h>

uint64_t own_rss_bytes(void);	/* 0: /proc cannot be read */

#endif
