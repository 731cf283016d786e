/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the client without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include "base/ca_bundle.h"
#include "faults.h"
#include "registry_kit.h"
#include "timers.h"

static void
without_memory_it_does_not_open(void **state)
{
	const char *urls[] = { url, "http://b/x" };
	char there[128];
	unsigned n;

	(void)state;
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (n = 0; n < 1000; n++) {
		struct registry_options o = options(urls, 2);
		int opened;

		o.user = "me";
		o.password = "hunter2";
		o.ca_file = o.cert_file = o.key_file = there;
		o.cache_file = cache;
		error[0] = '\0';
		fault = (struct fault){ .calls = FAULT_MEMORY | FAULT_TEXT | FAULT_LIBRARY, .skip = n, .times = 1,
			.error = ENOMEM };
		opened = registry_open(base, &o, on_change, &changes, &r, error, sizeof(error));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(opened, -ENOMEM);
		assert_null(r);
		assert_string_equal(error, "no memory for the registry client");
	}
	assert_in_range(n, 10, 999);
	assert_non_null(r);
	assert_string_equal(error, "");
	registry_close(r);
	/* The bearer's word is another copy. */
	for (n = 0; n < 1000; n++) {
		struct registry_options o = options(urls, 1);

		o.token = "t0ken";
		r = NULL;
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		(void)registry_open(base, &o, on_change, &changes, &r, error, sizeof(error));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_null(r);
	}
	assert_in_range(n, 4, 999);
}

/* Seen by the room that its name needs. Of a host that has none there is nothing to see. */
static void
the_systems_ca_file_is_taken_for_https_alone(void **state)
{
	const char *urls[] = { "http://127.0.0.1:9", "https://127.0.0.1:9" }, *ca = ca_bundle_find(ca_bundle_paths);

	(void)state;
	for (size_t i = 0; ca != NULL && i < 2; i++) {
		struct registry_options o = options(urls + i, 1);
		int opened;

		fault = (struct fault){ .calls = FAULT_MEMORY, .size = strlen(ca) + 1, .times = 1, .error = ENOMEM };
		opened = registry_open(base, &o, on_change, &changes, &r, error, sizeof(error));
		fault.calls = 0;
		assert_int_equal(opened, i == 0 ? 0 : -ENOMEM);
		registry_close(r);
		r = NULL;
	}
}

static void
without_memory_an_id_is_asked_for_later(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	unsigned n;

	(void)state;
	o.retry_max_ms = 700;
	opens_at_once(&o, true);
	for (n = 0; n < 100; n++) {
		int id;

		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		id = id_of("a-value", 15);
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(id, -ENOMEM);
		assert_int_equal(status().wanted, 0);
	}
	assert_in_range(n, 2, 99);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	/* Its address cannot be made: that is tried again after the longest wait. */
	fault = (struct fault){ .calls = FAULT_TEXT, .times = 2, .error = ENOMEM };
	timers.over_at_once = 3;
	assert_true(wait_for(is_ok));
	assert_int_equal(timers.waits_us[1], 700 * MS);
	assert_int_equal(timers.waits_us[2], 700 * MS);
	assert_int_equal(server.requests, 1);
	assert_int_equal(status().requests, 1);
	assert_int_equal(id_of("a-value", 15), 7);
}

static void
without_memory_for_its_timer_it_is_asked_once_there_is_some(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	unsigned asked;

	(void)state;
	opens(&o);
	timers.arg = r;
	timers.fails = 1;
	assert_int_equal(id_of("a-value", 15), -ENOMEM);
	assert_int_equal(timers.fails, 0);
	assert_int_equal(status().wanted, 0);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("a-value", 15), 7);
	/* The timer of the wait after a request without an answer: the caller that needs the id sets it. */
	server.status = 500;
	timers.works = timers.fails = 1;
	assert_int_equal(id_of("b-value", 15), -EAGAIN);
	assert_true(wait_for(is_away));
	assert_int_equal(timers.fails, 0);
	server.status = 200;
	asked = server.requests;
	turn_for(100);
	assert_int_equal(server.requests, asked);
	assert_int_equal(id_of("b-value", 15), -EAGAIN);
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("b-value", 15), 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_memory_it_does_not_open),
		T(the_systems_ca_file_is_taken_for_https_alone),
		T(without_memory_an_id_is_asked_for_later),
		T(without_memory_for_its_timer_it_is_asked_once_there_is_some),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
