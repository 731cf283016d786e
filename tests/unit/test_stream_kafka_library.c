/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_config: what the librdkafka that is linked can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stream/kafka_client.h"

static void
scram_with_an_old_library_is_known(void **state)
{
	struct kafka_property p[] = { { "sasl.mechanism", "SCRAM-SHA-512" } };
	struct kafka_options o = { .properties = p, .n_properties = 1 };
	struct kafka_library library;
	char error[256];
	rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

	(void)state;
	assert_non_null(conf);
	kafka_library_describe(&library);
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
	struct kafka_library l;

	(void)state;
	kafka_library_describe(&l);
	assert_string_equal(l.version, rd_kafka_version_str());
	assert_int_equal(l.n, KAFKA_ABILITIES);
	for (size_t i = 0; i < l.n; i++) {
		assert_true(strlen(l.abilities[i].name) > 0);
		/* Any that is fit for use has these; the rest only must not be claimed without a try. */
		if (strcmp(l.abilities[i].name, "lz4") == 0 || strcmp(l.abilities[i].name, "PLAIN") == 0)
			assert_true(l.abilities[i].works);
		assert_true(l.abilities[i].works || l.abilities[i].error[0] != '\0');
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scram_with_an_old_library_is_known),
		cmocka_unit_test(the_library_says_what_it_can_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
