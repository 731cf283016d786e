/*
 * SPDX-License-Identifier: Apache-2.0
 * c11_threads: C11's threads over POSIX threads, for ThreadSanitizer, which supports only those and crashes in a
 * thread of thrd_create(3), which librdkafka uses. Linked into the tests of such a build before the C library.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t) &&
    sizeof(thrd_t) == sizeof(pthread_t), "glibc's types are the same");

struct start {
	thrd_start_t run;
	void *arg;
};

static int
result(int error)
{
	return error == 0 ? thrd_success : error == EBUSY ? thrd_busy : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

static void *
run(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	return (void *)(intptr_t)s.run(s.arg);
}

int
thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
	struct start *s = malloc(sizeof(*s));
	int error;

	if (s == NULL)
		return thrd_nomem;
	*s = (struct start){ function, arg };
	error = pthread_create(thread, NULL, run, s);
	if (error != 0)
		free(s);
	return result(error);
}

int
thrd_join(thrd_t thread, int *ret)
{
	void *value = NULL;
	int error = pthread_join(thread, &value);

	if (ret != NULL)
		*ret = (int)(intptr_t)value;
	return result(error);
}

int
thrd_detach(thrd_t thread)
{
	return result(pthread_detach(thread));
}

int
mtx_init(mtx_t *m, int type)
{
	pthread_mutexattr_t attributes;
	int error;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
	error = pthread_mutex_init((pthread_mutex_t *)m, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return result(error);
}

void
mtx_destroy(mtx_t *m)
{
	pthread_mutex_destroy((pthread_mutex_t *)m);
}

int
mtx_lock(mtx_t *m)
{
	return result(pthread_mutex_lock((pthread_mutex_t *)m));
}

int
mtx_trylock(mtx_t *m)
{
	return result(pthread_mutex_trylock((pthread_mutex_t *)m));
}

int
mtx_unlock(mtx_t *m)
{
	return result(pthread_mutex_unlock((pthread_mutex_t *)m));
}

int
cnd_init(cnd_t *c)
{
	return result(pthread_cond_init((pthread_cond_t *)c, NULL));
}

void
cnd_destroy(cnd_t *c)
{
	pthread_cond_destroy((pthread_cond_t *)c);
}

int
cnd_signal(cnd_t *c)
{
	return result(pthread_cond_signal((pthread_cond_t *)c));
}

int
cnd_broadcast(cnd_t *c)
{
	return result(pthread_cond_broadcast((pthread_cond_t *)c));
}

int
cnd_wait(cnd_t *c, mtx_t *m)
{
	return result(pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m));
}

int
cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	return result(pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, until));
}
