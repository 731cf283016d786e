/*
 * SPDX-License-Identifier: Apache-2.0
 * segment: one segment, as a file or as the same bytes in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/disk.h"
#include "spool/state.h"

static const char *const queue_names[SPOOL_QUEUES] = { "main", "usage" };

struct spool_segment *
spool_segment_new(struct spool *s, enum spool_queue queue, uint64_t number)
{
	struct spool_segment *seg = calloc(1, sizeof(*seg));

	if (seg == NULL)
		return NULL;
	seg->queue = queue;
	seg->number = number;
	seg->fd = -1;
	seg->first = s->queues[queue].next_number;
	seg->n_topics = TOPIC_COUNT;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		seg->topics[t] = t;
		seg->schemas[t] = s->batch_schemas[t];
	}
	return seg;
}

static void
close_fd(struct spool *s, struct spool_segment *seg)
{
	if (seg->fd < 0)
		return;
	disk_close(s->disk, seg->fd);
	seg->fd = -1;
	s->open_fds--;
}

/* Empties the window if it is on seg. */
static void
forget(struct spool_reader *r, const struct spool_segment *seg)
{
	if (r->seg == seg)
		r->seg = NULL;
}

void
spool_segment_free(struct spool *s, struct spool_segment *seg)
{
	if (seg == NULL)
		return;
	forget(&s->queues[seg->queue].cursor.reader, seg);
	for (int t = 0; t < TOPIC_COUNT; t++)
		forget(&s->queues[seg->queue].topics[t].cursor.reader, seg);
	close_fd(s, seg);
	bytes_done(&seg->memory);
	free(seg);
}

void
spool_file_name(enum spool_queue queue, uint64_t number, char name[64])
{
	snprintf(name, 64, "%s-%010" PRIu64 ".seg", queue_names[queue], number);
}

void
spool_segment_name(const struct spool_segment *seg, char name[64])
{
	spool_file_name(seg->queue, seg->number, name);
}

void
spool_segment_unlink(const struct spool *s, const struct spool_segment *seg)
{
	char name[64];

	spool_segment_name(seg, name);
	(void)disk_unlink(s->disk, s->dir_fd, name);
}

struct spool_segment *
spool_needed_from(const struct spool *s)
{
	struct spool_segment *seg;

	if (s->safe.seg != NULL)
		return s->safe.seg;
	TAILQ_FOREACH(seg, &s->queues[SPOOL_MAIN].segments, at)
		if (seg->has_wal)
			return seg;
	return NULL;
}

int
spool_segment_open(struct spool *s, struct spool_segment *seg, int flags)
{
	char name[64];
	int fd;

	if (seg->fd >= 0)
		return 0;
	spool_segment_name(seg, name);
	fd = disk_open(s->disk, s->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	seg->fd = fd;
	s->open_fds++;
	if (flags & O_CREAT)
		s->has_new_names = true;
	return 0;
}

void
spool_segment_close_idle(struct spool *s, struct spool_segment *seg)
{
	if (s->open_fds > SPOOL_FDS_KEPT && !seg->is_dirty && seg->is_on_disk)
		close_fd(s, seg);
}

/* Packs the head of a new segment. */
static size_t
pack_head(const struct spool *s, const struct spool_segment *seg, uint8_t *to)
{
	const struct spool_segment *needed = spool_needed_from(s);
	struct spool_segment_head h = {
		.queue = (uint16_t)seg->queue,
		.number = seg->number,
		.first = seg->first,
		.needed_from = needed != NULL && seg->queue == SPOOL_MAIN ? needed->number : seg->number,
		.n_topics = seg->n_topics,
	};

	for (int t = 0; t < TOPIC_COUNT; t++) {
		snprintf(h.topics[t].name, sizeof(h.topics[t].name), "%s", topic_name(t));
		h.topics[t].schema = seg->schemas[t];
		h.topics[t].next_seq = s->committed_seq[t];
	}
	return spool_segment_head_pack(to, &h);
}

static void
grown(struct spool *s, struct spool_segment *seg, size_t len)
{
	seg->size += len;
	s->bytes += len;
}

int
spool_segment_write(struct spool *s, struct spool_segment *seg, const void *batch, size_t len)
{
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];
	struct iovec iov[2] = { { head, 0 }, { (void *)(uintptr_t)batch, len } };
	int r;

	if (seg->size == 0) {
		r = spool_segment_open(s, seg, O_RDWR | O_CREAT | O_EXCL);
		if (r < 0)
			return r;
		iov[0].iov_len = pack_head(s, seg, head);
	} else {
		r = spool_segment_open(s, seg, O_RDWR);
		if (r < 0)
			return r;
		/* A batch in a file that was unlinked would be lost when the process ends. */
		r = disk_links(s->disk, seg->fd);
		if (r <= 0)
			return r == -ETIMEDOUT ? r : -ENOENT;
	}
	len += iov[0].iov_len;
	seg->start = seg->size == 0 ? iov[0].iov_len : seg->start;
	r = disk_append(s->disk, seg->fd, iov, 2, seg->size);
	if (r < 0) {
		/* If this fails too, readers skip the torn batch. What was appended too late is cut off. */
		if (r != -ETIMEDOUT && disk_truncate(s->disk, seg->fd, seg->size) < 0)
			seg->is_sealed = true;
		return r;
	}
	seg->is_on_disk = true;
	seg->is_dirty = true;
	grown(s, seg, len);
	return 0;
}

