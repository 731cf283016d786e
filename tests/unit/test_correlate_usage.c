/* SPDX-License-Identifier: Apache-2.0 */
/* correlator: usage of programs and the run, as differences that add up, and their cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "one_world.h"

static void
usage_is_reported_under_the_programs_name(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };

	(void)state;
	execs(&w, &b, "bwa mem ref.fa");
	works(&w, &b, 10);
	snapshot(&w, true, all, 1);
	assert_string_equal(record_at(&w, TOPIC_USAGE, -1, 0)->comm, "bwa");
	assert_string_equal(record_at(&w, TOPIC_USAGE, -1, 0)->tool, "bwa mem");
}

static bool
knows_network(struct being *b)
{
	const struct being *all[] = { b };
	const struct kept_record *last = NULL;

	works(&w, b, 10);
	snapshot(&w, true, all, 1);
	for (size_t i = 0; i < w.n; i++)
		last = w.records[i].topic == TOPIC_USAGE ? &w.records[i] : last;
	assert_non_null(last);
	assert_int_equal(last->id.pid, b->key.pid);
	return usage_has(&last->usage, USAGE_NET_RX_BYTES);
}

static void
bytes_of_sockets_are_known_of_programs_that_were_counted_from_their_beginning(void **state)
{
	struct being b = forks(&w, NULL), later;

	(void)state;
	execs(&w, &b, "bwa mem");
	assert_true(knows_network(&b));
	correlator_set_known_since(w.c, OPTIONAL_NETWORK, UINT64_MAX);
	assert_false(knows_network(&b));
	correlator_set_known_since(w.c, OPTIONAL_NETWORK, w.now);
	assert_false(knows_network(&b));	/* some of its bytes were not counted */
	later = forks(&w, &b);
	execs(&w, &later, "samtools sort");
	assert_true(knows_network(&later));
	execs(&w, &b, "gatk");
	assert_true(knows_network(&b));		/* another program of the same process */
}

static void
usage_records_are_differences_that_add_up(void **state)
{
	struct being b = forks(&w, NULL), idle;
	const struct being *all[] = { &b, &idle };
	uint64_t cpu = 0, rchar = 0, interval = 0;

	(void)state;
	execs(&w, &b, "bwa mem");
	idle = forks(&w, &b);
	execs(&w, &idle, "sleep 100");
	for (int i = 1; i <= 4; i++) {
		works(&w, &b, (uint64_t)i * 100);
		snapshot(&w, false, all, 2);		/* these make no records */
		snapshot(&w, true, all, 2);
	}
	for (size_t i = 0; i < 4; i++) {
		const struct kept_record *n = NULL;

		for (size_t k = 0, met = 0; n == NULL && k < w.n; k++) {
			if (w.records[k].topic == TOPIC_USAGE && w.records[k].id.pid == b.key.pid && met++ == i)
				n = &w.records[k];
		}
		assert_non_null(n);
		assert_string_equal(n->tool, "bwa mem");
		assert_string_equal(n->program_id, record_of(&w, &b, 0, PHASE_START)->program_id);
		assert_true(usage_has(&n->usage, USAGE_CPU_USER_NS));
		assert_true(usage_has(&n->usage, USAGE_RCHAR));
		cpu += usage_cpu_ns(&n->usage);
		rchar += n->usage.value[USAGE_RCHAR];
		interval += n->interval_ns;
		assert_int_equal(n->usage.value[USAGE_PEAK_RSS_BYTES], (i + 1) * 100 << 20);
	}
	assert_int_equal(cpu, 1000 * MS);
	assert_int_equal(rchar, 1000 * 1024);
	assert_int_equal(interval, w.now - b.key.start_ns);
	/* the sleeper said once that it is there */
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 5);
}

static void
usage_starts_anew_with_each_program(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };
	const struct kept_record *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 100);
	snapshot(&w, true, all, 1);
	works(&w, &b, 30);
	execs(&w, &b, "bwa mem");
	works(&w, &b, 20);
	snapshot(&w, true, all, 1);
	n = record_at(&w, TOPIC_USAGE, -1, 1);
	assert_int_equal(n->id.program_index, 1);
	assert_int_equal(usage_cpu_ns(&n->usage), 20 * MS);
	assert_int_equal(n->interval_ns, 20 * MS);
}

