/*
 * SPDX-License-Identifier: Apache-2.0
 * settle: `sluice ctl settle`: the operations that settling.h needs, on a running daemon.
 */
#include <stdio.h>

#include "daemon/state.h"

static uint64_t
on_ring_end(void *arg)
{
	return agent_ring_end(((struct daemon *)arg)->agent);
}

static bool
on_look(struct agent_settling *settling, size_t n, void *arg)
{
	return agent_settle(((struct daemon *)arg)->agent, settling, n);
}

static void
on_mark(struct spool_mark *ret, void *arg)
{
	spool_mark(((struct daemon *)arg)->spool, ret);
}

static bool
on_keep(const struct spool_mark *m, bool delivered, struct settle_rest *ret, void *arg)
{
	struct daemon *d = arg;
	struct output_status output;
	struct spool_stats spool;

	*ret = (struct settle_rest){ .unsynced = spool_sync_up_to(d->spool, m) };
	if (ret->unsynced > 0) {
		spool_stats(d->spool, &spool);
		ret->disk_error = spool.last_error;
	}
	if (!delivered)
		return ret->unsynced == 0;
	if (spool_is_done_up_to(d->spool, m))
		return true;
	delivery_flush(d->delivery);
	d->output->ops->status(d->output, &output);
	ret->is_waiting = true;
	ret->output = d->is_kafka ? "the broker" : "the lake";
	if (output.state == OUTPUT_DOWN)
		snprintf(ret->error, sizeof(ret->error), "%s", output.error);
	spool_waiting_up_to(d->spool, m, ret->waiting);
	spool_stats(d->spool, &spool);
	for (int t = 0; t < TOPIC_COUNT && ret->error[0] == '\0'; t++) {
		const char *reason = ret->waiting[t] > 0 ? daemon_waits_for(d, &spool, (enum topic)t) : NULL;

		if (reason != NULL)
			snprintf(ret->error, sizeof(ret->error), "%s waits: %s", topic_name(t), reason);
	}
	return false;
}

int
daemon_open_settle(struct daemon *d)
{
	static const struct settle_ops ops = { on_ring_end, on_look, on_mark, on_keep };

	return settle_open(d->base, &ops, d, &d->settle);
}
