/*
 * SPDX-License-Identifier: Apache-2.0
 * opening: opens the lake on the thread of its writer (writer.h), while the writer's caller waits for a while.
 *
 * The disk may hang, and the folder may still be in the making by another process. An attempt that has failed may be
 * repeated, until the lake is open.
 */
#ifndef SLUICE_LAKE_OPENING_H
#define SLUICE_LAKE_OPENING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lake_appender;
struct worker_call;

struct lake_opening {
	/* The thread's. */
	struct worker_call *call;	/* the writer's */
	pid_t		 maker;		/* 0: none, or it has ended */
	int		 maker_error;
	int		 error;		/* of the last attempt; 0: the lake is open */

	pthread_mutex_t	 mutex;		/* of the members below */
	pthread_cond_t	 is_tried;
	bool		 was_tried;	/* error is that of an attempt */
	bool		 is_open;
};

/*
 * maker: a child process that makes the lake's folder, and exits with 0 or an errno; 0: none. call: outlives o, and
 * notes that the thread waits.
 */
void lake_opening_init(struct lake_opening *o, pid_t maker, struct worker_call *call);
void lake_opening_done(struct lake_opening *o);
/*
 * Opens the lake, unless it is open, once its maker has ended. For the thread, or for a caller that waits for the disk
 * itself. 0, or a negative errno: that of the maker is the error of each attempt.
 */
int lake_opening_try(struct lake_opening *o, struct lake_appender *a);
/* Waits until the thread has made an attempt. 0, or its negative errno; 0 also if it has made none after wait_ms. */
int lake_opening_wait(struct lake_opening *o, uint32_t wait_ms);
/* Returns whether the lake is open; for any thread. */
bool lake_opening_is_open(struct lake_opening *o);

#endif
