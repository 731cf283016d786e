/*
 * SPDX-License-Identifier: Apache-2.0
 * note_reader: the fields of a note, checked; journal.c writes them.
 */
#include "correlate/note_reader.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "correlate/journal.h"

uint64_t
note_get_u64(struct note_reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint64_t byte = *r->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	r->is_bad = true;
	return 0;
}

uint64_t
note_get_max(struct note_reader *r, uint64_t max)
{
	uint64_t value = note_get_u64(r);

	if (value > max)
		r->is_bad = true;
	return value <= max ? value : 0;
}

uint32_t
note_get_u32(struct note_reader *r)
{
	return (uint32_t)note_get_max(r, UINT32_MAX);
}

const char *
note_get_string(struct note_reader *r)
{
	const char *s = (const char *)r->at;
	const uint8_t *nul = r->at < r->end ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;
	size_t len = nul != NULL ? (size_t)(nul - r->at) : 0;

	if (nul == NULL) {
		r->is_bad = true;
		return "";
	}
	for (size_t i = 0, width; i < len; i += width) {
		width = (unsigned char)s[i] < 0x80 ? 1 : text_char(s + i, len - i);
		if (width == 0) {
			r->is_bad = true;
			return "";
		}
	}
	r->at = nul + 1;
	return s;
}

const char *
note_get_string_if(struct note_reader *r, bool is_there)
{
	return is_there ? note_get_string(r) : NULL;
}

void
note_get_numbers(struct note_reader *r, uint64_t *values, size_t n)
{
	uint64_t mask = note_get_max(r, (UINT64_C(1) << n) - 1);

	for (size_t i = 0; i < n; i++)
		values[i] = mask >> i & 1 ? note_get_u64(r) : 0;
}

void
note_get_usage(struct note_reader *r, struct usage *u)
{
	u->known = note_get_u32(r);
	note_get_numbers(r, u->value, USAGE_FIELDS);
}

void
note_get_counters(struct note_reader *r, struct counters *c)
{
	uint64_t flags = note_get_max(r, COUNTERS_FLAGS);

	c->has_peak = flags & COUNTERS_HAS_PEAK;
	c->has_block_io = flags & COUNTERS_HAS_BLOCK_IO;
	c->is_reaped = flags & COUNTERS_IS_REAPED;
	c->is_complete = flags & COUNTERS_IS_COMPLETE;
	note_get_numbers(r, (uint64_t *)(void *)c, COUNTERS_NUMBERS);
	c->threads = note_get_u32(r);
	c->threads_peak = note_get_u32(r);
}

void
note_get_work(struct note_reader *r, struct work *w)
{
	uint64_t v[8];

	note_get_usage(r, &w->done);
	note_get_numbers(r, v, 8);
	w->programs = v[0];
	w->failed = v[1];
	w->live = v[2];
	w->start_ns = v[3];
	w->last_ns = v[4];
	w->end_ns = v[5];
	w->busy_ns = v[6];
	w->busy_since_ns = v[7];
}

struct process_id
note_get_id(struct note_reader *r)
{
	struct process_id id;

	id.start_ns = note_get_u64(r);
	id.pid = note_get_u32(r);
	return id;
}

struct program_key
note_get_ancestor(struct note_reader *r, uint64_t start_ns)
{
	struct program_key key = { 0 };

	key.pid = note_get_u32(r);
	if (key.pid == 0)
		return key;
	key.index = note_get_u32(r);
	key.start_ns = start_ns - note_get_u64(r);
	return key;
}

struct program_key
note_get_key(struct note_reader *r)
{
	struct program_key key = { 0 };

	key.start_ns = note_get_u64(r);
	key.pid = note_get_u32(r);
	key.index = note_get_u32(r);
	return key;
}

int
note_reader_done(const struct note_reader *r)
{
	return r->is_bad || r->at != r->end ? -EBADMSG : 0;
}

double
note_get_double(struct note_reader *r)
{
	double value = 0;

	if ((size_t)(r->end - r->at) < sizeof(value)) {
		r->is_bad = true;
		return 0;
	}
	memcpy(&value, r->at, sizeof(value));
	r->at += sizeof(value);
	if (!(value >= 0 && value < 1e15))
		r->is_bad = true;
	return value;
}

double
note_get_confidence(struct note_reader *r)
{
	double value = note_get_double(r);

	if (value > 1)
		r->is_bad = true;
	return value;
}

const char *
note_get_name(struct note_reader *r, size_t size)
{
	const char *name = note_get_string(r);

	if (strlen(name) >= size)
		r->is_bad = true;
	return name;
}
