/* SPDX-License-Identifier: Apache-2.0 */
/* spool_schema: schemas on disk, found by their fingerprint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

static const char *
path_of(const char *text, const char *suffix)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/schemas/%016" PRIx64 ".avsc%s", k.dir,
	    spool_fingerprint(text, strlen(text)), suffix);
	return path;
}

static void
expect_text(const char *text)
{
	struct kit_file f = kit_load(path_of(text, ""));

	assert_int_equal(f.len, strlen(text));
	assert_memory_equal(f.data, text, f.len);
	free(f.data);
	assert_int_equal(access(path_of(text, ".part"), F_OK), -1);
}

static ino_t
inode_of(const char *text)
{
	struct stat st;

	assert_int_equal(stat(path_of(text, ""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	return st.st_ino;
}

static void
texts_are_there_and_stay_as_they_are(void **state)
{
	ino_t before[TOPIC_COUNT];
	char folder[200];
	struct stat st;

	(void)state;
	kit_open(&k);
	snprintf(folder, sizeof(folder), "%s/schemas", k.dir);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		expect_text(topic_name(t));
		before[t] = inode_of(topic_name(t));
	}
	kit_reopen(&k);
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_int_equal(inode_of(topic_name(t)), before[t]);
	/* One that is cut off is written again, and no other. */
	assert_int_equal(spool_close(k.spool), 0);
	assert_int_equal(truncate(path_of(topic_name(1), ""), 3), 0);
	kit_open(&k);
	expect_text(topic_name(1));
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (t != 1)
			assert_int_equal(inode_of(topic_name(t)), before[t]);
}

/* Each write of a text fails once, in each way: the text is then complete, or missing and reported. */
static void
texts_are_whole_or_not_there(void **state)
{
	static const int errors[] = { 0, EINTR, ENOSPC };
	static const unsigned calls[] = { FAULT_CREATE, FAULT_WRITE, FAULT_SYNC, FAULT_NAME, FAULT_DIR };

	(void)state;
	for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
		for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
			bool is_tried_again = calls[c] == FAULT_WRITE && errors[e] != ENOSPC;

			if (errors[e] != ENOSPC && calls[c] != FAULT_WRITE)
				continue;
			for (unsigned n = 0;; n++) {
				kit_open(&k);
				assert_int_equal(spool_close(k.spool), 0);
				k.spool = NULL;
				for (int t = 0; t < TOPIC_COUNT; t++)
					assert_int_equal(unlink(path_of(topic_name(t), "")), 0);
				fault = (struct fault){ .calls = calls[c], .skip = n, .times = 1, .error = errors[e] };
				kit_open(&k);
				fault.calls = 0;
				assert_int_equal(kit_stats(&k).last_error,
				    fault.hit && !is_tried_again ? -ENOSPC : 0);
				for (int t = 0; t < TOPIC_COUNT; t++)
					if (access(path_of(topic_name(t), ""), F_OK) == 0 || !fault.hit || is_tried_again)
						expect_text(topic_name(t));
				assert_int_equal(access(path_of(topic_name(0), ".part"), F_OK), -1);
				kit_tick(&k);
				kit_tick(&k);
				assert_int_equal(kit_stats(&k).last_error, 0);
				for (int t = 0; t < TOPIC_COUNT; t++)
					expect_text(topic_name(t));
				assert_int_equal(spool_close(k.spool), 0);
				k.spool = NULL;
				if (!fault.hit)
					break;
			}
		}
	}
}

static void
a_topic_without_a_text_has_no_file(void **state)
{
	struct spool_record r;

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (t != TOPIC_TASK)
			k.options.schemas[t] = NULL;
	kit_open(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	expect_text(topic_name(TOPIC_TASK));
	assert_int_equal(access(path_of(topic_name(TOPIC_PROGRAM), ""), F_OK), -1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_TASK, 1);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.schema, 0);
	assert_null(spool_schema(k.spool, 0));
	assert_true(spool_next(k.spool, &r));
	assert_string_equal(spool_schema(k.spool, r.schema), topic_name(TOPIC_TASK));
}

static void
store(const char *text, const char *as)
{
	kit_store(path_of(as, ""), text, strlen(text));
}

static void
an_older_text_is_read_once_and_believed_only_if_it_is_that(void **state)
{
	static const char *const old[] = { "one", "another", "" };
	const char *first[3];
	char *large = malloc((1 << 20) + 2);

	(void)state;
	kit_open(&k);
	for (int i = 0; i < 3; i++) {
		uint64_t fingerprint = spool_fingerprint(old[i], strlen(old[i]));

		assert_null(spool_schema(k.spool, fingerprint));
		assert_int_equal(errno, ENOENT);
		store("onE", old[i]);
		assert_null(spool_schema(k.spool, fingerprint));
		assert_int_equal(errno, ENOENT);
		store(old[i], old[i]);
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = 1, .times = 1, .error = ENOMEM };
		for (; (first[i] = spool_schema(k.spool, fingerprint)) == NULL; fault.times--)
			assert_int_equal(errno, ENOMEM);	/* it is not lost */
		fault.calls = 0;
		assert_string_equal(first[i], old[i]);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unlink(path_of(old[i], "")), 0);
		assert_ptr_equal(spool_schema(k.spool, spool_fingerprint(old[i], strlen(old[i]))), first[i]);
	}
	/* They are written where a folder has lost them. */
	spool_disk_failed(k.spool, -EIO);
	kit_tick(&k);
	kit_tick(&k);
	for (int i = 0; i < 3; i++)
		expect_text(old[i]);
	/* No text is as large as that. */
	assert_non_null(large);
	for (size_t len = 1 << 20; len <= (1 << 20) + 1; len++) {
		const char *got;

		memset(large, 'x', len);
		large[len] = '\0';
		store(large, large);
		got = spool_schema(k.spool, spool_fingerprint(large, len));
		if (len == 1 << 20)
			assert_string_equal(got, large);
		else
			assert_null(got);
	}
	free(large);
}

/* A call on a FIFO lasts until its other end is opened, like one on a disk that does not answer. */
static void
a_disk_that_hangs_does_not_stop_the_loop(void **state)
{
	static const char *const old = "an older text";
	uint64_t fingerprint = spool_fingerprint(old, strlen(old));
	int fd;

	(void)state;
	alarm(60);
	k.options.patience_ms = 50;
	kit_open(&k);
	kit_tick(&k);
	/* As a schema is written. */
	assert_int_equal(unlink(path_of(topic_name(0), "")), 0);
	assert_int_equal(mkfifo(path_of(topic_name(0), ".part"), 0600), 0);
	spool_disk_failed(k.spool, -EIO);
	kit_tick(&k);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ETIMEDOUT);
	fd = open(path_of(topic_name(0), ".part"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	close(fd);
	expect_text(topic_name(0));
	/* As one is read: it is not lost. */
	assert_int_equal(mkfifo(path_of(old, ""), 0600), 0);
	assert_null(spool_schema(k.spool, fingerprint));
	assert_int_equal(errno, ETIMEDOUT);
	fd = open(path_of(old, ""), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(unlink(path_of(old, "")), 0);
	store(old, old);
	KIT_UNTIL(&k, spool_schema(k.spool, fingerprint) != NULL);
	close(fd);
	assert_string_equal(spool_schema(k.spool, fingerprint), old);
	alarm(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(texts_are_there_and_stay_as_they_are),
		T(texts_are_whole_or_not_there),
		T(a_topic_without_a_text_has_no_file),
		T(an_older_text_is_read_once_and_believed_only_if_it_is_that),
		T(a_disk_that_hangs_does_not_stop_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
