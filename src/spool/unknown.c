/*
 * SPDX-License-Identifier: Apache-2.0
 * unknown: keeps records of topics that this version does not know, which a later version wrote before a downgrade, for
 * the next version that knows them. All other records of the same segments are delivered.
 *
 * What is set aside of a segment is a file of the same format: the same head, with the next seq of each topic, and a
 * batch for each run of such records, with their numbers. The head alone, of the last segment, keeps a later version
 * from using a seq twice; that of no segment has the next seqs of batches that a later version had in memory only. In
 * the head, topics of which nothing was set aside have the fingerprint 0: a version that does not know one of them adds
 * its records. A version that knows a topic of the file makes a segment of its records, and leaves the others in the
 * file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "spool/state.h"

#define RUN_BYTES (1u << 20)
#define FILE_MAX ((size_t)256 << 20)	/* more than a segment has */

/* A file, or a segment, that is being made. */
struct spool_unknown_build {
	struct spool_segment_head head;
	struct bytes batches;			/* owned; the last one's head is packed when it ends */
	size_t batch_at;
	struct spool_batch_head batch;		/* no records: none has begun */
	uint64_t records[SPOOL_TOPICS_MAX];	/* that were put, by topic and all */
	uint64_t records_all;
	uint64_t from[SPOOL_TOPICS_MAX];	/* records below this number are not to be set aside, or are already */
};

static void
name_of(enum spool_queue queue, uint64_t number, char name[80])
{
	const struct spool_segment seg = { .queue = queue, .number = number };
	char segment[64];

	spool_segment_name(&seg, segment);
	snprintf(name, 80, SPOOL_UNKNOWN "%s", segment);
}

/* Returns the topic of that name; TOPIC_COUNT: it is unknown. */
static enum topic
find_topic(const char *name)
{
	int t = 0;

	while (t < TOPIC_COUNT && strcmp(name, topic_name(t)) != 0)
		t++;
	return t;
}

/* Returns the index of a topic's counts; topics beyond the limit share the last. */
static size_t
topic_index(struct spool *s, const char *topic)
{
	size_t i = 0;

	while (i < s->n_unknown_topics && strcmp(s->unknown_topics[i], topic) != 0)
		i++;
	if (i == SPOOL_UNKNOWN_TOPICS)
		return i - 1;
	if (i == s->n_unknown_topics) {
		snprintf(s->unknown_topics[i], sizeof(s->unknown_topics[i]), "%s", topic);
		s->n_unknown_topics++;
	}
	return i;
}

void
spool_unknown_batch(struct spool_unknown_build *b, const struct spool_batch_head *h)
{
	for (unsigned i = 0; i < b->head.n_topics; i++)
		if (h->next_seq[i] > b->head.topics[i].next_seq)
			b->head.topics[i].next_seq = h->next_seq[i];
}

static void
end_batch(struct spool_unknown_build *b)
{
	if (b->batch.records == 0)
		return;
	for (unsigned i = 0; i < b->head.n_topics; i++)
		b->batch.next_seq[i] = b->head.topics[i].next_seq;
	spool_batch_head_pack(b->batches.data + b->batch_at, &b->batch, b->head.n_topics);
	b->batch = (struct spool_batch_head){ 0 };
}

/* Adds a record. 0 or -ENOMEM. */
static int
put(struct spool_unknown_build *b, uint64_t number, const struct spool_entry *e)
{
	size_t head = spool_batch_head_size(b->head.n_topics);
	bool is_next = b->batch.records > 0 && number == b->batch.first + b->batch.records &&
	    b->batch.len + e->len <= RUN_BYTES;

	if (bytes_reserve(&b->batches, head + e->len) < 0)
		return -ENOMEM;
	if (!is_next) {
		end_batch(b);
		b->batch_at = b->batches.len;
		b->batch = (struct spool_batch_head){ .queue = b->head.queue, .segment = b->head.number,
		    .offset = b->head.len + b->batches.len, .first = number, .flags = SPOOL_BATCH_RETURNED };
		b->batches.len += head;
	}
	spool_entry_pack(b->batches.data + b->batches.len, e);
	b->batches.len += e->len;
	b->batch.len += (uint32_t)e->len;
	b->batch.entries++;
	b->batch.records++;
	b->batch.counts[e->topic]++;
	b->records[e->topic]++;
	b->records_all++;
	if (e->seq >= b->head.topics[e->topic].next_seq)
		b->head.topics[e->topic].next_seq = e->seq + 1;
	return 0;
}

int
spool_unknown_put(struct spool_unknown_build *b, uint64_t number, const struct spool_entry *e)
{
	return number >= b->from[e->topic] ? put(b, number, e) : 0;
}

