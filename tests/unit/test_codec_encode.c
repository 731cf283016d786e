/* SPDX-License-Identifier: Apache-2.0 */
/* encode: avro-c decodes the encoded records, and the schemas stay compatible for their readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <avro.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fields_check.h"
#include "samples.h"
#include "codec/encode.h"

static struct encoder *encoder;
static char err[256];

static int
setup(void **state)
{
	struct agent_identity id = sample_identity();

	(void)state;
	return encoder_open(&id, &encoder, err, sizeof(err));
}

static int
teardown(void **state)
{
	(void)state;
	encoder_close(encoder);
	return 0;
}

/* Decodes data by avro-c as the topic's record, all of it, and encodes it again to the same. */
static avro_value_t
decode(enum topic topic, const uint8_t *data, size_t len)
{
	avro_schema_t schema;
	avro_value_iface_t *iface;
	avro_value_t value;
	avro_reader_t reader = avro_reader_memory((const char *)data, (int64_t)len);
	avro_writer_t writer;
	char *again = malloc(len + 64);
	size_t text_len;
	const char *text = encode_schema(topic, &text_len);

	assert_int_equal(avro_schema_from_json_length(text, text_len, &schema), 0);
	iface = avro_generic_class_from_schema(schema);
	assert_int_equal(avro_generic_value_new(iface, &value), 0);
	assert_int_equal(avro_value_read(reader, &value), 0);
	writer = avro_writer_memory(again, (int64_t)len + 64);
	assert_int_equal(avro_value_write(writer, &value), 0);
	assert_int_equal(avro_writer_tell(writer), len);
	assert_memory_equal(again, data, len);
	avro_writer_free(writer);
	avro_reader_free(reader);
	avro_value_iface_decref(iface);
	avro_schema_decref(schema);
	free(again);
	return value;
}

static avro_value_t
encoded(enum topic topic, const void *record, uint64_t seq)
{
	const uint8_t *data;
	size_t len;

	assert_int_equal(encode(encoder, topic, record, seq, &data, &len), 0);
	return decode(topic, data, len);
}

/* The field, or what its union holds. */
static avro_value_t
field(const avro_value_t *record, const char *name)
{
	avro_value_t value = { 0 }, branch = { 0 };

	assert_int_equal(avro_value_get_by_name(record, name, &value, NULL), 0);
	if (avro_value_get_type(&value) != AVRO_UNION)
		return value;
	assert_int_equal(avro_value_get_current_branch(&value, &branch), 0);
	return branch;
}

static int64_t
number(const avro_value_t *record, const char *name)
{
	avro_value_t value = field(record, name);
	int32_t small = 0;
	int64_t large = 0;

	if (avro_value_get_type(&value) == AVRO_INT32) {
		assert_int_equal(avro_value_get_int(&value, &small), 0);
		return small;
	}
	assert_int_equal(avro_value_get_long(&value, &large), 0);
	return large;
}

static double
real(const avro_value_t *record, const char *name)
{
	avro_value_t value = field(record, name);
	double d = 0;

	assert_int_equal(avro_value_get_double(&value, &d), 0);
	return d;
}

static void
assert_text(const avro_value_t *record, const char *name, const char *want)
{
	avro_value_t value = field(record, name);
	const char *text;
	size_t len;

	assert_int_equal(avro_value_get_string(&value, &text, &len), 0);
	assert_string_equal(text, want);
}

static void
assert_null_field(const avro_value_t *record, const char *name)
{
	avro_value_t value = field(record, name);

	assert_int_equal(avro_value_get_type(&value), AVRO_NULL);
}

static void
assert_symbol(const avro_value_t *record, const char *name, const char *want)
{
	avro_value_t value = field(record, name);
	int symbol = 0;

	assert_int_equal(avro_value_get_enum(&value, &symbol), 0);
	assert_string_equal(avro_schema_enum_get(avro_value_get_schema(&value), symbol), want);
}

