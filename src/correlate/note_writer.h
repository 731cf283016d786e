/*
 * SPDX-License-Identifier: Apache-2.0
 * note_writer: the fields of a note of the journal, one after the other; note_reader.h reads them again. Each
 * writes to at, where there is room (journal.c sees to it), and returns where the next one goes. Private to
 * journal.c, and inline, since a program's life writes some hundred of them.
 */
#ifndef SLUICE_CORRELATE_NOTE_WRITER_H
#define SLUICE_CORRELATE_NOTE_WRITER_H

#include <string.h>

#include "correlate/journal.h"
#include "correlate/state.h"

static inline uint8_t *
note_put_u64(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* With its NUL. */
static inline uint8_t *
note_put_string(uint8_t *at, const char *s)
{
	size_t size = strlen(s) + 1;

	memcpy(at, s, size);
	return at + size;
}

/* Which of them are not 0, and those. */
static inline uint8_t *
note_put_numbers(uint8_t *at, const uint64_t *values, size_t n)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint64_t)(values[i] != 0) << i;
	at = note_put_u64(at, mask);
	for (; mask != 0; mask &= mask - 1)
		at = note_put_u64(at, values[__builtin_ctzll(mask)]);
	return at;
}

static inline uint8_t *
note_put_usage(uint8_t *at, const struct usage *u)
{
	return note_put_numbers(note_put_u64(at, u->known), u->value, USAGE_FIELDS);
}

static inline uint8_t *
note_put_counters(uint8_t *at, const struct counters *c)
{
	at = note_put_u64(at, (c->has_peak ? COUNTERS_HAS_PEAK : 0) | (c->has_block_io ? COUNTERS_HAS_BLOCK_IO : 0) |
	    (c->is_reaped ? COUNTERS_IS_REAPED : 0) | (c->is_complete ? COUNTERS_IS_COMPLETE : 0));
	at = note_put_numbers(at, (const uint64_t *)(const void *)c, COUNTERS_NUMBERS);
	at = note_put_u64(at, c->threads);
	return note_put_u64(at, c->threads_peak);
}

static inline uint8_t *
note_put_work(uint8_t *at, const struct work *w)
{
	at = note_put_usage(at, &w->done);
	return note_put_numbers(at, (const uint64_t[]){ w->programs, w->failed, w->live, w->start_ns, w->last_ns,
	    w->end_ns, w->busy_ns, w->busy_since_ns }, 8);
}

static inline uint8_t *
note_put_id(uint8_t *at, const struct process_id *id)
{
	return note_put_u64(note_put_u64(at, id->start_ns), id->pid);
}

/* start_ns: of who descends from it, a small step away. */
static inline uint8_t *
note_put_ancestor(uint8_t *at, const struct program_key *key, uint64_t start_ns)
{
	at = note_put_u64(at, key->pid);
	if (key->pid == 0)
		return at;
	return note_put_u64(note_put_u64(at, key->index), start_ns - key->start_ns);
}

static inline uint8_t *
note_put_double(uint8_t *at, double value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *
note_put_key(uint8_t *at, const struct program_key *key)
{
	return note_put_u64(note_put_u64(note_put_u64(at, key->start_ns), key->pid), key->index);
}

#endif
