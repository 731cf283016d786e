/*
 * SPDX-License-Identifier: Apache-2.0
 * wal_reader: reads and checks the values of an entry.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/wal_codec.h"
#include "correlate/work.h"

/* Reads a LEB128 varint. */
static uint64_t
get(struct wal_reader *r)
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
wal_get_max(struct wal_reader *r, uint64_t max)
{
	uint64_t value = get(r);

	if (value > max)
		r->is_bad = true;
	return value <= max ? value : 0;
}

const char *
wal_get_string(struct wal_reader *r)
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
wal_get_name(struct wal_reader *r, size_t size)
{
	const char *name = wal_get_string(r);

	if (strlen(name) < size)
		return name;
	r->is_bad = true;
	return "";
}

/* Reads n values, n < 64, selected by the mask in front of them. */
static void
wal_get_numbers(struct wal_reader *r, uint64_t *values, size_t n)
{
	uint64_t mask = wal_get_max(r, (UINT64_C(1) << n) - 1);

	for (size_t i = 0; i < n; i++)
		values[i] = mask >> i & 1 ? get(r) : 0;
}

void
get_u64(struct wal_reader *r, uint64_t *value)
{
	*value = get(r);
}

void
get_i64(struct wal_reader *r, int64_t *value)
{
	*value = (int64_t)get(r);
}

void
get_u32(struct wal_reader *r, uint32_t *value)
{
	*value = (uint32_t)wal_get_max(r, UINT32_MAX);
}

void
get_i32(struct wal_reader *r, int32_t *value)
{
	*value = (int32_t)(uint32_t)wal_get_max(r, UINT32_MAX);
}

void
get_real(struct wal_reader *r, double *value)
{
	*value = 0;
	if ((size_t)(r->end - r->at) < sizeof(*value)) {
		r->is_bad = true;
		return;
	}
	memcpy(value, r->at, sizeof(*value));
	r->at += sizeof(*value);
	if (!(*value >= 0 && *value < 1e15))
		r->is_bad = true;
}

void
get_confidence(struct wal_reader *r, double *value)
{
	get_real(r, value);
	if (*value > 1)
		r->is_bad = true;
}

void
get_strength(struct wal_reader *r, enum engine_strength *value)
{
	*value = (enum engine_strength)wal_get_max(r, STRENGTH_EXPLICIT);
}

void
get_source(struct wal_reader *r, enum peak_source *value)
{
	*value = (enum peak_source)wal_get_max(r, PEAK_SOURCES - 1);
}

void
get_meter(struct wal_reader *r, enum energy_source *value)
{
	*value = (enum energy_source)wal_get_max(r, ENERGY_SOURCES - 1);
}

void
get_id(struct wal_reader *r, struct process_id *id)
{
	uint32_t pid;

	get_u64(r, &id->start_ns);
	get_u32(r, &pid);
	id->pid = pid;
}

void
get_key(struct wal_reader *r, struct program_key *key)
{
	get_u64(r, &key->start_ns);
	get_u32(r, &key->pid);
	get_u32(r, &key->index);
}

void
get_ancestor(struct wal_reader *r, struct program_key *key, uint64_t start_ns)
{
	*key = (struct program_key){ 0 };
	get_u32(r, &key->pid);
	if (key->pid == 0)
		return;
	get_u32(r, &key->index);
	key->start_ns = start_ns - get(r);
}

void
get_context(struct wal_reader *r, struct program_context *x)
{
	uint64_t v[7];

	wal_get_numbers(r, v, 7);
	for (int i = 0; i < 5; i++)
		r->is_bad |= v[i] > UINT32_MAX;
	*x = (struct program_context){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (uint32_t)v[3],
		(uint32_t)v[4], v[5], v[6] };
}

void
get_usage(struct wal_reader *r, struct usage *u)
{
	u->known = get(r);
	wal_get_numbers(r, u->value, USAGE_FIELDS);
}

void
get_counters(struct wal_reader *r, struct counters *c)
{
	uint64_t flags = wal_get_max(r, COUNTERS_FLAGS);

	c->has_peak = flags & COUNTERS_HAS_PEAK;
	c->has_block_io = flags & COUNTERS_HAS_BLOCK_IO;
	c->has_thrashing = flags & COUNTERS_HAS_THRASHING;
	c->has_compact = flags & COUNTERS_HAS_COMPACT;
	c->has_odd_block_io = flags & COUNTERS_HAS_ODD_BLOCK_IO;
	c->is_reaped = flags & COUNTERS_IS_REAPED;
	c->is_complete = flags & COUNTERS_IS_COMPLETE;
	wal_get_numbers(r, (uint64_t *)(void *)c, COUNTERS_NUMBERS);
	get_u32(r, &c->threads);
	get_u32(r, &c->threads_peak);
}

void
get_work(struct wal_reader *r, struct work *w)
{
	uint64_t v[8];

	get_usage(r, &w->done);
	wal_get_numbers(r, v, 8);
	w->programs = v[0];
	w->failed = v[1];
	w->live = v[2];
	w->start_ns = v[3];
	w->last_ns = v[4];
	w->end_ns = v[5];
	w->busy_ns = v[6];
	w->busy_since_ns = v[7];
}

void
get_kill(struct wal_reader *r, struct kill *k)
{
	uint64_t flags = wal_get_max(r, KILL_FLAGS);

	k->is_of_program = flags & KILL_IS_OF_PROGRAM;
	k->is_own = flags & KILL_IS_OWN;
	get_u64(r, &k->time_ns);
	get_u32(r, &k->signal);
	get_key(r, &k->sender);
	get_key(r, &k->starter);
	get_u32(r, &k->pid);
	get_u32(r, &k->uid);
	strcpy(k->comm, wal_get_name(r, sizeof(k->comm)));
	strcpy(k->starter_name, wal_get_name(r, sizeof(k->starter_name)));
}

void
get_own(struct wal_reader *r, struct own_bill *o)
{
	wal_get_numbers(r, o->own_ns, BILL_PARTS);
	wal_get_numbers(r, o->threads_ns, BILL_PARTS);
	get_u64(r, &o->until_ns);
}

int
wal_reader_done(const struct wal_reader *r)
{
	return r->is_bad || r->at != r->end ? -EBADMSG : 0;
}
