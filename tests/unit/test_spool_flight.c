/* SPDX-License-Identifier: Apache-2.0 */
/* spool_flight: the ring of records in flight, compared with a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spool/state.h"

static struct spool_flight f;

static int
setup(void **state)
{
	(void)state;
	f = (struct spool_flight){ 0 };
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	spool_flight_done(&f);
	return 0;
}

static void
push(uint64_t number, uint8_t flags)
{
	struct spool_handed h = { .number = number, .time_us = (int64_t)number * 3, .flags = flags };

	assert_int_equal(spool_flight_push(&f, &h), 0);
	if (flags & SPOOL_IS_OUT)
		f.n_out++;
}

/* The one of that number is there and finished. */
static void
finish(uint64_t number)
{
	uint64_t index;
	struct spool_handed *h = spool_flight_find(&f, number, &index);

	assert_non_null(h);
	assert_int_equal(h->number, number);
	assert_int_equal(h->time_us, number * 3);
	assert_ptr_equal(h, spool_flight_at(&f, index));
	spool_flight_finish(&f, h);
}

static void
any_number_is_found_with_gaps_and_without(void **state)
{
	static const unsigned steps[] = { 1, 2, 7 };
	uint64_t index;

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		setup(NULL);
		assert_null(spool_flight_find(&f, 5, &index));
		for (uint64_t i = 0; i < 1000; i++) {
			push(100 + i * steps[s], SPOOL_IS_OUT);
			assert_int_equal(f.tail, i + 1);
		}
		for (uint64_t n = 90; n < 100 + 1000 * steps[s] + 10; n++) {
			bool is_there = n >= 100 && n < 100 + 1000 * steps[s] && (n - 100) % steps[s] == 0;
			struct spool_handed *h = spool_flight_find(&f, n, &index);

			assert_int_equal(h != NULL, is_there);
			if (is_there) {
				assert_int_equal(h->number, n);
				assert_int_equal(index, (n - 100) / steps[s]);
			}
		}
		teardown(NULL);
	}
}

static void
the_first_and_its_followers_leave_once_they_are_done(void **state)
{
	uint64_t index;

	(void)state;
	for (uint64_t n = 10; n < 16; n++)
		push(n, SPOOL_IS_OUT);
	assert_int_equal(f.n_out, 6);
	finish(12);
	finish(11);
	assert_int_equal(f.head, 0);
	assert_int_equal(f.n_out, 4);
	finish(10);
	assert_int_equal(f.head, 3);
	assert_int_equal(f.redo, 3);	/* never behind the first */
	assert_null(spool_flight_find(&f, 12, &index));
	finish(15);
	f.redo = 5;			/* far ahead it stays where it is */
	finish(13);
	assert_int_equal(f.redo, 5);
	finish(14);
	assert_int_equal(f.head, f.tail);
	assert_int_equal(f.n_out, 0);
	assert_null(spool_flight_find(&f, 15, &index));
}

static void
one_that_is_not_out_is_not_counted_out(void **state)
{
	(void)state;
	push(1, SPOOL_IS_OUT | SPOOL_IS_AGAIN);
	push(2, SPOOL_IS_AGAIN);
	finish(2);
	assert_int_equal(f.n_out, 1);
	assert_int_equal(spool_flight_at(&f, 1)->flags, SPOOL_IS_DONE | SPOOL_IS_AGAIN);
	finish(1);
	assert_int_equal(f.n_out, 0);
}

static void
the_ring_goes_round_and_grows_in_the_middle(void **state)
{
	uint64_t out = 0, in = 0;

	(void)state;
	/* Three in, two out: head and tail pass the end of the ring at different places. */
	for (int turn = 0; turn < 3000; turn++) {
		for (int i = 0; i < 3; i++)
			push(in++, SPOOL_IS_OUT);
		for (int i = 0; i < 2; i++)
			finish(out++);
		assert_int_equal(f.tail - f.head, in - out);
		assert_int_equal(f.n_out, in - out);
	}
	assert_int_equal(f.cap, 4096);	/* for 3,000 and no more */
	while (out < in)
		finish(out++);
	assert_int_equal(f.head, f.tail);
}

static void
a_large_ring_is_freed_when_it_is_empty(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 16384; n++)
		push(n, SPOOL_IS_OUT);
	for (uint64_t n = 0; n < 16384; n++)
		finish(n);
	assert_int_equal(f.cap, 16384);
	spool_flight_shrink(&f);
	assert_non_null(f.ring);	/* small enough to keep */
	for (uint64_t n = 0; n < 16385; n++)
		push(n, SPOOL_IS_OUT);
	for (uint64_t n = 0; n < 16384; n++)
		finish(n);
	spool_flight_shrink(&f);
	assert_non_null(f.ring);	/* one is in it */
	finish(16384);
	spool_flight_shrink(&f);
	assert_null(f.ring);
	assert_int_equal(f.cap, 0);
	push(7, SPOOL_IS_OUT);
	finish(7);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(any_number_is_found_with_gaps_and_without),
		T(the_first_and_its_followers_leave_once_they_are_done),
		T(one_that_is_not_out_is_not_counted_out),
		T(the_ring_goes_round_and_grows_in_the_middle),
		T(a_large_ring_is_freed_when_it_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
