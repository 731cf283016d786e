/* SPDX-License-Identifier: Apache-2.0 */
/* wal: a correlator that restarts and replays its entries writes the same records as one that never stopped. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/wal.h"
#include "samples.h"
#include "events.h"
#include "codec/encode.h"

#define BEINGS 48
#define WAL_COPY 512

struct bytes {
	char *data;
	size_t len, cap;
};

/* A correlator, its entries, and its records as they would be stored. */
struct life {
	struct world w;		/* first: callbacks of events.h take it; c is replaced at each death */
	struct correlator_options options;
	struct encoder *encoder;
	struct bytes records;
	struct bytes entries;	/* each behind its length */
	size_t n_entries, n_records, n_findings;
	uint64_t lost;
	int64_t clock_ns;
	uint64_t random;
	struct being beings[BEINGS];
	enum { NOT_THERE, ALIVE, A_ZOMBIE } is[BEINGS];
};

static void
bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (b->len + len > b->cap) {
		b->cap = 2 * (b->len + len);
		b->data = realloc(b->data, b->cap);
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void
store(struct life *l, enum topic topic, const void *record)
{
	const uint8_t *data;
	size_t len;

	assert_int_equal(encode(l->encoder, topic, record, l->n_records++, &data, &len), 0);
	bytes_add(&l->records, &len, sizeof(len));
	bytes_add(&l->records, data, len);
}

static void
on_program(const struct program_record *r, void *arg)
{
	store(arg, TOPIC_PROGRAM, r);
}

static void
on_usage(const struct usage_record *r, void *arg)
{
	store(arg, TOPIC_USAGE, r);
}

static void
on_task(const struct work_record *r, void *arg)
{
	store(arg, TOPIC_TASK, r);
}

static void
on_run(const struct work_record *r, void *arg)
{
	store(arg, TOPIC_RUN, r);
}

static void
on_finding(const struct finding_record *r, void *arg)
{
	struct life *l = arg;

	l->n_findings++;
	store(l, TOPIC_FINDING, r);
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct life *l = arg;

	assert_true(len <= WAL_MAX_BYTES);
	bytes_add(&l->entries, &len, sizeof(len));
	bytes_add(&l->entries, data, len);
	l->n_entries++;
}

static void
begins(struct life *l)
{
	static const struct correlator_ops ops = { on_program, on_usage, on_task, on_run, on_wal_entry,
		.finding = on_finding };

	assert_int_equal(correlator_new(&l->options, &ops, l, &l->w.c), 0);
	correlator_set_clock(l->w.c, l->clock_ns);
}

static void
life_open(struct life *l, const struct correlator_options *options)
{
	struct agent_identity id = sample_identity();
	char err[256];

	memset(l, 0, sizeof(*l));
	l->options = *options;
	l->clock_ns = CLOCK_US * 1000;
	l->w.now = 1000 * SECOND;
	l->w.next_pid = 100;
	assert_int_equal(encoder_open(&id, &l->encoder, err, sizeof(err)), 0);
	begins(l);
	correlator_run_start(l->w.c, l->w.now);
}

static void
life_close(struct life *l)
{
	correlator_free(l->w.c);
	encoder_close(l->encoder);
	free(l->records.data);
	free(l->entries.data);
}

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

static struct replayed
replay_all(struct life *l, struct correlator *c)
{
	struct replayed result;
	size_t len;

	for (size_t at = 0; at < l->entries.len; at += len) {
		memcpy(&len, l->entries.data + at, sizeof(len));
		at += sizeof(len);
		correlator_replay(c, l->entries.data + at, len);
	}
	correlator_replay_done(c, &result);
	return result;
}

/* kill -9, and the next life. */
static void
dies(struct life *l)
{
	size_t entries = l->n_entries, records = l->n_records;
	struct replayed result;

	correlator_free(l->w.c);
	begins(l);
	result = replay_all(l, l->w.c);
	assert_int_equal(result.entries, entries);
	assert_int_equal(result.refused + result.stale + result.incomplete, 0);
	assert_int_equal(l->n_entries, entries);
	assert_int_equal(l->n_records, records);
}

static void
checkpoints(struct life *l)
{
	l->entries.len = l->n_entries = 0;
	correlator_checkpoint(l->w.c);
}

/* A story by chance, the same for the same seed. */

static uint64_t
chance(struct life *l, uint64_t n)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random % n;
}