static void
the_runs_usage_is_of_the_ended_and_the_live(void **state)
{
	struct being a = forks(&w, NULL), b;
	const struct being *all[] = { &a, &b };
	struct usage u;

	(void)state;
	execs(&w, &a, "sh");
	b = forks(&w, &a);
	execs(&w, &b, "bwa mem");
	works(&w, &b, 100);
	works(&w, &a, 10);
	snapshot(&w, false, all, 2);
	u = correlator_attributed_usage(w.c);
	assert_int_equal(usage_cpu_ns(&u), 110 * MS);
	assert_int_equal(correlator_attributed_rss(w.c), UINT64_C(110) << 20);
	assert_int_equal(u.value[USAGE_RSS_BYTES], UINT64_C(110) << 20);
	exits(&w, &b, 0);
	u = correlator_attributed_usage(w.c);
	assert_int_equal(usage_cpu_ns(&u), 110 * MS);
	assert_int_equal(u.value[USAGE_RSS_BYTES], UINT64_C(10) << 20);	/* what is gone holds none */
	assert_int_equal(u.value[USAGE_PEAK_RSS_BYTES], UINT64_C(100) << 20);
	assert_int_equal(correlator_attributed_rss(w.c), UINT64_C(10) << 20);
}

static void
cgroup_is(const char *v2, const char *v1)
{
	size_t starts = record_count(&w, TOPIC_PROGRAM, PHASE_START);
	const struct kept_record *n = record_at(&w, TOPIC_PROGRAM, PHASE_START, starts - 1);

	if (v2 == NULL)
		assert_null(n->cgroup);
	else
		assert_string_equal(n->cgroup, v2);
	if (v1 == NULL)
		assert_null(n->cgroup_v1);
	else
		assert_string_equal(n->cgroup_v1, v1);
}

static void
in_cgroups(uint64_t v2, uint64_t v1)
{
	struct being b = forks(&w, NULL);

	b.context.cgroup_v2 = v2;
	b.context.cgroup_v1 = v1;
	execs(&w, &b, "x");
}

static void
the_cgroup_that_says_something_is_shown(void **state)
{
	(void)state;
	correlator_cgroup(w.c, &(struct cgroup_event){ 1, true, "/" });
	correlator_cgroup(w.c, &(struct cgroup_event){ 2, true, "/slice/x" });
	correlator_cgroup(w.c, &(struct cgroup_event){ 2, false, "/slurm/\xff" });
	in_cgroups(2, 0);
	cgroup_is("/slice/x", NULL);
	in_cgroups(2, 2);
	cgroup_is("/slice/x", "/slurm/\\xff");
	in_cgroups(1, 2);		/* hybrid: v2 is there and empty */
	cgroup_is("/slurm/\\xff", "/slurm/\\xff");
	in_cgroups(1, 0);
	cgroup_is("/", NULL);
	in_cgroups(0, 2);
	cgroup_is("/slurm/\\xff", "/slurm/\\xff");
	in_cgroups(0, 0);
	cgroup_is(NULL, NULL);
	in_cgroups(77, 78);		/* never announced */
	cgroup_is(NULL, NULL);
}

static void
the_cgroups_used_least_are_forgotten(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 16384; id++)
		correlator_cgroup(w.c, &(struct cgroup_event){ id, true, "/x" });
	in_cgroups(1, 0);	/* used, so not the oldest any more */
	cgroup_is("/x", NULL);
	correlator_cgroup(w.c, &(struct cgroup_event){ 20000, true, "/new" });
	in_cgroups(20000, 0);
	cgroup_is("/new", NULL);
	in_cgroups(1, 0);
	cgroup_is("/x", NULL);
	in_cgroups(2, 0);
	cgroup_is(NULL, NULL);
	in_cgroups(3, 0);
	cgroup_is("/x", NULL);
}

static void
a_second_is_a_second(void **state)
{
	struct being sh = forks(&w, NULL), b;
	struct state_event s;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	works(&w, &b, 1000);
	s = state_of(&w, &b, STATE_LIVE, 0);
	s.time_ns--;
	correlator_state(w.c, &s);
	assert_null(record_of(&w, &b, 0, PHASE_START));
	s.time_ns++;
	correlator_state(w.c, &s);
	assert_non_null(record_of(&w, &b, 0, PHASE_START));
	assert_int_equal(record_of(&w, &b, 0, PHASE_START)->time_us, wall_us(w.now));
}

