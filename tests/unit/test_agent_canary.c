/*
 * SPDX-License-Identifier: Apache-2.0
 * canary: how soon it is found that none comes back, however the looks, one a second, are early or late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/canary.h"
#include "attach/probes.h"
#include "base/clock.h"
#include "model/event.h"

#define MS UINT64_C(1000000)
#define BEGIN (UINT64_C(1000000) * MS)

static uint64_t lost_ns;
static unsigned forks;

pid_t
probes_own_pid(const struct probes *p)
{
	(void)p;
	return 1;
}

void
probes_adopt(struct probes *p, pid_t pid)
{
	(void)p;
	forks += pid != 0;
}

uint64_t
probes_canary_lost_ns(const struct probes *p)
{
	(void)p;
	return lost_ns;
}

/* Looks at a time. */
static bool
look(struct canary *c, uint64_t now_ns)
{
	clock_added_ns[CLOCK_BOOTTIME] = 0;
	clock_added_ns[CLOCK_BOOTTIME] = (int64_t)(clock_ns(CLOCK_BOOTTIME) - now_ns);
	return canary_look(c, NULL, now_ns);
}

/* The last canary comes back. */
static void
come_back(struct canary *c)
{
	struct state_event s = { .kind = STATE_EXIT };

	s.self.start_ns = c->forked_ns + MS / 5;	/* the kernel forks it a little later */
	canary_event(c, &s);
}

/* Looks each second, late by up to late_ms, until the look that finds it blind; returns when that was. */
static uint64_t
blind_at(struct canary *c, uint64_t late_ms)
{
	uint64_t now = 0;

	for (uint64_t second = 1; second < 30; second++) {
		now = BEGIN + (second * 1000 + second * 7919 % (late_ms + 1)) * MS;
		if (!look(c, now))
			return now;
	}
	fail_msg("not found");
	return now;
}

static void
test_blindness_is_found_within_ten_seconds(void **state)
{
	(void)state;
	for (uint64_t late_ms = 0; late_ms < 1000; late_ms += 50) {
		struct canary c;

		canary_begin(&c, BEGIN - 3000 * MS);
		assert_true(look(&c, BEGIN));
		come_back(&c);			/* the last that does */
		assert_in_range(blind_at(&c, late_ms) - c.seen_ns, 6000 * MS, 10000 * MS);
	}
}

static void
test_the_sweep_has_time_to_find_one(void **state)
{
	struct canary c;

	(void)state;
	canary_begin(&c, BEGIN - 3000 * MS);
	for (uint64_t second = 0; second < 6; second++)		/* the sweep finds what ended 5 s before */
		assert_true(look(&c, BEGIN + second * 1000 * MS));
	come_back(&c);
	for (uint64_t second = 6; second < 12; second++)
		assert_true(look(&c, BEGIN + second * 1000 * MS));
}

static void
test_one_is_forked_each_two_seconds_while_they_come_back(void **state)
{
	struct canary c;

	(void)state;
	canary_begin(&c, BEGIN);
	forks = 0;
	for (uint64_t second = 1; second <= 20; second++) {
		assert_true(look(&c, BEGIN + second * 1000 * MS));
		if (c.forked_ns != 0)
			come_back(&c);
	}
	assert_int_equal(10, forks);
}

static void
test_one_without_room_was_seen(void **state)
{
	struct canary c;

	(void)state;
	canary_begin(&c, BEGIN - 3000 * MS);
	for (uint64_t second = 0; second < 20; second++) {
		assert_true(look(&c, BEGIN + second * 1000 * MS));
		lost_ns = c.forked_ns + MS / 5;
	}
	lost_ns = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blindness_is_found_within_ten_seconds),
		cmocka_unit_test(test_the_sweep_has_time_to_find_one),
		cmocka_unit_test(test_one_is_forked_each_two_seconds_while_they_come_back),
		cmocka_unit_test(test_one_without_room_was_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
