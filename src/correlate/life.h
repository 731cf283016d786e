/*
 * SPDX-License-Identifier: Apache-2.0
 * life: ends of processes that no event reports.
 */
#ifndef SLUICE_CORRELATE_LIFE_H
#define SLUICE_CORRELATE_LIFE_H

#include <stdint.h>

struct correlator;
struct process;

/* Ends p without its end record: that was lost, or p lives on unseen. */
void process_lose(struct correlator *c, struct process *p, uint64_t end_ns);
/* Ends all processes that the last pass did not see; no records of their ends will arrive. */
void processes_lose_unseen(struct correlator *c, uint64_t now_ns);

#endif
