/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the cache on a failing disk keeps its contents, and failed writes are repeated later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <unistd.h>

#include "faults.h"
#include "registry/cache.h"
#include "tree.h"

static struct tree t;
static struct registry_cache *cache;
static char path[128], tmp[128], error[512];

static int
setup(void **state)
{
	(void)state;
	tree_init(&t);
	snprintf(path, sizeof(path), "%s/ids.json", t.root);
	snprintf(tmp, sizeof(tmp), "%s/ids.json.tmp", t.root);
	return registry_cache_open(path, &cache, error, sizeof(error));
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	registry_cache_close(cache);
	tree_done(&t);
	return 0;
}

/* What the next start finds: how many ids, and that of one. */
static void
expect_kept(size_t n, uint64_t fingerprint, int32_t want)
{
	struct registry_cache *c;
	int32_t id = -1;

	assert_int_equal(registry_cache_open(path, &c, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	assert_int_equal(registry_cache_count(c), n);
	(void)registry_cache_get(c, "http://a", "s", fingerprint, &id);
	assert_int_equal(id, want);
	registry_cache_close(c);
}

/* The one that the next file gets. */
static int
lowest_free_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void
a_save_leaves_no_file_open(void **state)
{
	int lowest = lowest_free_descriptor();

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(registry_cache_put(cache, "http://a", "s", (uint64_t)i, i), 0);
		fault = (struct fault){ .calls = i % 2 ? FAULT_WRITE : 0, .times = 1, .error = ENOSPC };
		assert_int_equal(registry_cache_save(cache), i % 2 ? -ENOSPC : 0);
		fault.calls = 0;
		assert_int_equal(lowest_free_descriptor(), lowest);
	}
}

static void
a_save_that_fails_leaves_what_was_there_and_is_made_up_for(void **state)
{
	static const struct {
		unsigned calls;
		int error;
	} cases[] = { { FAULT_UNLINK, EACCES }, { FAULT_CREATE, EMFILE }, { FAULT_WRITE, ENOSPC },
	    { FAULT_NAME, EIO } };

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(registry_cache_put(cache, "http://a", "s", (uint64_t)i * 2, i), 0);
		assert_int_equal(registry_cache_save(cache), 0);
		assert_int_equal(registry_cache_put(cache, "http://a", "s", (uint64_t)i * 2 + 1, i + 10), 0);
		fault = (struct fault){ .calls = cases[i].calls, .times = 1, .error = cases[i].error };
		assert_int_equal(registry_cache_save(cache), -cases[i].error);
		fault.calls = 0;
		assert_int_equal(access(tmp, F_OK), -1);
		expect_kept((size_t)i * 2 + 1, (uint64_t)i * 2, i);
		assert_int_equal(registry_cache_save(cache), 0);
		expect_kept((size_t)i * 2 + 2, (uint64_t)i * 2 + 1, i + 10);
	}
}

static void
a_write_in_part_or_interrupted_goes_on(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(registry_cache_put(cache, "http://a", "s", (uint64_t)i, i), 0);
		fault = (struct fault){ .calls = FAULT_WRITE, .times = 3, .error = i % 2 ? EINTR : 0 };
		assert_int_equal(registry_cache_save(cache), 0);
		assert_true(fault.count > 3);
		fault.calls = 0;
		expect_kept((size_t)i + 1, (uint64_t)i, i);
	}
	/* Half of the rest each time, down to the last byte. */
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 99, 99), 0);
	fault = (struct fault){ .calls = FAULT_WRITE, .times = 1000 };
	assert_int_equal(registry_cache_save(cache), 0);
	fault.calls = 0;
	expect_kept(21, 99, 99);
	/* What went wrong before does not count, and what takes nothing does not go on for ever. */
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 100, 100), 0);
	errno = EINTR;
	assert_int_equal(registry_cache_save(cache), 0);
	expect_kept(22, 100, 100);
}

