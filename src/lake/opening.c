/*
 * SPDX-License-Identifier: Apache-2.0
 * opening: opens the lake on the thread of its writer, once the process that makes its folder has ended.
 */
#include "lake/opening.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/worker.h"
#include "lake/appender.h"

void
lake_opening_init(struct lake_opening *o, pid_t maker, struct worker_call *call)
{
	pthread_condattr_t monotonic;

	*o = (struct lake_opening){ .call = call, .maker = maker };
	pthread_mutex_init(&o->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&o->is_tried, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void
lake_opening_done(struct lake_opening *o)
{
	pthread_cond_destroy(&o->is_tried);
	pthread_mutex_destroy(&o->mutex);
}

/* Waits for the process that makes the folder. 0 or a negative errno. */
static int
wait_for_maker(struct lake_opening *o)
{
	int status = 0;
	pid_t ended;

	if (o->maker == 0)
		return o->maker_error;
	do
		ended = waitpid(o->maker, &status, 0);
	while (ended < 0 && errno == EINTR);
	o->maker = 0;
	if (ended < 0)
		o->maker_error = -errno;
	else
		o->maker_error = WIFEXITED(status) ? -WEXITSTATUS(status) : -ECANCELED;
	return o->maker_error;
}

int
lake_opening_try(struct lake_opening *o, struct lake_appender *a)
{
	if (o->is_open)
		return 0;
	worker_call_begin(o->call, "opening the folder");
	o->error = wait_for_maker(o);
	if (o->error == 0)
		o->error = lake_appender_open(a);
	worker_call_end(o->call);
	pthread_mutex_lock(&o->mutex);
	o->is_open = o->error == 0;
	o->was_tried = true;
	pthread_cond_signal(&o->is_tried);
	pthread_mutex_unlock(&o->mutex);
	return o->error;
}

int
lake_opening_wait(struct lake_opening *o, uint32_t wait_ms)
{
	const struct timespec until = clock_deadline(wait_ms);
	int r = 0;

	pthread_mutex_lock(&o->mutex);
	while (!o->was_tried && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&o->is_tried, &o->mutex, &until);
	r = o->was_tried ? o->error : 0;
	pthread_mutex_unlock(&o->mutex);
	return r;
}

bool
lake_opening_is_open(struct lake_opening *o)
{
	bool is_open;

	pthread_mutex_lock(&o->mutex);
	is_open = o->is_open;
	pthread_mutex_unlock(&o->mutex);
	return is_open;
}
