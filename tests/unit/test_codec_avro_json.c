/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <string.h>

#include "samples.h"
#include "codec/avro_json.h"
#include "codec/encode.h"
#include "codec/node_schema.h"
#include "hostile.h"

static char err[256];
static size_t used;

/* The line for data, without its newline, in a static buffer; "" and *ret_error on failure. */
static const char *
line(const char *schema, const void *data, size_t len, bool is_raw, int *ret_error)
{
	static char text[4096];
	struct avro_json_input in = { .data = data, .len = len, .is_raw = is_raw };
	struct bytes out = { 0 };
	struct avro_json *j = NULL;

	text[0] = err[0] = '\0';
	*ret_error = avro_json_open(schema, strlen(schema), &j, err, sizeof(err));
	if (*ret_error == 0) {
		*ret_error = avro_json_line(j, &in, &out);
		used = in.at;
		snprintf(err, sizeof(err), "%s", in.error);
	}
	if (*ret_error == 0) {
		assert_int_equal(out.data[out.len - 1], '\n');
		assert_true(out.len < sizeof(text));
		memcpy(text, out.data, out.len - 1);
		text[out.len - 1] = '\0';
	} else {
		assert_int_equal(out.len, 0);
	}
	bytes_done(&out);
	avro_json_close(j);
	return text;
}

#define GIVES(schema, bytes, want) do {						\
	int error_;								\
	const char *have_ = line(schema, bytes, sizeof(bytes) - 1, false, &error_);	\
	assert_int_equal(error_, 0);						\
	assert_string_equal(have_, want);					\
	assert_int_equal(used, sizeof(bytes) - 1);				\
} while (0)

#define FAILS(schema, bytes, at) do {						\
	int error_;								\
	line(schema, bytes, sizeof(bytes) - 1, false, &error_);			\
	assert_int_equal(error_, -EBADMSG);					\
	assert_true(err[0] != '\0');						\
	assert_int_equal(used, at);						\
} while (0)

