/* SPDX-License-Identifier: Apache-2.0 */
/* wal: a correlator that restarts and replays its entries writes the same records as one that never stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wal_kit.h"

/* Until who vanished is let go. */
static void
settles(struct life *l)
{
	const struct being *met[BEINGS];
	size_t n = 0;

	for (int i = 0; i < BEINGS; i++) {
		if (l->is[i] == ALIVE)
			met[n++] = &l->beings[i];
	}
	for (int i = 0; i < 20; i++) {
		l->w.now += SECOND;
		snapshot(&l->w, i % 10 == 9, met, n);
		correlator_tick(l->w.c, l->w.now, i % 10 == 9);
	}
}

static void
restarts_change_nothing(const struct correlator_options *options)
{
	static const struct { int kill, checkpoint; } ways[] = { { 1, 0 }, { 1, 1 }, { 7, 3 }, { 50, 0 }, { 97, 40 } };

	size_t findings = 0;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct life whole, broken;
		struct run_totals a, b;

		life_open(&whole, options);
		tell_story(&whole, seed, 600, 0, 0);
		settles(&whole);
		a = totals(&whole.w);
		if (options->run_id != NULL)
			correlator_run_end(whole.w.c, whole.w.now, 0);
		assert_true(whole.n_records > 150);
		findings += whole.n_findings;
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			life_open(&broken, options);
			tell_story(&broken, seed, ways[i].kill == 1 ? 100 : 600, ways[i].kill, ways[i].checkpoint);
			if (ways[i].kill > 1) {
				settles(&broken);
				b = totals(&broken.w);
				assert_int_equal(a.live, b.live);
				assert_int_equal(correlator_live(whole.w.c), correlator_live(broken.w.c));
				if (options->run_id != NULL) {
					/* After a restart no lost event explains a missing end: it is counted, too. */
					assert_in_range(b.lost_ends, a.lost_ends, a.lost_ends + a.lost_events);
					b.lost_ends = a.lost_ends;
					assert_memory_equal(&a, &b, sizeof(a));
					correlator_run_end(broken.w.c, broken.w.now, 0);
				}
				assert_int_equal(whole.records.len, broken.records.len);
			}
			assert_true(broken.records.len <= whole.records.len);
			if (broken.records.len > 0)
				assert_memory_equal(whole.records.data, broken.records.data, broken.records.len);
			life_close(&broken);
		}
		life_close(&whole);
	}
	if (options->task == NULL)
		assert_true(findings >= 4);
}

static void
restarts_of_a_host_change_no_record(void **state)
{
	struct correlator_options options = host_options();

	(void)state;
	restarts_change_nothing(&options);
	options.start_after_ns = SECOND;
	restarts_change_nothing(&options);
}

static void
restarts_of_a_run_change_no_record(void **state)
{
	struct correlator_options options = world_options();

	(void)state;
	restarts_change_nothing(&options);
	options.task = "whole";
	options.sample = "S1";
	options.start_after_ns = SECOND;
	restarts_change_nothing(&options);
}

/* A checkpoint of a correlator that was made from a checkpoint is the same. */
static void
a_checkpoint_is_the_whole_state(void **state)
{
	struct correlator_options options = world_options();
	struct life l;
	char *before;
	size_t len;

	(void)state;
	options.start_after_ns = SECOND;
	life_open(&l, &options);
	tell_story(&l, 5, 400, 0, 0);
	assert_true(correlator_charge(l.w.c, 1000000000, ENERGY_HWMON, SECOND) > 0);
	checkpoints(&l);
	len = l.entries.len;
	before = malloc(len);
	memcpy(before, l.entries.data, len);
	dies(&l);
	checkpoints(&l);
	assert_int_equal(l.entries.len, len);
	assert_memory_equal(l.entries.data, before, len);
	free(before);
	life_close(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restarts_of_a_host_change_no_record),
		cmocka_unit_test(restarts_of_a_run_change_no_record),
		cmocka_unit_test(a_checkpoint_is_the_whole_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
