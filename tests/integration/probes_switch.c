/*
 * SPDX-License-Identifier: Apache-2.0
 * probes_switch FILE 0|1|quiet: blinds a running agent (0) through its pinned variables, and undoes it (1): its
 * programs follow no process whose parent they do not follow already. quiet: what an agent leaves that was killed when
 * it had just taken the lease back, before the time without it was recorded; that begins now.
 */
#include <bpf/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "attach/probes_state.h"
#include "base/clock.h"

int
main(int argc, char **argv)
{
	struct sluice_bpf__data_shared *shared;
	int fd;

	if (argc != 3)
		return 2;
	fd = bpf_obj_get(argv[1]);
	shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	if (strcmp(argv[2], "quiet") == 0)
		shared->quiet_since_ns = clock_ns(CLOCK_BOOTTIME);
	else
		__atomic_store_n(&shared->follow_all, (uint32_t)atoi(argv[2]), __ATOMIC_SEQ_CST);
	return 0;
}
