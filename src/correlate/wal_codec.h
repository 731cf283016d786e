/*
 * SPDX-License-Identifier: Apache-2.0
 * wal_codec: encodes and decodes the values of write-ahead log entries, by type; private to the log. put_TYPE() writes
 * at `at`, where there must be room, and returns the end. get_TYPE() trusts no length: a malformed value marks the
 * entry as bad, and reads as 0 or "". The writers are inline, since a program's life writes some hundred values.
 */
#ifndef SLUICE_CORRELATE_WAL_CODEC_H
#define SLUICE_CORRELATE_WAL_CODEC_H

#include <string.h>

#include "base/leb128.h"
#include "correlate/kills.h"
#include "correlate/state.h"
#include "correlate/wal.h"
#include "correlate/work.h"
#include "identify/engine.h"
#include "model/event.h"

struct wal_reader {
	const uint8_t *at;
	const uint8_t *end;
	unsigned version;		/* of the entry */
	bool is_bad;
};

/* Returns 0 if all of the entry was read and nothing was bad, else -EBADMSG. */
int wal_reader_done(const struct wal_reader *r);

/* Reads a number; more than max makes the entry bad. */
uint64_t wal_get_max(struct wal_reader *r, uint64_t max);
/* Reads UTF-8 up to its NUL, in place; "" if there is none. */
const char *wal_get_string(struct wal_reader *r);
/* Reads a string that must be shorter than size bytes. */
const char *wal_get_name(struct wal_reader *r, size_t size);

/* Each reads one value that put_TYPE() wrote. */
void get_u64(struct wal_reader *r, uint64_t *value);
void get_i64(struct wal_reader *r, int64_t *value);
void get_u32(struct wal_reader *r, uint32_t *value);
void get_i32(struct wal_reader *r, int32_t *value);
void get_real(struct wal_reader *r, double *value);
void get_confidence(struct wal_reader *r, double *value);	/* 0 to 1 */
void get_source(struct wal_reader *r, enum peak_source *value);
void get_meter(struct wal_reader *r, enum energy_source *value);
void get_strength(struct wal_reader *r, enum engine_strength *value);
void get_id(struct wal_reader *r, struct process_id *id);
void get_key(struct wal_reader *r, struct program_key *key);
void get_usage(struct wal_reader *r, struct usage *u);
void get_counters(struct wal_reader *r, struct counters *c);
void get_work(struct wal_reader *r, struct work *w);
void get_own(struct wal_reader *r, struct own_bill *o);
void get_context(struct wal_reader *r, struct program_context *x);
void get_kill(struct wal_reader *r, struct kill *k);
/* Reads the key of an ancestor of a process with this start. */
void get_ancestor(struct wal_reader *r, struct program_key *key, uint64_t start_ns);

enum kill_flag {
	KILL_IS_OF_PROGRAM = 1 << 0,
	KILL_IS_OWN = 1 << 1,
	KILL_FLAGS = (1 << 2) - 1,
};

/* struct counters is read as an array: its first members are all uint64_t. */
#define COUNTERS_NUMBERS (offsetof(struct counters, threads) / sizeof(uint64_t))
_Static_assert(COUNTERS_NUMBERS == WAL_COUNTERS && USAGE_FIELDS == WAL_USAGE_FIELDS,
    "entries hold other numbers: a new version, and its counts in wal.h");
_Static_assert(sizeof(struct counters) == COUNTERS_NUMBERS * sizeof(uint64_t) + 2 * sizeof(uint32_t) + 8,
    "entries hold other counters: a new version?");

enum counters_flag {
	COUNTERS_HAS_PEAK = 1 << 0,
	COUNTERS_HAS_BLOCK_IO = 1 << 1,
	COUNTERS_IS_REAPED = 1 << 2,
	COUNTERS_IS_COMPLETE = 1 << 3,
	COUNTERS_HAS_THRASHING = 1 << 4,	/* these two since version 9 */
	COUNTERS_HAS_COMPACT = 1 << 5,
	COUNTERS_HAS_ODD_BLOCK_IO = 1 << 6,	/* since version 13 */
	COUNTERS_FLAGS = (1 << 7) - 1,
};

/* Writes a LEB128 varint. */
static inline uint8_t *
wal_put(uint8_t *at, uint64_t value)
{
	return at + leb128_write(at, value);
}

/* Writes a string with its NUL. */
static inline uint8_t *
wal_put_string(uint8_t *at, const char *s)
{
	size_t size = strlen(s) + 1;

	memcpy(at, s, size);
	return at + size;
}

/* Writes a bit mask of the values that are not 0, then these values. */
static inline uint8_t *
wal_put_numbers(uint8_t *at, const uint64_t *values, size_t n)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint64_t)(values[i] != 0) << i;
	at = wal_put(at, mask);
	for (; mask != 0; mask &= mask - 1)
		at = wal_put(at, values[__builtin_ctzll(mask)]);
	return at;
}

/* Writes an unsigned number as a varint. */
static inline uint8_t *
put_u64(uint8_t *at, const uint64_t *value)
{
	return wal_put(at, *value);
}

