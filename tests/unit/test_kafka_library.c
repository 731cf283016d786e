/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_config: features of the linked librdkafka. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kafka/client.h"

static struct kafka_library library;

/* The version and the missing features that a test simulates. */
static struct {
	int version;		/* 0: its own */
	const char *property;	/* that it does not know; NULL: none */
	bool makes_nothing;	/* no producer */
	unsigned made;		/* producers that were asked for */
} fake;

int __real_rd_kafka_version(void);
int __wrap_rd_kafka_version(void);
int
__wrap_rd_kafka_version(void)
{
	return fake.version != 0 ? fake.version : __real_rd_kafka_version();
}

rd_kafka_conf_res_t __real_rd_kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
    size_t error_size);
rd_kafka_conf_res_t __wrap_rd_kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
    size_t error_size);
rd_kafka_conf_res_t
__wrap_rd_kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error, size_t error_size)
{
	if (fake.property == NULL || strcmp(fake.property, name) != 0)
		return __real_rd_kafka_conf_set(conf, name, value, error, error_size);
	snprintf(error, error_size, "not available in this build");
	return RD_KAFKA_CONF_INVALID;
}

rd_kafka_t *__real_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *error, size_t error_size);
rd_kafka_t *__wrap_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *error, size_t error_size);
rd_kafka_t *
__wrap_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *error, size_t error_size)
{
	fake.made++;
	if (!fake.makes_nothing)
		return __real_rd_kafka_new(type, conf, error, error_size);
	snprintf(error, error_size, "no provider for this mechanism");
	return NULL;
}

static int
teardown(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	return 0;
}

/* Once: the library takes a second to end most of the producers that were made. */
static int
describe(void **state)
{
	(void)state;
	kafka_library_describe(&library);
	return 0;
}

static void
scram_with_an_old_library_is_known(void **state)
{
	struct kafka_property p[] = { { "sasl.mechanism", "SCRAM-SHA-512" } };
	struct kafka_options o = { .properties = p, .n_properties = 1 };
	char error[256];
	rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

	(void)state;
	assert_non_null(conf);
	assert_int_equal(kafka_conf_has_broken_scram(conf), !library.has_modern_scram);
	rd_kafka_conf_destroy(conf);
	o.n_properties = 0;
	conf = kafka_conf_new(&o, error, sizeof(error));
	assert_false(kafka_conf_has_broken_scram(conf));
	rd_kafka_conf_destroy(conf);
}

static void
the_library_says_what_it_can_do(void **state)
{
	const struct kafka_library *l = &library;

	(void)state;
	assert_string_equal(l->version, rd_kafka_version_str());
	assert_int_equal(l->n, KAFKA_ABILITIES);
	for (size_t i = 0; i < l->n; i++) {
		assert_true(strlen(l->abilities[i].name) > 0);
		/* Any that is fit for use has these; the rest only must not be claimed without a try. */
		if (strcmp(l->abilities[i].name, "lz4") == 0 || strcmp(l->abilities[i].name, "PLAIN") == 0)
			assert_true(l->abilities[i].works);
		assert_true(l->abilities[i].works || l->abilities[i].error[0] != '\0');
	}
}

static void
scram_is_modern_from_one_version_on(void **state)
{
	struct kafka_property p[] = { { "sasl.mechanism", "SCRAM-SHA-256" } };
	struct kafka_options o = { .properties = p, .n_properties = 1 };
	static const struct {
		int version;
		bool is_modern;
	} cases[] = { { 0x020002ff, false }, { 0x020600ff, false }, { 0x020601ff, true }, { 0x020800ff, true } };
	char error[256];

	(void)state;
	fake.makes_nothing = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));
		struct kafka_library l;

		fake.version = cases[i].version;
		kafka_library_describe(&l);
		assert_int_equal(l.has_modern_scram, cases[i].is_modern);
		assert_int_equal(kafka_conf_has_broken_scram(conf), !cases[i].is_modern);
		rd_kafka_conf_destroy(conf);
	}
}

static const struct kafka_ability *
find(const struct kafka_library *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->abilities[i].name, name) == 0)
			return &l->abilities[i];
	}
	return NULL;
}

static void
a_library_that_makes_no_producer_can_do_nothing(void **state)
{
	struct kafka_library l;

	(void)state;
	fake.makes_nothing = true;
	kafka_library_describe(&l);
	assert_int_equal(fake.made, KAFKA_ABILITIES);
	for (size_t i = 0; i < l.n; i++) {
		assert_false(l.abilities[i].works);
		assert_string_equal(l.abilities[i].error, "no provider for this mechanism");
	}
}

/* A library reports a feature that it was built without when it is configured. */
static void
what_a_library_lacks_is_reported_by_its_property(void **state)
{
	static const struct {
		const char *property;
		unsigned n;		/* how many abilities need it */
		const char *ability;	/* one of them */
	} cases[] = {
		{ "security.protocol", 6, "SSL" },
		{ "compression.type", 2, "zstd" },
		{ "sasl.mechanisms", 5, "PLAIN" },
		{ "sasl.username", 3, "SCRAM-SHA-256" },
		{ "sasl.password", 3, "SCRAM-SHA-512" },
		{ "enable.sasl.oauthbearer.unsecure.jwt", 1, "OAUTHBEARER" },
		{ "sasl.oauthbearer.method", 1, "OIDC" },
		{ "sasl.oauthbearer.client.id", 1, "OIDC" },
		{ "sasl.oauthbearer.client.secret", 1, "OIDC" },
		{ "sasl.oauthbearer.token.endpoint.url", 1, "OIDC" },
	};
	char want[128];

	(void)state;
	fake.makes_nothing = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kafka_library l;

		fake.made = 0;
		fake.property = cases[i].property;
		kafka_library_describe(&l);
		assert_int_equal(fake.made, KAFKA_ABILITIES - cases[i].n);
		snprintf(want, sizeof(want), "%s: not available in this build", cases[i].property);
		assert_string_equal(find(&l, cases[i].ability)->error, want);
		assert_false(find(&l, cases[i].ability)->works);
	}
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(scram_with_an_old_library_is_known),
		T(the_library_says_what_it_can_do),
		T(scram_is_modern_from_one_version_on),
		T(a_library_that_makes_no_producer_can_do_nothing),
		T(what_a_library_lacks_is_reported_by_its_property),
	};

	return cmocka_run_group_tests(tests, describe, NULL);
}
