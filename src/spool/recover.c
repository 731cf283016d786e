/*
 * SPDX-License-Identifier: Apache-2.0
 * recover: reads the files of an earlier owner. Segments of which everything is acknowledged and that no replay
 * needs are removed unread; all others are read once from end to end, a window at a time.
 *
 * Bytes behind the last whole batch of a queue are a batch torn by a crash, and are cut off, as is a batch of Usage
 * records that was written without its main batch. Unreadable bytes elsewhere are skipped and stay in the file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_id.h"
#include "spool/state.h"

struct names {
	uint64_t *numbers;
	size_t n;
	size_t cap;
};

static int
add(struct names *names, uint64_t number)
{
	if (names->n == names->cap) {
		size_t cap = names->cap > 0 ? names->cap * 2 : 64;
		uint64_t *more = realloc(names->numbers, cap * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		names->numbers = more;
		names->cap = cap;
	}
	names->numbers[names->n++] = number;
	return 0;
}

static int
by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Lists the numbers of each queue's segments, ascending. Those renamed to .bad, and those of which something is set
 * aside, count as taken, too.
 */
static int
list(struct spool *s, struct names names[SPOOL_QUEUES])
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (dir == NULL) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		/* An owner that was killed while it wrote a file has left a part of it. */
		if (strlen(entry->d_name) > strlen(".seg.part") &&
		    strcmp(entry->d_name + strlen(entry->d_name) - strlen(".seg.part"), ".seg.part") == 0) {
			(void)unlinkat(s->dir_fd, entry->d_name, 0);
			continue;
		}
		for (int queue = 0; r == 0 && queue < SPOOL_QUEUES; queue++) {
			struct spool_segment named = { .queue = queue };
			struct spool_queue_state *q = &s->queues[queue];
			size_t prefix = queue == SPOOL_MAIN ? strlen("main-") : strlen("usage-");
			bool is_aside = strncmp(entry->d_name, SPOOL_UNKNOWN, strlen(SPOOL_UNKNOWN)) == 0;
			const char *at = entry->d_name + (is_aside ? strlen(SPOOL_UNKNOWN) : 0);
			char name[64];

			if (strlen(at) <= prefix)
				continue;
			named.number = strtoull(at + prefix, NULL, 10);
			spool_segment_name(&named, name);
			if (strncmp(at, name, strlen(name)) != 0 || named.number > UINT64_MAX / 2)
				continue;
			if (named.number >= q->next_segment)
				q->next_segment = named.number + 1;
			if (!is_aside && strcmp(at, name) == 0)
				r = add(&names[queue], named.number);
		}
	}
	closedir(dir);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		if (names[queue].n > 1)
			qsort(names[queue].numbers, names[queue].n, sizeof(uint64_t), by_number);
	return r;
}

/* Maps the segment's topics to this program's; one may be unknown, from a newer program. */
static void
map_topics(struct spool *s, struct spool_segment *seg, const struct spool_segment_head *h)
{
	seg->n_topics = h->n_topics;
	for (unsigned i = 0; i < h->n_topics; i++) {
		int t = 0;

		while (t < TOPIC_COUNT && strcmp(h->topics[i].name, topic_name(t)) != 0)
			t++;
		seg->topics[i] = t;
		seg->schemas[i] = h->topics[i].schema;
		if (t < TOPIC_COUNT && h->topics[i].next_seq > s->next_seq[t])
			s->next_seq[t] = h->topics[i].next_seq;
	}
}

/* Returns whether a head is incomplete because of a crash before the first batch was whole. */
static bool
is_torn_head(const uint8_t *head, size_t len)
{
	uint32_t topics;

	if (len < SPOOL_SEGMENT_HEAD_MIN)
		return true;
	memcpy(&topics, head + 36, sizeof(topics));
	return topics <= SPOOL_TOPICS_MAX && len < SPOOL_SEGMENT_HEAD_MIN + (size_t)topics * 48;
}

