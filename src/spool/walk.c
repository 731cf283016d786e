/*
 * SPDX-License-Identifier: Apache-2.0
 * walk: iterates over the batches and entries of a segment, skipping damage.
 */
#include <errno.h>
#include <string.h>

#include "spool/state.h"

void
spool_walk_start(struct spool_walk *w, struct spool_segment *seg, uint64_t at, uint64_t number)
{
	*w = (struct spool_walk){ .seg = seg, .at = at,
	    .number = seg != NULL && seg->first > number ? seg->first : number };
}

/*
 * Reads the head of the batch at an offset, which must lie whole in its segment. 0, -EBADMSG or another
 * negative errno.
 */
static int
read_batch(struct spool *s, struct spool_reader *r, const struct spool_walk *w, uint64_t at,
    struct spool_batch_head *ret)
{
	struct spool_segment *seg = w->seg;
	size_t size = spool_batch_head_size(seg->n_topics);
	const uint8_t *from;
	int error = spool_read(s, r, seg, at, size, &from);

	if (error == 0)
		error = spool_batch_head_unpack(from, seg->n_topics, ret);
	if (error < 0)
		return error == -ENODATA ? -EBADMSG : error;
	if (ret->segment != seg->number || ret->queue != seg->queue || ret->offset != at ||
	    ret->len > seg->size - at - size || ret->first < w->number)
		return -EBADMSG;
	return 0;
}

/* Finds the first batch from an offset on; *ret is seg->size if there is none. 0 or a negative errno. */
static int
find_batch(struct spool *s, struct spool_reader *r, const struct spool_walk *w, uint64_t at,
    struct spool_batch_head *head, uint64_t *ret)
{
	const size_t magic = strlen(SPOOL_BATCH_MAGIC);
	struct spool_segment *seg = w->seg;

	while (seg->size - at >= spool_batch_head_size(seg->n_topics)) {
		size_t len = seg->size - at < 4096 ? (size_t)(seg->size - at) : 4096;
		const uint8_t *from, *found;
		int error = spool_read(s, r, seg, at, len, &from);

		if (error == -ENODATA)
			break;
		if (error < 0)
			return error;
		found = memmem(from, len, SPOOL_BATCH_MAGIC, magic);
		if (found == NULL) {
			at += len - (magic - 1);	/* the magic may span both windows */
			continue;
		}
		at += (size_t)(found - from);
		error = read_batch(s, r, w, at, head);
		if (error == 0) {
			*ret = at;
			return 0;
		}
		if (error != -EBADMSG)
			return error;
		at++;
	}
	*ret = seg->size;
	return 0;
}

int
spool_walk_batch(struct spool *s, struct spool_reader *r, struct spool_walk *w,
    struct spool_batch_head *ret)
{
	int error;

	if (w->is_in_batch)
		spool_walk_leave(w);
	if (w->at < w->seg->start)
		w->at = w->seg->start;
	w->passed = 0;
	w->passed_at = w->at;
	if (w->at >= w->seg->size)
		return 0;
	error = read_batch(s, r, w, w->at, ret);
	if (error == -EBADMSG) {
		uint64_t found = w->seg->size;

		error = find_batch(s, r, w, w->at + 1, ret, &found);
		if (error < 0)
			return error;
		w->passed = found - w->at;
		w->at = found;
		if (found == w->seg->size)
			return 0;
	}
	if (error < 0)
		return error;
	w->is_in_batch = true;
	w->batch_at = w->at;
	w->at += spool_batch_head_size(w->seg->n_topics);
	w->batch_end = w->at + ret->len;
	w->entries = ret->entries;
	w->number = ret->first;
	w->number_end = ret->first + ret->records;
	return 1;
}

int
spool_read_entry(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    uint64_t end, struct spool_entry *ret)
{
	const uint8_t *from;
	size_t len = 0;
	int error;

	if (end - at < SPOOL_ENTRY_HEAD)
		return -EBADMSG;
	error = spool_read(s, r, seg, at, SPOOL_ENTRY_HEAD, &from);
	if (error == 0) {
		len = spool_entry_peek(from, seg->n_topics);
		if (len == 0 || len > end - at)
			return -EBADMSG;
		error = spool_read(s, r, seg, at, len, &from);
	}
	if (error < 0)
		return error == -ENODATA ? -EBADMSG : error;
	return spool_entry_unpack(from, len, ret);
}

int
spool_walk_entry(struct spool *s, struct spool_reader *r, const struct spool_walk *w,
    struct spool_entry *ret)
{
	int error;

	if (!w->is_in_batch)
		return 0;
	if (w->entries == 0)
		return w->at == w->batch_end && w->number == w->number_end ? 0 : -EBADMSG;
	error = spool_read_entry(s, r, w->seg, w->at, w->batch_end, ret);
	if (error < 0)
		return error;
	/* More records than the head has numbers for: their numbers would be another batch's. */
	if (ret->kind == SPOOL_ENTRY_RECORD && w->number == w->number_end)
		return -EBADMSG;
	return 1;
}

void
spool_walk_on(struct spool_walk *w, const struct spool_entry *e)
{
	w->at += e->len;
	w->entries--;
	if (e->kind == SPOOL_ENTRY_RECORD)
		w->number++;
}

bool
spool_walk_over(struct spool *s, struct spool_reader *r, struct spool_walk *w)
{
	const uint8_t *from;
	struct spool_entry e;
	uint64_t at, records = 0;
	size_t len;

	if (!w->is_in_batch || w->entries == 0 || w->batch_end - w->at < SPOOL_ENTRY_HEAD ||
	    spool_read(s, r, w->seg, w->at, SPOOL_ENTRY_HEAD, &from) < 0)
		return false;
	len = spool_entry_peek(from, w->seg->n_topics);
	if (len == 0 || len > w->batch_end - w->at)
		return false;
	for (at = w->at + len; at < w->batch_end; at += e.len) {
		if (spool_read_entry(s, r, w->seg, at, w->batch_end, &e) < 0)
			return false;
		records += e.kind == SPOOL_ENTRY_RECORD;
	}
	/* The number of missing records shows whether the entry was one: its own bytes cannot be trusted. */
	if (w->number + records > w->number_end || w->number_end - w->number - records > 1)
		return false;
	w->number = w->number_end - records;
	w->at += len;
	w->entries--;
	return true;
}

void
spool_walk_leave(struct spool_walk *w)
{
	w->at = w->batch_end;
	w->number = w->number_end;
	w->is_in_batch = false;
}
