/*
 * SPDX-License-Identifier: Apache-2.0
 * descriptors: closes what a new process inherits and must not keep.
 */
#include "base/descriptors.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_OPEN 1048576		/* sysctl fs.nr_open, as kernels have it by themselves */

int
descriptors_close_from(int first)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0)
		return 0;
	if (errno != ENOSYS || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (limit.rlim_max > NR_OPEN)
		limit.rlim_max = NR_OPEN;
	for (int fd = first; fd < (int)limit.rlim_max; fd++)
		(void)close(fd);
	return 0;
}
