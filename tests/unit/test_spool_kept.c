/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool: what versions leave on the disk is read as they left it. tests/fixtures/spools has a file for each version of
 * the format: the files of a spool in hexadecimal, and what a spool that is opened on them contains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "one_spool.h"

#define FOLDER SOURCE_TREE "/tests/fixtures/spools"
#define CONTENTS "contents\n"		/* the line between the files and what they contain */
#define LINE_BYTES 32

static const char *const files[] = { "main-0000000001.seg", "usage-0000000001.seg", "state" };

static void __attribute__((format(printf, 2, 3)))
put(struct bytes *to, const char *format, ...)
{
	char line[256];
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	assert_in_range(len, 0, sizeof(line) - 1);
	assert_int_equal(bytes_append(to, line, (size_t)len), 0);
}

/* Writes a spool with all that its files can have: each topic, both queues, a checkpoint, acks out of order. */
static void
leave(void)
{
	struct spool_record r[3];

	kit_open(&k);
	memset(k.spool->boot_id, 'b', sizeof(k.spool->boot_id) - 1);	/* the same on each machine */
	assert_int_equal(spool_put_wal(k.spool, "before", 6), 0);
	(void)kit_put_len(&k, TOPIC_PROGRAM, 10);
	kit_commit_at(&k, 100);
	spool_checkpoint_begin(k.spool);
	assert_int_equal(spool_put_wal(k.spool, "state", 5), 0);
	for (int t = 0; t < TOPIC_COUNT; t++)
		(void)kit_put_len(&k, t, 10 + (size_t)t);
	kit_commit_at(&k, 200);
	assert_int_equal(spool_put_wal(k.spool, "change", 6), 0);
	(void)kit_put_len(&k, TOPIC_USAGE, 12);
	kit_commit_at(&k, 300);
	for (int i = 0; i < 3; i++)
		r[i] = kit_next(&k);
	spool_ack(k.spool, r[0].id);
	spool_ack(k.spool, r[2].id);
	kit_close(&k);
}

/* Appends the files, without lines of zeros. */
static void
dump(struct bytes *to)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct kit_file file;
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", k.dir, files[i]);
		file = kit_load(path);
		put(to, "file %s %zu\n", files[i], file.len);
		for (size_t at = 0; at < file.len; at += LINE_BYTES) {
			size_t n = file.len - at < LINE_BYTES ? file.len - at : LINE_BYTES;
			bool is_zero = true;

			for (size_t b = 0; b < n; b++)
				is_zero = is_zero && file.data[at + b] == 0;
			if (is_zero)
				continue;
			put(to, "%zx ", at);
			for (size_t b = 0; b < n; b++)
				put(to, "%02x", file.data[at + b]);
			put(to, "\n");
		}
		free(file.data);
	}
}

static void
put_entry(const void *data, size_t len, void *arg)
{
	put(arg, "entry %.*s\n", (int)len, (const char *)data);
}

/* Opens the spool and appends what it contains. */
static void
describe(struct bytes *to)
{
	struct ring_offset offset;
	struct spool_record r;

	kit_open(&k);
	put(to, "clean %d unreadable %u torn %" PRIu64 " corrupt %" PRIu64 "\n", k.recovery.was_clean,
	    k.recovery.unreadable, k.recovery.torn_bytes, k.recovery.corrupt_bytes);
	for (int t = 0; t < TOPIC_COUNT; t++)
		put(to, "next %s %" PRIu64 "\n", topic_name(t), k.seq[t]);
	if (spool_ring_offset(k.spool, &offset))
		put(to, "ring %s %u %" PRIu64 "\n", offset.boot_id, offset.ring_id, offset.position);
	spool_replay(k.spool, put_entry, to);
	while (spool_next(k.spool, &r)) {
		assert_true(kit_is_whole(&r));
		put(to, "record %s %" PRIu64 " %016" PRIx64 "%s\n", topic_name(r.topic), r.seq, r.schema,
		    r.is_again ? " again" : "");
		spool_ack(k.spool, r.id);
	}
	kit_close(&k);
}