static void
what_is_on_the_disk_is_not_written_again(void **state)
{
	(void)state;
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 7), 0);
	assert_int_equal(registry_cache_save(cache), 0);
	fault = (struct fault){ .calls = FAULT_CREATE | FAULT_NAME };	/* which counts them */
	assert_int_equal(registry_cache_save(cache), 0);
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 7), 0);	/* nothing new */
	registry_cache_drop(cache, "http://a", "s", 2);				/* nor that */
	assert_int_equal(registry_cache_save(cache), 0);
	registry_cache_close(cache);
	assert_int_equal(registry_cache_open(path, &cache, error, sizeof(error)), 0);	/* nor what was read */
	assert_int_equal(registry_cache_save(cache), 0);
	assert_int_equal(fault.count, 0);
	registry_cache_drop(cache, "http://a", "s", 1);
	assert_int_equal(registry_cache_save(cache), 0);
	assert_int_equal(fault.count, 2);
	expect_kept(0, 1, -1);
}

static void
without_memory_nothing_is_taken_for_kept(void **state)
{
	struct registry_cache *other = NULL;
	int32_t id;

	(void)state;
	for (unsigned n = 0; n < 5; n++) {
		fault = (struct fault){ .calls = FAULT_MEMORY | FAULT_LIBRARY, .skip = n, .times = 1, .error = ENOMEM };
		assert_int_equal(registry_cache_open(path, &other, error, sizeof(error)), -ENOMEM);
		assert_null(other);
	}
	for (unsigned n = 0; n < 3; n++) {
		fault = (struct fault){ .calls = FAULT_LIBRARY, .skip = n > 0 ? n - 1 : 0, .times = 1,
			.error = ENOMEM };
		assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 7), -ENOMEM);
		fault.calls = 0;
		assert_int_equal(registry_cache_count(cache), 0);
		assert_int_equal(registry_cache_get(cache, "http://a", "s", 1, &id), -ENOENT);
		assert_int_equal(registry_cache_save(cache), 0);
		assert_int_equal(access(path, F_OK), -1);
	}
	/* Nor is it saved without the name of the file that comes before it. */
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 6), 0);
	fault = (struct fault){ .calls = FAULT_TEXT, .times = 1, .error = ENOMEM };
	assert_int_equal(registry_cache_save(cache), -ENOMEM);
	fault.calls = 0;
	assert_int_equal(access(path, F_OK), -1);
	/* One that was known and cannot be changed is forgotten: the registry is asked again. */
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 7), 0);
	assert_int_equal(registry_cache_save(cache), 0);
	fault = (struct fault){ .calls = FAULT_LIBRARY, .times = 1, .error = ENOMEM };
	assert_int_equal(registry_cache_put(cache, "http://a", "s", 1, 8), -ENOMEM);
	fault.calls = 0;
	assert_int_equal(registry_cache_count(cache), 0);
	assert_int_equal(registry_cache_save(cache), 0);
	expect_kept(0, 1, -1);
}

/* Whichever of many it is, and however much room there is. */
static void
one_that_is_dropped_takes_no_other_with_it(void **state)
{
	int32_t id;

	(void)state;
	for (size_t n = 1; n <= 33; n++) {
		for (size_t i = 0; i < n; i++)
			assert_int_equal(registry_cache_put(cache, "http://a", "s", i, (int32_t)i), 0);
		/* From the end, each with one behind it that was put anew. */
		for (size_t i = n; i-- > 0;) {
			registry_cache_drop(cache, "http://a", "s", i);
			assert_int_equal(registry_cache_put(cache, "http://a", "s", 99, (int32_t)n), 0);
			assert_int_equal(registry_cache_count(cache), i + 1);
			for (size_t j = 0; j < n; j++)
				assert_int_equal(registry_cache_get(cache, "http://a", "s", j, &id), j < i ? 0 : -ENOENT);
		}
		registry_cache_drop(cache, "http://a", "s", 99);
	}
}

static void
there_need_be_no_room_for_a_sentence(void **state)
{
	struct registry_cache *c;
	char one[] = "x";

	(void)state;
	assert_int_equal(registry_cache_open(NULL, &c, NULL, 0), 0);
	registry_cache_close(c);
	assert_int_equal(registry_cache_open(NULL, &c, one, 1), 0);
	assert_string_equal(one, "");
	registry_cache_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_save_leaves_no_file_open),
		T(a_save_that_fails_leaves_what_was_there_and_is_made_up_for),
		T(a_write_in_part_or_interrupted_goes_on),
		T(what_is_on_the_disk_is_not_written_again),
		T(without_memory_nothing_is_taken_for_kept),
		T(one_that_is_dropped_takes_no_other_with_it),
		T(there_need_be_no_room_for_a_sentence),
	};

	json_set_alloc_funcs(fault_library_alloc, free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
