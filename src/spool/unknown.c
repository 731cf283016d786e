/*
 * SPDX-License-Identifier: Apache-2.0
 * unknown: keeps records of topics that this version does not know, which a later version wrote before a downgrade, for
 * the next version that knows them. All other records of the same segments are delivered.
 *
 * What is set aside of a segment is a file of the same format: the same head, with the next seq of each topic, and a
 * batch for each run of such records, with their numbers. The head alone, of the last segment, keeps a later version
 * from using a seq twice. A version that knows a topic of the records makes a segment of the file.
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

#define PREFIX "unknown-"
#define RUN_BYTES (1u << 20)
#define FILE_MAX ((size_t)256 << 20)	/* more than a segment has */

struct spool_unknown_build {
	const struct spool_segment *seg;	/* the spool's */
	struct spool_segment_head head;
	struct bytes batches;			/* owned; the last one's head is packed when it ends */
	size_t batch_at;
	struct spool_batch_head batch;		/* no records: none has begun */
	uint64_t records[SPOOL_TOPICS_MAX];
};

static void
name_of(enum spool_queue queue, uint64_t number, char name[80])
{
	const struct spool_segment seg = { .queue = queue, .number = number };
	char segment[64];

	spool_segment_name(&seg, segment);
	snprintf(name, 80, PREFIX "%s", segment);
}

static bool
is_known(const char *topic)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (strcmp(topic, topic_name(t)) == 0)
			return true;
	return false;
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
	if (r < 0) {
		free(b);
		return r;
	}
	b->seg = seg;
	*ret = b;
	return 0;
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

int
spool_unknown_put(struct spool_unknown_build *b, uint64_t number, const struct spool_entry *e)
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
		    .offset = b->head.len + b->batches.len, .first = number };
		b->batches.len += head;
	}
	spool_entry_pack(b->batches.data + b->batches.len, e);
	b->batches.len += e->len;
	b->batch.len += (uint32_t)e->len;
	b->batch.entries++;
	b->batch.records++;
	b->batch.counts[e->topic]++;
	b->records[e->topic]++;
	if (e->seq >= b->head.topics[e->topic].next_seq)
		b->head.topics[e->topic].next_seq = e->seq + 1;
	return 0;
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

void
spool_unknown_end(struct spool *s, struct spool_unknown_build *b, bool is_last)
{
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];
	char name[80];
	int r = 0;

	if (b == NULL)
		return;
	end_batch(b);
	name_of(b->seg->queue, b->seg->number, name);
	if (faccessat(s->dir_fd, name, F_OK, 0) < 0 &&
	    (b->batches.len > 0 || (is_last && b->seg->queue == SPOOL_MAIN)))
		r = write_whole(s, name, head, spool_segment_head_pack(head, &b->head), &b->batches);
	for (unsigned i = 0; i < b->head.n_topics && r < 0; i++)
		if (b->records[i] > 0)
			s->unknown_dropped[topic_index(s, b->head.topics[i].name)] += b->records[i];
	spool_unknown_forget(b);
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

static bool
has_segment(const struct spool *s, enum spool_queue queue, uint64_t number)
{
	const struct spool_segment *seg;

	TAILQ_FOREACH(seg, &s->queues[queue].segments, at)
		if (seg->number == number)
			return true;
	return false;
}

/*
 * Makes the next segment of its queue of a file, without the records that its own segment still hands out. 0 or a
 * negative errno.
 */