/* Opens a segment and reads its head. 0; -EBADMSG: unreadable; -ENODATA: torn; or another negative errno. */
static int
open_segment(struct spool *s, struct spool_segment *seg, struct spool_segment_head *h)
{
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];
	struct stat st;
	ssize_t n;
	int r = spool_segment_open(s, seg, O_RDWR | O_NONBLOCK);

	if (r == -EROFS || r == -EACCES) {
		r = spool_segment_open(s, seg, O_RDONLY | O_NONBLOCK);
		seg->is_sealed = true;		/* stays so when the disk can be written again */
	}
	if (r < 0)
		return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : -EBADMSG;
	if (fstat(seg->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADMSG;
	seg->is_on_disk = true;
	seg->size = (uint64_t)st.st_size;
	n = pread(seg->fd, head, sizeof(head), 0);
	if (n < 0)
		return -EBADMSG;
	if (spool_segment_head_unpack(head, (size_t)n, h) < 0)
		return is_torn_head(head, (size_t)n) ? -ENODATA : -EBADMSG;
	if (h->queue != seg->queue || h->number != seg->number || h->first > SPOOL_NUMBER_MAX)
		return -EBADMSG;
	seg->start = h->len;
	seg->first = h->first;
	map_topics(s, seg, h);
	return 0;
}

static void
put_aside(struct spool *s, const struct spool_segment *seg, struct spool_recovery *recovery)
{
	char name[64], bad[80];

	spool_segment_name(seg, name);
	snprintf(bad, sizeof(bad), "%s.bad", name);
	(void)!renameat(s->dir_fd, name, s->dir_fd, bad);
	recovery->unreadable++;
}

/* Opens all segments of a queue with valid heads, in order. *needed_from is the last head's. */
static int
open_queue(struct spool *s, enum spool_queue queue, const struct names *names,
    uint64_t *needed_from, struct spool_recovery *recovery)
{
	for (size_t i = 0; i < names->n; i++) {
		struct spool_segment_head h;
		struct spool_segment *seg = spool_segment_new(s, queue, names->numbers[i]);
		int r;

		if (seg == NULL)
			return -ENOMEM;
		r = open_segment(s, seg, &h);
		if (r == 0) {
			*needed_from = h.needed_from;
			s->bytes += seg->size;
			spool_queue_append(s, seg);
			continue;
		}
		if (r == -ENODATA && i + 1 == names->n) {
			recovery->torn_bytes += seg->size;
			spool_segment_unlink(s, seg);
		} else if (r == -ENODATA || r == -EBADMSG) {
			put_aside(s, seg, recovery);
		}
		spool_segment_free(s, seg);
		if (r != -ENODATA && r != -EBADMSG)
			return r;
	}
	return 0;
}

/* Ignores the segment's bytes from an offset on. */
static void
shorten(struct spool *s, struct spool_segment *seg, uint64_t at)
{
	s->bytes -= seg->size - at;
	seg->size = at;
}

static void
take_wal_entry(struct spool *s, const struct spool_walk *w, const struct spool_entry *e)
{
	w->seg->has_wal = true;
	if (e->kind == SPOOL_ENTRY_CHECKPOINT) {
		s->checkpoint = (struct spool_checkpoint){ w->seg, w->batch_at };
		s->safe = s->checkpoint;
		s->checkpoint_bytes = w->batch_end - w->batch_at;
		s->since_checkpoint = 0;
		s->wal_bytes_since = 0;
	} else {
		s->wal_bytes_since += e->len;
	}
}

/* Finds the next seq of Usage that a batch's head has. False: its segment has no such topic, and *ret is 0. */
static bool
usage_seq(const struct spool_segment *seg, const struct spool_batch_head *h, uint64_t *ret)
{
	for (unsigned i = 0; i < seg->n_topics; i++) {
		if (seg->topics[i] != TOPIC_USAGE)
			continue;
		*ret = h->next_seq[i];
		return true;
	}
	*ret = 0;
	return false;
}

/* Reads the entries of one batch. 0, or a negative errno: reading failed. */
static int
scan_batch(struct spool *s, struct spool_queue_state *q, struct spool_walk *w,
    const struct spool_batch_head *h, struct spool_unknown_build *unknown, struct spool_recovery *recovery)
{
	uint32_t good[SPOOL_TOPICS_MAX] = { 0 };
	struct spool_entry e;
	bool is_damaged = false;
	uint64_t usage;
	int r;

	if (w->number_end > q->next_number)
		q->next_number = w->number_end;
	for (unsigned i = 0; i < w->seg->n_topics; i++) {
		enum topic t = w->seg->topics[i];

		if (t < TOPIC_COUNT && h->next_seq[i] > s->next_seq[t])
			s->next_seq[t] = h->next_seq[i];
		if (t < TOPIC_COUNT && w->seg->queue == SPOOL_MAIN && h->next_seq[i] > s->found_seq[t])
			s->found_seq[t] = h->next_seq[i];
	}
	if (unknown != NULL)
		spool_unknown_batch(unknown, h);
	if (h->flags & SPOOL_BATCH_RING_OFFSET) {
		s->ring_offset = h->ring_offset;
		s->has_ring_offset = true;
	}
	/*
	 * They have new numbers, and may have been handed out under the old ones. The owner that gave them may have
	 * been killed before it wrote a mark that has the new ones.
	 */
	if ((h->flags & SPOOL_BATCH_RETURNED) && w->number_end > q->handed_mark)
		q->handed_mark = w->number_end;
	s->since_checkpoint += h->len;
	/* Never less: a segment that is made of what an older version had set aside has earlier ones. */
	if (w->seg->queue == SPOOL_MAIN && !(h->flags & SPOOL_BATCH_RETURNED) && usage_seq(w->seg, h, &usage)) {
		s->has_usage_committed = true;
		s->usage_committed = usage > s->usage_committed ? usage : s->usage_committed;
	}
	for (;;) {
		uint64_t at = w->at;

		r = spool_walk_entry(s, &q->cursor.reader, w, &e);
		if (r == -EBADMSG && spool_walk_over(s, &q->cursor.reader, w)) {
			recovery->corrupt_bytes += w->at - at;
			is_damaged = true;
			continue;
		}
		if (r != 1)
			break;
		if (e.kind != SPOOL_ENTRY_RECORD) {
			take_wal_entry(s, w, &e);
		} else {
			enum topic t = w->seg->topics[e.topic];
			uint64_t below = t < TOPIC_COUNT ? q->topics[t].done_below : q->done_below;
			bool is_waiting = w->number >= below && !spool_is_skipped(q, t, w->number);

			good[e.topic]++;
			if (is_waiting && t < TOPIC_COUNT) {
				w->seg->waiting[t]++;
				s->waiting[t]++;
			} else if (is_waiting && unknown != NULL && spool_unknown_put(unknown, w->number, &e) < 0) {
				return -ENOMEM;
			}
		}
		spool_walk_on(w, &e);
	}
	for (unsigned i = 0; i < w->seg->n_topics; i++)
		w->seg->has_wrong_counts = w->seg->has_wrong_counts || h->counts[i] != good[i];
	if (r == -EBADMSG)
		recovery->corrupt_bytes += w->batch_end - w->at;
	if (r == -EBADMSG || is_damaged) {
		recovery->corrupt_batches++;
		for (unsigned i = 0; i < w->seg->n_topics; i++) {
			enum topic t = w->seg->topics[i];

			if (h->counts[i] > good[i] && t < TOPIC_COUNT && w->number_end > q->topics[t].done_below)
				s->stats.dropped[t][SPOOL_DROP_CORRUPT] += h->counts[i] - good[i];
		}
	}
	return r == -EBADMSG ? 0 : r;
}

/*
 * Returns whether a Usage batch was written without the main batch of the same commit, whose write-ahead log has what
 * the Usage records cover: the next agent measures it again. Where the end of the main queue is damaged, or may be
 * missing for another reason than a crash, no batch is taken for one. Damage before its last batch, which may be old,
 * hides none.
 */
static bool
is_half_committed(const struct spool *s, const struct spool_segment *seg, const struct spool_batch_head *h,
    const struct spool_recovery *recovery)
{
	uint64_t usage;

	return seg->queue == SPOOL_USAGE && s->has_usage_committed && !recovery->was_clean &&
	    recovery->unreadable == 0 && usage_seq(seg, h, &usage) && usage > s->usage_committed;
}

/* Cuts a segment at the batch that was only half committed: what follows in its queue was, too. */
static void
cut(struct spool *s, struct spool_segment *seg, uint64_t at, const struct spool_batch_head *h,
    struct spool_recovery *recovery)
{
	uint64_t usage;

	/* Handed out before a reboot, it may be delivered; the state file is not synced, and may not have its seq. */
	if (s->was_rebooted && usage_seq(seg, h, &usage) && usage > s->next_seq[TOPIC_USAGE])
		s->next_seq[TOPIC_USAGE] = usage;
	recovery->torn_bytes += seg->size - at;
	if (ftruncate(seg->fd, (off_t)at) < 0)
		seg->is_sealed = true;
	s->queues[seg->queue].cursor.reader.seg = NULL;
	shorten(s, seg, at);
}

static int
scan(struct spool *s, struct spool_segment *seg, struct spool_unknown_build *unknown, uint64_t *number,
    struct spool_recovery *recovery)
{
	struct spool_queue_state *q = &s->queues[seg->queue];
	bool is_last = TAILQ_NEXT(seg, at) == NULL;
	struct spool_batch_head h;
	struct spool_walk w;
	int r;

	spool_walk_start(&w, seg, 0, *number);
	for (;;) {
		r = spool_walk_batch(s, &q->cursor.reader, &w, &h);
		if (r == 1 && w.passed > 0) {
			recovery->corrupt_batches++;
			recovery->corrupt_bytes += w.passed;
		}
		if (r == 1 && is_half_committed(s, seg, &h, recovery)) {
			*number = h.first;
			cut(s, seg, w.batch_at, &h, recovery);
			return 0;
		}
		if (r == 1)
			r = scan_batch(s, q, &w, &h, unknown, recovery);
		else
			break;
		if (r < 0)
			break;
	}
	*number = w.is_in_batch ? w.number_end : w.number;
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		/* After a read error, batches read so far count, the rest is ignored. */
		recovery->corrupt_batches++;
		recovery->corrupt_bytes += seg->size - w.at;
		s->has_usage_committed = s->has_usage_committed && seg->queue != SPOOL_MAIN;
		seg->is_sealed = true;
		shorten(s, seg, w.at);
		return 0;
	}
	if (w.passed > 0 && is_last) {
		recovery->torn_bytes += w.passed;
		if (ftruncate(seg->fd, (off_t)w.passed_at) < 0)
			seg->is_sealed = true;
		q->cursor.reader.seg = NULL;
		shorten(s, seg, w.passed_at);
	} else if (w.passed > 0) {
		recovery->corrupt_batches++;
		recovery->corrupt_bytes += w.passed;
		s->has_usage_committed = s->has_usage_committed && seg->queue != SPOOL_MAIN;
		shorten(s, seg, w.passed_at);
	}
	return 0;
}