/* Each of them alone is something that a program did; that time went by is nothing. */
static void
whatever_moved_is_reported_and_nothing_is_not(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };
	uint64_t *const counters[] = { &b.c.runtime_ns, &b.c.voluntary_switches, &b.c.rchar, &b.c.wchar };
	uint64_t told_ns;

	(void)state;
	execs(&w, &b, "bwa mem");
	works(&w, &b, 100);
	snapshot(&w, true, all, 1);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 1);
	told_ns = w.now;
	for (size_t i = 0; i < 4; i++) {
		w.now += SECOND;
		snapshot(&w, true, all, 1);
		assert_int_equal(record_count(&w, TOPIC_USAGE, -1), i + 1);
		w.now += SECOND;
		*counters[i] += i == 0 ? MS : 1;
		b.c.utime += i == 0;
		snapshot(&w, true, all, 1);
		assert_int_equal(record_count(&w, TOPIC_USAGE, -1), i + 2);
		/* Since the last record, not since the last look. */
		assert_int_equal(record_at(&w, TOPIC_USAGE, -1, i + 1)->interval_ns, w.now - told_ns);
		assert_int_equal(record_at(&w, TOPIC_USAGE, -1, i + 1)->time_us, wall_us(w.now));
		told_ns = w.now;
	}
	b.c.rchar += 1000;		/* an interval of 0 has no record; its usage is in the next one */
	snapshot(&w, true, all, 1);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 5);
	w.now += 1;
	snapshot(&w, true, all, 1);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 6);
	assert_int_equal(record_at(&w, TOPIC_USAGE, -1, 5)->usage.value[USAGE_RCHAR], 1000);
	assert_int_equal(record_at(&w, TOPIC_USAGE, -1, 5)->interval_ns, 1);
}

/* Neither of a program whose exec was lost, nor of one whose start came without the totals up to it. */
static void
usage_of_which_program_is_not_known_is_of_none(void **state)
{
	struct being known = forks(&w, NULL), late = forks(&w, NULL);
	const struct being *all[] = { &known, &late };

	(void)state;
	execs(&w, &known, "bash");
	execs_unheard(&w, &known);
	late.key.index = 1;		/* and not what the exec replaced */
	execs(&w, &late, "bash");
	works(&w, &known, 10);
	works(&w, &late, 10);
	snapshot(&w, true, all, 2);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 0);
	execs(&w, &late, "R");		/* this one replaced a known one */
	works(&w, &late, 10);
	snapshot(&w, true, all, 2);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 1);
	assert_true(record_has_cpu(record_at(&w, TOPIC_USAGE, -1, 0), 10));
}

/* A pass had threads twice that were being released: the process lives, and the next pass has what it used. */
static void
a_pass_that_saw_threads_twice_adds_nothing(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };
	struct state_event s;

	(void)state;
	execs(&w, &b, "java");
	works(&w, &b, 10);
	s = state_of(&w, &b, STATE_LIVE, 0);
	s.counters.minor_faults *= 2;
	s.counters.rchar *= 2;
	s.is_torn = true;
	for (int i = 0; i < 30; i++) {
		w.now += 1000 * MS;
		s.time_ns = w.now;
		correlator_snapshot_begin(w.c, true);
		correlator_state(w.c, &s);
		correlator_snapshot_end(w.c, w.now);
	}
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 0);
	snapshot(&w, true, all, 1);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 1);
	assert_int_equal(record_at(&w, TOPIC_USAGE, -1, 0)->usage.value[USAGE_RCHAR], 10 * 1024);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pass_that_saw_threads_twice_adds_nothing),
		T(bytes_of_sockets_are_known_of_programs_that_were_counted_from_their_beginning),
		T(usage_is_reported_under_the_programs_name),
		T(usage_records_are_differences_that_add_up),
		T(usage_starts_anew_with_each_program),
		T(the_runs_usage_is_of_the_ended_and_the_live),
		T(the_cgroup_that_says_something_is_shown),
		T(the_cgroups_used_least_are_forgotten),
		T(a_second_is_a_second),
		T(whatever_moved_is_reported_and_nothing_is_not),
		T(usage_of_which_program_is_not_known_is_of_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
