/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Finds processes that have ended and that the kernel has not freed, or whose end on_free has not seen.
 */
#ifndef SLUICE_STALE_H
#define SLUICE_STALE_H

#include "pass.h"
#include "share.h"

#define STALE_MAX 64		/* ended processes that one call of on_stale finds */

u32 stale_n = 0;		/* of stale_found, which are filled in */
struct event_state stale_found[STALE_MAX] = {};

/*
 * Returns whether a process that the pass of a retake did not see has ended without that its end was seen before the
 * retake. After the second pass that are those that the first one had seen: entries that were made since may be of
 * processes that the pass was too early for.
 */
static __always_inline bool
is_gone_unseen(const struct proc *p)
{
	if (p->swept_ns == stale_sweep_ns || (p->end_ns && p->end_ns < retake_ns))
		return false;
	return snapshot_judge == FILTER_JUDGE_RETAKE || p->swept_ns == retake_ns;
}

/*
 * Of processes that ended more than stale_ns ago, have not been zombies since, and still have an entry: user space
 * removes them. Younger ones have no key: on_free may still run, so user space must not remove them.
 *
 * Returns whether the end of the process is to be reported; an entry without a report is removed here once it is stale.
 */
static __always_inline bool
sweep_entry(const struct proc_key *key, const struct proc *p, bool *ret_is_young)
{
	struct proc_key gone = *key;
	u64 last_ns = p->zombie_ns > p->end_ns ? p->zombie_ns : p->end_ns;

	if (snapshot_judge == FILTER_JUDGE_RETAKE || snapshot_judge == FILTER_JUDGE_RETAKEN) {
		if (is_gone_unseen(p))
			entry_remove(&gone, p);
		return false;
	}
	if (!last_ns)
		return false;
	*ret_is_young = bpf_ktime_get_boot_ns() - last_ns < stale_ns;
	if (p->reported)
		return true;
	if (!*ret_is_young)
		unreported_remove(&gone, p);
	return false;
}

static long
on_stale_entry(struct bpf_map *map, const struct proc_key *key, struct proc *p, void *ctx)
{
	u32 n = stale_n;
	bool is_young;

	if (p->swept_ns == stale_sweep_ns || !sweep_entry(key, p, &is_young))
		return 0;
	if (n >= STALE_MAX)
		return 1;
	p->swept_ns = stale_sweep_ns;
	state_fill_from_entry(&stale_found[n], p, is_young ? 0 : key->signal);
	stale_n = n + 1;
	return 0;
}

/*
 * Fills stale_found; user space calls again until it is no longer full, with the same stale_sweep_ns. It does not use
 * an iterator over the map, since there are kernels that allow only those iterators that cannot write.
 */
SEC("syscall")
int on_stale(void *ctx)
{
	stale_n = 0;
	bpf_for_each_map_elem(&procs, on_stale_entry, NULL, 0);
	return 0;
}

/* Writes the same as a file before 5.14, where programs cannot walk a map when user space calls them. */
SEC("iter/bpf_map_elem")
int on_stale_until_5_13(struct bpf_iter__bpf_map_elem *ctx)
{
	struct proc *p = ctx->value;
	struct proc_key *key = ctx->key;
	struct event_state *e;
	bool is_young;
	u32 zero = 0;

	if (!p || !key || !sweep_entry(key, p, &is_young))
		return 0;
	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 0;
	state_fill_from_entry(e, p, is_young ? 0 : key->signal);
	bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
	return 0;
}

#endif