/* Reads a segment from end to end, and sets aside its records of topics that this version does not know. */
static int
scan_all(struct spool *s, struct spool_segment *seg, bool is_last, uint64_t *number, struct spool_recovery *recovery)
{
	struct spool_unknown_build *unknown = NULL;
	unsigned known = 0;
	int r = 0;

	while (known < seg->n_topics && seg->topics[known] < TOPIC_COUNT)
		known++;
	if (known < seg->n_topics)
		r = spool_unknown_begin(s, seg, &unknown);
	if (r == 0)
		r = scan(s, seg, unknown, number, recovery);
	/* Half of a segment must not be there for the next start, which takes what is there for the whole. */
	if (r == 0)
		spool_unknown_end(s, unknown, is_last);
	else
		spool_unknown_forget(unknown);
	return r;
}

/* Seals a segment whose schemas differ from the current ones: the next batch cannot go there. */
static void
seal_if_other(struct spool *s, struct spool_segment *seg)
{
	if (seg == NULL)
		return;
	seg->is_sealed = seg->is_sealed || seg->n_topics != TOPIC_COUNT;
	for (int t = 0; t < TOPIC_COUNT && !seg->is_sealed; t++)
		if (seg->topics[t] != (enum topic)t || seg->schemas[t] != s->fingerprints[t])
			seg->is_sealed = true;
}

