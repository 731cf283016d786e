/*
 * SPDX-License-Identifier: Apache-2.0
 * decode_head: one loop over the fields of the head, which skips those that are not wanted.
 */
#include "codec/decode_head.h"

#include "codec/fields.h"
#include "codec/varint.h"

/* Moves *at behind n texts. */
static inline bool
skip_texts(const uint8_t *data, size_t len, size_t *at, size_t n)
{
	int64_t text_len;

	for (; n > 0; n--) {
		/* A negative length is larger than any as unsigned. */
		if (varint_read(data, len, at, &text_len) != VARINT_OK || (uint64_t)text_len > len - *at)
			return false;
		*at += (size_t)text_len;
	}
	return true;
}

bool
decode_head(const void *data, size_t len, struct decoded_head *ret)
{
	struct decoded_head head = { 0 };
	size_t at = 0;

	for (const struct field *f = fields_of_head.fields; f < fields_of_head.fields + fields_of_head.n; f++) {
		size_t n_texts = 0;
		int64_t value = 0;

		if (f->kind != FIELD_IDENTITY && varint_read(data, len, &at, &value) != VARINT_OK)
			return false;
		switch (f->kind) {
		case FIELD_IDENTITY:
			n_texts = f->inner.n;
			break;
		case FIELD_TEXT_OR_NULL:
			if (value < 0 || value > 1)
				return false;
			n_texts = (size_t)value;
			break;
		case FIELD_SEQ:
			head.seq = (uint64_t)value;
			break;
		case FIELD_SCHEMA_VERSION:
			if (value < 0 || value > INT32_MAX)
				return false;
			head.schema_version = (int32_t)value;
			break;
		case FIELD_I64:
			if (f->offset == offsetof(struct record_head, time_us))
				head.time_us = value;
			break;
		default:
			return false;	/* the head has no other kinds */
		}
		if (!skip_texts(data, len, &at, n_texts))
			return false;
	}
	*ret = head;
	return true;
}