static int
pick(struct life *l, int state)
{
	int start = (int)chance(l, BEINGS);

	for (int i = 0; i < BEINGS; i++) {
		if ((int)l->is[(start + i) % BEINGS] == state)
			return (start + i) % BEINGS;
	}
	return -1;
}

static void
cgroup_appears(struct life *l, struct being *b)
{
	char path[64];
	struct cgroup_event s = { .id = 1 + chance(l, 20), .is_v2 = chance(l, 3) > 0, .path = path };

	snprintf(path, sizeof(path), chance(l, 9) > 0 ? "/slice/%llu" : "/\xff/%llu", (unsigned long long)s.id);
	correlator_cgroup(l->w.c, &s);
	if (s.is_v2)
		b->context.cgroup_v2 = s.id;
	else
		b->context.cgroup_v1 = s.id;
}

static void
a_pass(struct life *l)
{
	const struct being *met[BEINGS];
	size_t n = 0;
	bool with_usage = chance(l, 2);

	for (int i = 0; i < BEINGS; i++) {
		if (l->is[i] == ALIVE && chance(l, 30) > 0)
			met[n++] = &l->beings[i];
	}
	snapshot(&l->w, with_usage, met, n);
	correlator_tick(l->w.c, l->w.now, with_usage);
}

static void
is_found(struct life *l, struct being *b)
{
	static const char *const argv[] = { "sshd", "-D" };
	static const size_t argv_len[] = { 4, 2 };
	struct exec_event s = { .exe = "/usr/sbin/sshd", .cwd = "/", .argv = argv, .argv_len = argv_len,
		.argc = 2, .is_discovered = true, .comm = "sshd" };

	works(&l->w, b, chance(l, 500));
	b->execed = true;
	s.time_ns = l->w.now;
	s.self = b->key;
	s.parent = b->parent;
	s.anchor = b->anchor;
	s.replaced = b->c;
	s.context = b->context;
	correlator_exec(l->w.c, &s);
}

static void
something_happens(struct life *l)
{
	static const char *const commands[] = { "sh -c bwa_mem_ref.fa_|_samtools_sort", "bwa mem ref.fa a.fq",
		"samtools sort -o out.bam -", "make -j2 all", "python3 align.py --password geheim", "true",
		"nextflow run main.nf", "snakemake --jobs 2", "java -jar picard.jar MarkDuplicates" };
	int there = pick(l, ALIVE), free_place = pick(l, NOT_THERE), zombie = pick(l, A_ZOMBIE);
	struct being *b = there >= 0 ? &l->beings[there] : NULL;
	uint64_t what = chance(l, 100);

	l->w.now += chance(l, 40) * MS;
	if (b == NULL || (what < 25 && free_place >= 0)) {
		if (free_place < 0)
			return;
		l->beings[free_place] = forks(&l->w, b);
		l->is[free_place] = ALIVE;
		if (l->options.run_id == NULL && chance(l, 6) == 0)
			is_found(l, &l->beings[free_place]);
	} else if (what < 50) {
		execs(&l->w, b, commands[chance(l, sizeof(commands) / sizeof(commands[0]))]);
	} else if (what < 70) {
		works(&l->w, b, 1 + chance(l, 300));
		b->c.read_bytes += chance(l, 1 << 20);
		b->c.tcp_rx_bytes += chance(l, 2) * chance(l, UINT64_C(1) << 40);
	} else if (what < 78) {
		tells(&l->w, b, chance(l, 10) > 0 ? STATE_EXIT : STATE_STALE,
		    chance(l, 3) > 0 ? 0 : 0x100 << chance(l, 3));
		l->is[there] = NOT_THERE;
	} else if (what < 80) {
		struct state_event s = state_of(&l->w, b, STATE_ZOMBIE, 9);

		s.oom_killed = chance(l, 2);
		correlator_state(l->w.c, &s);
		l->is[there] = A_ZOMBIE;
	} else if (what < 82 && zombie >= 0) {
		tells(&l->w, &l->beings[zombie], STATE_EXIT, 9);
		l->is[zombie] = NOT_THERE;
	} else if (what < 83) {
		execs_unheard(&l->w, b);
	} else if (what < 84) {
		l->is[there] = NOT_THERE;	/* its end is lost */
	} else if (what < 87) {
		cgroup_appears(l, b);
	} else if (what < 88) {
		correlator_set_lost(l->w.c, ++l->lost);
	} else if (what < 89) {
		l->clock_ns += (int64_t)chance(l, 1000) - 500;
		correlator_set_clock(l->w.c, l->clock_ns);
	} else if (what < 90) {
		l->w.now += chance(l, 20) * SECOND;
	} else {
		a_pass(l);
	}
}