/* Cuts ranges to numbers that a record has had, in case the state file is wrong. */
static void
trim_skips(struct spool_skips *skips, uint64_t next_number)
{
	size_t n = 0;

	for (size_t i = 0; i < skips->n; i++) {
		struct spool_skip skip = skips->list[i];

		if (skip.from >= next_number)
			continue;
		if (skip.count > next_number - skip.from)
			skip.count = next_number - skip.from;
		skips->list[n++] = skip;
	}
	skips->n = n;
}

/*
 * Makes sure that segments are on the disk, since a killed owner's may only be in the page cache. The last segment
 * counts as synced with the batches that are added to it; those before it are not written again, and their records are
 * handed out first. The last main segment is synced, too: without it the next owner would cut off Usage records.
 */
static void
make_lasting(struct spool *s, struct spool_segment *seg, bool is_last, bool was_clean)
{
	seg->is_dirty = is_last;
	seg->synced_to = is_last ? 0 : seg->size;
	if (was_clean || (is_last && seg->queue != SPOOL_MAIN))
		return;
	if (spool_segment_open(s, seg, O_RDWR) < 0 || fdatasync(seg->fd) < 0)
		seg->is_sealed = seg->has_sync_failed = true;
}

/* Reads the segments that are made of what an older version has set aside, and counts what is still set aside. */
static int
recover_unknown(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery)
{
	struct spool_queue_state *q = &s->queues[queue];
	uint64_t number = q->next_segment, next = q->next_number;
	int r = spool_unknown_return(s, queue, recovery);

	for (; r == 0 && number < q->next_segment; number++) {
		struct spool_segment *seg = spool_segment_new(s, queue, number);
		struct spool_segment_head h;

		if (seg == NULL)
			return -ENOMEM;
		r = open_segment(s, seg, &h);
		if (r < 0) {
			spool_segment_free(s, seg);
			return r;
		}
		s->bytes += seg->size;
		spool_queue_append(s, seg);
		r = scan_all(s, seg, false, &next, recovery);
		make_lasting(s, seg, false, true);
	}
	return r == 0 ? spool_unknown_count(s, queue, recovery) : r;
}