static void
a_program_start_has_its_fields_and_no_end(void **state)
{
	struct program_record r = sample_program_start();
	avro_value_t v = encoded(TOPIC_PROGRAM, &r, 41), argv, variables, item;
	const char *text;
	size_t n = 0;

	(void)state;
	assert_true(number(&v, "time") == SAMPLE_TIME);
	assert_text(&v, "host_id", SAMPLE_HOST);
	assert_text(&v, "host_name", "node7");
	assert_text(&v, "agent_id", SAMPLE_AGENT);
	assert_int_equal(number(&v, "seq"), 41);
	assert_text(&v, "run_id", "run-1");
	assert_text(&v, "pipeline", "demo");
	assert_text(&v, "task_id", "align:sample=A");
	assert_text(&v, "sample", "A");
	assert_int_equal(number(&v, "schema_version"), RECORD_SCHEMA_VERSION);
	assert_symbol(&v, "phase", "START");
	assert_int_equal(number(&v, "pid"), 1234);
	assert_int_equal(number(&v, "ppid"), 1200);
	assert_true(number(&v, "program_start_time") == SAMPLE_TIME - 2);
	assert_text(&v, "program_id", "p-1234-1");
	assert_text(&v, "cgroup_v1", "/v1");
	assert_true(number(&v, "pid_ns") == 4026531836);
	assert_text(&v, "task_source", "argv");
	assert_true(real(&v, "confidence") == 0.75);
	argv = field(&v, "argv");
	avro_value_get_size(&argv, &n);
	assert_int_equal(n, 6);
	avro_value_get_by_index(&argv, 5, &item, NULL);
	avro_value_get_string(&item, &text, NULL);
	assert_string_equal(text, "A \xc3\xa9.fq");
	assert_text(&v, "k8s_pod_uid", "uid");
	assert_text(&v, "k8s_pod_name", "align-0");
	assert_text(&v, "k8s_namespace", "genomics");
	assert_text(&v, "k8s_container_name", "bwa");
	variables = field(&v, "variables");
	avro_value_get_size(&variables, &n);
	assert_int_equal(n, 2);
	avro_value_get_by_index(&variables, 1, &item, NULL);
	assert_text(&item, "name", "SLURM_JOB_ID");
	assert_text(&item, "value", "4711");
	assert_null_field(&v, "observed_time");
	assert_null_field(&v, "end_time");
	assert_null_field(&v, "end_reason");
	assert_null_field(&v, "exit_code");
	assert_null_field(&v, "core_dumped");
	assert_null_field(&v, "oom_killed");
	assert_null_field(&v, "usage");
	assert_null_field(&v, "bill");
	avro_value_decref(&v);
}

static void
a_program_without_variables_has_an_empty_list(void **state)
{
	struct program_record r = sample_program_start();
	avro_value_t v, variables;
	size_t n = 1;

	(void)state;
	r.variables = NULL;
	r.n_variables = 0;
	v = encoded(TOPIC_PROGRAM, &r, 1);
	variables = field(&v, "variables");
	avro_value_get_size(&variables, &n);
	assert_int_equal(n, 0);
	avro_value_decref(&v);
}

static void
a_program_end_has_usage_with_unknown_as_null(void **state)
{
	struct program_record r = sample_program_end();
	avro_value_t v = encoded(TOPIC_PROGRAM, &r, 42), usage, bill, dumped;
	int is_dumped = 0;

	(void)state;
	assert_symbol(&v, "phase", "END");
	assert_symbol(&v, "end_reason", "EXIT");
	assert_int_equal(number(&v, "observed_time"), SAMPLE_TIME - 1);
	assert_int_equal(number(&v, "exit_code"), 3);
	assert_null_field(&v, "exit_signal");
	dumped = field(&v, "core_dumped");
	avro_value_get_boolean(&dumped, &is_dumped);
	assert_true(is_dumped);
	usage = field(&v, "usage");
	for (int i = 0; i < USAGE_FIELDS; i++) {
		if (i == USAGE_BLOCK_IO_DELAY_NS)
			assert_null_field(&usage, usage_name(i));
		else
			assert_int_equal(number(&usage, usage_name(i)), 1000 + i);
	}
	bill = field(&v, "bill");
#define ASSERT_PART(ID, name) assert_int_equal(number(&bill, #name "_ns"), 2000 + BILL_##ID);
	BILL_EACH(ASSERT_PART)
#undef ASSERT_PART
	avro_value_decref(&v);
	r.bill = NULL;		/* thread_ns is not known */
	v = encoded(TOPIC_PROGRAM, &r, 43);
	assert_null_field(&v, "bill");
	avro_value_decref(&v);
}