static void
tell_story(struct life *l, uint64_t seed, int events, int kill_every, int checkpoint_every)
{
	l->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 1; i <= events; i++) {
		something_happens(l);
		if (checkpoint_every > 0 && i % checkpoint_every == 0)
			checkpoints(l);
		if (kill_every > 0 && i % kill_every == 0)
			dies(l);
	}
}

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

static struct correlator_options
host_options(void)
{
	return (struct correlator_options){ .boot_id = BOOT_ID, .rules = world_options().rules, .has_network = true };
}

static void
restarts_of_a_host_change_no_record(void **state)
{
	struct correlator_options options = host_options();

	(void)state;
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
	life_open(&l, &options);
	tell_story(&l, 5, 400, 0, 0);
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

/* what is not as it should be */

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

/* Its program ends, and the next one is never reported, neither to this agent nor to the next. */
static void
who_becomes_a_program_that_is_left_out_is_forgotten(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, other;
	struct exec_event s;
	char words[] = "left-out", exe[256];
	const char *argv[1];
	size_t argv_len[1];
	struct program_key was;
	struct life l;

	(void)state;
	life_open(&l, &options);
	shell = forks(&l.w, NULL);
	other = forks(&l.w, NULL);
	execs(&l.w, &shell, "sh -c x");
	execs(&l.w, &other, "sleep 9");
	was = shell.key;
	exec_event_fill(&l.w, &shell, words, argv, argv_len, exe, &s);
	s.is_excluded = true;
	assert_true(s.has_replaced);
	correlator_exec(l.w.c, &s);
	works(&l.w, &other, 10);
	exits(&l.w, &other, 0);
	for (int life = 0; life < 2; life++) {
		assert_false(correlator_knows(l.w.c, &was));
		assert_int_equal(correlator_live(l.w.c), 0);
		dies(&l);
	}
	life_close(&l);
}

/* Processes that ended while no agent ran, and whose end was not recorded. */
static void
who_died_in_between_is_let_go(void **state)
{
	struct correlator_options options = host_options();
	struct life l;
	struct being a, b;

	(void)state;
	life_open(&l, &options);
	a = forks(&l.w, NULL);
	execs(&l.w, &a, "sleep 100");
	b = forks(&l.w, NULL);
	execs(&l.w, &b, "sleep 200");
	dies(&l);
	assert_int_equal(correlator_live(l.w.c), 2);
	for (int i = 0; i < 17; i++) {
		l.w.now += SECOND;
		snapshot(&l.w, false, (const struct being *[]){ &a }, 1);
	}
	assert_int_equal(correlator_live(l.w.c), 1);
	assert_int_equal(totals(&l.w).lost_ends, 1);
	assert_int_equal(totals(&l.w).live, 1);
	dies(&l);
	assert_int_equal(correlator_live(l.w.c), 1);
	life_close(&l);
}

/* Whose child it is was learnt once, while the parent was known, and is not learnt again. */
static void
what_a_child_has_of_its_parent_outlives_the_parent(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, b;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		life_open(&l, &options);
		shell = forks(&l.w, NULL);
		b = forks(&l.w, &shell);
		tells(&l.w, &b, STATE_LIVE, 0);		/* before anything is known of its parent */
		execs(&l.w, &shell, "bash run.sh");
		tells(&l.w, &b, STATE_LIVE, 0);
		exits(&l.w, &shell, 0);
		l.w.now += 11 * SECOND;
		snapshot(&l.w, false, NULL, 0);		/* the shell is forgotten */
		if (deaths > 0)
			dies(&l);
		l.records.len = 0;
		snapshot(&l.w, false, (const struct being *[]){ &b }, 1);
		assert_true(l.records.len > 0);		/* its START */
		assert_non_null(memmem(l.records.data, l.records.len, "/usr/bin/bash", 13));
		life_close(&l);
	}
}

