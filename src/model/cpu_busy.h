/*
 * SPDX-License-Identifier: Apache-2.0
 * cpu_busy: for how long the host's CPUs did not idle, added up over them.
 */
#ifndef SLUICE_MODEL_CPU_BUSY_H
#define SLUICE_MODEL_CPU_BUSY_H

#include <stdint.h>

struct cpu_busy {
	uint64_t busy_ns;		/* since the host was started, with what a hypervisor took */
	uint64_t at_ns;			/* CLOCK_BOOTTIME, as it was read */
	uint32_t cpus;			/* online ones */
};

#endif
