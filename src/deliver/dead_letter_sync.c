/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_sync: a thread that waits in fdatasync(2) for dead letters.
 */
#include "deliver/dead_letter_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/worker.h"

enum {
	STOP_MS = 5000,
};

struct fds {
	int	*list;		/* owned, and what is in it */
	size_t	 n, size;
};

struct dead_letter_syncer {
	struct worker	*worker;	/* owned; NULL: not started yet */
	struct fds	 next;
	size_t		 next_letters;
	uint64_t	 round;		/* number of the next one */
	bool		 is_busy;	/* a round has begun and was not polled */
	size_t		 letters;	/* of that round */
	struct fds	 fds;		/* used by the thread while is_busy, as is the next one */
	int		 error;
	int		 is_done;	/* atomic */
};

struct dead_letter_syncer *
dead_letter_syncer_new(void)
{
	struct dead_letter_syncer *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->round = 1;
	return s;
}

static void
close_all(struct fds *fds)
{
	for (size_t i = 0; i < fds->n; i++)
		close(fds->list[i]);
	fds->n = 0;
}

void
dead_letter_syncer_free(struct dead_letter_syncer *s)
{
	if (s == NULL)
		return;
	if (s->worker != NULL && !worker_stop(s->worker, STOP_MS))
		return;		/* the thread still uses s */
	close_all(&s->fds);
	close_all(&s->next);
	free(s->fds.list);
	free(s->next.list);
	free(s);
}

uint64_t
dead_letter_syncer_round(const struct dead_letter_syncer *s)
{
	return s->round;
}

int
dead_letter_syncer_add(struct dead_letter_syncer *s, int fd)
{
	struct fds *fds = &s->next;
	int own;

	if (fds->n == fds->size) {
		size_t size = fds->size > 0 ? 2 * fds->size : 8;
		int *grown = realloc(fds->list, size * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		fds->list = grown;
		fds->size = size;
	}
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	fds->list[fds->n++] = own;
	return 0;
}

/* Runs on the thread. */
static void
run(void *arg)
{
	struct dead_letter_syncer *s = arg;

	s->error = 0;
	for (size_t i = 0; i < s->fds.n; i++) {
		/* EINVAL: this file system cannot sync a folder. */
		if (fdatasync(s->fds.list[i]) < 0 && errno != EINVAL && s->error == 0)
			s->error = -errno;
	}
	close_all(&s->fds);
	__atomic_store_n(&s->is_done, 1, __ATOMIC_RELEASE);
}

static void
begin(struct dead_letter_syncer *s)
{
	struct fds empty = s->fds;

	if (s->is_busy || s->next_letters == 0)
		return;
	/* Without a thread the letters wait, and the next poll tries again. */
	if (s->worker == NULL && worker_start(run, s, &s->worker) < 0)
		return;
	s->fds = s->next;
	s->next = empty;
	s->letters = s->next_letters;
	s->next_letters = 0;
	s->round++;
	s->is_busy = true;
	s->is_done = 0;
	worker_wake(s->worker);
}

void
dead_letter_syncer_put(struct dead_letter_syncer *s)
{
	s->next_letters++;
	begin(s);
}

size_t
dead_letter_syncer_poll(struct dead_letter_syncer *s, int *ret_error)
{
	size_t n = 0;

	if (s->is_busy && __atomic_load_n(&s->is_done, __ATOMIC_ACQUIRE)) {
		s->is_busy = false;
		n = s->letters;
		*ret_error = s->error;
	}
	begin(s);
	return n;
}