/* Writes a file of two parts, of which the disk has all when it has the name. 0 or a negative errno. */
static int
write_whole(const struct spool *s, const char *name, const uint8_t *head, size_t head_len, const struct bytes *rest)
{
	char part[96];
	int fd, r;

	snprintf(part, sizeof(part), "%s.part", name);
	fd = openat(s->dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = file_write(fd, head, head_len, 0);
	if (r == 0)
		r = file_write(fd, rest->data, rest->len, head_len);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	close(fd);
	if (r == 0 && renameat(s->dir_fd, part, s->dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(s->dir_fd, part, 0);
	else
		(void)fsync(s->dir_fd);
	return r;
}

void
spool_unknown_forget(struct spool_unknown_build *b)
{
	if (b != NULL)
		bytes_done(&b->batches);
	free(b);
}

/* Reads the batch at an offset of a file that was set aside. False: there is none, or it is damaged. */
static bool
batch_at(const struct file_text *file, const struct spool_segment_head *h, size_t at, struct spool_batch_head *ret)
{
	size_t size = spool_batch_head_size(h->n_topics);

	return file->len - at >= size &&
	    spool_batch_head_unpack((const uint8_t *)file->text + at, h->n_topics, ret) == 0 && ret->offset == at &&
	    ret->segment == h->number && ret->len <= file->len - at - size;
}

/* Reads a file and its head. 0, -EBADMSG or another negative errno. */
static int
load(const struct spool *s, const struct spool_unknown_file *f, struct file_text *file, struct spool_segment_head *h)
{
	char name[80];
	int r;

	name_of(f->queue, f->number, name);
	r = file_read(s->dir_fd, name, file, FILE_MAX);
	if (r == 0)
		r = spool_segment_head_unpack((const uint8_t *)file->text, file->len, h);
	if (r == 0 && (h->queue != f->queue || h->number != f->number))
		r = -EBADMSG;
	return r;
}

/* Returns the number below which an unknown topic's records are acknowledged, as a version that knew it has noted. */
static uint64_t
done_below(const struct spool *s, const char *topic)
{
	for (size_t i = 0; i < s->n_other_seqs; i++)
		if (strcmp(s->other_seqs[i].name, topic) == 0)
			return s->other_seqs[i].done_below;
	return 0;
}

/* Begins with what an earlier owner has set aside of the segment. 0 or a negative errno. */
static int
begin_with(struct spool *s, struct spool_unknown_build *b)
{
	const struct spool_unknown_file f = { .queue = b->head.queue, .number = b->head.number };
	struct spool_segment_head earlier = { 0 };
	struct file_text file = { 0 };
	struct spool_batch_head batch;
	int r = load(s, &f, &file, &earlier);
	size_t at = earlier.len;

	if (r == 0 && earlier.len != b->head.len)
		r = -EBADMSG;
	while (r == 0 && batch_at(&file, &earlier, at, &batch))
		at += spool_batch_head_size(earlier.n_topics) + batch.len;
	if (r == 0)
		r = bytes_append(&b->batches, file.text + earlier.len, at - earlier.len);
	for (unsigned i = 0; i < b->head.n_topics; i++) {
		struct spool_topic *topic = &b->head.topics[i];
		bool has_it = r == 0 && earlier.topics[i].schema != 0;

		if (r == 0 && earlier.topics[i].next_seq > topic->next_seq)
			topic->next_seq = earlier.topics[i].next_seq;
		b->from[i] = has_it ? UINT64_MAX : done_below(s, topic->name);
		if (!has_it && find_topic(topic->name) < TOPIC_COUNT)
			topic->schema = 0;
	}
	file_text_done(&file);
	/* One that cannot be read is replaced, if there is something to set aside. */
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : 0;
}

int
spool_unknown_begin(struct spool *s, struct spool_segment *seg, struct spool_unknown_build **ret)
{
	struct spool_unknown_build *b = calloc(1, sizeof(*b));
	const uint8_t *head;
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = spool_read(s, &s->queues[seg->queue].cursor.reader, seg, 0, seg->start, &head);
	if (r == 0)
		r = spool_segment_head_unpack(head, seg->start, &b->head);
	if (r == 0)
		r = begin_with(s, b);
	if (r < 0) {
		spool_unknown_forget(b);
		return r;
	}
	*ret = b;
	return 0;
}

static int
write_build(struct spool *s, const char *name, const struct spool_unknown_build *b)
{
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];

	return write_whole(s, name, head, spool_segment_head_pack(head, &b->head), &b->batches);
}

void
spool_unknown_end(struct spool *s, struct spool_unknown_build *b, bool is_last)
{
	char name[80];
	int r = 0;

	if (b == NULL)
		return;
	end_batch(b);
	name_of(b->head.queue, b->head.number, name);
	if (b->records_all > 0 || (is_last && b->head.queue == SPOOL_MAIN && faccessat(s->dir_fd, name, F_OK, 0) < 0))
		r = write_build(s, name, b);
	for (unsigned i = 0; i < b->head.n_topics && r < 0; i++)
		if (b->records[i] > 0)
			s->unknown_dropped[topic_index(s, b->head.topics[i].name)] += b->records[i];
	spool_unknown_forget(b);
}

static bool
has_segment(const struct spool *s, enum spool_queue queue, uint64_t number)
{
	const struct spool_segment *seg;

	TAILQ_FOREACH(seg, &s->queues[queue].segments, at)
		if (seg->number == number)
			return true;
	return false;
}

static int
by_number(const void *a, const void *b)
{
	const struct spool_unknown_file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Lists the files of a queue, ascending, behind those that s->unknown has. 0 or a negative errno. */
static int
list(struct spool *s, enum spool_queue queue)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t n = s->n_unknown;

	if (dir == NULL) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		const char *number = strrchr(entry->d_name, '-');
		struct spool_unknown_file f = { .queue = queue }, *more;
		char name[80];

		if (number == NULL)
			continue;
		f.number = strtoull(number + 1, NULL, 10);
		name_of(queue, f.number, name);
		if (strcmp(entry->d_name, name) != 0)
			continue;
		more = realloc(s->unknown, (s->n_unknown + 1) * sizeof(*more));
		if (more == NULL) {
			r = -ENOMEM;
			break;
		}
		s->unknown = more;
		s->unknown[s->n_unknown++] = f;
	}
	closedir(dir);
	if (s->n_unknown > n)
		qsort(s->unknown + n, s->n_unknown - n, sizeof(*s->unknown), by_number);
	return r;
}

/*
 * Returns whether the next seqs of a file's head are in segments of the main queue, too, which a version has written
 * that knows its topics. Until then the state file alone has them, and an older version would not keep them there.
 */
static bool
has_seqs(const struct spool *s, const struct spool_segment_head *h)
{
	for (unsigned i = 0; i < h->n_topics; i++) {
		const struct spool_segment *seg;
		bool is_found = false;

		TAILQ_FOREACH(seg, &s->queues[SPOOL_MAIN].segments, at)
			for (unsigned t = 0; t < seg->n_topics && seg->number > h->number; t++)
				is_found = is_found || (seg->topics[t] < TOPIC_COUNT &&
				    strcmp(topic_name(seg->topics[t]), h->topics[i].name) == 0);
		if (!is_found)
			return false;
	}
	return true;
}

/* Counts a file's records. */
static void
count(struct spool *s, struct spool_unknown_file *f, const struct file_text *file, const struct spool_segment_head *h)
{
	struct spool_batch_head b;

	f->head = h->len;
	f->size = file->len;
	for (size_t at = h->len; batch_at(file, h, at, &b); at += spool_batch_head_size(h->n_topics) + b.len)
		for (unsigned i = 0; i < h->n_topics; i++)
			if (b.counts[i] > 0)
				f->records[topic_index(s, h->topics[i].name)] += b.counts[i];
}

/* Notes the next seqs, which no segment may have any more. */
static void
take_seqs(struct spool *s, const struct spool_segment_head *h)
{
	for (unsigned i = 0; i < h->n_topics; i++) {
		enum topic t = find_topic(h->topics[i].name);

		if (t < TOPIC_COUNT && h->topics[i].next_seq > s->next_seq[t])
			s->next_seq[t] = h->topics[i].next_seq;
	}
}

/* Notes which next seqs of topics of other versions a file has. */
static void
note_seqs(struct spool *s, const struct spool_segment_head *h)
{
	for (size_t i = 0; i < s->n_other_seqs; i++) {
		struct spool_other_seq *o = &s->other_seqs[i];

		for (unsigned t = 0; t < h->n_topics; t++)
			if (strcmp(o->name, h->topics[t].name) == 0 && h->topics[t].next_seq > o->kept_seq)
				o->kept_seq = h->topics[t].next_seq;
	}
}

/* A file that is read for what this version has of it. */
struct giving {
	struct spool *s;
	const struct file_text *file;
	const struct spool_segment_head *h;
	struct spool_recovery *recovery;
	enum topic topics[SPOOL_TOPICS_MAX];	/* of the file's; TOPIC_COUNT: unknown */
	bool is_segment_there;
	struct spool_unknown_build made;	/* the records of topics that this version knows */
	struct spool_unknown_build rest;
};

/* Returns whether the segment of which a record was set aside hands it out itself. */
static bool
is_handed_out(const struct giving *g, enum topic t, uint64_t number)
{
	const struct spool_queue_state *q = &g->s->queues[g->h->queue];

	return g->is_segment_there && number >= q->topics[t].done_below && !spool_is_skipped(q, t, number);
}

/* Counts the rest of a batch as damaged. good: its records, by topic, that are not. */
static void
count_damage(const struct giving *g, const struct spool_batch_head *b, const uint32_t *good, uint64_t bytes)
{
	g->recovery->corrupt_batches++;
	g->recovery->corrupt_bytes += bytes;
	for (unsigned i = 0; i < g->h->n_topics; i++) {
		if (b->counts[i] <= good[i])
			continue;
		if (g->topics[i] < TOPIC_COUNT)
			g->s->stats.dropped[g->topics[i]][SPOOL_DROP_CORRUPT] += b->counts[i] - good[i];
		else
			g->s->unknown_dropped[topic_index(g->s, g->h->topics[i].name)] += b->counts[i] - good[i];
	}
}

/* Puts each record of a batch, whose entries begin at an offset, where it belongs. 0 or -ENOMEM. */
static int
give_batch(struct giving *g, const struct spool_batch_head *b, size_t at)
{
	uint32_t good[SPOOL_TOPICS_MAX] = { 0 };
	size_t end = at + b->len;
	struct spool_entry e;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < b->entries; i++, at += e.len) {
		const uint8_t *from = (const uint8_t *)g->file->text + at;
		size_t len = end - at >= SPOOL_ENTRY_HEAD ? spool_entry_peek(from, g->h->n_topics) : 0;
		enum topic t;

		if (len == 0 || len > end - at || spool_entry_unpack(from, len, &e) < 0) {
			count_damage(g, b, good, end - at);
			break;
		}
		good[e.topic]++;
		t = g->topics[e.topic];
		if (t == TOPIC_COUNT)
			r = put(&g->rest, b->first + i, &e);
		else if (!is_handed_out(g, t, b->first + i))
			r = put(&g->made, g->made.head.first + g->made.records_all, &e);
	}
	return r;
}

