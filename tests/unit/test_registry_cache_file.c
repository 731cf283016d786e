/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the cache and its file: contents, damage and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <jansson.h>

#include "registry/cache.h"
#include "tree.h"

#define BASE "https://registry.example:8081/apis"
#define SUBJECT "sluice.program-value"

static void
assert_id(const struct registry_cache *c, const char *url, uint64_t fingerprint, int32_t want)
{
	int32_t id = -1;
	int r = registry_cache_get(c, url, SUBJECT, fingerprint, &id);

	assert_int_equal(want < 0 ? -ENOENT : 0, r);
	assert_int_equal(want, id);
}

static void
cache_gives_back_what_was_put(void **state)
{
	struct registry_cache *c;
	struct tree t;
	struct stat st;
	char error[512];
	char path[128];	/* tree_path() has few buffers */

	(void)state;
	tree_init(&t);
	snprintf(path, sizeof(path), "%s", tree_path(&t, "ids.json"));
	assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(0, registry_cache_save(c));
	assert_int_equal(-1, access(path, F_OK));	/* nothing to keep, no file */
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, UINT64_MAX, 7));
	assert_int_equal(0, registry_cache_put(c, "http://b", SUBJECT, UINT64_MAX, 8));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 1, 0));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 2, 3));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 2, INT32_MAX));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 3, 3));
	registry_cache_drop(c, "http://a", SUBJECT, 3);
	registry_cache_drop(c, "http://a", SUBJECT, 4);
	/* Those behind one that is dropped stay. */
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 5, 5));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 6, 6));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 7, 7));
	registry_cache_drop(c, "http://a", SUBJECT, 5);
	assert_id(c, "http://a", 5, -1);
	assert_id(c, "http://a", 6, 6);
	assert_id(c, "http://a", 7, 7);
	registry_cache_drop(c, "http://a", SUBJECT, 6);
	registry_cache_drop(c, "http://a", SUBJECT, 7);
	/* A leftover of an interrupted save, and a link that another user created. */
	tree_write(&t, "victim", "whole");
	assert_int_equal(0, symlink(tree_path(&t, "victim"), tree_path(&t, "ids.json.tmp")));
	errno = EACCES;		/* of something before */
	assert_int_equal(0, registry_cache_save(c));
	registry_cache_close(c);
	assert_int_equal(0, stat(path, &st));
	assert_int_equal(0600, st.st_mode & 07777);
	assert_int_equal(0, stat(tree_path(&t, "victim"), &st));
	assert_int_equal(5, st.st_size);
	assert_int_equal(-1, access(tree_path(&t, "ids.json.tmp"), F_OK));

	assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(4, registry_cache_count(c));
	assert_id(c, "http://a", UINT64_MAX, 7);
	assert_id(c, "http://b", UINT64_MAX, 8);
	assert_id(c, "http://a", 1, 0);
	assert_id(c, "http://a", 2, INT32_MAX);
	assert_id(c, "http://a", 3, -1);
	assert_id(c, "http://c", 1, -1);
	registry_cache_close(c);
	tree_done(&t);
}

