/*
 * SPDX-License-Identifier: Apache-2.0
 * sizes: how many processes a host's agent follows at once, and how large its ring is, where the configuration leaves
 * that to the host.
 */
#ifndef SLUICE_ATTACH_SIZES_H
#define SLUICE_ATTACH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define SIZES_PROCESSES 16384		/* that a run follows at once */
#define SIZES_PROCESS_BYTES 904		/* of the kernel's memory for each */

struct sizes {
	uint32_t max_processes;
	size_t ring_bytes;	/* a power of two */
};

/*
 * Returns the sizes for a host of so many possible CPUs and so much memory:
 *
 *	processes	1024 for each CPU, 32,768 to 196,608, in at most 1/140 of the memory
 *	ring		128 KiB for each CPU, 4 to 64 MiB, in at most 1/512 of the memory, as a power of two
 *
 * One user may have half of the processes (bpf/share.h), thus as many as a run. Both together are below a hundredth of
 * the memory, and below half of what the agent's service unit allows it.
 */
struct sizes sizes_of(unsigned cpus, uint64_t memory_bytes);
/* Returns the sizes for this host. */
struct sizes sizes_of_host(void);

#endif
