/*
 * SPDX-License-Identifier: Apache-2.0
 * behind: writes to a disk that is slow behind the loop. Batches are kept in memory meanwhile; once a second all of
 * them, and the state file, are written by the disk's thread, for which the loop does not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/file.h"
#include "spool/state.h"

#define FAST_NS UINT64_C(100000000)	/* of a disk that the loop can wait for again */

/* A segment, which may be gone when it is written. */
struct part {
	enum spool_queue queue;
	uint64_t	 number;
	size_t		 at;		/* its bytes in data */
	size_t		 len;
	int		 fd;		/* of the file, once it is written; owned */
};

/* The thread has it until it has returned. */
struct spool_behind {
	bool		 is_over;	/* atomic: the loop or the thread needs it no more; the second one frees it */
	int		 state_fd;	/* owned; -1: the state file is not written */
	uint8_t		 slot[SPOOL_SLOT];
	uint64_t	 slot_at;
	struct bytes	 data;
	struct part	*parts;		/* owned */
	size_t		 n;
	size_t		 written;	/* parts */
	int		 result;	/* 0 or a negative errno */
	uint64_t	 took_ns;
};

static void
leave(struct spool_behind *b)
{
	if (!__atomic_exchange_n(&b->is_over, true, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < b->written; i++)
		if (b->parts[i].fd >= 0)
			close(b->parts[i].fd);
	if (b->state_fd >= 0)
		close(b->state_fd);
	bytes_done(&b->data);
	free(b->parts);
	free(b);
}

/* Writes the file of a segment. 0, or a negative errno without the file. */
static int
write_part(int dir_fd, struct part *p, const uint8_t *data)
{
	char name[64];
	int fd, r;

	spool_file_name(p->queue, p->number, name);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = file_write(fd, data + p->at, p->len, 0);
	if (r < 0) {
		unlinkat(dir_fd, name, 0);
		close(fd);
		return r;
	}
	p->fd = fd;
	return 0;
}

/* -ENOENT: the path no longer names the directory. */
static int
look(int dir_fd, const char *path)
{
	struct stat ours, named;

	if (fstat(dir_fd, &ours) < 0)
		return -errno;
	return stat(path, &named) == 0 && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino ? 0 : -ENOENT;
}

/* A disk_function. */
static int
write_all(int dir_fd, const char *path, const void *data, size_t len)
{
	struct spool_behind *b = *(struct spool_behind *const *)data;
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int r = look(dir_fd, path);

	(void)len;
	if (r == 0 && b->state_fd >= 0)
		r = file_write(b->state_fd, b->slot, SPOOL_SLOT, b->slot_at);
	while (r == 0 && b->written < b->n) {
		r = write_part(dir_fd, &b->parts[b->written], b->data.data);
		b->written += r == 0;
	}
	b->result = r;
	b->took_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	leave(b);
	return 0;
}

/* Copies the segments in memory, to which nothing is added any more. False: no memory. */
static bool
copy_segments(struct spool *s, struct spool_behind *b)
{
	struct spool_segment *seg;
	size_t n = 0;

	for (int q = 0; q < SPOOL_QUEUES; q++)
		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			n += !seg->is_on_disk;
	b->parts = calloc(n > 0 ? n : 1, sizeof(*b->parts));
	if (b->parts == NULL || bytes_reserve(&b->data, s->memory_bytes) < 0)
		return false;
	/* As in spool_disk_retry(): the main queue, which has the ring's offset, comes last. */
	for (int q = SPOOL_QUEUES - 1; q >= 0; q--) {
		TAILQ_FOREACH(seg, &s->queues[q].segments, at) {
			if (seg->is_on_disk)
				continue;
			seg->is_sealed = true;
			b->parts[b->n++] = (struct part){ .queue = seg->queue, .number = seg->number, .at = b->data.len,
			    .len = seg->memory.len, .fd = -1 };
			(void)bytes_append(&b->data, seg->memory.data, seg->memory.len);
		}
	}
	return true;
}

static int
begin(struct spool *s)
{
	struct spool_behind *b = calloc(1, sizeof(*b));
	int r = -ENOMEM;

	if (b == NULL)
		return r;
	if (!spool_floor_has(s, s->memory_bytes)) {
		free(b);
		return -ENOSPC;
	}
	b->state_fd = -1;
	if (copy_segments(s, b)) {
		if (spool_marks_pack(s, b->slot, &b->slot_at))
			b->state_fd = fcntl(s->state_fd, F_DUPFD_CLOEXEC, 0);
		r = disk_begin(s->disk, s->dir_fd, s->dir, &b, sizeof(b), write_all);
	}
	if (r < 0) {
		s->is_state_moved = true;
		b->is_over = true;
		leave(b);
		return r;
	}
	/* It has the next seqs of a batch in memory only once it is written. */
	if (b->state_fd >= 0) {
		s->is_state_moved = false;
		s->is_state_behind = true;
	}
	s->behind = b;
	return 0;
}

static struct spool_segment *
find(struct spool *s, const struct part *p)
{
	struct spool_segment *seg;

	TAILQ_FOREACH(seg, &s->queues[p->queue].segments, at)
		if (seg->number == p->number)
			return seg;
	return NULL;
}

/* Takes over what was written. 0 or the negative errno of what was not. */
static int
finish(struct spool *s, uint64_t *ret_took_ns)
{
	struct spool_behind *b = s->behind;
	int r = b->result;

	s->behind = NULL;
	for (size_t i = 0; i < b->written; i++) {
		struct part *p = &b->parts[i];
		struct spool_segment *seg = find(s, p);
		char name[64];

		if (seg != NULL) {
			spool_segment_written(s, seg, p->fd);
			p->fd = -1;
			continue;
		}
		spool_file_name(p->queue, p->number, name);
		(void)disk_unlink(s->disk, s->dir_fd, name);
	}
	s->is_state_moved = s->is_state_moved || (r < 0 && b->state_fd >= 0);
	s->is_state_behind = s->is_state_behind && s->is_state_moved;
	*ret_took_ns = b->took_ns;
	leave(b);
	return r;
}

int
spool_behind_work(struct spool *s)
{
	uint64_t took_ns;
	int r;

	if (disk_hangs(s->disk))
		return -ETIMEDOUT;
	if (s->behind != NULL) {
		r = finish(s, &took_ns);
		if (r < 0 || took_ns < FAST_NS)
			return r;
	}
	r = begin(s);
	return r < 0 ? r : -ETIMEDOUT;
}

void
spool_behind_close(struct spool *s, uint32_t timeout_ms)
{
	const int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms;

	/* The round that is in progress may have begun before the last batches. */
	while (s->is_behind) {
		int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
		uint64_t took_ns;

		disk_settle(s->disk, left_ms > 0 ? (uint32_t)left_ms : 0);
		if (disk_hangs(s->disk))
			return;
		s->is_behind = (s->behind == NULL || finish(s, &took_ns) == 0) && s->memory_bytes > 0 && begin(s) == 0;
	}
}

void
spool_behind_forget(struct spool *s)
{
	if (s->behind != NULL)
		leave(s->behind);
	s->behind = NULL;
}
