/*
 * SPDX-License-Identifier: Apache-2.0
 * worker: a thread for calls that may take long.
 */
#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"

struct worker {
	pthread_t	 thread;
	pthread_mutex_t	 mutex;
	pthread_cond_t	 changed;	/* one of the members below */
	bool		 is_woken;
	bool		 is_stopping;
	bool		 has_ended;
	bool		 is_left;	/* the thread frees w */
	void		(*run)(void *arg);
	void		*arg;		/* the caller's */
};

static void
free_worker(struct worker *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->mutex);
	free(w);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	bool is_left;

	pthread_mutex_lock(&w->mutex);
	for (;;) {
		while (!w->is_woken && !w->is_stopping)
			pthread_cond_wait(&w->changed, &w->mutex);
		if (!w->is_woken || w->is_left)
			break;
		w->is_woken = false;
		pthread_mutex_unlock(&w->mutex);
		w->run(w->arg);
		pthread_mutex_lock(&w->mutex);
	}
	w->has_ended = true;
	is_left = w->is_left;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	if (is_left)
		free_worker(w);
	return NULL;
}

int
worker_start(void (*run)(void *arg), void *arg, struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->run = run;
	w->arg = arg;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* Signals are delivered to the loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		free_worker(w);
		return -r;
	}
	*ret = w;
	return 0;
}

void
worker_wake(struct worker *w)
{
	pthread_mutex_lock(&w->mutex);
	w->is_woken = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

bool
worker_stop(struct worker *w, int timeout_ms)
{
	const struct timespec until = clock_deadline(timeout_ms > 0 ? (uint32_t)timeout_ms : 0);
	bool has_ended;
	int r = 0;

	if (w == NULL)
		return true;
	pthread_mutex_lock(&w->mutex);
	w->is_stopping = true;
	pthread_cond_broadcast(&w->changed);
	while (!w->has_ended && timeout_ms < 0)
		pthread_cond_wait(&w->changed, &w->mutex);
	while (!w->has_ended && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&w->changed, &w->mutex, &until);
	has_ended = w->has_ended;
	w->is_left = !has_ended;
	if (!has_ended)
		pthread_detach(w->thread);
	pthread_mutex_unlock(&w->mutex);
	if (has_ended) {
		pthread_join(w->thread, NULL);
		free_worker(w);
	}
	return has_ended;
}

void
worker_call_begin(struct worker_call *c, const char *what)
{
	__atomic_store_n(&c->since_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
	__atomic_store_n(&c->what, what, __ATOMIC_RELEASE);
}

void
worker_call_end(struct worker_call *c)
{
	__atomic_store_n(&c->what, NULL, __ATOMIC_RELEASE);
}

const char *
worker_call_now(const struct worker_call *c, uint64_t *ret_since_ns)
{
	const char *what = __atomic_load_n(&c->what, __ATOMIC_ACQUIRE);

	*ret_since_ns = __atomic_load_n(&c->since_ns, __ATOMIC_RELAXED);
	return what;
}
