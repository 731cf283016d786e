/*
 * SPDX-License-Identifier: Apache-2.0
 * fields_check: compares the table of fields with a parsed schema. So an edit of one of the two alone fails a test
 * instead of shifting values into wrong fields.
 */
#ifndef SLUICE_TESTS_UNIT_FIELDS_CHECK_H
#define SLUICE_TESTS_UNIT_FIELDS_CHECK_H

#include <avro.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "codec/fields.h"
#include "model/record.h"

/* The Avro type of each kind; none of a row that covers several fields. */
static const struct {
	avro_type_t type;
	bool is_nullable;
} types[] = {
	[FIELD_TEXT] = { AVRO_STRING, false },
	[FIELD_TEXT_OR_NULL] = { AVRO_STRING, true },
	[FIELD_TEXTS] = { AVRO_ARRAY, false },
	[FIELD_TEXTS_OR_NULL] = { AVRO_ARRAY, true },
	[FIELD_I64] = { AVRO_INT64, false },
	[FIELD_U64] = { AVRO_INT64, false },
	[FIELD_U64_OR_NULL] = { AVRO_INT64, true },
	[FIELD_U32] = { AVRO_INT32, false },
	[FIELD_I32_OR_NULL] = { AVRO_INT32, true },
	[FIELD_DOUBLE] = { AVRO_DOUBLE, false },
	[FIELD_DOUBLE_OR_NULL] = { AVRO_DOUBLE, true },
	[FIELD_BOOL] = { AVRO_BOOLEAN, false },
	[FIELD_BOOL_OF_END] = { AVRO_BOOLEAN, true },
	[FIELD_ENUM] = { AVRO_ENUM, false },
	[FIELD_ENUM_OR_NULL] = { AVRO_ENUM, true },
	[FIELD_RECORD] = { AVRO_RECORD, false },
	[FIELD_RECORD_OR_NULL] = { AVRO_RECORD, true },
	[FIELD_RECORDS] = { AVRO_ARRAY, false },
	[FIELD_USAGE] = { AVRO_RECORD, false },
	[FIELD_USAGE_OR_NULL] = { AVRO_RECORD, true },
	[FIELD_SEQ] = { AVRO_INT64, false },
	[FIELD_SCHEMA_VERSION] = { AVRO_INT32, false },
	[FIELD_RUN_NAME] = { AVRO_STRING, true },
};

struct error {
	char *text;
	size_t size;
};

static int __attribute__((format(printf, 2, 3)))
differs(struct error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, err->size, format, ap);
	va_end(ap);
	return -EPROTO;
}

static avro_schema_t
resolve(avro_schema_t schema)
{
	return is_avro_link(schema) ? avro_schema_link_target(schema) : schema;
}

/* The schema behind ["null", X]; NULL when it is not such a union. */
static avro_schema_t
nullable_of(avro_schema_t schema)
{
	if (!is_avro_union(schema) || avro_schema_union_size(schema) != 2 ||
	    !is_avro_null(avro_schema_union_branch(schema, 0)))
		return NULL;
	return resolve(avro_schema_union_branch(schema, 1));
}

static int check_inner(const char *record, const struct field *field, avro_schema_t schema, struct error *err);

/* The fields of a list, from *index of the record on, which is moved behind them. */
static int
check_list(const char *record, avro_schema_t schema, struct field_list list, size_t *index, struct error *err)
{
	for (const struct field *f = list.fields; f < list.fields + list.n; f++) {
		const char *name;
		avro_schema_t type;
		int r;

		if (f->kind == FIELD_PART || f->kind == FIELD_IDENTITY) {
			r = check_list(record, schema, f->inner, index, err);
			if (r < 0)
				return r;
			continue;
		}
		name = *index < avro_schema_record_size(schema) ?
		    avro_schema_record_field_name(schema, (int)*index) : "(none)";
		if (strcmp(name, f->name) != 0)
			return differs(err, "schema %s: field %zu is \"%s\", and the program would write \"%s\" there", record,
			    *index, name, f->name);
		type = resolve(avro_schema_record_field_get_by_index(schema, (int)*index));
		if (types[f->kind].is_nullable)
			type = nullable_of(type);
		if (type == NULL || avro_typeof(type) != types[f->kind].type)
			return differs(err, "schema %s: field \"%s\" has another type than the program writes", record, name);
		r = check_inner(record, f, type, err);
		if (r < 0)
			return r;
		++*index;
	}
	return 0;
}

