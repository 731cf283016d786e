/*
 * SPDX-License-Identifier: Apache-2.0
 * threads: threads as contexts of one, each of which runs until its next call that changes something, or until it
 * waits. The loop's thread decides which is next, so that a seed always results in the same order. Beside them the
 * clocks, which only move when the models move them, and random numbers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "sim.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define HAS_ASAN 1
#endif
#endif

enum {
	THREADS = 64,
	STACK = 256 << 10,
};

enum wait_for {
	WAITS_FOR_NOTHING,
	WAITS_FOR_COND,
	WAITS_FOR_TIME,
};

struct hung_write {
	int inode;
	const void *data;		/* the caller's; NULL: no write waits */
	size_t len;
	uint64_t at;
};

struct thread {
	bool is_used;
	bool has_ended;
	enum wait_for waits_for;
	const pthread_cond_t *cond;
	int64_t until_us;		/* WAITS_FOR_TIME; a limit of WAITS_FOR_COND, INT64_MAX: none */
	struct hung_write hung;		/* with data: what the call that waits for the disk is to write */
	void *(*run)(void *arg);
	void *arg;
	ucontext_t context;
	void *stack;			/* owned */
	void *fake_stack;		/* AddressSanitizer's */
};

static struct thread threads[THREADS];
bool sim_is_looping;
static struct thread *self;	/* NULL: the loop's thread */
static ucontext_t loop;
static void *loop_fake_stack;
static const void *loop_stack;	/* as AddressSanitizer knows it */
static size_t loop_stack_size;

/* --- random numbers --- */

uint64_t
sim_below(uint64_t n)
{
	uint64_t x = world->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return n > 0 ? (x ^ x >> 31) % n : 0;
}

bool
sim_dice(unsigned n)
{
	return n > 0 && sim_below(1000) < n;
}

void
sim_note(uint64_t what)
{
	world->trace = (world->trace ^ what ^ world->random) * UINT64_C(0x100000001b3);
}