static void
every_type_is_printed(void **state)
{
	(void)state;
	GIVES("\"null\"", "", "null");
	GIVES("\"boolean\"", "\1", "true");
	GIVES("\"boolean\"", "\0", "false");
	GIVES("\"int\"", "\1", "-1");
	GIVES("\"long\"", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "-9223372036854775808");
	GIVES("\"float\"", "\x00\x00\xc0\x3f", "1.5");
	GIVES("\"float\"", "\xcd\xcc\xcc\x3d", "0.1");
	GIVES("\"double\"", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", "0.1");
	GIVES("\"double\"", "\x00\x00\x00\x00\x00\x00\xf0\x3f", "1.0");
	GIVES("\"double\"", "\x00\x00\x00\x00\x00\x00\xf8\x7f", "\"NaN\"");
	GIVES("\"double\"", "\x00\x00\x00\x00\x00\x00\xf0\xff", "\"-Infinity\"");
	GIVES("\"bytes\"", "\x04" "ab", "\"ab\"");
	GIVES("\"string\"", "\x04" "ab", "\"ab\"");
	GIVES("{\"type\":\"fixed\",\"name\":\"f\",\"size\":2}", "ab", "\"ab\"");
	GIVES("{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\",\"B\"]}", "\2", "\"B\"");
	GIVES("{\"type\":\"array\",\"items\":\"int\"}", "\4\2\4\2\6\0", "[1,2,3]");
	GIVES("{\"type\":\"array\",\"items\":\"int\"}", "\3\4\2\4\0", "[1,2]");
	GIVES("{\"type\":\"array\",\"items\":\"int\"}", "\0", "[]");
	GIVES("{\"type\":\"map\",\"values\":\"int\"}", "\4\2a\2\2b\4\0", "{\"a\":1,\"b\":2}");
	GIVES("[\"null\",\"int\"]", "\2\2", "1");
	GIVES("[\"null\",\"int\"]", "\0", "null");
	GIVES("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
	    "{\"name\":\"b\",\"type\":[\"null\",\"string\"]}]}", "\2\2\2x", "{\"a\":1,\"b\":\"x\"}");
	GIVES("{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}", "", "{}");
}

static void
named_types_are_found_by_their_names(void **state)
{
	(void)state;
	GIVES("{\"type\":\"record\",\"name\":\"l\",\"namespace\":\"x.y\",\"fields\":["
	    "{\"name\":\"v\",\"type\":\"int\"},{\"name\":\"next\",\"type\":[\"null\",\"l\"]}]}",
	    "\2\2\4\0", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}");
	GIVES("{\"type\":\"record\",\"name\":\"a.r\",\"fields\":["
	    "{\"name\":\"p\",\"type\":{\"type\":\"fixed\",\"name\":\"f\",\"size\":1}},"
	    "{\"name\":\"q\",\"type\":\"a.f\"},{\"name\":\"s\",\"type\":\"f\"}]}", "xyz",
	    "{\"p\":\"x\",\"q\":\"y\",\"s\":\"z\"}");
}

#define MICROS "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}"
#define MILLIS "{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}"

static void
times_are_rfc_3339_and_raw_ones_integers(void **state)
{
	int error;

	(void)state;
	GIVES(MICROS, "\x80\xfd\xbb\x9a\xdd\xb1\xb0\x06", "\"2026-11-21T10:35:00.123456Z\"");
	GIVES(MICROS, "\0", "\"1970-01-01T00:00:00.000000Z\"");
	GIVES(MICROS, "\1", "\"1969-12-31T23:59:59.999999Z\"");
	GIVES(MILLIS, "\2", "\"1970-01-01T00:00:00.001000Z\"");
	GIVES(MILLIS, "\x80\x80\xb7\xaa\xb3\x37", "\"2000-02-29T00:00:00.000000Z\"");
	/* no year of four digits */
	GIVES(MICROS, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1", "9223372036854775807");
	GIVES("[\"null\"," MICROS "]", "\2\0", "\"1970-01-01T00:00:00.000000Z\"");
	assert_string_equal(line(MICROS, "\2", 1, true, &error), "1");
}

static void
text_is_escaped_and_never_bad_json(void **state)
{
	(void)state;
	GIVES("\"string\"", "\x0c" "\"\\\n\t\x01\x7f", "\"\\\"\\\\\\n\\t\\u0001\\u007f\"");
	GIVES("\"string\"", "\x02\x00", "\"\\u0000\"");
	GIVES("\"string\"", "\x0c\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
	/* not UTF-8: a lone byte, an overlong form, a surrogate, a cut character */
	GIVES("\"string\"", "\x04" "a\xff", "\"a\\\\xff\"");
	GIVES("\"string\"", "\x04\xc0\xaf", "\"\\\\xc0\\\\xaf\"");
	GIVES("\"string\"", "\x06\xed\xa0\x80", "\"\\\\xed\\\\xa0\\\\x80\"");
	GIVES("\"string\"", "\x04\xe2\x82", "\"\\\\xe2\\\\x82\"");
	/* bytes can be undone: what looks like an escape is escaped; a string is as it is */
	GIVES("\"bytes\"", "\x0a" "\\x41\xff", "\"\\\\x5cx41\\\\xff\"");
	GIVES("\"bytes\"", "\x08" "\\xyz", "\"\\\\xyz\"");
	GIVES("\"string\"", "\x08" "\\x41", "\"\\\\x41\"");
}

static void
damage_is_refused_with_its_position(void **state)
{
	(void)state;
	FAILS("\"int\"", "", 0);
	FAILS("\"int\"", "\x80", 0);
	FAILS("\"int\"", "\xff\xff\xff\xff\xff\1", 0);
	FAILS("\"long\"", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 0);
	FAILS("\"boolean\"", "\2", 0);
	FAILS("\"double\"", "1234567", 0);
	FAILS("\"string\"", "\x06" "ab", 1);
	FAILS("\"string\"", "\1", 0);
	FAILS("[\"null\",\"int\"]", "\4\0", 0);
	FAILS("{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}", "\2", 0);
	FAILS("{\"type\":\"array\",\"items\":\"int\"}", "\4\2", 2);
	FAILS("{\"type\":\"array\",\"items\":\"int\"}",
	    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 0);
}

static void
a_few_bytes_cannot_mean_values_without_end(void **state)
{
	int error;

	(void)state;
	/* 2^62 nulls */
	line("{\"type\":\"array\",\"items\":\"null\"}", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", 10,
	    false, &error);
	assert_int_equal(error, -EBADMSG);
	/* a record that holds only itself */
	line("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\",\"type\":\"r\"}]}", "", 0,
	    false, &error);
	assert_int_equal(error, -EBADMSG);
}

static void
a_bad_schema_is_refused_with_a_reason(void **state)
{
	static const char *const bad[] = {
		"", "{", "\"strin\"", "{}", "17", "{\"type\":\"record\",\"name\":\"r\"}",
		"{\"type\":\"record\",\"fields\":[]}", "{\"type\":\"array\"}",
		"{\"type\":\"enum\",\"name\":\"e\"}", "{\"type\":\"fixed\",\"name\":\"f\"}",
		"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\"}]}",
		"{\"type\":\"record\",\"name\":\"r\",\"fields\":[17]}",
		("[{\"type\":\"fixed\",\"name\":\"f\",\"size\":1},"
		    "{\"type\":\"fixed\",\"name\":\"f\",\"size\":1}]"),
	};
	char deep[400];
	int error;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		line(bad[i], "", 0, false, &error);
		assert_int_equal(error, -EINVAL);
		assert_true(err[0] != '\0');
	}
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	deep[399] = '\0';
	line(deep, "", 0, false, &error);
	assert_int_equal(error, -EINVAL);
}

/* Every topic's record, through our encoder and back: JSON whose fields are the schema's. */
static void
our_records_have_exactly_the_names_of_their_schemas(void **state)
{
	struct agent_identity id = sample_identity();
	struct program_record start = sample_program_start(), end = sample_program_end();
	struct usage_record usage = sample_usage_record();
	struct work_record work = sample_work();
	struct host_record host = sample_host();
	struct finding_record finding = sample_finding();
	struct agent_record agent = sample_agent();
	const struct {
		enum topic topic;
		const void *record;
	} rows[] = {
		{ TOPIC_PROGRAM, &start }, { TOPIC_PROGRAM, &end }, { TOPIC_USAGE, &usage },
		{ TOPIC_TASK, &work }, { TOPIC_RUN, &work }, { TOPIC_HOST, &host },
		{ TOPIC_FINDING, &finding }, { TOPIC_AGENT, &agent },
	};
	struct encoder *encoder = NULL;

	(void)state;
	assert_int_equal(encoder_open(&id, &encoder, err, sizeof(err)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *schema = encode_schema(rows[i].topic, NULL);
		json_t *parsed = json_loads(schema, 0, NULL), *fields, *record, *field;
		const uint8_t *data;
		const char *text;
		size_t len, f;
		int error;

		assert_int_equal(encode(encoder, rows[i].topic, rows[i].record, i, &data, &len), 0);
		text = line(schema, data, len, false, &error);
		assert_int_equal(error, 0);
		assert_int_equal(used, len);
		record = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(record);
		fields = json_object_get(parsed, "fields");
		assert_int_equal(json_object_size(record), json_array_size(fields));
		json_array_foreach(fields, f, field)
			assert_non_null(json_object_get(record,
			    json_string_value(json_object_get(field, "name"))));
		assert_string_equal(json_string_value(json_object_get(record, "time")),
		    "2026-11-21T10:35:00.123456Z");
		assert_int_equal(json_integer_value(json_object_get(record, "seq")), i);
		json_decref(record);
		json_decref(parsed);
	}
	encoder_close(encoder);
}

static void
a_record_is_safe(const struct hostile_name *h, void *arg)
{
	bool is_bytes = *(bool *)arg;
	struct bytes b = { 0 };
	json_t *back;

	assert_int_equal(bytes_append(&b, "\"", 1), 0);
	assert_int_equal(json_escape(&b, (const uint8_t *)h->name, h->len, is_bytes), 0);
	assert_int_equal(bytes_append(&b, "\"", 2), 0);
	hostile_is_safe(h, (const char *)b.data, false);
	back = json_loads((const char *)b.data, JSON_DECODE_ANY, NULL);
	assert_non_null(back);
	if (!is_bytes && text_is_plain(h->name, h->len))
		assert_string_equal(json_string_value(back), h->name);
	json_decref(back);
	bytes_done(&b);
}

static void
no_hostile_name_acts_on_the_terminal(void **state)
{
	bool is_bytes = false;

	(void)state;
	hostile_each(a_record_is_safe, &is_bytes);
	is_bytes = true;
	hostile_each(a_record_is_safe, &is_bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_printed),
		cmocka_unit_test(named_types_are_found_by_their_names),
		cmocka_unit_test(times_are_rfc_3339_and_raw_ones_integers),
		cmocka_unit_test(text_is_escaped_and_never_bad_json),
		cmocka_unit_test(damage_is_refused_with_its_position),
		cmocka_unit_test(a_few_bytes_cannot_mean_values_without_end),
		cmocka_unit_test(a_bad_schema_is_refused_with_a_reason),
		cmocka_unit_test(our_records_have_exactly_the_names_of_their_schemas),
		cmocka_unit_test(no_hostile_name_acts_on_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