/* Makes the next segment of its queue of the records that this version is to have. 0 or a negative errno. */
static int
make_segment(struct giving *g)
{
	struct spool_queue_state *q = &g->s->queues[g->h->queue];
	const struct spool_segment made = { .queue = g->h->queue, .number = g->made.head.number };
	char name[64];
	int r;

	if (g->made.records_all == 0)
		return 0;
	spool_segment_name(&made, name);
	r = write_build(g->s, name, &g->made);
	if (r < 0)
		return r;
	q->next_segment++;
	q->next_number += g->made.records_all;
	return 0;
}

/* Writes the file without what this version has of it, or removes it if no version needs it. */
static void
leave_rest(struct giving *g, const char *name)
{
	bool knows_all = true, has_moved = false;

	for (unsigned i = 0; i < g->h->n_topics; i++) {
		if (g->topics[i] == TOPIC_COUNT) {
			knows_all = false;
			continue;
		}
		has_moved = has_moved || g->h->topics[i].schema != 0;
		g->rest.head.topics[i].schema = 0;
	}
	if (knows_all && (g->h->queue != SPOOL_MAIN || g->made.records_all > 0 || has_seqs(g->s, g->h)))
		unlinkat(g->s->dir_fd, name, 0);
	else if (has_moved)
		(void)write_build(g->s, name, &g->rest);	/* if not written, they come again as redeliveries */
}