/* Notes which topics the version knows that wrote the segment. */
static void
find_topics(struct spool *s, const struct spool_segment *seg)
{
	memset(s->is_found, 0, sizeof(s->is_found));
	for (unsigned i = 0; i < seg->n_topics; i++)
		if (seg->topics[i] < TOPIC_COUNT)
			s->is_found[seg->topics[i]] = true;
}

static int
recover_queue(struct spool *s, enum spool_queue queue, const struct names *names,
    struct spool_recovery *recovery)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_segment *seg, *next;
	uint64_t needed_from = 0, number = 0;
	int r = open_queue(s, queue, names, &needed_from, recovery);

	if (r < 0)
		return r;
	for (seg = TAILQ_FIRST(&q->segments); seg != NULL; seg = next) {
		next = TAILQ_NEXT(seg, at);
		/* All of its records have numbers below the next segment's first. */
		if (next != NULL && next->first <= q->done_below &&
		    (queue == SPOOL_USAGE || seg->number < needed_from)) {
			spool_remove(s, seg);
			continue;
		}
		if (seg->first > q->next_number)
			q->next_number = seg->first;
		r = scan_all(s, seg, next == NULL, &number, recovery);
		if (r < 0)
			return r;
		if (queue == SPOOL_MAIN)
			find_topics(s, seg);
		make_lasting(s, seg, next == NULL, recovery->was_clean);
	}
	/* Numbers that count as acknowledged are not given again. */
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (q->topics[t].done_below > q->next_number)
			q->next_number = q->topics[t].done_below;
	r = recover_unknown(s, queue, recovery);
	if (r < 0)
		return r;
	seal_if_other(s, TAILQ_LAST(&q->segments, spool_segments));
	return 0;
}

