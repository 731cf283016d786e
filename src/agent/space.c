/*
 * SPDX-License-Identifier: Apache-2.0
 * space: the room where tasks work, for findings.
 */
#include <sys/stat.h>

#include "agent/state.h"
#include "collect/disks.h"

/* Returns the number of this process's mount namespace; 0: unknown. */
static uint32_t
own_mnt_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/mnt", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

bool
agent_space(const char *folder, uint32_t mnt_ns, struct disk_space *ret, void *arg)
{
	struct agent *a = arg;

	if (a->mnt_ns == 0)
		a->mnt_ns = own_mnt_ns();
	if (mnt_ns == 0 || mnt_ns != a->mnt_ns)
		return false;		/* its folder may be another one here */
	if (a->disks == NULL || a->disks_ns != a->second_ns) {
		disks_free(a->disks);
		a->disks = NULL;
		a->disks_ns = a->second_ns;
		if (disks_read("/proc/self/mountinfo", &a->disks) < 0)
			return false;
	}
	return disks_space(a->disks, folder, ret);
}