/* Makes the files of a kept text in the spool's folder. Returns what they are to contain. */
static const char *
restore(char *text)
{
	char *at = text, *end;
	char path[256] = "";
	struct kit_file file = { NULL, 0 };

	for (; (end = strchr(at, '\n')) != NULL && strncmp(at, CONTENTS, strlen(CONTENTS)) != 0; at = end + 1) {
		char name[64];
		size_t offset;
		int digits;

		*end = '\0';
		if (sscanf(at, "file %63s %zu", name, &offset) == 2) {
			if (file.data != NULL)
				kit_store(path, file.data, file.len);
			free(file.data);
			snprintf(path, sizeof(path), "%s/%s", k.dir, name);
			assert_in_range(offset, 1, 1 << 20);
			file = (struct kit_file){ calloc(1, offset), offset };
			assert_non_null(file.data);
			continue;
		}
		assert_int_equal(sscanf(at, "%zx %n", &offset, &digits), 1);
		for (const char *hex = at + digits; *hex != '\0'; hex += 2, offset++) {
			unsigned byte;

			assert_true(offset < file.len);
			assert_int_equal(sscanf(hex, "%2x", &byte), 1);
			file.data[offset] = (uint8_t)byte;
		}
	}
	assert_non_null(end);
	assert_non_null(file.data);
	kit_store(path, file.data, file.len);
	free(file.data);
	return end + 1;
}

/* Calls use with the name and text of each kept spool, in a folder without one. */
static unsigned
each_kept(void (*use)(const char *name, char *text, void *arg), void *arg)
{
	DIR *dir = opendir(FOLDER);
	struct dirent *e;
	unsigned n = 0;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		struct kit_file file;
		char path[600];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), FOLDER "/%s", e->d_name);
		file = kit_load(path);
		file.data[file.len] = '\0';
		use(e->d_name, (char *)file.data, arg);
		free(file.data);
		n++;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Makes both slots of the state ones of this boot: of another one, no state counts as clean. */
static void
state_of_boot(const char *boot_id)
{
	enum { SLOT = 4096 };
	struct kit_file file;
	char path[256];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	assert_int_equal(file.len, 2 * SLOT);
	for (uint8_t *slot = file.data; slot < file.data + file.len; slot += SLOT) {
		memcpy(slot + 24, boot_id, 36);
		le_put32(slot + 4, crc32c(0, slot + 8, SLOT - 8));
	}
	kit_store(path, file.data, file.len);
	free(file.data);
}

static void
compare_contents(const char *name, char *text, void *arg)
{
	struct bytes now = { 0 };
	char boot_id[sizeof(k.spool->boot_id)];
	const char *contents;

	(void)arg;
	kit_open(&k);			/* makes the folder */
	memcpy(boot_id, k.spool->boot_id, sizeof(boot_id));
	kit_close(&k);
	contents = restore(text);
	state_of_boot(boot_id);
	describe(&now);
	put(&now, "%c", '\0');
	if (strcmp(contents, (const char *)now.data) != 0)
		fail_msg("%s contains\n%sand this version reads\n%s", name, contents, now.data);
	bytes_done(&now);
	kit_done(&k);
	kit_init(&k);
}

static void
each_version_is_read_as_it_was_left(void **state)
{
	(void)state;
	assert_true(each_kept(compare_contents, NULL) > 0);
}

static void
compare_files(const char *name, char *text, void *arg)
{
	struct bytes *now = arg;
	const char *contents = strstr(text, CONTENTS);

	assert_non_null(contents);
	if (now->len == (size_t)(contents - text) && memcmp(now->data, text, now->len) == 0) {
		print_message("this version writes what %s has\n", name);
		now->len = 0;
	}
}

/* SLUICE_KEEP_SPOOL=NAME in the environment keeps what this version writes as that file. */
static void
what_this_version_writes_is_kept(void **state)
{
	const char *keep = getenv("SLUICE_KEEP_SPOOL");
	struct bytes now = { 0 };

	(void)state;
	leave();
	dump(&now);
	if (keep != NULL) {
		size_t len = now.len;
		char path[256];

		snprintf(path, sizeof(path), FOLDER "/%s", keep);
		put(&now, CONTENTS);
		describe(&now);
		kit_store(path, now.data, now.len);
		now.len = len;
	}
	(void)each_kept(compare_files, &now);
	if (now.len > 0)
		fail_msg("what a spool has on the disk is in no file of %s: later versions are not tested with it. Keep it: "
		    "SLUICE_KEEP_SPOOL=VERSION.txt build/dev/tests/test_spool_kept", FOLDER);
	bytes_done(&now);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_this_version_writes_is_kept),
		T(each_version_is_read_as_it_was_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