static void
every_other_topic_decodes_with_its_values(void **state)
{
	struct usage_record usage = sample_usage_record();
	struct work_record work = sample_work();
	struct host_record host = sample_host();
	struct finding_record finding = sample_finding();
	struct agent_record agent = sample_agent();
	avro_value_t v, inner, item;
	size_t n = 0;

	(void)state;
	v = encoded(TOPIC_USAGE, &usage, 1);
	assert_true(number(&v, "interval_ns") == 10000000000);
	assert_text(&v, "tool", "bwa mem");
	inner = field(&v, "usage");
	assert_int_equal(number(&inner, "unix_tx_bytes"), 1000 + USAGE_UNIX_TX_BYTES);
	avro_value_decref(&v);

	v = encoded(TOPIC_TASK, &work, 2);
	assert_symbol(&v, "phase", "LIVE");
	assert_text(&v, "name", "align");
	assert_symbol(&v, "bound", "MIXED");
	assert_int_equal(number(&v, "attempt"), 2);
	assert_int_equal(number(&v, "energy_uj"), 24);
	assert_symbol(&v, "energy_source", "HWMON_POWER");
	assert_true(real(&v, "parallelism") == 1.25);
	inner = field(&v, "shares");
	assert_true(real(&inner, "cpu") == 0.5);
	assert_null_field(&inner, "block_io");
	avro_value_decref(&v);

	v = encoded(TOPIC_RUN, &work, 3);
	assert_text(&v, "name", "demo");
	assert_int_equal(number(&v, "exit_signal"), 9);
	avro_value_decref(&v);
	work.head.pipeline = NULL;
	work.bound = BOUND_NONE;
	work.energy_uj.known = false;
	work.energy_source = ENERGY_UNKNOWN;
	v = encoded(TOPIC_RUN, &work, 4);
	assert_text(&v, "name", "run-1");
	assert_null_field(&v, "bound");
	assert_null_field(&v, "energy_uj");
	assert_null_field(&v, "energy_source");
	avro_value_decref(&v);

	v = encoded(TOPIC_HOST, &host, 5);
	assert_null_field(&v, "run_id");
	assert_int_equal(number(&v, "cpus"), 2);
	assert_int_equal(number(&v, "net_tx_attributed_bytes"), 23);
	assert_true(real(&v, "price_per_hour") == 0.096);
	assert_int_equal(number(&v, "energy_uj"), 28);
	assert_symbol(&v, "energy_source", "POWERCAP");
	assert_int_equal(number(&v, "energy_attributed_uj"), 25);
	assert_int_equal(number(&v, "energy_unattributed_uj"), 1);
	assert_int_equal(number(&v, "energy_idle_uj"), 2);
	inner = field(&v, "psi_cpu");
	assert_true(real(&inner, "some") == 0.5);
	assert_null_field(&inner, "full");
	inner = field(&v, "psi_io");
	assert_true(real(&inner, "full") == 0.75);
	avro_value_decref(&v);

	v = encoded(TOPIC_FINDING, &finding, 6);
	assert_symbol(&v, "severity", "ERROR");
	inner = field(&v, "evidence");
	avro_value_get_by_index(&inner, 1, &item, NULL);
	assert_text(&item, "name", "share");
	assert_true(real(&item, "value") == 0.5);
	inner = field(&v, "causes");
	avro_value_get_size(&inner, &n);
	assert_int_equal(n, 2);
	avro_value_decref(&v);

	v = encoded(TOPIC_AGENT, &agent, 7);
	inner = field(&v, "lost");
	avro_value_get_by_index(&inner, 0, &item, NULL);
	assert_text(&item, "reason", "ring full");
	assert_int_equal(number(&item, "count"), 3);
	inner = field(&v, "probes");
	avro_value_get_by_index(&inner, 0, &item, NULL);
	assert_null_field(&item, "run_time_ns");
	assert_int_equal(number(&v, "rss_bytes"), 11);
	inner = field(&v, "lost_by_user");
	avro_value_get_size(&inner, &n);
	assert_int_equal(n, 2);
	avro_value_get_by_index(&inner, 0, &item, NULL);
	assert_int_equal(number(&item, "uid"), 1001);
	assert_int_equal(number(&item, "refused"), 2);
	assert_int_equal(number(&item, "lost"), 3);
	assert_int_equal(number(&item, "cut"), 4);
	avro_value_decref(&v);
}

static void
no_argv_is_null_and_argc_0_is_empty(void **state)
{
	struct program_record r = sample_program_start();
	avro_value_t v, argv;
	size_t n = 0;

	(void)state;
	r.argv = NULL;
	v = encoded(TOPIC_PROGRAM, &r, 0);
	assert_null_field(&v, "argv");
	avro_value_decref(&v);
	r = sample_program_start();
	r.argc = 0;
	v = encoded(TOPIC_PROGRAM, &r, 0);
	argv = field(&v, "argv");
	avro_value_get_size(&argv, &n);
	assert_int_equal(n, 0);
	avro_value_decref(&v);
}

