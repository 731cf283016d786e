/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters are read back, whole or damaged, and removed while another writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "samples.h"
#include "deliver/dead_letter.h"
#include "deliver/dead_letter_files.h"
#include "deliver/dead_letter_read.h"

static char root[64];
static int dir_fd;

static int
setup(void **state)
{
	(void)state;
	if (sample_folder(root) == NULL)
		return -1;
	dir_fd = open(root, O_RDONLY | O_DIRECTORY);
	return dir_fd < 0;
}

static int
teardown(void **state)
{
	(void)state;
	close(dir_fd);
	sample_remove(root);
	return 0;
}

static struct dead_letters *
open_letters(void)
{
	struct dead_letters *d = NULL;

	assert_int_equal(dead_letters_open(root, 0, 0, &d), 0);
	return d;
}

static void
put(struct dead_letters *d, uint64_t seq, const char *reason)
{
	struct spool_record r = { .topic = TOPIC_PROGRAM, .schema = 0xabc, .seq = seq, .time_us = SAMPLE_TIME,
		.key = "h:run-1", .data = "\0\1\xff", .len = 3 };

	int error = dead_letters_put(d, &r, reason, "in words");

	for (int i = 0; i < 10000 && error == 0 && !dead_letters_next(d, &error); i++)
		usleep(1000);
	assert_int_equal(error, 0);
}

/* The names in the folder; their number must be n. */
static struct dead_letter_names
names(size_t n)
{
	struct dead_letter_names found = { 0 };

	assert_int_equal(dead_letter_names_read(dir_fd, &found), 0);
	assert_int_equal(found.n, n);
	return found;
}

/* What reading a file finds: "0 1 ! 3": the seq of each letter, "!" for damage, "~" for a torn end. */
static char *
read_all(const char *name, char *text, size_t size)
{
	int fd = openat(dir_fd, name, O_RDONLY), r;
	struct dead_letter_reader *reader = NULL;
	struct dead_letter letter;
	struct ocf_error error;
	size_t used = 0;

	assert_true(fd >= 0);
	assert_int_equal(dead_letter_reader_open(fd, &reader, &error), 0);
	text[0] = '\0';
	do {
		r = dead_letter_reader_next(reader, &letter, &error);
		if (r == 1)
			used += (size_t)snprintf(text + used, size - used, "%s%u", used > 0 ? " " : "", (unsigned)letter.seq);
		else if (r < 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", r == -EBADMSG ? "!" : "~");
	} while (r == 1 || r == -EBADMSG);
	dead_letter_reader_close(reader);
	close(fd);
	return text;
}

/* The bytes of the i-th letter of a file. */
static struct dead_letter_range
range_of(const char *name, unsigned i)
{
	int fd = openat(dir_fd, name, O_RDONLY);
	struct dead_letter_reader *reader = NULL;
	struct dead_letter letter = { 0 };
	struct ocf_error error;

	assert_int_equal(dead_letter_reader_open(fd, &reader, &error), 0);
	for (unsigned n = 0; n <= i; n++)
		assert_int_equal(dead_letter_reader_next(reader, &letter, &error), 1);
	dead_letter_reader_close(reader);
	close(fd);
	return (struct dead_letter_range){ letter.offset, letter.end };
}

static uint64_t
header_of(const char *name)
{
	return range_of(name, 0).offset;
}

static void
write_at(const char *name, uint64_t offset, const void *bytes, size_t len)
{
	int fd = openat(dir_fd, name, O_WRONLY);

	assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), len);
	close(fd);
}