/* Gives back what this version knows of a file. 0 or -ENOMEM. */
static int
give_back(struct spool *s, const struct file_text *file, const struct spool_segment_head *h, const char *name,
    struct spool_recovery *recovery)
{
	struct spool_queue_state *q = &s->queues[h->queue];
	const struct spool_segment *needed = spool_needed_from(s);
	struct giving g = { .s = s, .file = file, .h = h, .recovery = recovery,
	    .is_segment_there = has_segment(s, h->queue, h->number), .made.head = *h, .rest.head = *h };
	struct spool_batch_head b;
	size_t at = h->len, head = spool_batch_head_size(h->n_topics);
	int r = 0;

	for (unsigned i = 0; i < h->n_topics; i++)
		g.topics[i] = find_topic(h->topics[i].name);
	g.made.head.number = q->next_segment;
	g.made.head.first = q->next_number;
	g.made.head.needed_from = needed != NULL && h->queue == SPOOL_MAIN ? needed->number : q->next_segment;
	for (; r == 0 && batch_at(file, h, at, &b); at += head + b.len)
		r = give_batch(&g, &b, at + head);
	end_batch(&g.made);
	end_batch(&g.rest);
	if (r == 0 && make_segment(&g) == 0)
		leave_rest(&g, name);
	bytes_done(&g.made.batches);
	bytes_done(&g.rest.batches);
	return r;
}

