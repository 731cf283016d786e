/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"
#include "base/clock.h"
#include "base/worker.h"

/* What the thread does; a gate is a pipe, so that a test decides when a call returns. */
struct job {
	int entered[2];		/* the thread writes a byte as a call begins */
	int gate[2];		/* and waits for one */
	int calls;		/* atomic */
	bool has_signals;
};

static void
on_run(void *arg)
{
	struct job *j = arg;
	sigset_t blocked;
	char byte = 0;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	j->has_signals = sigismember(&blocked, SIGTERM) == 0;
	if (write(j->entered[1], &byte, 1) != 1 || read(j->gate[0], &byte, 1) != 1)
		abort();
	__atomic_add_fetch(&j->calls, 1, __ATOMIC_RELEASE);
}

static void
job_open(struct job *j)
{
	*j = (struct job){ 0 };
	assert_int_equal(pipe(j->entered), 0);
	assert_int_equal(pipe(j->gate), 0);
}

static void
job_close(struct job *j)
{
	for (int i = 0; i < 2; i++) {
		close(j->entered[i]);
		close(j->gate[i]);
	}
}

static void
wait_entered(struct job *j)
{
	char byte;

	assert_int_equal(read(j->entered[0], &byte, 1), 1);
}

static void
open_gate(struct job *j, int calls)
{
	for (int i = 0; i < calls; i++)
		assert_int_equal(write(j->gate[1], "", 1), 1);
}

static void
wakes_during_a_call_are_one_more_call(void **state)
{
	struct worker *w;
	struct job j;

	(void)state;
	job_open(&j);
	assert_int_equal(worker_start(on_run, &j, &w), 0);
	worker_wake(w);
	wait_entered(&j);
	worker_wake(w);
	worker_wake(w);
	open_gate(&j, 3);
	assert_true(worker_stop(w, -1));
	assert_int_equal(j.calls, 2);
	assert_false(j.has_signals);
	job_close(&j);
}

static void
a_stop_waits_for_what_was_asked_for(void **state)
{
	struct worker *w;
	struct job j;

	(void)state;
	job_open(&j);
	open_gate(&j, 1);
	assert_int_equal(worker_start(on_run, &j, &w), 0);
	worker_wake(w);
	assert_true(worker_stop(w, 60000));
	assert_int_equal(j.calls, 1);
	assert_true(worker_stop(NULL, 0));
	job_close(&j);
}

static void
a_call_that_hangs_is_left_alone(void **state)
{
	struct worker *w;
	struct job j;
	uint64_t begin;

	(void)state;
	job_open(&j);
	assert_int_equal(worker_start(on_run, &j, &w), 0);
	worker_wake(w);
	wait_entered(&j);
	worker_wake(w);		/* which is not answered any more */
	clock_added_ns[CLOCK_MONOTONIC] = INT64_C(500000) * 1000000000;	/* as in a time namespace */
	begin = clock_ns(CLOCK_MONOTONIC);
	assert_false(worker_stop(w, 50));
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= 50000000);
	clock_added_ns[CLOCK_MONOTONIC] = 0;
	open_gate(&j, 2);
	while (__atomic_load_n(&j.calls, __ATOMIC_ACQUIRE) < 1)
		usleep(1000);
	/* The thread ends by itself; a second call would have written another byte. */
	close(j.entered[1]);
	j.entered[1] = -1;
	assert_int_equal(j.calls, 1);
	close(j.entered[0]);
	close(j.gate[0]);
	close(j.gate[1]);
}

static void
without_a_thread_the_start_fails(void **state)
{
	struct worker *w = NULL;

	(void)state;
	fault = (struct fault){ .calls = FAULT_THREAD, .times = 1, .error = EAGAIN };
	assert_int_equal(worker_start(on_run, NULL, &w), -EAGAIN);
	fault = (struct fault){ .calls = FAULT_MEMORY, .times = 1, .error = ENOMEM };
	assert_int_equal(worker_start(on_run, NULL, &w), -ENOMEM);
	fault = (struct fault){ 0 };
	assert_null(w);
}

static void
a_call_is_seen_while_it_lasts(void **state)
{
	struct worker_call c = { 0 };
	uint64_t since, before = clock_ns(CLOCK_MONOTONIC);

	(void)state;
	assert_null(worker_call_now(&c, &since));
	worker_call_begin(&c, "fdatasync");
	assert_string_equal(worker_call_now(&c, &since), "fdatasync");
	assert_true(since >= before && since <= clock_ns(CLOCK_MONOTONIC));
	worker_call_end(&c);
	assert_null(worker_call_now(&c, &since));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_during_a_call_are_one_more_call),
		cmocka_unit_test(a_stop_waits_for_what_was_asked_for),
		cmocka_unit_test(a_call_that_hangs_is_left_alone),
		cmocka_unit_test(without_a_thread_the_start_fails),
		cmocka_unit_test(a_call_is_seen_while_it_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
