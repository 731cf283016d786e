/*
 * SPDX-License-Identifier: Apache-2.0
 * mark: progress of the records that were committed up to a moment.
 */
#include "spool/state.h"

void
spool_mark(const struct spool *s, struct spool_mark *ret)
{
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		const struct spool_queue_state *q = &s->queues[queue];
		const struct spool_segment *last = TAILQ_LAST(&q->segments, spool_segments);

		ret->number[queue] = q->next_number;
		ret->segment[queue] = last != NULL ? last->number : 0;
		ret->size[queue] = last != NULL ? last->size : 0;
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		ret->next_seq[t] = s->next_seq[t];
}

uint64_t
spool_sync_up_to(struct spool *s, const struct spool_mark *m)
{
	bool is_synced = true;
	uint64_t waiting = 0;

	spool_sync_poll(s, true);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		const struct spool_segment *seg;

		TAILQ_FOREACH(seg, &s->queues[queue].segments, at) {
			if (seg->number > m->segment[queue])
				break;
			if (seg->is_on_disk && !seg->has_sync_failed &&
			    seg->synced_to >= (seg->number == m->segment[queue] ? m->size[queue] : seg->size))
				continue;
			is_synced = false;
			waiting += spool_waiting(seg);
		}
	}
	return is_synced ? 0 : waiting > 0 ? waiting : 1;
}

bool
spool_is_done_up_to(struct spool *s, const struct spool_mark *m)
{
	for (int queue = 0; queue < SPOOL_QUEUES && spool_all_waiting(s) > 0; queue++) {
		if (spool_done_below(s, queue) < m->number[queue])
			return false;
	}
	return true;
}

void
spool_waiting_up_to(const struct spool *s, const struct spool_mark *m, uint64_t ret[TOPIC_COUNT])
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		uint64_t newer = s->next_seq[t] - m->next_seq[t];

		ret[t] = 0;
		for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
			const struct spool_segment *seg;

			TAILQ_FOREACH(seg, &s->queues[queue].segments, at)
				ret[t] += seg->waiting[t];
		}
		ret[t] -= ret[t] < newer ? ret[t] : newer;
	}
}
