/*
 * SPDX-License-Identifier: Apache-2.0
 * fields: the fields of each topic's records, in the order of its .avsc: the name, how the value is
 * encoded, and where it is in the record's struct. A test compares this table with the schema
 * (tests/unit/fields_check.h), encode_record.c writes and decode_head.c reads by it.
 */
#ifndef SLUICE_CODEC_FIELDS_H
#define SLUICE_CODEC_FIELDS_H

#include <stddef.h>

#include "model/record.h"

/* How a field is encoded, and which C type is at its offset. */
enum field_kind {
	FIELD_TEXT,		/* const char *, never NULL */
	FIELD_TEXT_OR_NULL,	/* const char * */
	FIELD_TEXTS,		/* const char *const *, and their number at n_offset */
	FIELD_TEXTS_OR_NULL,	/* the same; NULL: null */
	FIELD_I64,		/* int64_t */
	FIELD_U64,		/* uint64_t, cut at the largest long */
	FIELD_U64_OR_NULL,	/* struct opt_u64 */
	FIELD_U32,		/* uint32_t, cut at the largest int */
	FIELD_I32_OR_NULL,	/* struct opt_i32 */
	FIELD_DOUBLE,		/* double */
	FIELD_DOUBLE_OR_NULL,	/* struct opt_double */
	FIELD_BOOL,		/* bool */
	FIELD_BOOL_OF_END,	/* bool of a struct program_record; null before its END */
	FIELD_ENUM,		/* an enum, whose values are the symbols' indexes */
	FIELD_ENUM_OR_NULL,	/* an enum; 0: null, and the symbols' indexes begin at 1 */
	FIELD_RECORD,		/* a struct, its fields are inner */
	FIELD_RECORD_OR_NULL,	/* a pointer to one; NULL: null */
	FIELD_RECORDS,		/* a pointer to structs of item_size, and their number at n_offset */
	FIELD_USAGE,		/* const struct usage *, never NULL */
	FIELD_USAGE_OR_NULL,	/* const struct usage * */
	/* Rows that cover all fields of inner, without a record around them. */
	FIELD_PART,		/* a struct */
	FIELD_IDENTITY,		/* no member: the bytes that struct encode_stamp has */
	/* Fields whose value is not in the record's struct. */
	FIELD_SEQ,		/* of struct encode_stamp */
	FIELD_SCHEMA_VERSION,
	FIELD_RUN_NAME,		/* of a struct work_record: its pipeline, else its run's id */
};

struct field_list {
	const struct field *fields;
	size_t n;
};

struct field {
	const char *name;	/* in the schema; NULL of a row that covers several */
	enum field_kind kind;
	size_t offset;
	size_t n_offset;
	size_t item_size;
	struct field_list inner;
	const char *(*symbol)(unsigned value);	/* of an enum; NULL beyond its last value */
};

/* The fields of a topic's records; none for TOPIC_COUNT. */
struct field_list fields_of(enum topic topic);
/* The fields that are the same in every record of an agent, of a struct agent_identity. */
extern const struct field_list fields_of_identity;
/* The fields that begin the records of every topic, of a struct record_head. */
extern const struct field_list fields_of_head;

#endif
