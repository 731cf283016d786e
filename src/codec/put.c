/*
 * SPDX-License-Identifier: Apache-2.0
 * put: writes the fields of one record in their order.
 */
#include "codec/put.h"

#include <errno.h>
#include <string.h>

#include "codec/varint.h"

/* The branches of every union of ours: ["null", X]. */
enum {
	BRANCH_NULL = 0,
	BRANCH_VALUE = 2,	/* index 1, zigzag */
};

static void
fail(struct put *p, int error)
{
	if (p->error == 0)
		p->error = error;
}

/* Room for len bytes; false when something has failed, before or now. */
static inline bool
room(struct put *p, size_t len)
{
	if (p->error == 0 && p->out->cap - p->out->len < len)
		p->error = bytes_reserve(p->out, len);
	return p->error == 0;
}

/* The same for the field whose turn it is; any other is an error. */
static inline bool
turn(struct put *p, size_t index, size_t len)
{
	if (index != p->next)
		fail(p, -EPROTO);
	p->next++;
	return room(p, len);
}

/* The writers below need room() first. */
static inline void
write_byte(struct put *p, uint8_t byte)
{
	p->out->data[p->out->len++] = byte;
}

static inline void
write_long(struct put *p, int64_t value)
{
	p->out->len += varint_write(p->out->data + p->out->len, value);
}

/* Avro's doubles are little-endian on any machine. */
static inline void
write_double(struct put *p, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	for (int i = 0; i < 8; i++)
		write_byte(p, (uint8_t)(bits >> (8 * i)));
}

static inline void
write_text(struct put *p, const char *text, size_t len)
{
	write_long(p, (int64_t)len);
	memcpy(p->out->data + p->out->len, text, len);
	p->out->len += len;
}

void
put_null(struct put *p, size_t index)
{
	if (turn(p, index, 1))
		write_byte(p, BRANCH_NULL);
}

void
put_string(struct put *p, size_t index, const char *text)
{
	size_t len;

	if (text == NULL) {
		fail(p, -EINVAL);
		return;
	}
	len = strlen(text);
	if (turn(p, index, VARINT_MAX_BYTES + len))
		write_text(p, text, len);
}

void
put_string_or_null(struct put *p, size_t index, const char *text)
{
	size_t len;

	if (text == NULL) {
		put_null(p, index);
		return;
	}
	len = strlen(text);
	if (turn(p, index, 1 + VARINT_MAX_BYTES + len)) {
		write_byte(p, BRANCH_VALUE);
		write_text(p, text, len);
	}
}

void
put_long(struct put *p, size_t index, int64_t value)
{
	if (turn(p, index, VARINT_MAX_BYTES))
		write_long(p, value);
}

static int64_t
clip(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

void
put_u64(struct put *p, size_t index, uint64_t value)
{
	put_long(p, index, clip(value));
}

void
put_u64_or_null(struct put *p, size_t index, struct opt_u64 value)
{
	if (!turn(p, index, 1 + VARINT_MAX_BYTES))
		return;
	if (!value.known) {
		write_byte(p, BRANCH_NULL);
		return;
	}
	write_byte(p, BRANCH_VALUE);
	write_long(p, clip(value.value));
}

void
put_int(struct put *p, size_t index, int32_t value)
{
	put_long(p, index, value);	/* an int is written as a long is */
}

void
put_u32(struct put *p, size_t index, uint32_t value)
{
	put_long(p, index, value > INT32_MAX ? INT32_MAX : (int32_t)value);
}

void
put_i32_or_null(struct put *p, size_t index, struct opt_i32 value)
{
	if (!turn(p, index, 1 + VARINT_MAX_BYTES))
		return;
	if (!value.known) {
		write_byte(p, BRANCH_NULL);
		return;
	}
	write_byte(p, BRANCH_VALUE);
	write_long(p, value.value);
}

void
put_double(struct put *p, size_t index, double value)
{
	if (turn(p, index, 8))
		write_double(p, value);
}

void
put_double_or_null(struct put *p, size_t index, struct opt_double value)
{
	if (!turn(p, index, 1 + 8))
		return;
	if (!value.known) {
		write_byte(p, BRANCH_NULL);
		return;
	}
	write_byte(p, BRANCH_VALUE);
	write_double(p, value.value);
}

void
put_bool(struct put *p, size_t index, bool value)
{
	if (turn(p, index, 1))
		write_byte(p, value);
}

void
put_bool_or_null(struct put *p, size_t index, bool is_known, bool value)
{
	if (!turn(p, index, 2))
		return;
	if (!is_known) {
		write_byte(p, BRANCH_NULL);
		return;
	}
	write_byte(p, BRANCH_VALUE);
	write_byte(p, value);
}

void
put_enum(struct put *p, size_t index, int symbol, int count)
{
	if (symbol < 0 || symbol >= count)
		fail(p, -EINVAL);
	put_long(p, index, symbol);
}

void
put_enum_or_null(struct put *p, size_t index, int symbol, int count)
{
	if (symbol < 0) {
		put_null(p, index);
		return;
	}
	if (symbol >= count)
		fail(p, -EINVAL);
	if (turn(p, index, 1 + VARINT_MAX_BYTES)) {
		write_byte(p, BRANCH_VALUE);
		write_long(p, symbol);
	}
}

struct put
put_record_begin(struct put *p, size_t index, bool is_nullable)
{
	if (turn(p, index, 1) && is_nullable)
		write_byte(p, BRANCH_VALUE);
	return put_item_begin(p);
}

struct put
put_item_begin(struct put *p)
{
	return (struct put){ .out = p->out, .error = p->error };
}

void
put_record_end(struct put *p, const struct put *inner, size_t count)
{
	if (inner->error != 0)
		fail(p, inner->error);
	else if (inner->next != count)
		fail(p, -EPROTO);
}

void
put_array_begin(struct put *p, size_t index, bool is_nullable, size_t n)
{
	if (!turn(p, index, 1 + VARINT_MAX_BYTES))
		return;
	if (is_nullable)
		write_byte(p, BRANCH_VALUE);
	if (n > 0)
		write_long(p, (int64_t)n);
}

void
put_item_string(struct put *p, const char *text)
{
	size_t len;

	if (text == NULL) {
		fail(p, -EINVAL);
		return;
	}
	len = strlen(text);
	if (room(p, VARINT_MAX_BYTES + len))
		write_text(p, text, len);
}

/* A block of no items ends an array; an empty array is that block alone. */
void
put_array_end(struct put *p)
{
	if (room(p, 1))
		write_byte(p, 0);
}

void
put_encoded(struct put *p, size_t index, size_t end, const struct bytes *encoded)
{
	if (!turn(p, index, encoded->len))
		return;
	memcpy(p->out->data + p->out->len, encoded->data, encoded->len);
	p->out->len += encoded->len;
	p->next = end;
}