static void
three_thousand_arguments_and_a_long_one_fit(void **state)
{
	static char long_text[100001];
	static const char *argv[3001];
	struct program_record r = sample_program_start();
	avro_value_t v, list, item;
	const char *text;
	size_t n = 0;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	for (int i = 0; i < 3000; i++)
		argv[i] = "argument";
	argv[3000] = long_text;
	r.argv = argv;
	r.argc = 3001;
	v = encoded(TOPIC_PROGRAM, &r, 0);
	list = field(&v, "argv");
	avro_value_get_size(&list, &n);
	assert_int_equal(n, 3001);
	avro_value_get_by_index(&list, 3000, &item, NULL);
	avro_value_get_string(&item, &text, NULL);
	assert_string_equal(text, long_text);
	avro_value_decref(&v);
}

static void
numbers_that_avro_cannot_hold_are_cut(void **state)
{
	struct program_record r = sample_program_start();
	avro_value_t v;

	(void)state;
	r.uid = (struct opt_u64){ UINT64_MAX, true };
	r.id.pid = UINT32_MAX;
	v = encoded(TOPIC_PROGRAM, &r, 0);
	assert_true(number(&v, "uid") == INT64_MAX);
	assert_true(number(&v, "pid") == INT32_MAX);
	avro_value_decref(&v);
}

static void
a_record_that_breaks_the_contract_is_refused_and_the_next_one_is_whole(void **state)
{
	struct program_record r = sample_program_start();
	struct usage_record u = sample_usage_record();
	struct finding_record f = sample_finding();
	const uint8_t *data;
	avro_value_t v;
	size_t len;

	(void)state;
	r.id.program_id = NULL;
	assert_int_equal(encode(encoder, TOPIC_PROGRAM, &r, 0, &data, &len), -EINVAL);
	u.usage = NULL;
	assert_int_equal(encode(encoder, TOPIC_USAGE, &u, 0, &data, &len), -EINVAL);
	f.severity = 17;
	assert_int_equal(encode(encoder, TOPIC_FINDING, &f, 0, &data, &len), -EINVAL);
	r = sample_program_start();
	v = encoded(TOPIC_PROGRAM, &r, 9);
	assert_int_equal(number(&v, "seq"), 9);
	avro_value_decref(&v);
}

static json_t *
load(enum topic topic)
{
	size_t len;
	const char *text = encode_schema(topic, &len);
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(json);
	return json;
}

static const char *
text_of(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text != NULL ? text : "";
}

static bool
is_time(const char *name)
{
	size_t len = strlen(name);

	return strcmp(name, "time") == 0 || (len > 5 && strcmp(name + len - 5, "_time") == 0);
}

/* Every field has a doc; the type of an optional one begins with null, which is its default. */
static void
check_fields(const json_t *record)
{
	size_t i;
	json_t *f;

	assert_true(strlen(text_of(record, "doc")) > 10);
	json_array_foreach(json_object_get(record, "fields"), i, f) {
		json_t *type = json_object_get(f, "type");

		assert_true(strlen(text_of(f, "doc")) > 10 || strcmp(text_of(f, "name"), "value") == 0);
		if (json_is_array(type)) {
			assert_int_equal(json_array_size(type), 2);
			assert_string_equal(json_string_value(json_array_get(type, 0)), "null");
			assert_true(json_is_null(json_object_get(f, "default")));
			type = json_array_get(type, 1);
		}
		if (strcmp(text_of(type, "type"), "array") == 0)
			type = json_object_get(type, "items");
		if (strcmp(text_of(type, "type"), "record") == 0)
			check_fields(type);
		if (is_time(text_of(f, "name")))
			assert_string_equal(text_of(type, "logicalType"), "timestamp-micros");
	}
}

static void
schemas_are_documented_and_begin_alike(void **state)
{
	static const char *const common[] = { "time", "host_id", "host_name", "boot_id", "agent_id",
	    "seq", "run_id", "pipeline", "task_id", "task", "sample", "schema_version" };

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		json_t *json = load(t);

		assert_string_equal(text_of(json, "namespace"), "sluice");
		for (size_t i = 0; i < 12; i++)
			assert_string_equal(text_of(json_array_get(json_object_get(json, "fields"), i),
			    "name"), common[i]);
		check_fields(json);
		json_decref(json);
	}
}

