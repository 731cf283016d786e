/* SPDX-License-Identifier: Apache-2.0 */
/* wal: the size of its entries, and entries that are damaged, unknown or of another boot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wal_kit.h"

/* The i-th entry. */
static const char *
entry(const struct life *l, size_t i, size_t *ret_len)
{
	const char *at = l->entries.data;

	for (;;) {
		memcpy(ret_len, at, sizeof(*ret_len));
		at += sizeof(*ret_len);
		if (i-- == 0)
			return at;
		at += *ret_len;
	}
}

static size_t
wal_copied(const struct life *l, size_t i, char copy[WAL_COPY])
{
	size_t len;
	const char *data = entry(l, i, &len);

	assert_true(len < WAL_COPY);
	memcpy(copy, data, len);
	return len;
}

static void
a_program_takes_less_than_a_kibibyte(void **state)
{
	struct correlator_options options = host_options();
	struct life l;
	struct being sh, b;

	(void)state;
	life_open(&l, &options);
	sh = forks(&l.w, NULL);
	execs(&l.w, &sh, "bash pipeline.sh");
	l.entries.len = 0;
	for (int i = 0; i < 100; i++) {
		b = forks(&l.w, &sh);
		execs(&l.w, &b, "samtools sort -@ 4 -m 2G -T /scratch/tmp/sample -o /data/out/sample.sorted.bam "
		    "/data/in/sample.unsorted.bam");
		works(&l.w, &b, 5);
		exits(&l.w, &b, 0);
	}
	l.w.now += 2 * SECOND;
	snapshot(&l.w, false, (const struct being *[]){ &sh }, 1);	/* forgets them */
	print_message("%zu bytes of entries a program\n", l.entries.len / 100);
	assert_true(l.entries.len / 100 < 512);
	life_close(&l);
}

/* Many children share the text of a parent that runs something else by now: it is logged once. */
static void
a_shared_text_is_logged_once(void **state)
{
	struct correlator_options options = host_options();
	static struct being children[500];
	const struct being *met[500];
	char command[1024] = "bash -c ";
	struct being sh;
	struct life l;
	size_t len;

	(void)state;
	memset(command + 8, 'x', 900);
	life_open(&l, &options);
	sh = forks(&l.w, NULL);
	execs(&l.w, &sh, command);
	for (int i = 0; i < 500; i++) {
		children[i] = forks(&l.w, &sh);
		met[i] = &children[i];
	}
	l.w.now += 2 * SECOND;
	snapshot(&l.w, true, met, 500);
	assert_true(l.entries.len < 500 * 300);
	execs(&l.w, &sh, "sleep 1");
	checkpoints(&l);
	assert_true(l.entries.len < 500 * 300);
	len = l.entries.len;
	dies(&l);
	checkpoints(&l);	/* and shared again in the next life */
	assert_int_equal(l.entries.len, len);
	life_close(&l);
}

/* Bytes that are no UTF-8 take four times their room: an entry has an end all the same. */
static void
a_text_too_long_for_a_entry_is_cut_there(void **state)
{
	struct correlator_options options = host_options();
	static char strange[20000];
	const char *argv[] = { "strange", strange };
	size_t argv_len[] = { 7, sizeof(strange) };
	struct exec_event s = { .exe = "/bin/strange", .argv = argv, .argv_len = argv_len, .argc = 2,
		.comm = "strange" };
	struct being b;
	struct life l;
	size_t len;

	(void)state;
	memset(strange, 0xff, sizeof(strange));
	life_open(&l, &options);
	b = forks(&l.w, NULL);
	b.execed = true;
	s.time_ns = l.w.now;
	s.self = b.key;
	correlator_exec(l.w.c, &s);		/* on_wal_entry() looks at the length */
	assert_int_equal(l.n_records, 1);
	assert_true(l.records.len > 4 * sizeof(strange));
	dies(&l);
	len = l.records.len;
	exits(&l.w, &b, 0);
	assert_int_equal(l.n_records, 2);	/* its END, no second START */
	assert_true(l.records.len - len < 1000);
	life_close(&l);
}

static void
a_cut_entry_is_refused_and_changes_nothing(void **state)
{
	struct correlator_options options = world_options();
	struct life l, other;
	struct replayed result;
	size_t n;

	(void)state;
	life_open(&l, &options);
	tell_story(&l, 3, 150, 0, 0);
	checkpoints(&l);
	n = l.n_entries;
	life_open(&other, &options);
	correlator_free(other.w.c);
	begins(&other);
	for (size_t i = 0; i < n; i++) {
		size_t len;
		const char *data = entry(&l, i, &len);

		for (size_t cut = 0; cut < len; cut++) {
			char *copy = malloc(cut + 1);	/* ASan sees what is read behind it */

			copy = realloc(copy, cut > 0 ? cut : 1);
			memcpy(copy, data, cut);
			assert_int_equal(correlator_replay(other.w.c, copy, cut), -EBADMSG);
			free(copy);
		}
		assert_int_equal(correlator_replay(other.w.c, data, len), 0);
	}
	correlator_replay_done(other.w.c, &result);
	assert_int_equal(result.entries, n);
	assert_true(result.refused > n);
	other.entries.len = 0;
	checkpoints(&other);
	assert_int_equal(other.entries.len, l.entries.len);
	assert_memory_equal(other.entries.data, l.entries.data, l.entries.len);
	life_close(&l);
	life_close(&other);
}

