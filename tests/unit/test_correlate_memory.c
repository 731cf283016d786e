/* SPDX-License-Identifier: Apache-2.0 */
/* memory: what the programs of one task hold together. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct world w;

static int
set_up(void **state)
{
	struct correlator_options options = world_options();

	(void)state;
	options.task = "align";
	world_open(&w, &options);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

/* Sets what b has of each kind of memory, and its high-water mark if that is less. */
static void
holds(struct being *b, uint64_t anon, uint64_t swap, uint64_t shmem, uint64_t file)
{
	b->c.anon_bytes = anon;
	b->c.swap_bytes = swap;
	b->c.shmem_bytes = shmem;
	b->c.rss_bytes = anon + shmem + file;
	if (b->c.peak_rss_bytes < b->c.rss_bytes)
		b->c.peak_rss_bytes = b->c.rss_bytes;
}

static void
pass(const struct being *const *beings, size_t n)
{
	w.now += SECOND;
	snapshot(&w, true, beings, n);
}

/* Ends the run. Returns the last record of its one task. */
static const struct kept_record *
task_end(void)
{
	correlator_run_end(w.c, w.now, 0);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	return record_at(&w, TOPIC_TASK, PHASE_END, 0);
}

static void
ends_with(uint64_t peak, enum peak_source source)
{
	const struct kept_record *n = task_end();

	assert_true(n->work.peak_memory_bytes.known);
	assert_int_equal(n->work.peak_memory_bytes.value, peak);
	assert_int_equal(n->work.peak_memory_source, source);
	assert_false(n->work.memory_bytes.known);	/* nothing lives */
}

static void
programs_that_live_together_add_up(void **state)
{
	struct being mem = forks(&w, NULL), sort = forks(&w, NULL);
	const struct being *both[] = { &mem, &sort };

	(void)state;
	execs(&w, &mem, "bwa mem x");
	execs(&w, &sort, "samtools sort x");
	holds(&mem, 100 * MIB, 11 * MIB, 0, 5 * GIB);	/* a mapped index is no memory that it needs */
	holds(&sort, 92 * MIB, 0, 0, 3 * MIB);
	pass(both, 2);
	holds(&mem, 50 * MIB, 0, 0, 5 * GIB);
	pass(both, 2);
	exits(&w, &mem, 0);
	exits(&w, &sort, 0);
	ends_with(203 * MIB, PEAK_OF_PASS);
}

static void
shared_memory_counts_once(void **state)
{
	struct being ranks[4];
	const struct being *all[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		ranks[i] = forks(&w, NULL);
		all[i] = &ranks[i];
		execs(&w, &ranks[i], "rank");
		holds(&ranks[i], 10 * MIB, 0, i == 3 ? 900 * MIB : GIB, 0);
	}
	pass(all, 4);
	for (size_t i = 0; i < 4; i++) {
		ranks[i].c.peak_rss_bytes = 0;
		exits(&w, &ranks[i], 0);
	}
	ends_with(40 * MIB + GIB, PEAK_OF_PASS);
}

/* 16 children of a parent of 20 GiB, which share it but for a GiB that each writes to, and 100 MiB that is new. */
static void
what_a_forked_child_shares_counts_once(void **state)
{
	struct being parent = forks(&w, NULL), children[16];
	const struct being *all[17] = { &parent };

	(void)state;
	execs(&w, &parent, "python3 pool.py");
	holds(&parent, 20 * GIB, 0, 0, 0);
	pass(all, 1);
	for (size_t i = 0; i < 16; i++) {
		children[i] = forks(&w, &parent);
		all[i + 1] = &children[i];
		holds(&children[i], 20 * GIB, 0, 0, 0);
	}
	pass(all, 17);
	for (size_t i = 0; i < 16; i++) {
		children[i].c.minor_faults = GIB / 4096;
		holds(&children[i], 20 * GIB + 100 * MIB, 0, 0, 0);
	}
	pass(all, 17);
	for (size_t i = 0; i < 16; i++)
		exits(&w, &children[i], 0);
	exits(&w, &parent, 0);
	ends_with(20 * GIB + 16 * (GIB + 100 * MIB), PEAK_OF_PASS);
}

static void
a_child_that_execs_has_all_of_its_own(void **state)
{
	struct being parent = forks(&w, NULL), child;
	const struct being *all[] = { &parent, &child };

	(void)state;
	execs(&w, &parent, "python3 pool.py");
	holds(&parent, GIB, 0, 0, 0);
	pass(all, 1);
	child = forks(&w, &parent);
	holds(&child, GIB, 0, 0, 0);
	pass(all, 2);
	execs(&w, &child, "sort x");
	holds(&child, 2 * GIB, 0, 0, 0);
	pass(all, 2);
	exits(&w, &child, 0);
	exits(&w, &parent, 0);
	ends_with(3 * GIB, PEAK_OF_PASS);
}

