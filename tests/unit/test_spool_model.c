/* SPDX-License-Identifier: Apache-2.0 */
/* spool: random use with crashes, compared with a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "spool_kit.h"

enum {
	SEQ_MAX = 20000,
	EPOCHS = 40,
	OPS = 400,
	WINDOW = 32,	/* of each of three topics so many ranges may be left: the state file has room for 128 */
};

/* What outlives a crash of the one that uses the spool: shared memory. */
struct model {
	uint64_t committed[TOPIC_COUNT];		/* seq below are in the spool */
	uint8_t handed[TOPIC_COUNT][SEQ_MAX];
	uint8_t acked[TOPIC_COUNT][SEQ_MAX];		/* the epoch in which; 0: not */
	uint64_t position;
	uint8_t epoch;
	uint8_t clean_since;				/* the epochs from this one on have closed it */
	uint32_t random;
	uint64_t again, recovered;
};

static struct model *m;
static struct kit k;

static uint32_t
dice(uint32_t sides)
{
	m->random = m->random * 1664525u + 1013904223u;
	return (m->random >> 10) % sides;
}

static void
expect(bool is_so, const char *claim)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", claim);
	_exit(1);
}

static void
put_some(struct kit *at)
{
	static const enum topic topics[] = { TOPIC_PROGRAM, TOPIC_USAGE, TOPIC_TASK };
	unsigned n = dice(20);

	while (n-- > 0) {
		enum topic topic = topics[dice(3)];

		if (at->seq[topic] < SEQ_MAX)
			expect(kit_put_len(at, topic, dice(50) == 0 ? dice(30000) : dice(200)) == 0,
			    "a record is taken");
	}
	if (spool_wants_checkpoint(at->spool)) {
		spool_checkpoint_begin(at->spool);
		expect(spool_put_wal(at->spool, "state", 5) == 0, "an entry is taken");
	}
	if (dice(3) == 0)
		expect(spool_put_wal(at->spool, "entry", 4) == 0, "an entry is taken");
	m->position++;
	expect(kit_commit_at(at, m->position) == 0, "a commit works");
	memcpy(m->committed, at->seq, sizeof(m->committed));
}

/* A record that is read must exist, and be marked if it was read before. */
static void
check_record(const struct spool_record *r, uint64_t last[TOPIC_COUNT])
{
	expect(kit_is_whole(r), "a record is what was put");
	expect(r->seq < m->committed[r->topic], "a record was committed");
	if (m->handed[r->topic][r->seq])
		expect(r->is_again, "what was handed out before is marked");
	expect(m->acked[r->topic][r->seq] == 0 || m->acked[r->topic][r->seq] < m->clean_since,
	    "what is acknowledged stays away unless a crash has forgotten it");
	if (!r->is_again) {
		expect(last[r->topic] == UINT64_MAX || r->seq > last[r->topic],
		    "seq rises but for what is marked");
		last[r->topic] = r->seq;
	}
	m->handed[r->topic][r->seq] = 1;
	m->acked[r->topic][r->seq] = 0;		/* it has to be acknowledged again */
	m->again += r->is_again;
}

static void
use(struct kit *at)
{
	struct { uint64_t id; enum topic topic; uint64_t seq; } out[WINDOW];
	uint64_t last[TOPIC_COUNT];
	unsigned n = 0;
	struct ring_offset ring_offset = { .position = 0 };

	memset(last, 0xff, sizeof(last));
	for (int t = 0; t < TOPIC_COUNT; t++)
		expect(at->seq[t] == m->committed[t], "numbering goes on where it was");
	expect(spool_ring_offset(at->spool, &ring_offset) == (m->position > 0) && ring_offset.position == m->position,
	    "the position is that of the last commit");
	m->recovered += at->recovery.records;
	for (int op = 0; op < OPS; op++) {
		struct spool_record r;
		unsigned i;

		switch (dice(14)) {
		case 0: case 1:
			put_some(at);
			break;
		case 2:
			kit_tick(at);
			break;
		case 12: case 13:
			for (int t = 0; t < TOPIC_COUNT; t++)
				if (dice(4) == 0)
					spool_hold(at->spool, t);
				else
					spool_release(at->spool, t);
			break;
		case 3:
			if (dice(10) == 0) {
				spool_rewind(at->spool);
				n = 0;
			}
			break;
		case 4: case 5: case 6: case 7: case 8:
			for (i = dice(8); i > 0 && n < WINDOW && spool_next(at->spool, &r); i--) {
				check_record(&r, last);
				if (dice(10) == 0) {
					spool_unget(at->spool);
					m->handed[r.topic][r.seq] = r.is_again;
					if (!r.is_again)
						last[r.topic] = r.seq - 1;
					continue;
				}
				out[n].id = r.id;
				out[n].topic = r.topic;
				out[n++].seq = r.seq;
			}
			break;
		default:
			for (i = dice(8); i > 0 && n > 0; i--) {
				unsigned which = dice(n);

				spool_ack(at->spool, out[which].id);
				m->acked[out[which].topic][out[which].seq] = m->epoch;
				out[which] = out[--n];
			}
		}
	}
	if (dice(2) == 0)
		expect(spool_close(at->spool) == 0, "it closes");
	else
		m->clean_since = m->epoch + 1;
}

static void
nothing_is_lost_whatever_happens(void **state)
{
	struct spool_record r;

	(void)state;
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	for (uint32_t seed = 1; seed <= 3; seed++) {
		memset(m, 0, sizeof(*m));
		m->random = seed * 7919;
		kit_init(&k);
		k.options.segment_bytes = 16 << 10;
		for (m->epoch = 1; m->epoch <= EPOCHS; m->epoch++)
			kit_crash(&k, use);
		kit_open(&k);
		while (spool_next(k.spool, &r)) {
			assert_true(kit_is_whole(&r));
			if (m->handed[r.topic][r.seq])
				assert_true(r.is_again);
			m->acked[r.topic][r.seq] = 1;
			spool_ack(k.spool, r.id);
		}
		for (int t = 0; t < TOPIC_COUNT; t++)
			for (uint64_t seq = 0; seq < m->committed[t]; seq++)
				assert_int_not_equal(m->acked[t][seq], 0);
		assert_true(m->committed[TOPIC_USAGE] > 5000);
		assert_true(m->again > 0);
		assert_true(m->recovered > 0);
		kit_done(&k);
	}
	munmap(m, sizeof(*m));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