/* Changes a byte, whatever it was: markers are random. */
static void
damage_at(const char *name, uint64_t offset)
{
	int fd = openat(dir_fd, name, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= 0xff;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

static void
a_letter_is_read_as_it_was_put(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_reader *reader = NULL;
	struct dead_letter_names found;
	struct dead_letter letter;
	struct ocf_error error;
	int fd;

	(void)state;
	put(d, 42, "msg_size_too_large");
	dead_letters_close(d);
	found = names(1);
	fd = openat(dir_fd, found.list[0], O_RDONLY);
	assert_int_equal(dead_letter_reader_open(fd, &reader, &error), 0);
	assert_int_equal(dead_letter_reader_next(reader, &letter, &error), 1);
	assert_string_equal(letter.topic, "sluice.program");
	assert_string_equal(letter.reason, "msg_size_too_large");
	assert_string_equal(letter.detail, "in words");
	assert_string_equal(letter.key, "h:run-1");
	assert_int_equal(letter.record_time_us, SAMPLE_TIME);
	assert_int_equal(letter.seq, 42);
	assert_int_equal(letter.schema, 0xabc);
	assert_int_equal(letter.len, 3);
	assert_memory_equal(letter.data, "\0\1\xff", 3);
	assert_true(dead_letter_is_wanted(&letter, &(struct dead_letter_filter){ 0 }));
	assert_true(dead_letter_is_wanted(&letter, &(struct dead_letter_filter){ "sluice.program", "msg_size_too_large" }));
	assert_false(dead_letter_is_wanted(&letter, &(struct dead_letter_filter){ "sluice.usage", NULL }));
	assert_false(dead_letter_is_wanted(&letter, &(struct dead_letter_filter){ NULL, "other" }));
	assert_int_equal(dead_letter_reader_next(reader, &letter, &error), 0);
	dead_letter_reader_close(reader);
	close(fd);
	dead_letter_names_done(&found);
}

static void
damage_is_passed_over_once(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_names found;
	struct stat st;
	char text[64];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put(d, i, "a");
	dead_letters_close(d);
	found = names(1);
	write_at(found.list[0], range_of(found.list[0], 1).offset + 8, "\xff\xff\xff\xff", 4);
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "0 ! 2 3");
	assert_int_equal(fstatat(dir_fd, found.list[0], &st, 0), 0);
	damage_at(found.list[0], (uint64_t)st.st_size - 1);	/* the last marker: nothing follows */
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "0 ! 2 !");
	dead_letter_names_done(&found);
}

static void
a_torn_end_is_no_damage(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_names found;
	char path[128], text[64];

	(void)state;
	put(d, 0, "a");
	put(d, 1, "a");
	dead_letters_close(d);
	found = names(1);
	snprintf(path, sizeof(path), "%.60s/%.60s", root, found.list[0]);
	assert_int_equal(truncate(path, (off_t)range_of(found.list[0], 1).end - 3), 0);
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "0 ~");
	dead_letter_names_done(&found);
}

static void
other_bytes_are_no_letter(void **state)
{
	struct bytes texts = { 0 };
	struct dead_letter letter;
	char error[160];

	(void)state;
	/* Nine empty fields; a long that does not end; a text longer than the rest; a NUL in a text. */
	assert_int_equal(dead_letter_decode((const uint8_t *)"\0\0\0\0\0\0\0\0\0", 9, &texts, &letter, error, sizeof(error)),
	    -EBADMSG);
	assert_non_null(strstr(error, "fingerprint"));
	assert_int_equal(dead_letter_decode((const uint8_t *)"\xff", 1, &texts, &letter, error, sizeof(error)), -EBADMSG);
	assert_int_equal(dead_letter_decode((const uint8_t *)"\6ab", 3, &texts, &letter, error, sizeof(error)), -EBADMSG);
	assert_int_equal(dead_letter_decode((const uint8_t *)"\2\0\0\0\0\0\0\0\0\0", 10, &texts, &letter, error,
	    sizeof(error)), -EBADMSG);
	assert_non_null(strstr(error, "NUL"));
	assert_int_equal(dead_letter_decode((const uint8_t *)"\0\0\0\0\0\0\0\0\0\0", 10, &texts, &letter, error,
	    sizeof(error)), -EBADMSG);
	assert_non_null(strstr(error, "follow"));
	bytes_done(&texts);
}

static void
a_lake_file_has_no_letters(void **state)
{
	static const char schema[] = "{\"type\":\"record\",\"name\":\"Program\",\"namespace\":\"sluice\",\"fields\":[]}";
	struct dead_letter_reader *reader = NULL;
	struct ocf_packer *packer = NULL;
	struct bytes out = { 0 };
	struct ocf_error error;
	int fd = openat(dir_fd, "x.avro", O_RDWR | O_CREAT, 0600);

	(void)state;
	assert_int_equal(ocf_packer_new(OCF_NULL, &packer), 0);
	assert_int_equal(ocf_pack_header(packer, schema, strlen(schema), (const uint8_t *)"0123456789abcdef", &out), 0);
	assert_int_equal(write(fd, out.data, out.len), out.len);
	assert_int_equal(dead_letter_reader_open(fd, &reader, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "other records"));
	close(fd);
	bytes_done(&out);
	ocf_packer_free(packer);
}

