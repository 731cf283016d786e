/*
 * SPDX-License-Identifier: Apache-2.0
 * sync: the thread that waits in fdatasync(2) so that the loop does not. It gets duplicates of file descriptors
 * and returns one errno; everything else is used by the loop's thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/worker.h"
#include "spool/state.h"

enum {
	FDS = 9,		/* descriptors of one round: segments, the directory and the state file */
};

struct spool_syncer {
	struct worker	*worker;	/* owned */
	int		 fds[FDS];	/* used by the thread from its wake to is_done, as are the next two */
	int		 n_fds;
	int		 error;
	int		 is_taken;	/* atomic; set by the one that closes the fds: the thread, or the loop */
	int		 is_done;	/* atomic */
	void		(*on_synced)(void *arg);	/* the spool's options, as the next one; NULL: none; atomic */
	void		*on_synced_arg;
	bool		 is_busy;	/* used by the loop: a round is requested and not yet processed */
};

/* Syncs and closes them. 0, or the first error. */
static int
sync_fds(int *fds, int n)
{
	int first = 0;

	for (int i = 0; i < n; i++) {
		/* EINVAL: this file system cannot sync a directory. */
		if (fdatasync(fds[i]) < 0 && errno != EINVAL && first == 0)
			first = -errno;
		close(fds[i]);
	}
	return first;
}

