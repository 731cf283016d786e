/*
 * SPDX-License-Identifier: Apache-2.0
 * marks_kit: an open spool for each test, whose state file a test reads and changes. A test also
 * includes faults.h itself, for the linker (CMakeLists.txt).
 */
#ifndef SLUICE_TESTS_UNIT_MARKS_KIT_H
#define SLUICE_TESTS_UNIT_MARKS_KIT_H

#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "spool_kit.h"

enum {
	SLOT = 4096,
	QUEUES_AT = 64,
	SKIPS_AT = 2048,
	SKIPS_MAX = 128,
};

static struct kit k;

static inline int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	kit_open(&k);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	kit_done(&k);
	return 0;
}

static inline struct kit_file
load_state(void)
{
	char path[512];
	struct kit_file f;

	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	assert_int_equal(f.len, 2 * SLOT);
	return f;
}

/* The slot that was written last. */
static inline uint8_t *
newest(const struct kit_file *f)
{
	return f->data + (le_get64(f->data + SLOT + 8) > le_get64(f->data + 8) ? SLOT : 0);
}

static inline void
set_checksum(uint8_t *slot)
{
	le_put32(slot + 4, crc32c(0, slot + 8, SLOT - 8));
}

static inline void
store_state(struct kit_file *f)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_store(path, f->data, f->len);
	free(f->data);
}

/* The spool closes, its state is changed, and it opens with that. */
static inline void
reopen_with(void (*change)(uint8_t *slot, uint64_t with), uint64_t with)
{
	struct kit_file f;

	kit_close(&k);
	f = load_state();
	change(newest(&f), with);
	set_checksum(newest(&f));
	store_state(&f);
	kit_open(&k);
}

/* Hands out n records; those whose bit is set, by seq modulo 64, are acknowledged. */
static inline void
hand_out(unsigned n, uint64_t acked)
{
	struct spool_record r;

	for (unsigned i = 0; i < n; i++) {
		assert_true(spool_next(k.spool, &r));
		if (acked >> (r.seq % 64) & 1)
			spool_ack(k.spool, r.id);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