static void
what_no_pass_saw_has_its_high_water_mark(void **state)
{
	struct being waits = forks(&w, NULL), brief = forks(&w, NULL);
	const struct being *first[] = { &waits };

	(void)state;
	execs(&w, &waits, "bash");
	holds(&waits, 2 * MIB, 0, 0, MIB);
	pass(first, 1);
	execs(&w, &brief, "blastn x");
	holds(&brief, 300 * MIB, 0, 0, 10 * MIB);
	w.now += 500 * MS;
	exits(&w, &brief, 0);
	exits(&w, &waits, 0);
	ends_with(312 * MIB, PEAK_OF_PROGRAM);
}

/* It grew after the last pass, and its mapped files did not. */
static void
the_last_second_counts_without_files(void **state)
{
	struct being a = forks(&w, NULL);
	const struct being *all[] = { &a };

	(void)state;
	execs(&w, &a, "bwa mem x");
	holds(&a, 100 * MIB, 0, 0, 5 * GIB);
	pass(all, 1);
	holds(&a, 400 * MIB, 0, 0, 5 * GIB);
	exits(&w, &a, 0);
	ends_with(400 * MIB, PEAK_OF_PROGRAM);
}

static void
programs_one_after_the_other_do_not_add_up(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct being a = forks(&w, NULL);
		const struct being *all[] = { &a };

		execs(&w, &a, "blastn x");
		holds(&a, GIB, 0, 0, 0);
		if (i % 2 == 0)
			pass(all, 1);
		exits(&w, &a, 0);
	}
	assert_int_equal(task_end()->work.peak_memory_bytes.value, GIB);
}

/* The first has had its GiB when the second gets one. */
static void
marks_of_different_times_do_not_add_up(void **state)
{
	struct being first = forks(&w, NULL), second = forks(&w, NULL);
	const struct being *both[] = { &first, &second };

	(void)state;
	execs(&w, &first, "sort x");
	execs(&w, &second, "sort y");
	holds(&first, GIB, 0, 0, 0);
	pass(both, 2);
	holds(&first, 10 * MIB, 0, 0, 0);
	pass(both, 2);
	holds(&second, GIB, 0, 0, 0);
	pass(both, 2);
	exits(&w, &first, 0);
	exits(&w, &second, 0);
	ends_with(GIB + 10 * MIB, PEAK_OF_PASS);
}

static void
what_it_held_between_passes_counts(void **state)
{
	struct being sort = forks(&w, NULL), other = forks(&w, NULL);
	const struct being *both[] = { &sort, &other };

	(void)state;
	execs(&w, &sort, "sort x");
	execs(&w, &other, "bwa mem x");
	holds(&sort, 10 * MIB, 0, 0, MIB);
	holds(&other, 100 * MIB, 0, 0, 0);
	pass(both, 2);
	sort.c.peak_rss_bytes = GIB + MIB;
	pass(both, 2);
	pass(both, 2);
	holds(&other, 200 * MIB, 0, 0, 0);
	pass(both, 2);
	exits(&w, &sort, 0);
	exits(&w, &other, 0);
	ends_with(GIB + 100 * MIB, PEAK_OF_PROGRAM);
}

static void
a_live_record_has_what_is_held_now(void **state)
{
	struct being a = forks(&w, NULL);
	const struct being *all[] = { &a };
	const struct kept_record *n;

	(void)state;
	execs(&w, &a, "bwa mem x");
	holds(&a, 300 * MIB, 0, 0, GIB);
	pass(all, 1);
	holds(&a, 200 * MIB, 0, 0, GIB);
	pass(all, 1);
	correlator_tick(w.c, w.now, true);
	n = record_at(&w, TOPIC_TASK, PHASE_LIVE, 0);
	assert_int_equal(n->work.memory_bytes.value, 200 * MIB);
	assert_int_equal(n->work.peak_memory_bytes.value, 300 * MIB);
}

static void
unknown_memory_is_unknown(void **state)
{
	struct being a = forks(&w, NULL);
	const struct being *all[] = { &a };

	(void)state;
	a.c.has_peak = false;
	execs(&w, &a, "bwa mem x");
	pass(all, 1);
	exits(&w, &a, 0);
	assert_false(task_end()->work.peak_memory_bytes.known);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(programs_that_live_together_add_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shared_memory_counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_forked_child_shares_counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_child_that_execs_has_all_of_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_no_pass_saw_has_its_high_water_mark, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_second_counts_without_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs_one_after_the_other_do_not_add_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(marks_of_different_times_do_not_add_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_it_held_between_passes_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_live_record_has_what_is_held_now, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unknown_memory_is_unknown, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
