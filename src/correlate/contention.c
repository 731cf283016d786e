/*
 * SPDX-License-Identifier: Apache-2.0
 * contention: others' part of what a disk does. The definition is in contention.h.
 */
#include "correlate/contention.h"

#include <stddef.h>

#include "correlate/process.h"
#include "correlate/state.h"
#include "model/usage.h"

void
contention_begin(struct correlator *c, struct disk_counts *since, const char *folder, const struct process *p)
{
	*since = (struct disk_counts){ 0 };
	if (c->ops.disk == NULL || c->wal.is_replaying || folder == NULL || !p->has_context ||
	    !c->ops.disk(folder, p->id.pid, p->id.start_ns, p->context.mnt_ns, since, c->arg))
		*since = (struct disk_counts){ 0 };
}

struct opt_double
contention_of(const struct correlator *c, const struct disk_counts *since, const struct usage *usage,
    uint64_t wall_ns)
{
	struct disk_counts now = { .major = since->major, .minor = since->minor };
	uint64_t own, all;

	if (since->major == 0 || c->ops.disk == NULL || !usage_has(usage, USAGE_READ_BYTES) ||
	    !usage_has(usage, USAGE_WRITE_BYTES) || !c->ops.disk(NULL, 0, 0, 0, &now, c->arg) ||
	    now.bytes <= since->bytes)
		return (struct opt_double){ 0 };
	own = usage->value[USAGE_READ_BYTES] + usage->value[USAGE_WRITE_BYTES];
	all = now.bytes - since->bytes;
	if ((double)(now.busy_ns - since->busy_ns) < CONTENTION_BUSY * (double)wall_ns || own >= all)
		return (struct opt_double){ 0, true };
	return (struct opt_double){ 1 - (double)own / (double)all, true };
}