int
spool_segment_write_memory(struct spool *s, struct spool_segment *seg, const void *batch, size_t len)
{
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];
	size_t head_len = 0;

	if (seg->size == 0)
		head_len = pack_head(s, seg, head);
	if (bytes_reserve(&seg->memory, head_len + len) < 0)
		return -ENOMEM;
	(void)bytes_append(&seg->memory, head, head_len);
	(void)bytes_append(&seg->memory, batch, len);
	if (seg->size == 0)
		seg->start = head_len;
	s->memory_bytes += head_len + len;
	grown(s, seg, head_len + len);
	return 0;
}

/* Frees what is in memory of a segment that was written to its file. */
static void
now_on_disk(struct spool *s, struct spool_segment *seg)
{
	s->memory_bytes -= seg->size;
	bytes_done(&seg->memory);
	seg->is_on_disk = true;
	seg->is_dirty = true;
}

int
spool_segment_write_file(struct spool *s, struct spool_segment *seg)
{
	struct iovec iov = { seg->memory.data, seg->memory.len };
	int r = spool_segment_open(s, seg, O_RDWR | O_CREAT | O_EXCL);

	if (r < 0)
		return r;
	r = disk_append(s->disk, seg->fd, &iov, 1, 0);
	if (r < 0) {
		spool_segment_unlink(s, seg);
		close_fd(s, seg);
		return r;
	}
	now_on_disk(s, seg);
	return 0;
}

void
spool_segment_written(struct spool *s, struct spool_segment *seg, int fd)
{
	seg->fd = fd;
	s->open_fds++;
	s->has_new_names = true;
	now_on_disk(s, seg);
}

/* Fills the window from an offset on. */
static int
fill(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at, size_t len)
{
	size_t cap = len > SPOOL_READ_BYTES ? len : SPOOL_READ_BYTES;
	size_t want = seg->size - at < cap ? (size_t)(seg->size - at) : cap;
	int error = spool_segment_open(s, seg, O_RDWR);

	if (error == -EROFS || error == -EACCES)
		error = spool_segment_open(s, seg, O_RDONLY);
	if (error < 0)
		return error;
	if (r->seg != NULL && r->seg != seg)
		spool_segment_close_idle(s, r->seg);
	r->seg = NULL;
	if (r->cap < cap || (r->cap > SPOOL_READ_BYTES && len <= SPOOL_READ_BYTES)) {
		free(r->data);
		r->cap = 0;
		r->data = malloc(cap);
		if (r->data == NULL)
			return -ENOMEM;
		r->cap = cap;
	}
	r->len = 0;
	while (r->len < len) {
		ssize_t n = disk_read(s->disk, seg->fd, r->data + r->len, want - r->len, at + r->len);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -ENODATA;	/* the file was truncated */
		r->len += (size_t)n;
	}
	r->seg = seg;
	r->at = at;
	return 0;
}

int
spool_read(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    size_t len, const uint8_t **ret)
{
	int error;

	if (at > seg->size || len > seg->size - at)
		return -ENODATA;
	if (!seg->is_on_disk) {
		*ret = seg->memory.data + at;
		return 0;
	}
	if (r->seg != seg || at < r->at || at - r->at > r->len || len > r->len - (at - r->at)) {
		error = fill(s, r, seg, at, len);
		if (error < 0)
			return error;
	}
	*ret = r->data + (at - r->at);
	return 0;
}

void
spool_reader_done(struct spool_reader *r)
{
	free(r->data);
	*r = (struct spool_reader){ 0 };
}