static void
run(void *arg)
{
	struct spool_syncer *y = arg;
	void (*on_synced)(void *arg);

	if (__atomic_exchange_n(&y->is_taken, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	y->error = sync_fds(y->fds, y->n_fds);
	__atomic_store_n(&y->is_done, 1, __ATOMIC_RELEASE);
	on_synced = __atomic_load_n(&y->on_synced, __ATOMIC_ACQUIRE);
	if (on_synced != NULL)
		on_synced(y->on_synced_arg);
}

int
spool_sync_start(struct spool *s)
{
	struct spool_syncer *y = calloc(1, sizeof(*y));
	int r;

	if (y == NULL)
		return -ENOMEM;
	y->on_synced = s->on_synced;
	y->on_synced_arg = s->on_synced_arg;
	r = worker_start(run, y, &y->worker);
	if (r < 0) {
		free(y);
		return r;
	}
	s->syncer = y;
	return 0;
}

/* Applies the result of a round to the batches in memory, of which the state file has the next seqs. */
static void
finish_state(struct spool *s, int error)
{
	struct spool_segment *seg;

	if (!s->is_state_syncing)
		return;
	s->is_state_syncing = false;
	if (error == 0)
		s->generation_safe = s->generation_syncing;
	for (int q = 0; q < SPOOL_QUEUES && error == 0; q++)
		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			seg->seqs_to = seg->seqs_syncing_to;
	/* What has changed since the round began was not written. */
	if (s->is_state_behind)
		spool_marks_cover(s);
	s->has_state_failed = s->has_state_failed || error < 0;
}

/* Applies the result of a round to its segments. */
static void
finish(struct spool *s, int error)
{
	struct spool_segment *seg;

	finish_state(s, error);
	if (error == 0 && s->is_round_enough && !s->is_state_needed && !s->is_state_kept)
		s->generation_safe = 0;

	for (int q = 0; q < SPOOL_QUEUES; q++) {
		TAILQ_FOREACH(seg, &s->queues[q].segments, at) {
			/* A failed sync is not repeated: the kernel may have dropped the dirty pages. */
			if (seg->is_syncing && error < 0)
				seg->is_sealed = seg->has_sync_failed = true;
			else if (seg->is_syncing)
				seg->synced_to = seg->syncing_to;
			seg->is_syncing = false;
			/* The descriptor had to stay open while the segment was dirty. */
			if (TAILQ_NEXT(seg, at) != NULL)
				spool_segment_close_idle(s, seg);
		}
	}
	s->stats.syncs++;
	s->sync_failed = error;
	if (error < 0) {
		s->stats.write_errors++;
		s->has_new_names = true;
	}
}

/* Duplicates the state file's descriptor, if batches are in memory whose next seqs it has since the last round. */
static int
gather_state(struct spool *s)
{
	struct spool_segment *seg;
	bool is_due = false;
	int fd;

	for (int q = 0; q < SPOOL_QUEUES && s->memory_bytes > 0; q++)
		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			is_due = is_due || (!seg->is_on_disk && seg->seqs_to < seg->size);
	if (!is_due || s->is_state_behind || s->has_state_failed || s->state_fd < 0)
		return -1;
	fd = fcntl(s->state_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	for (int q = 0; q < SPOOL_QUEUES; q++)
		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			seg->seqs_syncing_to = seg->size;
	s->is_state_syncing = true;
	s->generation_syncing = s->generation;
	return fd;
}

/* Duplicates the descriptors of dirty segments, and the directory's if files were created; and the state file's. */
static int
gather(struct spool *s, int fds[FDS])
{
	struct spool_segment *seg;
	int n = 0, fd;

	s->is_round_enough = !s->is_state_needed;
	for (int q = 0; q < SPOOL_QUEUES; q++) {
		TAILQ_FOREACH(seg, &s->queues[q].segments, at) {
			if (!seg->is_dirty)
				continue;
			fd = seg->fd >= 0 && n < FDS - 2 ? fcntl(seg->fd, F_DUPFD_CLOEXEC, 0) : -1;
			if (fd < 0) {
				s->is_round_enough = false;
				continue;
			}
			fds[n++] = fd;
			seg->is_dirty = false;
			seg->is_syncing = true;
			seg->syncing_to = seg->size;
		}
	}
	if (n > 0 && s->has_new_names && (fd = fcntl(s->dir_fd, F_DUPFD_CLOEXEC, 0)) >= 0) {
		fds[n++] = fd;
		s->has_new_names = false;
	}
	fd = gather_state(s);
	if (fd >= 0)
		fds[n++] = fd;
	return n;
}

void
spool_sync_poll(struct spool *s, bool is_due)
{
	struct spool_syncer *y = s->syncer;

	if (y == NULL)
		return;
	if (y->is_busy && __atomic_load_n(&y->is_done, __ATOMIC_ACQUIRE)) {
		y->is_busy = false;
		finish(s, y->error);
	}
	if (y->is_busy || !is_due)
		return;
	y->n_fds = gather(s, y->fds);
	if (y->n_fds == 0)
		return;
	y->is_busy = true;
	s->synced_ns = s->now_ns;
	y->is_taken = y->is_done = 0;
	worker_wake(y->worker);
}

void
spool_sync_stop(struct spool *s)
{
	struct spool_syncer *y = s->syncer;

	if (y == NULL)
		return;
	s->syncer = NULL;
	/* If the disk hangs, so does the thread, or it soon does: it keeps y. */
	if (!worker_stop(y->worker, disk_hangs(s->disk) ? 0 : -1)) {
		__atomic_store_n(&y->on_synced, NULL, __ATOMIC_RELEASE);
		/* Left alone, it begins no round any more. */
		if (y->is_busy && __atomic_exchange_n(&y->is_taken, 1, __ATOMIC_ACQ_REL) == 0)
			for (int i = 0; i < y->n_fds; i++)
				disk_close(s->disk, y->fds[i]);
		return;
	}
	if (y->is_busy)
		finish(s, y->error);
	free(y);
}

int
spool_sync_all(struct spool *s)
{
	int fds[FDS], n, r, first = 0;

	spool_sync_stop(s);
	if (disk_hangs(s->disk))
		return -ETIMEDOUT;
	while ((n = gather(s, fds)) > 0) {
		r = sync_fds(fds, n);
		finish(s, r);
		if (first == 0)
			first = r;
	}
	return first;
}