static void
letters_are_removed_and_damage_stays(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_range gone[2];
	struct dead_letter_names found;
	struct stat before, after;
	char text[64];
	int fd;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		put(d, i, "a");
	dead_letters_close(d);
	found = names(1);
	gone[0] = range_of(found.list[0], 0);
	gone[1] = range_of(found.list[0], 3);
	write_at(found.list[0], range_of(found.list[0], 1).offset + 8, "\xff\xff\xff\xff", 4);
	fd = dead_letter_file_take(dir_fd, found.list[0]);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(dead_letter_file_remove(dir_fd, found.list[0], fd, gone, 2, gone[0].offset), 0);
	close(fd);
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "! 2 4");
	assert_int_equal(fstatat(dir_fd, found.list[0], &after, 0), 0);
	assert_int_equal(after.st_size, before.st_size - (off_t)(gone[0].end - gone[0].offset) -
	    (off_t)(gone[1].end - gone[1].offset));
	assert_int_equal(after.st_mode, before.st_mode);
	dead_letter_names_done(&found);
}

static void
a_file_without_letters_is_removed(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_names found, none;
	struct dead_letter_range all;
	uint64_t header;
	int fd;

	(void)state;
	put(d, 0, "a");
	put(d, 1, "a");
	dead_letters_close(d);
	found = names(1);
	header = header_of(found.list[0]);
	all = (struct dead_letter_range){ header, range_of(found.list[0], 1).end };
	fd = dead_letter_file_take(dir_fd, found.list[0]);
	assert_int_equal(dead_letter_file_remove(dir_fd, found.list[0], fd, &all, 1, header), 0);
	close(fd);
	none = names(0);
	dead_letter_names_done(&none);
	dead_letter_names_done(&found);
}

static void
an_agent_writes_elsewhere_meanwhile(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_names found, more;
	struct dead_letter_range first;
	char text[64];
	int fd;

	(void)state;
	put(d, 0, "a");
	put(d, 1, "a");
	found = names(1);
	fd = dead_letter_file_take(dir_fd, found.list[0]);
	assert_true(fd >= 0);
	put(d, 2, "a");
	more = names(2);
	first = range_of(found.list[0], 0);
	assert_int_equal(dead_letter_file_remove(dir_fd, found.list[0], fd, &first, 1, first.offset), 0);
	close(fd);
	put(d, 3, "a");
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "1");
	assert_string_equal(read_all(more.list[0], text, sizeof(text)), "2 3");
	dead_letters_close(d);
	d = open_letters();	/* the next agent continues the first */
	put(d, 4, "a");
	dead_letters_close(d);
	assert_string_equal(read_all(found.list[0], text, sizeof(text)), "1 4");
	dead_letter_names_done(&found);
	dead_letter_names_done(&more);
}

static void
one_file_is_taken_by_one(void **state)
{
	struct dead_letters *d = open_letters();
	struct dead_letter_names found;
	int fd;

	(void)state;
	put(d, 0, "a");
	found = names(1);
	fd = dead_letter_file_take(dir_fd, found.list[0]);
	assert_true(fd >= 0);
	assert_int_equal(dead_letter_file_take(dir_fd, found.list[0]), -EBUSY);
	close(fd);
	assert_int_equal(dead_letter_file_take(dir_fd, "none.avro"), -ENOENT);
	assert_int_equal(symlinkat(found.list[0], dir_fd, "link.avro"), 0);
	assert_int_equal(dead_letter_file_take(dir_fd, "link.avro"), -ELOOP);
	assert_false(dead_letter_is_name(".x.avro.part"));
	assert_false(dead_letter_is_name("../x.avro"));
	assert_false(dead_letter_is_name(".avro"));
	dead_letters_close(d);
	dead_letter_names_done(&found);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_letter_is_read_as_it_was_put, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_passed_over_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_end_is_no_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(other_bytes_are_no_letter, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lake_file_has_no_letters, setup, teardown),
		cmocka_unit_test_setup_teardown(letters_are_removed_and_damage_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_without_letters_is_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_agent_writes_elsewhere_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(one_file_is_taken_by_one, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