uint64_t
sim_hash(const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* --- turns --- */

/* The C library's own: AddressSanitizer's prints that it does not know of what is done here for it. */
static void
swap(ucontext_t *from, const ucontext_t *to)
{
	static __typeof__(swapcontext) *call;

	if (call == NULL)
		*(void **)&call = dlsym(RTLD_NEXT, "swapcontext");
	(void)call(from, to);
}

/* Runs a thread until it yields or ends. */
static void
enter(struct thread *t)
{
	self = t;
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(&loop_fake_stack, t->stack, STACK);
#endif
	swap(&loop, &t->context);
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(loop_fake_stack, NULL, NULL);
#endif
	self = NULL;
}

/* Back to the loop's thread, for good or until it runs this one again. */
static void
leave(struct thread *t)
{
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(t->has_ended ? NULL : &t->fake_stack, loop_stack, loop_stack_size);
#endif
	swap(&t->context, &loop);
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(t->fake_stack, &loop_stack, &loop_stack_size);
#endif
}

static void
yield(void)
{
	leave(self);
}

static bool
is_ready(const struct thread *t)
{
	if (!t->is_used || t->has_ended)
		return false;
	return t->waits_for == WAITS_FOR_NOTHING || t->until_us <= world->now_us;
}

bool
sim_threads_ready(void)
{
	for (int i = 0; i < THREADS; i++)
		if (is_ready(&threads[i]))
			return true;
	return false;
}

int64_t
sim_threads_next_us(void)
{
	int64_t next_us = INT64_MAX;

	for (int i = 0; i < THREADS; i++) {
		const struct thread *t = &threads[i];

		if (t->is_used && !t->has_ended && t->waits_for != WAITS_FOR_NOTHING && t->until_us < next_us)
			next_us = t->until_us;
	}
	return next_us;
}

void
sim_threads_step(void)
{
	struct thread *ready[THREADS];
	size_t n = 0;

	for (int i = 0; i < THREADS; i++)
		if (is_ready(&threads[i]))
			ready[n++] = &threads[i];
	if (n == 0)
		return;
	enter(ready[sim_below(n)]);
}

void
sim_killed(void)
{
	sim_say("the agent is killed");
	for (int i = 0; i < THREADS; i++) {
		const struct hung_write *w = &threads[i].hung;

		if (threads[i].is_used && w->data != NULL && sim_dice(500))
			(void)sim_disk_write(&world->disk, w->inode, w->data, w->len, w->at);
	}
	_exit(SIM_END_KILLED);
}

static void
point(bool is_change)
{
	if (world->kill_in > 0 && (is_change || !world->kills_at_changes) && --world->kill_in == 0)
		sim_killed();
	if (self != NULL && is_change)
		yield();
}

void
sim_point(void)
{
	point(false);
}

void
sim_point_of_change(void)
{
	point(true);
}

/* The loop's thread waits: others run meanwhile, and time passes, at most until until_us. */
static void
let_others(int64_t until_us)
{
	int64_t next_us;

	sim_check(++world->steps < SIM_STEPS_MAX, "the loop waits for a thread that does not end");
	if (sim_threads_ready()) {
		sim_threads_step();
		return;
	}
	next_us = sim_threads_next_us();
	if (next_us > until_us)
		next_us = until_us;
	sim_pass(next_us > world->now_us && next_us < INT64_MAX ? next_us - world->now_us : SIM_MS);
}

void
sim_wait_until(int64_t us)
{
	/* A call of the loop itself that lasts: only other threads run meanwhile. */
	while (self == NULL && world->now_us < us) {
		int64_t next_us = sim_threads_next_us();

		if (sim_threads_ready())
			sim_threads_step();
		else
			sim_pass((next_us < us ? next_us : us) - world->now_us);
	}
	if (self == NULL)
		return;
	self->waits_for = WAITS_FOR_TIME;
	self->until_us = us;
	yield();
	self->waits_for = WAITS_FOR_NOTHING;
}

void
sim_disk_wait(void)
{
	int64_t answers_us = world->registry.answers_us, until_us = world->now_us;

	if (world->now_us < world->disk.hangs_until_us)
		until_us = world->disk.hangs_until_us;
	else if (world->disk.call_us > 0)
		until_us += (int64_t)sim_below((uint64_t)world->disk.call_us + 1);
	if (until_us == world->now_us)
		return;
	sim_check(self != NULL || !sim_is_looping, "the loop waits for a disk that hangs or is slow");
	sim_wait_until(until_us);
	if (self == NULL)
		world->registry.answers_us = answers_us;	/* the agent could not ask */
}

void
sim_disk_wait_to_read(void)
{
	/* What is not in the kernel's cache. */
	if ((world->now_us < world->disk.hangs_until_us || world->disk.call_us > 0) && sim_dice(500))
		sim_disk_wait();
}

void
sim_disk_wait_to_write(int inode, const void *data, size_t len, uint64_t at)
{
	struct thread *t = self;

	if (t != NULL)
		t->hung = (struct hung_write){ inode, data, len, at };
	sim_disk_wait();
	if (t != NULL)
		t->hung.data = NULL;
}

static void
begin(void)
{
	struct thread *t = self;

#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(NULL, &loop_stack, &loop_stack_size);
#endif
	(void)t->run(t->arg);
	t->has_ended = true;
	leave(t);
}

SIM_WRAP(int, pthread_create, pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	struct thread *t = threads;

	(void)attr;
	while (t < threads + THREADS && t->is_used && !t->has_ended)
		t++;
	if (t == threads + THREADS)
		sim_broken("more than %d threads", THREADS);
	free(t->stack);
	memset(t, 0, sizeof(*t));
	t->run = run;
	t->arg = arg;
	t->until_us = INT64_MAX;
	t->stack = malloc(STACK);
	if (t->stack == NULL || getcontext(&t->context) < 0)
		abort();
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, begin, 0);
	t->is_used = true;
	*ret = (pthread_t)(t - threads);
	return 0;
}

