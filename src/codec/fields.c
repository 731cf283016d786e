/*
 * SPDX-License-Identifier: Apache-2.0
 * fields: holds the index tables of fields.h against a parsed schema.
 */
#include "codec/fields.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct field {
	const char *name;
	avro_type_t type;
	bool is_nullable;
};

#define FIELD_ROW(P, name, type, is_nullable) { #name, type, is_nullable },

static const struct field program_fields[] = { PROGRAM_FIELDS(FIELD_ROW, ) };
static const struct field usage_fields[] = { USAGE_RECORD_FIELDS(FIELD_ROW, ) };
static const struct field work_fields[] = { WORK_FIELDS(FIELD_ROW, ) };
static const struct field host_fields[] = { HOST_FIELDS(FIELD_ROW, ) };
static const struct field finding_fields[] = { FINDING_FIELDS(FIELD_ROW, ) };
static const struct field agent_fields[] = { AGENT_FIELDS(FIELD_ROW, ) };
static const struct field shares_fields[] = { SHARES_FIELDS(FIELD_ROW, ) };
static const struct field pressure_fields[] = { PRESSURE_FIELDS(FIELD_ROW, ) };
static const struct field number_fields[] = { NUMBER_FIELDS(FIELD_ROW, ) };
static const struct field variable_fields[] = { VARIABLE_FIELDS(FIELD_ROW, ) };
static const struct field loss_fields[] = { LOSS_FIELDS(FIELD_ROW, ) };
static const struct field probe_fields[] = { PROBE_FIELDS(FIELD_ROW, ) };

struct error {
	char *text;
	size_t size;
};

static int __attribute__((format(printf, 2, 3)))
fail(struct error *err, const char *format, ...)
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

static int check_nested(const char *record, const char *name, avro_schema_t schema,
    struct error *err);

static int
check_record(const char *record, avro_schema_t schema, const struct field *fields, size_t n,
    struct error *err)
{
	if (!is_avro_record(schema))
		return fail(err, "schema %s: not a record", record);
	for (size_t i = 0; i < n; i++) {
		const char *name = i < avro_schema_record_size(schema) ?
		    avro_schema_record_field_name(schema, (int)i) : "(none)";
		avro_schema_t type;
		int r;

		if (strcmp(name, fields[i].name) != 0)
			return fail(err, "schema %s: field %zu is \"%s\", and the program would "
			    "write \"%s\" there", record, i, name, fields[i].name);
		type = resolve(avro_schema_record_field_get_by_index(schema, (int)i));
		if (fields[i].is_nullable)
			type = nullable_of(type);
		if (type == NULL || avro_typeof(type) != fields[i].type)
			return fail(err, "schema %s: field \"%s\" has another type than the program "
			    "writes", record, name);
		r = check_nested(record, name, type, err);
		if (r < 0)
			return r;
	}
	if (avro_schema_record_size(schema) != n)
		return fail(err, "schema %s: field %zu, \"%s\", is one that the program does not write",
		    record, n, avro_schema_record_field_name(schema, (int)n));
	return 0;
}

static int
check_resources(const char *record, avro_schema_t schema, struct error *err)
{
	struct field fields[USAGE_FIELDS];

	for (int i = 0; i < USAGE_FIELDS; i++)
		fields[i] = (struct field){ usage_name(i), AVRO_INT64, true };
	return check_record(record, schema, fields, USAGE_FIELDS, err);
}

/* Symbols in the order of a C enum; from names that enum's first value that is not null. */
static int
check_enum(const char *record, avro_schema_t schema, const char *(*symbol)(int), int first,
    struct error *err)
{
	int n = avro_schema_enum_number_of_symbols(schema);

	for (int i = 0; i < n || symbol(first + i) != NULL; i++) {
		const char *want = symbol(first + i);
		const char *have = i < n ? avro_schema_enum_get(schema, i) : "(none)";

		if (want == NULL || strcmp(have, want) != 0)
			return fail(err, "schema %s: symbol %d of %s is %s, and the program means %s",
			    record, i, avro_schema_name(schema), have, want ? want : "(none)");
	}
	return 0;
}

static const char *phase_symbol(int i) { return record_phase_name(i); }
static const char *reason_symbol(int i) { return end_reason_name(i); }
static const char *bound_symbol(int i) { return bound_name(i); }
static const char *severity_symbol(int i) { return finding_severity_name(i); }

/* What stands inside a field: symbols, items, nested records. */
static int
check_nested(const char *record, const char *name, avro_schema_t schema, struct error *err)
{
#define NESTED(fields) check_record(inner, schema, fields, sizeof(fields) / sizeof((fields)[0]), err)
	char inner[128];

	snprintf(inner, sizeof(inner), "%s.%s", record, name);
	if (is_avro_array(schema)) {
		schema = resolve(avro_schema_array_items(schema));
		if (strcmp(name, "evidence") == 0 || strcmp(name, "events") == 0)
			return NESTED(number_fields);
		if (strcmp(name, "variables") == 0)
			return NESTED(variable_fields);
		if (strcmp(name, "lost") == 0)
			return NESTED(loss_fields);
		if (strcmp(name, "probes") == 0)
			return NESTED(probe_fields);
		return is_avro_string(schema) ? 0 : fail(err, "schema %s: not an array of strings",
		    inner);
	}
	if (is_avro_enum(schema)) {
		if (strcmp(name, "phase") == 0)
			return check_enum(record, schema, phase_symbol, 0, err);
		if (strcmp(name, "end_reason") == 0)
			return check_enum(record, schema, reason_symbol, 1, err);
		if (strcmp(name, "bound") == 0)
			return check_enum(record, schema, bound_symbol, 1, err);
		return check_enum(record, schema, severity_symbol, 0, err);
	}
	if (is_avro_record(schema)) {
		if (strcmp(name, "usage") == 0)
			return check_resources(inner, schema, err);
		if (strcmp(name, "shares") == 0)
			return NESTED(shares_fields);
		return NESTED(pressure_fields);
	}
	return 0;
#undef NESTED
}

int
fields_check(enum topic topic, avro_schema_t schema, char *text, size_t size)
{
#define TOPIC(name, fields) \
	check_record(name, schema, fields, sizeof(fields) / sizeof((fields)[0]), &err)
	struct error err = { text, size };

	switch (topic) {
	case TOPIC_PROGRAM:
		return TOPIC("Program", program_fields);
	case TOPIC_USAGE:
		return TOPIC("Usage", usage_fields);
	case TOPIC_TASK:
		return TOPIC("Task", work_fields);
	case TOPIC_RUN:
		return TOPIC("Run", work_fields);
	case TOPIC_HOST:
		return TOPIC("Host", host_fields);
	case TOPIC_FINDING:
		return TOPIC("Finding", finding_fields);
	case TOPIC_AGENT:
		return TOPIC("Agent", agent_fields);
	case TOPIC_COUNT:
		break;
	}
	return -EINVAL;
#undef TOPIC
}
