/*
 * SPDX-License-Identifier: Apache-2.0
 * encode_record: one loop over the fields of a record. Avro binary has no names and no tags: the order of the list
 * is all that separates one field from the next.
 */
#include "codec/encode_record.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/endian.h"
#include "codec/varint.h"

enum {
	/* The branches of every union of ours: ["null", X]. */
	BRANCH_NULL = 0,
	BRANCH_VALUE = 2,	/* index 1, zigzag */
	SCALAR_MAX = 1 + VARINT_MAX_BYTES,	/* a branch and any number */
};

/*
 * One record that is being encoded. put_TYPE() writes at `at` and returns the end; at a scalar there is room for
 * SCALAR_MAX, and what takes more makes room for itself and for `rest` bytes behind it: the scalars that follow. So
 * the buffer is checked once for many fields, and its length is written back only before it grows.
 */
struct encoding {
	struct bytes *out;
	const struct encode_stamp *stamp;
	int error;		/* once a function has returned NULL */
};

static uint8_t *put_fields(struct encoding *e, uint8_t *at, struct field_list list, const void *record, size_t rest);

static uint8_t *
fail(struct encoding *e, int error)
{
	e->error = error;
	return NULL;
}

/* Returns `at`, with room for len bytes: in a buffer that may have moved. NULL: no memory. */
static inline uint8_t *
room(struct encoding *e, uint8_t *at, size_t len)
{
	struct bytes *out = e->out;

	if ((size_t)(out->data + out->cap - at) >= len)
		return at;
	out->len = (size_t)(at - out->data);
	return bytes_reserve(out, len) == 0 ? out->data + out->len : fail(e, -ENOMEM);
}

static inline uint8_t *
put_long(uint8_t *at, int64_t value)
{
	return at + varint_write(at, value);
}