SIM_WRAP(int, pthread_detach, pthread_t id)
{
	(void)id;
	return 0;
}

SIM_WRAP(int, pthread_join, pthread_t id, void **ret)
{
	struct thread *t = &threads[id];

	(void)ret;
	if (self != NULL)
		sim_broken("only the loop's thread is modelled to wait for another thread's end");
	while (!t->has_ended)
		let_others(INT64_MAX);
	t->is_used = false;
	return 0;
}

/* The loop has waited for a thread that makes a call: at most a second in any ten. */
static void
check_patience(int64_t since_us)
{
	static int64_t spent_us, looked_us;

	if (!sim_is_looping)
		return;
	spent_us -= spent_us < (world->now_us - looked_us) / 10 ? spent_us : (world->now_us - looked_us) / 10;
	looked_us = world->now_us;
	spent_us += world->now_us - since_us;
	sim_check(spent_us < 5 * SIM_S / 4, "the loop waits for a disk too often");
}

static int
wait_cond(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
	bool is_late;

	pthread_mutex_unlock(mutex);
	if (self == NULL) {
		int64_t since_us = world->now_us;

		let_others(until_us);		/* as if it was woken for nothing: callers look again */
		check_patience(since_us);
		is_late = world->now_us >= until_us;
	} else {
		self->waits_for = WAITS_FOR_COND;
		self->cond = cond;
		self->until_us = until_us;
		yield();
		is_late = self->waits_for == WAITS_FOR_COND && world->now_us >= until_us;
		self->waits_for = WAITS_FOR_NOTHING;
	}
	pthread_mutex_lock(mutex);
	return is_late ? ETIMEDOUT : 0;
}

SIM_WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return wait_cond(cond, mutex, INT64_MAX);
}

SIM_WRAP(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return wait_cond(cond, mutex, (int64_t)until->tv_sec * SIM_S + until->tv_nsec / 1000);
}

SIM_WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
	(void)cond;	/* threads are woken by broadcasts; the loop, which looks again by itself, by signals too */
	return 0;
}

SIM_WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].is_used && threads[i].waits_for == WAITS_FOR_COND && threads[i].cond == cond)
			threads[i].waits_for = WAITS_FOR_NOTHING;
	return 0;
}

/* --- clocks --- */

void
sim_pass(int64_t us)
{
	int64_t until_us = world->now_us + us;

	/* Brokers work meanwhile, whatever the agent waits for. */
	while (world->now_us < until_us) {
		int64_t next_us = sim_cluster_next_us(&world->cluster);

		us = (next_us > world->now_us && next_us < until_us ? next_us : until_us) - world->now_us;
		world->registry.answers_us += world->registry.is_up ? us : 0;
		world->now_us += us;
		world->registry.was_down |= !world->registry.is_up;
		if (world->registry.delay_us >= SIM_S)
			world->registry.slow_us = world->now_us;
		sim_cluster_work(&world->cluster);
	}
}

SIM_WRAP(int, clock_gettime, clockid_t id, struct timespec *ret)
{
	int64_t us = world->now_us;

	if (id == CLOCK_REALTIME)
		us += world->wall_us;
	else if (id == CLOCK_BOOTTIME)
		us += world->boot_us;
	*ret = (struct timespec){ us / SIM_S, us % SIM_S * 1000 };
	return 0;
}

SIM_WRAP(void, evutil_secure_rng_get_bytes, void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)data)[i] = (uint8_t)sim_below(256);
}

SIM_WRAP(ssize_t, getrandom, void *data, size_t n, unsigned flags)
{
	(void)flags;
	__wrap_evutil_secure_rng_get_bytes(data, n);
	return (ssize_t)n;
}

SIM_WRAP(int, usleep, useconds_t us)
{
	sim_wait_until(world->now_us + us);
	return 0;
}