static void
a_flipped_bit_does_no_harm(void **state)
{
	struct correlator_options options = world_options();
	struct life l, other;

	(void)state;
	life_open(&l, &options);
	tell_story(&l, 4, 60, 0, 0);
	checkpoints(&l);
	life_open(&other, &options);
	for (size_t i = 0; i < l.n_entries; i++) {
		size_t len, beginning_len;
		const char *data = entry(&l, i, &len), *beginning = entry(&l, 0, &beginning_len);

		correlator_free(other.w.c);
		begins(&other);
		for (size_t at = 0; at < len; at++) {
			char *copy = malloc(len);

			correlator_replay(other.w.c, beginning, beginning_len);	/* forgets the one before */
			memcpy(copy, data, len);
			copy[at] ^= (char)(1 << (at + i) % 8);
			correlator_replay(other.w.c, copy, len);
			free(copy);
		}
		correlator_replay_done(other.w.c, NULL);
		tell_story(&other, 6, 20, 0, 0);
	}
	life_close(&l);
	life_close(&other);
}

static void
what_is_not_known_is_refused_and_counted(void **state)
{
	struct correlator_options options = host_options();
	struct life l, other;
	struct replayed result;
	struct being b;
	char copy[WAL_COPY];
	size_t len;

	(void)state;
	life_open(&l, &options);
	b = forks(&l.w, NULL);
	execs(&l.w, &b, "true");
	assert_int_equal(l.n_entries, 2);
	life_open(&other, &options);
	len = wal_copied(&l, 1, copy);
	assert_int_equal(correlator_replay(other.w.c, copy, len), -EBADMSG);	/* no beginning */
	len = wal_copied(&l, 0, copy);
	copy[1] = WAL_VERSION + 1;
	assert_int_equal(correlator_replay(other.w.c, copy, len), -EBADMSG);
	copy[1] = 0;
	assert_int_equal(correlator_replay(other.w.c, copy, len), -EBADMSG);
	copy[1] = WAL_VERSION;
	assert_int_equal(correlator_replay(other.w.c, copy, len), 0);
	len = wal_copied(&l, 1, copy);
	copy[0] = WAL_FORGET_TASK + 1;
	assert_int_equal(correlator_replay(other.w.c, copy, len), -EBADMSG);
	copy[0] = WAL_PROCESS;
	copy[len] = 0;			/* more than there should be */
	assert_int_equal(correlator_replay(other.w.c, copy, len + 1), -EBADMSG);
	assert_int_equal(correlator_replay(other.w.c, copy, len), 0);
	correlator_replay_done(other.w.c, &result);
	assert_int_equal(result.refused, 5);
	assert_int_equal(result.entries, 2);
	assert_int_equal(result.processes, 1);
	assert_int_equal(correlator_live(other.w.c), 1);
	life_close(&l);
	life_close(&other);
}

/* After a reboot, and where the write-ahead log is a run's, all is new. */
static void
entries_of_another_boot_or_run_are_stale(void **state)
{
	struct correlator_options options = host_options(), another = host_options(), run = world_options();
	struct life l, m, r;
	struct replayed result;
	struct being b;

	(void)state;
	life_open(&l, &options);
	b = forks(&l.w, NULL);
	execs(&l.w, &b, "true");
	another.boot_id = "00000000-0c5e-4f5e-8f7e-2f3f6d1f0b11";
	life_open(&m, &another);
	result = replay_all(&l, m.w.c);
	assert_int_equal(result.stale, 2);
	assert_int_equal(result.refused + result.entries + result.processes, 0);
	b = forks(&m.w, NULL);
	execs(&m.w, &b, "false");	/* begins anew */
	assert_int_equal(m.n_entries, 2);
	/* the old entries, then the new: as a spool has them that was not checkpointed in between */
	bytes_add(&l.entries, m.entries.data, m.entries.len);
	life_open(&r, &another);
	result = replay_all(&l, r.w.c);
	assert_int_equal(result.stale, 2);
	assert_int_equal(result.entries, 2);
	assert_int_equal(result.processes, 1);
	life_close(&r);
	life_open(&r, &run);
	run.run_id = "run-2";
	life_close(&m);
	life_open(&m, &run);
	result = replay_all(&r, m.w.c);
	assert_true(result.stale > 0);
	assert_int_equal(result.entries, 0);
	life_close(&l);
	life_close(&m);
	life_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_takes_less_than_a_kibibyte),
		cmocka_unit_test(a_shared_text_is_logged_once),
		cmocka_unit_test(a_text_too_long_for_a_entry_is_cut_there),
		cmocka_unit_test(a_cut_entry_is_refused_and_changes_nothing),
		cmocka_unit_test(a_flipped_bit_does_no_harm),
		cmocka_unit_test(what_is_not_known_is_refused_and_counted),
		cmocka_unit_test(entries_of_another_boot_or_run_are_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