/* A zombie that was let go is kept for a while for what its children have of it, and then no more. */
static void
that_a_zombie_is_gone_is_known_in_the_next_life(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, b, late;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		life_open(&l, &options);
		shell = forks(&l.w, NULL);
		execs(&l.w, &shell, "sh -c x");
		b = forks(&l.w, &shell);
		execs(&l.w, &b, "python3 work.py");
		late = forks(&l.w, &b);
		tells(&l.w, &b, STATE_ZOMBIE, 0);
		exits(&l.w, &b, 0);
		if (deaths > 0)
			dies(&l);
		l.w.now += 11 * SECOND;
		snapshot(&l.w, false, (const struct being *[]){ &shell }, 1);
		assert_false(correlator_knows(l.w.c, &b.key));
		l.records.len = 0;
		exits(&l.w, &late, 0);
		assert_null(memmem(l.records.data, l.records.len, "work.py", 7));
		life_close(&l);
	}
}

/* The control group that no record needed for the longest time is let go first, in the next life as in this one. */
static void
what_was_needed_last_is_known_in_the_next_life(void **state)
{
	static const struct cgroup_event groups[] = { { .id = 7, .is_v2 = true, .path = "/a" },
		{ .id = 8, .is_v2 = true, .path = "/b" } };
	struct correlator_options options = host_options();
	char *before = NULL;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		struct being b[2];

		life_open(&l, &options);
		for (int i = 0; i < 2; i++) {
			correlator_cgroup(l.w.c, &groups[i]);
			b[i] = forks(&l.w, NULL);
			b[i].context.cgroup_v2 = groups[i].id;
			execs(&l.w, &b[i], "python3 work.py");
		}
		exits(&l.w, &b[0], 0);	/* its END was the last to need /a */
		if (deaths > 0)
			dies(&l);
		checkpoints(&l);	/* in the order in which they would be let go */
		if (deaths == 0) {
			before = malloc(l.entries.len);
			memcpy(before, l.entries.data, l.entries.len);
			assert_true((char *)memmem(before, l.entries.len, "/b", 2) < (char *)memmem(before, l.entries.len, "/a", 2));
		} else {
			assert_memory_equal(l.entries.data, before, l.entries.len);
		}
		life_close(&l);
	}
	free(before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restarts_of_a_host_change_no_record),
		cmocka_unit_test(restarts_of_a_run_change_no_record),
		cmocka_unit_test(a_checkpoint_is_the_whole_state),
		cmocka_unit_test(a_program_takes_less_than_a_kibibyte),
		cmocka_unit_test(a_shared_text_is_logged_once),
		cmocka_unit_test(a_text_too_long_for_a_entry_is_cut_there),
		cmocka_unit_test(a_cut_entry_is_refused_and_changes_nothing),
		cmocka_unit_test(a_flipped_bit_does_no_harm),
		cmocka_unit_test(what_is_not_known_is_refused_and_counted),
		cmocka_unit_test(entries_of_another_boot_or_run_are_stale),
		cmocka_unit_test(who_becomes_a_program_that_is_left_out_is_forgotten),
		cmocka_unit_test(who_died_in_between_is_let_go),
		cmocka_unit_test(what_a_child_has_of_its_parent_outlives_the_parent),
		cmocka_unit_test(that_a_zombie_is_gone_is_known_in_the_next_life),
		cmocka_unit_test(what_was_needed_last_is_known_in_the_next_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
