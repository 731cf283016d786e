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

/* Room for len bytes: 0 or -ENOMEM. Each write_…() needs it first; each put_…() reserves its own. */
static inline int
room(struct bytes *out, size_t len)
{
	return out->cap - out->len >= len ? 0 : bytes_reserve(out, len);
}

static inline void
write_byte(struct bytes *out, uint8_t byte)
{
	out->data[out->len++] = byte;
}

static inline void
write_long(struct bytes *out, int64_t value)
{
	out->len += varint_write(out->data + out->len, value);
}

static inline void
write_u64(struct bytes *out, uint64_t value)
{
	write_long(out, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Avro's doubles are little-endian on any machine. */
static inline void
write_double(struct bytes *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	le_put64(out->data + out->len, bits);
	out->len += sizeof(bits);
}

/* The branch of a union: whether a value follows. */
static inline bool
write_branch(struct bytes *out, bool is_known)
{
	write_byte(out, is_known ? BRANCH_VALUE : BRANCH_NULL);
	return is_known;
}

static int
put_text(struct bytes *out, const char *text)
{
	size_t len;
	int r;

	if (text == NULL)
		return -EINVAL;
	len = strlen(text);
	r = room(out, VARINT_MAX_BYTES + len);
	if (r < 0)
		return r;
	write_long(out, (int64_t)len);
	memcpy(out->data + out->len, text, len);
	out->len += len;
	return 0;
}

static int
put_usage(struct bytes *out, const struct usage *u)
{
	int r = u != NULL ? room(out, USAGE_FIELDS * SCALAR_MAX) : -EINVAL;

	if (r < 0)
		return r;
	for (size_t i = 0; i < USAGE_FIELDS; i++) {
		if (write_branch(out, usage_has(u, i)))
			write_u64(out, u->value[i]);
	}
	return 0;
}

/* An array: a block of its items, unless there are none, and the block of no items that ends it. */
static int
put_array(struct bytes *out, const struct field *f, const char *items, size_t n)
{
	int r = room(out, VARINT_MAX_BYTES);

	if (r < 0)
		return r;
	if (n > 0)
		write_long(out, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		r = f->kind == FIELD_RECORDS ? encode_record(out, f->inner, items + i * f->item_size, NULL) :
		    put_text(out, ((const char *const *)items)[i]);
		if (r < 0)
			return r;
	}
	r = room(out, 1);
	if (r == 0)
		write_byte(out, 0);
	return r;
}

static int
put_enum(struct bytes *out, const struct field *f, unsigned value)
{
	unsigned first = f->kind == FIELD_ENUM_OR_NULL;

	if (first > 0 && !write_branch(out, value != 0))
		return 0;
	if (f->symbol(value) == NULL)
		return -EINVAL;
	write_long(out, value - first);
	return 0;
}

static const char *
run_name(const struct work_record *r)
{
	return r->head.pipeline != NULL ? r->head.pipeline : r->head.run_id;
}

/* One field of record; there is room for SCALAR_MAX. */
static inline int
put_field(struct bytes *out, const struct field *f, const void *record, const struct encode_stamp *stamp)
{
#define VALUE(type) (*(const type *)value)
#define N_ITEMS (*(const size_t *)((const char *)record + f->n_offset))
	const void *value = (const char *)record + f->offset;
	const char *text;

	switch (f->kind) {
	case FIELD_TEXT:
		return put_text(out, VALUE(char *const));
	case FIELD_RUN_NAME:
	case FIELD_TEXT_OR_NULL:
		text = f->kind == FIELD_RUN_NAME ? run_name(record) : VALUE(char *const);
		return write_branch(out, text != NULL) ? put_text(out, text) : 0;
	case FIELD_TEXTS_OR_NULL:
		if (!write_branch(out, VALUE(void *const) != NULL))
			return 0;
		return put_array(out, f, VALUE(char *const), N_ITEMS);
	case FIELD_TEXTS:
	case FIELD_RECORDS:
		return put_array(out, f, VALUE(char *const), N_ITEMS);
	case FIELD_I64:
		write_long(out, VALUE(int64_t));
		return 0;
	case FIELD_U64:
		write_u64(out, VALUE(uint64_t));
		return 0;
	case FIELD_U64_OR_NULL:
		if (write_branch(out, VALUE(struct opt_u64).known))
			write_u64(out, VALUE(struct opt_u64).value);
		return 0;
	case FIELD_U32:
		write_long(out, VALUE(uint32_t) > INT32_MAX ? INT32_MAX : (int32_t)VALUE(uint32_t));
		return 0;
	case FIELD_I32_OR_NULL:
		if (write_branch(out, VALUE(struct opt_i32).known))
			write_long(out, VALUE(struct opt_i32).value);
		return 0;
	case FIELD_DOUBLE:
		write_double(out, VALUE(double));
		return 0;
	case FIELD_DOUBLE_OR_NULL:
		if (write_branch(out, VALUE(struct opt_double).known))
			write_double(out, VALUE(struct opt_double).value);
		return 0;
	case FIELD_BOOL_OF_END:
		if (!write_branch(out, ((const struct program_record *)record)->phase == PHASE_END))
			return 0;
		/* fall through */
	case FIELD_BOOL:
		write_byte(out, VALUE(bool));
		return 0;
	case FIELD_ENUM:
	case FIELD_ENUM_OR_NULL:
		return put_enum(out, f, VALUE(unsigned));
	case FIELD_USAGE_OR_NULL:
		if (!write_branch(out, VALUE(void *const) != NULL))
			return 0;
		/* fall through */
	case FIELD_USAGE:
		return put_usage(out, VALUE(struct usage *const));
	case FIELD_RECORD:
	case FIELD_PART:
		return encode_record(out, f->inner, value, stamp);
	case FIELD_IDENTITY:
		return bytes_append(out, stamp->identity->data, stamp->identity->len);
	case FIELD_SEQ:
		write_u64(out, stamp->seq);
		return 0;
	case FIELD_SCHEMA_VERSION:
		write_long(out, RECORD_SCHEMA_VERSION);
		return 0;
	}
	return -EINVAL;
#undef VALUE
#undef N_ITEMS
}

int
encode_record(struct bytes *out, struct field_list list, const void *record, const struct encode_stamp *stamp)
{
	for (const struct field *f = list.fields; f < list.fields + list.n; f++) {
		int r = room(out, SCALAR_MAX);

		if (r == 0)
			r = put_field(out, f, record, stamp);
		if (r < 0)
			return r;
	}
	return 0;
}