static int
check_record(const char *record, avro_schema_t schema, struct field_list list, struct error *err)
{
	size_t n = 0;
	int r;

	if (!is_avro_record(schema))
		return differs(err, "schema %s: not a record", record);
	r = check_list(record, schema, list, &n, err);
	if (r < 0)
		return r;
	if (avro_schema_record_size(schema) != n)
		return differs(err, "schema %s: field %zu, \"%s\", is one that the program does not write", record, n,
		    avro_schema_record_field_name(schema, (int)n));
	return 0;
}

static int
check_usage(const char *record, avro_schema_t schema, struct error *err)
{
	struct field fields[USAGE_FIELDS];

	for (int i = 0; i < USAGE_FIELDS; i++)
		fields[i] = (struct field){ usage_name(i), FIELD_U64_OR_NULL };
	return check_record(record, schema, (struct field_list){ fields, USAGE_FIELDS }, err);
}

/* Symbols in the order of a C enum; from first, its first value that is not null. */
static int
check_enum(const char *record, avro_schema_t schema, const char *(*symbol)(unsigned), unsigned first, struct error *err)
{
	int n = avro_schema_enum_number_of_symbols(schema);

	for (int i = 0; i < n || symbol(first + (unsigned)i) != NULL; i++) {
		const char *want = symbol(first + (unsigned)i);
		const char *have = i < n ? avro_schema_enum_get(schema, i) : "(none)";

		if (want == NULL || strcmp(have, want) != 0)
			return differs(err, "schema %s: symbol %d of %s is %s, and the program means %s", record, i,
			    avro_schema_name(schema), have, want ? want : "(none)");
	}
	return 0;
}

/* What is inside a field: symbols, items, nested records. */
static int
check_inner(const char *record, const struct field *field, avro_schema_t schema, struct error *err)
{
	char inner[128];

	snprintf(inner, sizeof(inner), "%s.%s", record, field->name);
	switch (field->kind) {
	case FIELD_ENUM:
		return check_enum(record, schema, field->symbol, 0, err);
	case FIELD_ENUM_OR_NULL:
		return check_enum(record, schema, field->symbol, 1, err);
	case FIELD_USAGE:
	case FIELD_USAGE_OR_NULL:
		return check_usage(inner, schema, err);
	case FIELD_RECORD:
	case FIELD_RECORD_OR_NULL:
		return check_record(inner, schema, field->inner, err);
	case FIELD_RECORDS:
		return check_record(inner, resolve(avro_schema_array_items(schema)), field->inner, err);
	case FIELD_TEXTS:
	case FIELD_TEXTS_OR_NULL:
		if (!is_avro_string(avro_schema_array_items(schema)))
			return differs(err, "schema %s: not an array of strings", inner);
		return 0;
	default:
		return 0;
	}
}

/*
 * Returns 0 when the parsed schema of a topic is the one that fields.c describes: the same fields in the
 * same order with the same types, symbols and nested records. Otherwise returns -EPROTO, with the first
 * difference in text.
 */
static int
fields_check(enum topic topic, avro_schema_t schema, char *text, size_t size)
{
	struct error err = { text, size };

	if ((unsigned)topic >= TOPIC_COUNT)
		return -EINVAL;
	return check_record(avro_schema_name(schema), schema, fields_of(topic), &err);
}

#endif
