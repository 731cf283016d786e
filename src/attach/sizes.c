/*
 * SPDX-License-Identifier: Apache-2.0
 * sizes: a formula.
 */
#include "attach/sizes.h"

#include <bpf/libbpf.h>
#include <unistd.h>

/*
 * The least that probes.max_processes and probes.ring may be, and the most that is taken without them: kernels from
 * 5.11 on count the maps as memory of the agent, of which its service unit (MemoryMax=) allows 512 MiB.
 */
#define PROCESSES_LEAST 1024
#define PROCESSES_MOST 196608
#define RING_LEAST (UINT64_C(256) << 10)
#define RING_MOST (UINT64_C(64) << 20)

static uint64_t
at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct sizes
sizes_of(unsigned cpus, uint64_t memory_bytes)
{
	uint64_t processes = at_least(UINT64_C(1024) * cpus, 2 * SIZES_PROCESSES);
	uint64_t wanted = at_least((UINT64_C(128) << 10) * cpus, UINT64_C(4) << 20), ring = RING_LEAST;

	processes = at_most(processes, memory_bytes / 140 / SIZES_PROCESS_BYTES);
	processes = at_most(at_least(processes, PROCESSES_LEAST), PROCESSES_MOST);
	while (ring < RING_MOST && ring < wanted && 2 * ring <= memory_bytes / 512)
		ring *= 2;
	return (struct sizes){ .max_processes = (uint32_t)processes, .ring_bytes = (size_t)ring };
}

struct sizes
sizes_of_host(void)
{
	int cpus = libbpf_num_possible_cpus();
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return sizes_of(cpus > 0 ? (unsigned)cpus : 1, pages > 0 ? (uint64_t)pages * (uint64_t)page : 0);
}