static inline uint8_t *
put_u64(uint8_t *at, uint64_t value)
{
	return put_long(at, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Avro's doubles are little-endian on any machine. */
static inline uint8_t *
put_double(uint8_t *at, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	le_put64(at, bits);
	return at + sizeof(bits);
}

/* The branch of a union: whether a value follows. */
static inline uint8_t *
put_branch(uint8_t *at, bool is_known)
{
	*at = is_known ? BRANCH_VALUE : BRANCH_NULL;
	return at + 1;
}

/* Most texts are short: their length is one byte. */
static inline uint8_t *
put_text(struct encoding *e, uint8_t *at, const char *text, size_t rest)
{
	size_t len;

	if (text == NULL)
		return fail(e, -EINVAL);
	len = strlen(text);
	at = room(e, at, VARINT_MAX_BYTES + len + rest);
	if (at == NULL)
		return NULL;
	if (len < 64)
		*at++ = (uint8_t)(2 * len);	/* zigzag */
	else
		at = put_long(at, (int64_t)len);
	memcpy(at, text, len);
	return at + len;
}

static uint8_t *
put_usage(struct encoding *e, uint8_t *at, const struct usage *u, size_t rest)
{
	at = u != NULL ? room(e, at, USAGE_FIELDS * SCALAR_MAX + rest) : fail(e, -EINVAL);
	for (size_t i = 0; at != NULL && i < USAGE_FIELDS; i++) {
		at = put_branch(at, usage_has(u, i));
		if (usage_has(u, i))
			at = put_u64(at, u->value[i]);
	}
	return at;
}

/* An array: a block of its items, unless there are none, and the block of no items that ends it. */
static uint8_t *
put_array(struct encoding *e, uint8_t *at, const struct field *f, const char *items, size_t n, size_t rest)
{
	rest += VARINT_MAX_BYTES;
	at = room(e, at, VARINT_MAX_BYTES + rest);
	if (at != NULL && n > 0)
		at = put_long(at, (int64_t)n);
	for (size_t i = 0; at != NULL && i < n; i++) {
		if (f->kind == FIELD_RECORDS)
			at = put_fields(e, at, f->inner, items + i * f->item_size, rest);
		else
			at = put_text(e, at, ((const char *const *)items)[i], rest);
	}
	return at != NULL ? put_long(at, 0) : NULL;
}

static uint8_t *
put_enum(struct encoding *e, uint8_t *at, const struct field *f, unsigned value)
{
	unsigned first = f->kind == FIELD_ENUM_OR_NULL;

	if (first > 0) {
		at = put_branch(at, value != 0);
		if (value == 0)
			return at;
	}
	return f->symbol(value) != NULL ? put_long(at, value - first) : fail(e, -EINVAL);
}

/* The bytes that every record of the agent has. */
static uint8_t *
put_identity(struct encoding *e, uint8_t *at, size_t rest)
{
	const struct bytes *identity = e->stamp->identity;

	at = room(e, at, identity->len + rest);
	return at != NULL ? (uint8_t *)memcpy(at, identity->data, identity->len) + identity->len : NULL;
}

static const char *
run_name(const struct work_record *r)
{
	return r->head.pipeline != NULL ? r->head.pipeline : r->head.run_id;
}

/* One field of record. */
static inline uint8_t *
put_field(struct encoding *e, uint8_t *at, const struct field *f, const void *record, size_t rest)
{
#define VALUE(type) (*(const type *)value)
#define N_ITEMS (*(const size_t *)((const char *)record + f->n_offset))
	const void *value = (const char *)record + f->offset;
	const char *text;

	switch (f->kind) {
	case FIELD_TEXT:
		return put_text(e, at, VALUE(char *const), rest);
	case FIELD_RUN_NAME:
	case FIELD_TEXT_OR_NULL:
		text = f->kind == FIELD_RUN_NAME ? run_name(record) : VALUE(char *const);
		at = put_branch(at, text != NULL);
		return text != NULL ? put_text(e, at, text, rest) : at;
	case FIELD_TEXTS_OR_NULL:
		at = put_branch(at, VALUE(void *const) != NULL);
		return VALUE(void *const) != NULL ? put_array(e, at, f, VALUE(char *const), N_ITEMS, rest) : at;
	case FIELD_TEXTS:
	case FIELD_RECORDS:
		return put_array(e, at, f, VALUE(char *const), N_ITEMS, rest);
	case FIELD_I64:
		return put_long(at, VALUE(int64_t));
	case FIELD_U64:
		return put_u64(at, VALUE(uint64_t));
	case FIELD_U64_OR_NULL:
		at = put_branch(at, VALUE(struct opt_u64).known);
		return VALUE(struct opt_u64).known ? put_u64(at, VALUE(struct opt_u64).value) : at;
	case FIELD_U32:
		return put_long(at, VALUE(uint32_t) > INT32_MAX ? INT32_MAX : (int32_t)VALUE(uint32_t));
	case FIELD_I32_OR_NULL:
		at = put_branch(at, VALUE(struct opt_i32).known);
		return VALUE(struct opt_i32).known ? put_long(at, VALUE(struct opt_i32).value) : at;
	case FIELD_DOUBLE:
		return put_double(at, VALUE(double));
	case FIELD_DOUBLE_OR_NULL:
		at = put_branch(at, VALUE(struct opt_double).known);
		return VALUE(struct opt_double).known ? put_double(at, VALUE(struct opt_double).value) : at;
	case FIELD_BOOL_OF_END:
		at = put_branch(at, ((const struct program_record *)record)->phase == PHASE_END);
		if (((const struct program_record *)record)->phase != PHASE_END)
			return at;
		/* fall through */
	case FIELD_BOOL:
		*at = VALUE(bool);
		return at + 1;
	case FIELD_ENUM:
	case FIELD_ENUM_OR_NULL:
		return put_enum(e, at, f, VALUE(unsigned));
	case FIELD_USAGE_OR_NULL:
		at = put_branch(at, VALUE(void *const) != NULL);
		if (VALUE(void *const) == NULL)
			return at;
		/* fall through */
	case FIELD_USAGE:
		return put_usage(e, at, VALUE(struct usage *const), rest);
	case FIELD_RECORD_OR_NULL:
		at = put_branch(at, VALUE(void *const) != NULL);
		return VALUE(void *const) != NULL ? put_fields(e, at, f->inner, VALUE(void *const), rest) : at;
	case FIELD_RECORD:
	case FIELD_PART:
		return put_fields(e, at, f->inner, value, rest);
	case FIELD_IDENTITY:
		return put_identity(e, at, rest);
	case FIELD_SEQ:
		return put_u64(at, e->stamp->seq);
	case FIELD_SCHEMA_VERSION:
		return put_long(at, RECORD_SCHEMA_VERSION);
	}
	return fail(e, -EINVAL);
#undef VALUE
#undef N_ITEMS
}

static uint8_t *
put_fields(struct encoding *e, uint8_t *at, struct field_list list, const void *record, size_t rest)
{
	const struct field *end = list.fields + list.n;

	rest += list.n * SCALAR_MAX;
	at = room(e, at, rest);
	for (const struct field *f = list.fields; at != NULL && f < end; f++) {
		rest -= SCALAR_MAX;
		at = put_field(e, at, f, record, rest);
	}
	return at;
}

int
encode_record(struct bytes *out, struct field_list list, const void *record, const struct encode_stamp *stamp)
{
	struct encoding e = { .out = out, .stamp = stamp };
	const uint8_t *end;
	int r = bytes_reserve(out, SCALAR_MAX);		/* an empty buffer has no address */

	if (r < 0)
		return r;
	end = put_fields(&e, out->data + out->len, list, record, 0);
	if (end == NULL)
		return e.error;
	out->len = (size_t)(end - out->data);
	return 0;
}