/* The definition of a named type anywhere in a schema; borrowed. */
static const json_t *
find_type(const json_t *json, const char *name)
{
	const json_t *found = NULL, *inner;
	const char *key;
	size_t i;

	if (json_is_object(json)) {
		if (strcmp(text_of(json, "name"), name) == 0 && json_is_string(json_object_get(json,
		    "type")) && strcmp(text_of(json, "type"), "record") == 0)
			return json;
		json_object_foreach((json_t *)json, key, inner) {
			if (found == NULL)
				found = find_type(inner, name);
		}
	} else if (json_is_array(json)) {
		json_array_foreach(json, i, inner) {
			if (found == NULL)
				found = find_type(inner, name);
		}
	}
	return found;
}

static void
resources_are_the_same_in_all_four_schemas(void **state)
{
	json_t *program = load(TOPIC_PROGRAM);
	const json_t *first = find_type(program, "Resources");
	static const enum topic others[] = { TOPIC_USAGE, TOPIC_TASK, TOPIC_RUN };

	(void)state;
	assert_non_null(first);
	for (size_t i = 0; i < 3; i++) {
		json_t *json = load(others[i]);

		assert_true(json_equal(first, find_type(json, "Resources")));
		json_decref(json);
	}
	json_decref(program);
}

/* Parses a changed copy of the schema; the result of fields_check(). */
static int
check_changed(enum topic topic, const char *from, const char *to)
{
	size_t len;
	const char *text = encode_schema(topic, &len), *at = strstr(text, from);
	avro_schema_t schema;
	char *changed;
	int r;

	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	assert_int_equal(avro_schema_from_json_length(changed, strlen(changed), &schema), 0);
	r = fields_check(topic, schema, err, sizeof(err));
	avro_schema_decref(schema);
	free(changed);
	return r;
}

static void
each_schema_is_what_is_written(void **state)
{
	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_non_null(encode_schema(t, NULL));
		if (check_changed(t, "{", "{") < 0)
			fail_msg("%s", err);
	}
}

static void
an_edit_of_a_schema_alone_is_refused_with_the_field(void **state)
{
	(void)state;
	assert_int_equal(check_changed(TOPIC_PROGRAM, "\"name\": \"exe\"", "\"name\": \"exe\""), 0);
	assert_int_equal(check_changed(TOPIC_PROGRAM, "\"name\": \"exe\"", "\"name\": \"path\""),
	    -EPROTO);
	assert_non_null(strstr(err, "\"path\""));
	assert_non_null(strstr(err, "\"exe\""));
	assert_int_equal(check_changed(TOPIC_TASK, "\"name\": \"rchar\"", "\"name\": \"chars\""),
	    -EPROTO);
	assert_non_null(strstr(err, "Task.usage"));
	assert_int_equal(check_changed(TOPIC_TASK, "\"IO\", \"NETWORK\"", "\"NETWORK\", \"IO\""),
	    -EPROTO);
	assert_int_equal(check_changed(TOPIC_AGENT, "\"name\": \"seq\", \"type\": \"long\"",
	    "\"name\": \"seq\", \"type\": \"string\""), -EPROTO);
	assert_int_equal(check_changed(TOPIC_HOST, "{\"name\": \"interval_ns\"",
	    "{\"name\": \"more\", \"type\": \"long\"}, {\"name\": \"interval_ns\""), -EPROTO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_start_has_its_fields_and_no_end),
		cmocka_unit_test(a_program_without_variables_has_an_empty_list),
		cmocka_unit_test(a_program_end_has_usage_with_unknown_as_null),
		cmocka_unit_test(every_other_topic_decodes_with_its_values),
		cmocka_unit_test(no_argv_is_null_and_argc_0_is_empty),
		cmocka_unit_test(three_thousand_arguments_and_a_long_one_fit),
		cmocka_unit_test(numbers_that_avro_cannot_hold_are_cut),
		cmocka_unit_test(a_record_that_breaks_the_contract_is_refused_and_the_next_one_is_whole),
		cmocka_unit_test(schemas_are_documented_and_begin_alike),
		cmocka_unit_test(resources_are_the_same_in_all_four_schemas),
		cmocka_unit_test(each_schema_is_what_is_written),
		cmocka_unit_test(an_edit_of_a_schema_alone_is_refused_with_the_field),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
