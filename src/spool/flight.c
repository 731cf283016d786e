/*
 * SPDX-License-Identifier: Apache-2.0
 * flight: records that are handed out and not yet acknowledged, in a ring that grows with their number.
 */
#include <errno.h>
#include <stdlib.h>

#include "spool/state.h"

enum {
	FIRST_CAP = 256,
	KEPT_CAP = 16384,	/* a larger ring is freed once it is empty */
};

struct spool_handed *
spool_flight_at(const struct spool_flight *f, uint64_t index)
{
	return &f->ring[index & (f->cap - 1)];
}

struct spool_handed *
spool_flight_find(const struct spool_flight *f, uint64_t number, uint64_t *index)
{
	uint64_t low = f->head, high = f->tail;

	if (low == high || number < spool_flight_at(f, low)->number)
		return NULL;
	/* The first guess is right as long as the numbers have no gap. */
	*index = low + (number - spool_flight_at(f, low)->number);
	if (*index < high && spool_flight_at(f, *index)->number == number)
		return spool_flight_at(f, *index);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		struct spool_handed *h = spool_flight_at(f, middle);

		if (h->number == number) {
			*index = middle;
			return h;
		}
		if (h->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int
grow(struct spool_flight *f)
{
	size_t cap = f->cap > 0 ? f->cap * 2 : FIRST_CAP;
	struct spool_handed *ring = calloc(cap, sizeof(*ring));

	if (ring == NULL)
		return -ENOMEM;
	for (uint64_t i = f->head; i < f->tail; i++)
		ring[i & (cap - 1)] = *spool_flight_at(f, i);
	free(f->ring);
	f->ring = ring;
	f->cap = cap;
	return 0;
}

int
spool_flight_push(struct spool_flight *f, const struct spool_handed *h)
{
	if (f->tail - f->head == f->cap && grow(f) < 0)
		return -ENOMEM;
	*spool_flight_at(f, f->tail++) = *h;
	return 0;
}

void
spool_flight_finish(struct spool_flight *f, struct spool_handed *h)
{
	if (h->flags & SPOOL_IS_OUT)
		f->n_out--;
	h->flags = (uint8_t)((h->flags & ~SPOOL_IS_OUT) | SPOOL_IS_DONE);
	h->seg = NULL;		/* the segment may be freed before this entry is */
	while (f->head < f->tail && (spool_flight_at(f, f->head)->flags & SPOOL_IS_DONE))
		f->head++;
	if (f->redo < f->head)
		f->redo = f->head;
}

void
spool_flight_shrink(struct spool_flight *f)
{
	if (f->head == f->tail && f->cap > KEPT_CAP)
		spool_flight_done(f);
}

void
spool_flight_done(struct spool_flight *f)
{
	free(f->ring);
	f->ring = NULL;
	f->cap = 0;
}