/* Writes the two's complement as a varint: a negative number has ten bytes. */
static inline uint8_t *
put_i64(uint8_t *at, const int64_t *value)
{
	return wal_put(at, (uint64_t)*value);
}

/* Writes an unsigned number as a varint. */
static inline uint8_t *
put_u32(uint8_t *at, const uint32_t *value)
{
	return wal_put(at, *value);
}

/* Writes the two's complement of 32 bits as a varint. */
static inline uint8_t *
put_i32(uint8_t *at, const int32_t *value)
{
	return wal_put(at, (uint32_t)*value);
}

/* Writes the 8 bytes of a double. */
static inline uint8_t *
put_real(uint8_t *at, const double *value)
{
	memcpy(at, value, sizeof(*value));
	return at + sizeof(*value);
}

/* Writes a confidence, from 0 to 1, like any double. */
static inline uint8_t *
put_confidence(uint8_t *at, const double *value)
{
	return put_real(at, value);
}

/* Writes the enumerator's number as a varint, as the next one. */
static inline uint8_t *
put_strength(uint8_t *at, const enum engine_strength *value)
{
	return wal_put(at, *value);
}

static inline uint8_t *
put_source(uint8_t *at, const enum peak_source *value)
{
	return wal_put(at, *value);
}

static inline uint8_t *
put_meter(uint8_t *at, const enum energy_source *value)
{
	return wal_put(at, *value);
}

/* Writes start and PID. */
static inline uint8_t *
put_id(uint8_t *at, const struct process_id *id)
{
	return wal_put(wal_put(at, id->start_ns), id->pid);
}

/* Writes start, PID and index. */
static inline uint8_t *
put_key(uint8_t *at, const struct program_key *key)
{
	return wal_put(wal_put(wal_put(at, key->start_ns), key->pid), key->index);
}

/* Writes which values are known, and those that are not 0. */
static inline uint8_t *
put_usage(uint8_t *at, const struct usage *u)
{
	return wal_put_numbers(wal_put(at, u->known), u->value, USAGE_FIELDS);
}

/* Writes the flags, the counters that are not 0, and the numbers of threads. */
static inline uint8_t *
put_counters(uint8_t *at, const struct counters *c)
{
	at = wal_put(at, (c->has_peak ? COUNTERS_HAS_PEAK : 0) | (c->has_block_io ? COUNTERS_HAS_BLOCK_IO : 0) |
	    (c->is_reaped ? COUNTERS_IS_REAPED : 0) | (c->is_complete ? COUNTERS_IS_COMPLETE : 0) |
	    (c->has_thrashing ? COUNTERS_HAS_THRASHING : 0) | (c->has_compact ? COUNTERS_HAS_COMPACT : 0) |
	    (c->has_odd_block_io ? COUNTERS_HAS_ODD_BLOCK_IO : 0));
	at = wal_put_numbers(at, (const uint64_t *)(const void *)c, COUNTERS_NUMBERS);
	return wal_put(wal_put(at, c->threads), c->threads_peak);
}

/* Writes the usage, then the other members in the order that get_work() has. */
static inline uint8_t *
put_work(uint8_t *at, const struct work *w)
{
	at = put_usage(at, &w->done);
	return wal_put_numbers(at, (const uint64_t[]){ w->programs, w->failed, w->live, w->start_ns, w->last_ns,
	    w->end_ns, w->busy_ns, w->busy_since_ns }, 8);
}

static inline uint8_t *
put_kill(uint8_t *at, const struct kill *k)
{
	at = wal_put(at, (k->is_of_program ? KILL_IS_OF_PROGRAM : 0) | (k->is_own ? KILL_IS_OWN : 0));
	at = wal_put(wal_put(at, k->time_ns), k->signal);
	at = put_key(put_key(at, &k->sender), &k->starter);
	at = wal_put(wal_put(at, k->pid), k->uid);
	return wal_put_string(wal_put_string(at, k->comm), k->starter_name);
}

/* Writes what was divided, and when last. */
static inline uint8_t *
put_own(uint8_t *at, const struct own_bill *o)
{
	at = wal_put_numbers(at, o->own_ns, BILL_PARTS);
	at = wal_put_numbers(at, o->threads_ns, BILL_PARTS);
	return wal_put(at, o->until_ns);
}

/* Writes the members in the order that get_context() has. */
static inline uint8_t *
put_context(uint8_t *at, const struct program_context *x)
{
	return wal_put_numbers(at, (const uint64_t[]){ x->uid, x->gid, x->pid_ns, x->mnt_ns, x->net_ns,
	    x->cgroup_v2, x->cgroup_v1 }, 7);
}

/* Writes the start as the small difference to that of the descendant. */
static inline uint8_t *
put_ancestor(uint8_t *at, const struct program_key *key, uint64_t start_ns)
{
	at = wal_put(at, key->pid);
	if (key->pid == 0)
		return at;
	return wal_put(wal_put(at, key->index), start_ns - key->start_ns);
}

#endif