static void
damaged_cache_gives_what_is_whole_and_reports_it(void **state)
{
	static const char row[] = "{\"url\":\"http://a\",\"subject\":\"" SUBJECT
				  "\",\"fingerprint\":\"000000000000000f\",\"id\":5}";
	static const struct {
		const char *format;	/* with the good row, or without */
		int32_t id;
		const char *text;	/* of the error */
	} cases[] = {
		{ "{\"version\":1,\"ids\":[%s]}", 5, NULL },
		{ "{\"version\":2,\"version\":1,\"ids\":[%s]}", 5, NULL },	/* the last counts */
		{ "{\"version\":1,\"ids\":[%s,{}]}", 5, "1 of the schema ids" },
		{ "{\"version\":1,\"ids\":[1,%s,null,{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"g000000000000000\",\"id\":1}]}", 5, "3 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"000000000000000f\",\"id\":-1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"subject\":\"s\",\"fingerprint\":\"000000000000000f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"fingerprint\":\"000000000000000f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[%s]", -1, "damaged: the schema ids" },
		{ "{\"version\":2,\"ids\":[%s]}", -1, "damaged: the schema ids" },
		{ "{\"version\":1,\"ids\":{\"a\":%s}}", -1, "damaged: the schema ids" },
		{ "", -1, "damaged: the schema ids" },
	};
	struct tree t;

	(void)state;
	tree_init(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_cache *c;
		char text[1024], error[512];
		const char *path = tree_path(&t, "ids.json");

		snprintf(text, sizeof(text), cases[i].format, row);
		tree_write(&t, "ids.json", text);
		assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
		assert_id(c, "http://a", 15, cases[i].id);
		if (cases[i].text == NULL)
			assert_string_equal("", error);
		else if (strstr(error, cases[i].text) == NULL ||
		    strncmp(error, path, strlen(path)) != 0)
			fail_msg("%s", error);
		/* Written anew, whole. */
		assert_int_equal(0, registry_cache_save(c));
		registry_cache_close(c);
		assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
		assert_string_equal("", error);
		assert_id(c, "http://a", 15, cases[i].id);
		registry_cache_close(c);
	}
	tree_done(&t);
}

static void
cache_that_cannot_be_a_file_of_ours_is_reported(void **state)
{
	struct registry_cache *c;
	struct tree t;
	char error[512];
	int fd;

	(void)state;
	tree_init(&t);
	tree_mkdir(&t, "dir");
	assert_int_equal(0, registry_cache_open(tree_path(&t, "dir"), &c, error, sizeof(error)));
	assert_non_null(strstr(error, "cannot be read (Is a directory)"));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 1, 1));
	assert_int_equal(-EISDIR, registry_cache_save(c));
	assert_int_equal(-1, access(tree_path(&t, "dir.tmp"), F_OK));
	registry_cache_close(c);

	fd = open(tree_path(&t, "big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(0, ftruncate(fd, REGISTRY_CACHE_BYTES + 1));
	close(fd);
	assert_int_equal(0, registry_cache_open(tree_path(&t, "big"), &c, error, sizeof(error)));
	assert_non_null(strstr(error, "too large for schema ids"));
	assert_int_equal(0, registry_cache_save(c));	/* ours takes its place, also with nothing in it */
	registry_cache_close(c);
	assert_int_equal(0, registry_cache_open(tree_path(&t, "big"), &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(0, registry_cache_count(c));
	registry_cache_close(c);
	tree_done(&t);
}

static void
full_cache_loses_its_oldest_and_fits_its_file(void **state)
{
	char url[256], error[512];
	struct registry_cache *c;
	struct tree t;

	(void)state;
	tree_init(&t);
	memset(url, 'u', sizeof(url) - 1);
	url[sizeof(url) - 1] = '\0';
	assert_int_equal(
	    0, registry_cache_open(tree_path(&t, "ids.json"), &c, error, sizeof(error)));
	for (int i = 0; i < REGISTRY_CACHE_MAX + 10; i++)
		assert_int_equal(0, registry_cache_put(c, url, SUBJECT, (uint64_t)i, i));
	assert_int_equal(REGISTRY_CACHE_MAX, registry_cache_count(c));
	assert_id(c, url, 9, -1);
	assert_id(c, url, 10, 10);
	assert_int_equal(0, registry_cache_save(c));
	registry_cache_close(c);
	assert_int_equal(
	    0, registry_cache_open(tree_path(&t, "ids.json"), &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(REGISTRY_CACHE_MAX, registry_cache_count(c));
	for (int i = 10; i < REGISTRY_CACHE_MAX + 10; i++)
		assert_id(c, url, (uint64_t)i, i);
	registry_cache_close(c);
	tree_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cache_gives_back_what_was_put),
		cmocka_unit_test(damaged_cache_gives_what_is_whole_and_reports_it),
		cmocka_unit_test(cache_that_cannot_be_a_file_of_ours_is_reported),
		cmocka_unit_test(full_cache_loses_its_oldest_and_fits_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
