/*
 * SPDX-License-Identifier: Apache-2.0
 * contention: others' part of what a disk and CPUs do. The definition is in contention.h.
 */
#include "correlate/contention.h"

#include <stddef.h>

#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/work.h"
#include "model/usage.h"

/* Asks for the counts of the disk with that number. */
static bool
ask(const struct correlator *c, struct disk_counts *ret)
{
	return ret->major != 0 && c->ops.disk(NULL, 0, 0, 0, ret, c->arg);
}

/* Sets the disk of p's work, and its counts. */
static bool
find(const struct correlator *c, const char *folder, const struct process *p, struct disk_counts *ret)
{
	if (folder != NULL)
		return p->has_context &&
		    c->ops.disk(folder, p->id.pid, p->id.start_ns, p->context.mnt_ns, ret, c->arg);
	if (p->run == NULL)
		return false;
	*ret = p->run->work.contention.since;
	return ask(c, ret);
}

static uint64_t
sum(uint64_t a, uint64_t b)
{
	return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* Adds what they have done until end_ns, at most. */
static void
end_cpus(const struct correlator *c, struct contention *k, uint64_t end_ns)
{
	struct cpu_busy now;
	uint64_t until_ns;

	if (k->cpus_since_ns == 0 || !c->ops.cpus(&now, c->arg) || now.most_ns < k->cpus_since_ns) {
		k->cpus_ns = UINT64_MAX;
		return;
	}
	until_ns = now.most_ns + (end_ns > now.at_ns ? now.cpus * (end_ns - now.at_ns) : 0);
	k->cpus_ns = sum(k->cpus_ns, until_ns - k->cpus_since_ns);
}

void
contention_reach(struct correlator *c, struct work *w, uint64_t begin_ns)
{
	struct contention *k = &w->contention;
	struct cpu_busy now;
	uint64_t since_ns = 0;

	if (c->ops.cpus == NULL || c->wal.is_replaying)
		return;
	if (c->ops.cpus(&now, c->arg)) {
		if (now.at_ns > begin_ns)
			since_ns = now.cpus * (now.at_ns - begin_ns);
		since_ns = now.least_ns > since_ns ? now.least_ns - since_ns : 1;
	}
	if (w->live == 1 || since_ns < k->cpus_since_ns)
		k->cpus_since_ns = since_ns;
}

void
contention_begin(struct correlator *c, struct work *w, const char *folder, const struct process *p)
{
	struct disk_counts now = w->contention.since;

	if (c->ops.disk == NULL || c->wal.is_replaying)
		return;
	if (!(w->programs == 1 ? find(c, folder, p, &now) : ask(c, &now)))
		now = (struct disk_counts){ 0 };
	w->contention.since = now;
}

/* Adds what the disk has done since programs are live. False: it is unknown. */
static bool
add_live(const struct correlator *c, struct contention *k)
{
	struct disk_counts now = k->since;

	if (!ask(c, &now) || now.bytes < k->since.bytes || now.busy_ns < k->since.busy_ns)
		return false;
	k->bytes += now.bytes - k->since.bytes;
	k->busy_ns += now.busy_ns - k->since.busy_ns;
	return true;
}

void
contention_end(struct correlator *c, struct work *w)
{
	struct contention *k = &w->contention;

	if (c->wal.is_replaying)
		return;
	if (c->ops.cpus != NULL)
		end_cpus(c, k, w->end_ns);
	if (c->ops.disk != NULL && !add_live(c, k)) {
		k->since = (struct disk_counts){ 0 };
		k->bytes = k->busy_ns = 0;
	}
}

struct opt_double
contention_of(const struct correlator *c, const struct work *w, const struct usage *usage, uint64_t until_ns)
{
	struct contention k = w->contention;
	uint64_t own, live_ns = w->busy_ns;

	if (k.since.major == 0 || c->ops.disk == NULL || !usage_has(usage, USAGE_READ_BYTES) ||
	    !usage_has(usage, USAGE_WRITE_BYTES) || (w->live > 0 && !add_live(c, &k)) || k.bytes == 0)
		return (struct opt_double){ 0 };
	if (w->live > 0 && until_ns > w->busy_since_ns)
		live_ns += until_ns - w->busy_since_ns;
	own = usage->value[USAGE_READ_BYTES] + usage->value[USAGE_WRITE_BYTES];
	if ((double)k.busy_ns < CONTENTION_BUSY * (double)live_ns || own >= k.bytes)
		return (struct opt_double){ 0, true };
	return (struct opt_double){ 1 - (double)own / (double)k.bytes, true };
}

struct opt_u64
contention_of_cpus(const struct correlator *c, const struct work *w, const struct usage *usage, uint64_t until_ns)
{
	struct contention k = w->contention;
	uint64_t own_ns = usage_cpu_ns(usage);

	if (c->ops.cpus == NULL)
		return (struct opt_u64){ 0 };
	if (w->live > 0)
		end_cpus(c, &k, until_ns);
	if (k.cpus_ns == UINT64_MAX)
		return (struct opt_u64){ 0 };
	return (struct opt_u64){ k.cpus_ns > own_ns ? k.cpus_ns - own_ns : 0, true };
}

void
contention_merge(struct contention *to, const struct contention *from)
{
	to->cpus_ns = sum(to->cpus_ns, from->cpus_ns);
}
