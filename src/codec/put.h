/*
 * SPDX-License-Identifier: Apache-2.0
 * put: writes the fields of one record in their order; private to encode*.c.
 *
 * Avro binary has no names and no tags: a field that is left out or out of turn shifts all after
 * it. So each call says which field it means, and the cursor refuses any but the next one.
 */
#ifndef SLUICE_CODEC_PUT_H
#define SLUICE_CODEC_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "model/record.h"

struct put {
	struct bytes	*out;	/* the caller's; what is written is added to it */
	size_t		 next;	/* index of the field whose turn it is */
	int		 error;	/* the first that happened, a negative errno; then all else is skipped */
};

void put_null(struct put *p, size_t index);
void put_string(struct put *p, size_t index, const char *text);	/* NULL is an error */
void put_string_or_null(struct put *p, size_t index, const char *text);
void put_long(struct put *p, size_t index, int64_t value);
void put_u64(struct put *p, size_t index, uint64_t value);	/* cut at the largest long */
void put_u64_or_null(struct put *p, size_t index, struct opt_u64 value);
void put_int(struct put *p, size_t index, int32_t value);
void put_u32(struct put *p, size_t index, uint32_t value);	/* cut at the largest int */
void put_i32_or_null(struct put *p, size_t index, struct opt_i32 value);
void put_double(struct put *p, size_t index, double value);
void put_double_or_null(struct put *p, size_t index, struct opt_double value);
void put_bool(struct put *p, size_t index, bool value);
void put_bool_or_null(struct put *p, size_t index, bool is_known, bool value);
/* symbol is below 0 or count: an error. */
void put_enum(struct put *p, size_t index, int symbol, int count);
void put_enum_or_null(struct put *p, size_t index, int symbol, int count);	/* below 0: null */

/* A record that is a field or an item: its fields go through the returned cursor, then end. */
struct put put_record_begin(struct put *p, size_t index, bool is_nullable);
struct put put_item_begin(struct put *p);
void put_record_end(struct put *p, const struct put *inner, size_t count);

/* An array of n items, which follow; then end. */
void put_array_begin(struct put *p, size_t index, bool is_nullable, size_t n);
void put_item_string(struct put *p, const char *text);
void put_array_end(struct put *p);

/* Bytes that were encoded before, and hold the fields from index up to but not with end. */
void put_encoded(struct put *p, size_t index, size_t end, const struct bytes *encoded);

#endif
