/* SPDX-License-Identifier: Apache-2.0 */
/* behind: a disk that is slow at each call takes a part of the loop's time, and still gets everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "spool_kit.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PATIENCE_MS 50
#define SLOW_MS 40	/* less than the patience; a round with one segment makes at least three of these calls */

ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
int __real_openat(int dir, const char *name, int flags, mode_t mode);
int __wrap_openat(int dir, const char *name, int flags, mode_t mode);

static unsigned slow_ms;	/* atomic: what each call takes */
static unsigned failing;	/* atomic: so many files cannot be made */

ssize_t
__wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	usleep(__atomic_load_n(&slow_ms, __ATOMIC_ACQUIRE) * 1000);
	return __real_pwritev(fd, iov, n, offset);
}

int
__wrap_openat(int at, const char *name, int flags, mode_t mode)
{
	usleep(__atomic_load_n(&slow_ms, __ATOMIC_ACQUIRE) * 1000);
	if ((flags & O_EXCL) && __atomic_load_n(&failing, __ATOMIC_ACQUIRE) > 0) {
		__atomic_sub_fetch(&failing, 1, __ATOMIC_ACQ_REL);
		errno = ENOSPC;
		return -1;
	}
	return __real_openat(at, name, flags, mode);
}

static void
set_slow(unsigned ms)
{
	__atomic_store_n(&slow_ms, ms, __ATOMIC_RELEASE);
}

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	set_slow(0);
	kit_done(&k);
	return 0;
}

/* Opens a spool, whose thread runs, on a disk that becomes slow: the first commits use the patience up. */
static void
open_slow(void)
{
	k.options.patience_ms = PATIENCE_MS;
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);	/* the thread may have had to wait for a CPU for so long */
	set_slow(SLOW_MS);
	while (kit_stats(&k).last_error == 0)
		kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).last_error, -ETIMEDOUT);
}

/* Ticks, in the loop's time, until a number of records was delivered. Returns how many were. */
static uint64_t
deliver(uint64_t wanted, uint64_t *spent_ns)
{
	uint64_t n = 0;

	for (int turns = 0; n < wanted && turns < 60000; turns++) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC);

		kit_tick(&k);
		n += kit_drain(&k);
		*spent_ns += clock_ns(CLOCK_MONOTONIC) - begin;
		usleep(1000);
	}
	return n;
}

static void
all_is_written_and_delivered(void **state)
{
	uint64_t begin, spent_ns = 0, waiting;

	(void)state;
	alarm(60);
	open_slow();
	begin = clock_ns(CLOCK_MONOTONIC);
	waiting = k.seq[TOPIC_PROGRAM];
	for (int i = 0; i < 3; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 3);
		kit_batch(&k, TOPIC_USAGE, 2);
		assert_int_equal(deliver(waiting + 5, &spent_ns), waiting + 5);
		waiting = 0;
	}
	print_message("the loop waited %.0f of %.0f ms\n", (double)spent_ns / 1e6,
	    (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e6);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_true(spent_ns < (clock_ns(CLOCK_MONOTONIC) - begin) / 2);
	set_slow(0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL(&k, kit_stats(&k).memory_bytes == 0);
	kit_reopen(&k);
	assert_true(k.recovery.was_clean);
	assert_int_equal(kit_drain(&k), 1);
	alarm(0);
}

static void
a_stop_waits_for_what_is_in_memory(void **state)
{
	uint64_t put;

	(void)state;
	alarm(60);
	open_slow();
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_USAGE, 2);
	put = k.seq[TOPIC_PROGRAM] + k.seq[TOPIC_USAGE];
	(void)spool_close(k.spool);
	set_slow(0);
	k.options.patience_ms = 0;
	kit_open(&k);
	assert_int_equal(k.seq[TOPIC_PROGRAM] + k.seq[TOPIC_USAGE], put);
	assert_int_equal(kit_drain(&k), put);
	alarm(0);
}

/* What is dropped of the memory during a round has no file after it. */
static void
what_is_gone_meanwhile_has_no_file(void **state)
{
	(void)state;
	alarm(60);
	k.options.memory_bytes = 256 << 10;
	open_slow();
	kit_tick(&k);
	KIT_UNTIL(&k, k.spool->behind != NULL);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 60 << 10), 0);
		(void)kit_commit(&k);
	}
	assert_true(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY] > 0);
	set_slow(0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	assert_true(kit_drain(&k) > 0);
	assert_int_equal(kit_stats(&k).records, 0);
	kit_reopen(&k);
	assert_int_equal(kit_stats(&k).records, 0);
	alarm(0);
}

static void
an_error_of_a_round_is_that_of_the_disk(void **state)
{
	uint64_t spent_ns = 0, put;

	(void)state;
	alarm(60);
	open_slow();
	kit_batch(&k, TOPIC_PROGRAM, 3);
	put = k.seq[TOPIC_PROGRAM];
	__atomic_store_n(&failing, 1, __ATOMIC_RELEASE);
	KIT_UNTIL(&k, kit_stats(&k).last_error == -ENOSPC);
	set_slow(0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	assert_int_equal(deliver(put, &spent_ns), put);
	kit_reopen(&k);
	assert_int_equal(kit_stats(&k).records, 0);
	alarm(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_is_written_and_delivered),
		T(a_stop_waits_for_what_is_in_memory),
		T(what_is_gone_meanwhile_has_no_file),
		T(an_error_of_a_round_is_that_of_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