/* Gives back what this version knows of the files of a queue, or else counts them. 0 or a negative errno. */
static int
read_all(struct spool *s, enum spool_queue queue, bool is_return, struct spool_recovery *recovery)
{
	size_t from = s->n_unknown;
	int r = list(s, queue);

	for (size_t i = from; r == 0 && i < s->n_unknown; i++) {
		struct spool_unknown_file *f = &s->unknown[i];
		struct file_text file = { 0 };
		struct spool_segment_head h;
		char name[80];

		name_of(f->queue, f->number, name);
		if (load(s, f, &file, &h) == 0) {
			take_seqs(s, &h);
			if (is_return)
				r = give_back(s, &file, &h, name, recovery);
			else
				count(s, f, &file, &h);
			if (!is_return && queue == SPOOL_MAIN)
				note_seqs(s, &h);
		}
		file_text_done(&file);
	}
	if (is_return)
		s->n_unknown = from;
	return r;
}

int
spool_unknown_return(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery)
{
	return read_all(s, queue, true, recovery);
}

int
spool_unknown_count(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery)
{
	size_t from = s->n_unknown;
	int r = read_all(s, queue, false, recovery);

	for (size_t i = from; i < s->n_unknown; i++) {
		s->unknown_bytes += s->unknown[i].size;
		for (size_t t = 0; t < s->n_unknown_topics; t++)
			recovery->unknown += s->unknown[i].records[t];
	}
	return r;
}

void
spool_unknown_keep_seqs(struct spool *s)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];
	struct spool_unknown_build b = { .head = { .queue = SPOOL_MAIN, .number = q->next_segment,
	    .first = q->next_number, .needed_from = q->next_segment } };
	char name[80];

	for (size_t i = 0; i < s->n_other_seqs; i++) {
		const struct spool_other_seq *o = &s->other_seqs[i];
		struct spool_topic *topic = &b.head.topics[b.head.n_topics];

		if (o->next_seq <= o->kept_seq)
			continue;
		memcpy(topic->name, o->name, sizeof(topic->name));
		topic->next_seq = o->next_seq;
		b.head.n_topics++;
	}
	if (b.head.n_topics == 0)
		return;
	name_of(SPOOL_MAIN, b.head.number, name);
	if (write_build(s, name, &b) == 0) {
		q->next_segment++;
		return;
	}
	/* The slot that has been read is synced. */
	s->is_state_kept = true;
	if (s->generation_safe == 0)
		s->generation_safe = s->generation;
}

bool
spool_unknown_drop(struct spool *s)
{
	for (size_t i = 0; i < s->n_unknown; i++) {
		struct spool_unknown_file *f = &s->unknown[i];
		char name[80];
		int fd, r;

		if (f->size == f->head || disk_hangs(s->disk))
			continue;
		/* The head stays: no seq may be used twice. */
		name_of(f->queue, f->number, name);
		fd = disk_open(s->disk, s->dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (fd == -ETIMEDOUT)
			continue;
		r = fd < 0 ? fd : disk_truncate(s->disk, fd, f->head);
		if (r < 0 && r != -ETIMEDOUT)	/* a call that hangs has not failed */
			(void)disk_unlink(s->disk, s->dir_fd, name);
		if (fd >= 0)
			disk_close(s->disk, fd);
		for (size_t t = 0; t < s->n_unknown_topics; t++) {
			s->unknown_dropped[t] += f->records[t];
			f->records[t] = 0;
		}
		s->unknown_bytes -= f->size - f->head;
		f->size = f->head;
		return true;
	}
	return false;
}

void
spool_unknown_stats(const struct spool *s, struct spool_stats *ret)
{
	ret->n_unknown = 0;
	for (size_t t = 0; t < s->n_unknown_topics; t++) {
		struct spool_unknown a = { .topic = s->unknown_topics[t], .dropped = s->unknown_dropped[t] };

		for (size_t i = 0; i < s->n_unknown; i++)
			a.records += s->unknown[i].records[t];
		if (a.records > 0 || a.dropped > 0)
			ret->unknown[ret->n_unknown++] = a;
	}
}