static int
make_segment(struct spool *s, const struct file_text *file, struct spool_segment_head h)
{
	struct spool_queue_state *q = &s->queues[h.queue];
	bool is_there = has_segment(s, h.queue, h.number);
	const struct spool_segment *needed = spool_needed_from(s);
	const struct spool_segment made = { .queue = h.queue, .number = q->next_segment };
	size_t head = spool_batch_head_size(h.n_topics), next;
	uint8_t packed[SPOOL_SEGMENT_HEAD_MAX];
	uint64_t first = q->next_number;
	struct spool_batch_head b;
	struct bytes batches = { 0 };
	char name[64];
	int r = 0;

	for (size_t at = h.len; r == 0 && batch_at(file, &h, at, &b); at = next) {
		next = at + head + b.len;
		if (is_there && b.first >= q->done_below)
			continue;
		b.segment = made.number;
		b.offset = h.len + batches.len;
		b.first = first;
		first += b.records;
		r = bytes_reserve(&batches, head + b.len);
		if (r < 0)
			break;
		spool_batch_head_pack(batches.data + batches.len, &b, h.n_topics);
		batches.len += head;
		(void)bytes_append(&batches, file->text + at + head, b.len);
	}
	h.number = made.number;
	h.first = q->next_number;
	h.needed_from = needed != NULL && h.queue == SPOOL_MAIN ? needed->number : made.number;
	spool_segment_name(&made, name);
	if (r == 0)
		r = write_whole(s, name, packed, spool_segment_head_pack(packed, &h), &batches);
	if (r == 0) {
		q->next_segment++;
		q->next_number = first;
	}
	bytes_done(&batches);
	return r;
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

/* Counts a file's records. Returns true if this version is to have them, or needs none of it any more. */
static bool
count(struct spool *s, struct spool_unknown_file *f, const struct file_text *file, const struct spool_segment_head *h)
{
	bool is_wanted = false, knows_all = true, has_records = false;
	struct spool_batch_head b;

	f->head = h->len;
	f->size = file->len;
	for (unsigned i = 0; i < h->n_topics; i++)
		knows_all = knows_all && is_known(h->topics[i].name);
	for (size_t at = h->len; batch_at(file, h, at, &b); at += spool_batch_head_size(h->n_topics) + b.len) {
		for (unsigned i = 0; i < h->n_topics; i++) {
			if (b.counts[i] == 0)
				continue;
			has_records = true;
			is_wanted = is_wanted || is_known(h->topics[i].name);
			f->records[topic_index(s, h->topics[i].name)] += b.counts[i];
		}
	}
	return is_wanted || (!has_records && knows_all && (h->queue != SPOOL_MAIN || has_seqs(s, h)));
}

/* Notes the next seqs, which no segment may have any more. */
static void
take_seqs(struct spool *s, const struct spool_segment_head *h)
{
	for (unsigned i = 0; i < h->n_topics; i++)
		for (int t = 0; t < TOPIC_COUNT; t++)
			if (strcmp(h->topics[i].name, topic_name(t)) == 0 && h->topics[i].next_seq > s->next_seq[t])
				s->next_seq[t] = h->topics[i].next_seq;
}

/*
 * Reads the files of a queue. With is_return makes segments of those that this version knows a topic of, and removes
 * what it needs no more; else counts them. 0 or a negative errno.
 */
static int
read_all(struct spool *s, enum spool_queue queue, bool is_return)
{
	size_t from = s->n_unknown, n = from;
	int r = list(s, queue);

	for (size_t i = from; i < s->n_unknown; i++) {
		struct spool_unknown_file f = s->unknown[i];
		struct file_text file = { 0 };
		struct spool_segment_head h;
		bool is_kept = true;
		char name[80];

		name_of(f.queue, f.number, name);
		if (r == 0 && load(s, &f, &file, &h) == 0) {
			take_seqs(s, &h);
			if (count(s, &f, &file, &h) && is_return)
				is_kept = f.size > f.head && make_segment(s, &file, h) < 0;
		}
		if (!is_kept)
			unlinkat(s->dir_fd, name, 0);
		else if (!is_return)
			s->unknown[n++] = f;
		file_text_done(&file);
	}
	s->n_unknown = n;
	return r;
}

int
spool_unknown_return(struct spool *s, enum spool_queue queue)
{
	return read_all(s, queue, true);
}

int
spool_unknown_count(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery)
{
	size_t from = s->n_unknown;
	int r = read_all(s, queue, false);

	for (size_t i = from; i < s->n_unknown; i++) {
		s->unknown_bytes += s->unknown[i].size;
		for (size_t t = 0; t < s->n_unknown_topics; t++)
			recovery->unknown += s->unknown[i].records[t];
	}
	return r;
}

bool
spool_unknown_drop(struct spool *s)
{
	for (size_t i = 0; i < s->n_unknown; i++) {
		struct spool_unknown_file *f = &s->unknown[i];
		char name[80];
		int fd;

		if (f->size == f->head || disk_hangs(s->disk))
			continue;
		/* The head stays: no seq may be used twice. */
		name_of(f->queue, f->number, name);
		fd = disk_open(s->disk, s->dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (fd < 0 || disk_truncate(s->disk, fd, f->head) < 0)
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
