/*
 * SPDX-License-Identifier: Apache-2.0
 * cpu_busy: for how long the host's CPUs did not idle, added up over them.
 */
#ifndef SLUICE_MODEL_CPU_BUSY_H
#define SLUICE_MODEL_CPU_BUSY_H

#include <stdint.h>

struct cpu_busy {
	uint64_t at_ns;			/* CLOCK_BOOTTIME, before it was read */
	uint64_t least_ns;		/* since the host was started, with what a hypervisor took: no less at at_ns */
	uint64_t most_ns;		/* no more at at_ns */
	uint32_t cpus;			/* online ones */
};

#endif