int
spool_recover(struct spool *s, struct spool_recovery *recovery)
{
	struct names names[SPOOL_QUEUES] = { 0 };
	struct spool_marks marks;
	struct host_id host;
	int r;

	if (host_id_read("", &host) == 0)
		memcpy(s->boot_id, host.boot_id, sizeof(s->boot_id));
	spool_marks_read(s, &marks);
	r = list(s, names);
	recovery->is_fresh = !marks.is_there && names[SPOOL_MAIN].n + names[SPOOL_USAGE].n == 0;
	s->was_rebooted = strcmp(marks.boot_id, s->boot_id) != 0 || s->boot_id[0] == '\0';
	/* A power cut may have brought back a clean state that a later owner had overwritten, and not synced. */
	recovery->was_clean = marks.is_clean && !s->was_rebooted;
	/* Syncs the names of the files; some file systems cannot sync a directory, which is no error. */
	if (!recovery->was_clean)
		(void)fsync(s->dir_fd);
	for (int queue = 0; r == 0 && queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];

		r = recover_queue(s, queue, &names[queue], recovery);
		trim_skips(&q->skips, q->next_number);
		for (int t = 0; t < TOPIC_COUNT; t++)
			trim_skips(&q->topics[t].skips, q->next_number);
		/* The state file is not synced: of another boot, its mark may be too old. */
		if (s->was_rebooted || q->handed_mark > q->next_number)
			q->handed_mark = q->next_number;
		q->again_below = q->handed_mark;
	}
	/* After a reboot, nothing is continued anyway. No batch of an older version has topics that this one added. */
	s->is_lacking = marks.is_lacking && !s->was_rebooted;
	s->is_state_earlier = marks.is_needed && (marks.is_earlier || s->was_rebooted);
	for (int t = 0; t < TOPIC_COUNT && marks.is_needed && !s->is_state_earlier; t++)
		s->is_lacking = s->is_lacking || (s->is_found[t] && marks.next_seq[t] > s->found_seq[t]);
	recovery->records = spool_all_waiting(s);
	if (r == 0)
		spool_unknown_keep_seqs(s);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		free(names[queue].numbers);
	return r;
}

/* Counts the checkpoints in the batch at w: entries before the last of them are not replayed. */
static unsigned
count_checkpoints(struct spool *s, struct spool_walk w)
{
	struct spool_reader *r = &s->queues[SPOOL_MAIN].cursor.reader;
	struct spool_batch_head h;
	struct spool_entry e;
	unsigned n = 0;

	if (spool_walk_batch(s, r, &w, &h) != 1)
		return 0;
	for (; spool_walk_entry(s, r, &w, &e) == 1; spool_walk_on(&w, &e))
		n += e.kind == SPOOL_ENTRY_CHECKPOINT;
	return n;
}

void
spool_replay(struct spool *s, void (*cb)(const void *data, size_t len, void *arg), void *arg)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];
	struct spool_segment *seg = s->checkpoint.seg;
	struct spool_batch_head h;
	struct spool_entry e;
	struct spool_walk w;
	unsigned skip = 0;

	if (seg == NULL)
		seg = TAILQ_FIRST(&q->segments);
	spool_walk_start(&w, seg, s->checkpoint.seg != NULL ? s->checkpoint.at : 0, 0);
	if (s->checkpoint.seg != NULL)
		skip = count_checkpoints(s, w);
	for (; seg != NULL; seg = TAILQ_NEXT(seg, at)) {
		if (w.seg != seg)
			spool_walk_start(&w, seg, 0, w.number);
		while (spool_walk_batch(s, &q->cursor.reader, &w, &h) == 1) {
			if (!(h.flags & (SPOOL_BATCH_WAL | SPOOL_BATCH_CHECKPOINT)))
				continue;
			for (;;) {
				int r = spool_walk_entry(s, &q->cursor.reader, &w, &e);

				if (r == -EBADMSG && spool_walk_over(s, &q->cursor.reader, &w))
					continue;
				if (r != 1)
					break;
				if (e.kind == SPOOL_ENTRY_CHECKPOINT && skip > 0)
					skip--;
				else if (e.kind == SPOOL_ENTRY_WAL && skip == 0)
					cb(e.data, e.data_len, arg);
				spool_walk_on(&w, &e);
			}
		}
	}
}
