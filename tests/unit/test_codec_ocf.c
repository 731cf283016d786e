/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "codec/ocf.h"

#define SCHEMA "{\"type\": \"string\", \"doc\": \"kept\"}"

static const uint8_t sync_marker[OCF_SYNC_SIZE] = "0123456789abcdef";

/* A file of these bytes, without a name. */
static int
file_of(const void *data, size_t len)
{
	int fd = memfd_create("ocf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

/* A header and two blocks of 2 and 1 records; ends are where they end. */
static struct bytes
good_file(enum ocf_codec codec, size_t ends[3])
{
	struct ocf_packer *p = NULL;
	struct bytes out = { 0 };

	assert_int_equal(ocf_packer_new(codec, &p), 0);
	assert_int_equal(ocf_pack_header(p, SCHEMA, strlen(SCHEMA), sync_marker, &out), 0);
	ends[0] = out.len;
	assert_int_equal(ocf_pack_block(p, "\x06" "one\x06two", 8, 2, sync_marker, &out), 0);
	ends[1] = out.len;
	assert_int_equal(ocf_pack_block(p, "\x0athree", 6, 1, sync_marker, &out), 0);
	ends[2] = out.len;
	ocf_packer_free(p);
	return out;
}

static void
both_codecs_come_back_with_the_original_schema(void **state)
{
	(void)state;
	for (int codec = OCF_NULL; codec <= OCF_DEFLATE; codec++) {
		size_t ends[3], len;
		struct bytes file = good_file(codec, ends);
		int fd = file_of(file.data, file.len);
		struct ocf_reader *r = NULL;
		struct ocf_error err;
		struct ocf_block b;

		assert_int_equal(ocf_reader_open(fd, &r, &err), 0);
		assert_string_equal(ocf_reader_schema(r, &len), SCHEMA);
		assert_int_equal(len, strlen(SCHEMA));
		assert_int_equal(ocf_reader_offset(r), ends[0]);
		assert_int_equal(ocf_reader_next(r, &b, &err), 1);
		assert_int_equal(b.count, 2);
		assert_int_equal(b.len, 8);
		assert_memory_equal(b.data, "\x06" "one\x06two", 8);
		assert_int_equal(ocf_reader_next(r, &b, &err), 1);
		assert_int_equal(b.offset, ends[1]);
		assert_memory_equal(b.data, "\x0athree", 6);
		assert_int_equal(ocf_reader_next(r, &b, &err), 0);
		assert_int_equal(ocf_reader_offset(r), file.len);
		ocf_reader_close(r);
		close(fd);
		bytes_done(&file);
	}
}

static void
a_file_cut_at_any_byte_gives_its_whole_blocks_and_says_where(void **state)
{
	size_t ends[3];
	struct bytes file = good_file(OCF_DEFLATE, ends);

	(void)state;
	for (size_t cut = 0; cut < file.len; cut++) {
		int fd = file_of(file.data, cut), blocks = 0, r;
		struct ocf_reader *reader = NULL;
		struct ocf_error err = { 0 };
		struct ocf_block b;

		r = ocf_reader_open(fd, &reader, &err);
		assert_int_equal(r, cut < ends[0] ? -ENODATA : 0);
		if (r == 0) {
			while ((r = ocf_reader_next(reader, &b, &err)) == 1)
				blocks++;
			assert_int_equal(blocks, cut >= ends[1]);
			assert_int_equal(r, cut == ends[0] || cut == ends[1] ? 0 : -ENODATA);
			assert_int_equal(ocf_reader_offset(reader), ends[blocks]);
			if (r < 0)
				assert_int_equal(err.offset, ends[blocks]);
		} else {
			assert_int_equal(err.offset, cut);
		}
		ocf_reader_close(reader);
		close(fd);
	}
	bytes_done(&file);
}

static void
a_half_written_block_is_there_once_it_is_whole(void **state)
{
	size_t ends[3];
	struct bytes file = good_file(OCF_DEFLATE, ends);
	int fd = file_of(file.data, ends[1] + 3);
	struct ocf_reader *r = NULL;
	struct ocf_error err;
	struct ocf_block b;

	(void)state;
	assert_int_equal(ocf_reader_open(fd, &r, &err), 0);
	assert_int_equal(ocf_reader_next(r, &b, &err), 1);
	assert_int_equal(ocf_reader_next(r, &b, &err), -ENODATA);
	assert_int_equal(ocf_reader_next(r, &b, &err), -ENODATA);
	assert_int_equal(pwrite(fd, file.data + ends[1] + 3, ends[2] - ends[1] - 3,
	    (off_t)ends[1] + 3), ends[2] - ends[1] - 3);
	assert_int_equal(ocf_reader_next(r, &b, &err), 1);
	assert_int_equal(b.count, 1);
	ocf_reader_close(r);
	close(fd);
	bytes_done(&file);
}

static void
a_flipped_byte_never_crashes_and_never_gives_more_records(void **state)
{
	size_t ends[3];
	struct bytes file = good_file(OCF_DEFLATE, ends);

	(void)state;
	for (size_t i = 0; i < file.len; i++) {
		struct ocf_reader *reader = NULL;
		struct ocf_error err = { 0 };
		struct ocf_block b;
		int fd, blocks = 0, r;

		file.data[i] ^= 0x55;
		fd = file_of(file.data, file.len);
		if (ocf_reader_open(fd, &reader, &err) == 0) {
			while ((r = ocf_reader_next(reader, &b, &err)) == 1)
				blocks++;
			assert_true(blocks <= 2);
			assert_true(r == 0 || (err.offset <= file.len && err.text[0] != '\0'));
		} else {
			assert_true(i < ends[0]);
			assert_true(err.text[0] != '\0');
		}
		ocf_reader_close(reader);
		close(fd);
		file.data[i] ^= 0x55;
	}
	bytes_done(&file);
}

static void
reading_goes_on_behind_a_damaged_block(void **state)
{
	size_t ends[3];
	struct bytes file = good_file(OCF_DEFLATE, ends);
	struct ocf_reader *r = NULL;
	struct ocf_error err;
	struct ocf_block b;
	int fd;

	(void)state;
	file.data[ends[0] + 2] = 0xff;	/* behind count and size: no such deflate block */
	fd = file_of(file.data, file.len);
	assert_int_equal(ocf_reader_open(fd, &r, &err), 0);
	assert_int_equal(ocf_reader_next(r, &b, &err), -EBADMSG);
	assert_true(err.offset >= ends[0] && err.offset < ends[1]);
	assert_int_equal(ocf_reader_resync(r), 1);
	assert_int_equal(ocf_reader_offset(r), ends[1]);
	assert_int_equal(ocf_reader_next(r, &b, &err), 1);
	assert_memory_equal(b.data, "\x0athree", 6);
	assert_int_equal(ocf_reader_next(r, &b, &err), 0);
	assert_int_equal(ocf_reader_resync(r), 0);
	ocf_reader_close(r);
	close(fd);
	bytes_done(&file);
}

/* Returns the result of ocf_reader_next() for a block of these bytes after a valid header. */
static int
block_result(enum ocf_codec codec, const void *block, size_t len, struct ocf_error *err)
{
	size_t ends[3];
	struct bytes file = good_file(codec, ends);
	struct ocf_reader *r = NULL;
	struct ocf_block b;
	int fd, result;

	file.len = ends[0];
	assert_int_equal(bytes_append(&file, block, len), 0);
	fd = file_of(file.data, file.len);
	assert_int_equal(ocf_reader_open(fd, &r, err), 0);
	result = ocf_reader_next(r, &b, err);
	ocf_reader_close(r);
	close(fd);
	bytes_done(&file);
	return result;
}

static void
lengths_that_lie_are_refused(void **state)
{
	struct ocf_error err;

	(void)state;
	/* size -1 */
	assert_int_equal(block_result(OCF_NULL, "\x02\x01", 2, &err), -EBADMSG);
	/* count -1 */
	assert_int_equal(block_result(OCF_NULL, "\x01\x02", 2, &err), -EBADMSG);
	/* a size of 2^62 */
	assert_int_equal(block_result(OCF_NULL, "\x02\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11,
	    &err), -EBADMSG);
	/* a number that never ends */
	assert_int_equal(block_result(OCF_NULL,
	    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, &err), -EBADMSG);
	/* 60 MiB announced, a few bytes there: no memory is taken for them */
	assert_int_equal(block_result(OCF_NULL, "\x02\x80\x80\x80\x3c" "abc", 8, &err), -ENODATA);
	/* two bytes, and another file's marker */
	assert_int_equal(block_result(OCF_NULL, "\x02\x04" "abFEDCBA9876543210", 20, &err), -EBADMSG);
}

static void
what_is_left_of_a_checksum_behind_a_deflated_block_does_no_harm(void **state)
{
	/* one record, "a" deflated, and three bytes of four, as fastavro leaves them; then more than these */
	static const char some[] = "\x02\x0c\x4b\x04\x00\x62\x00\x62" "0123456789abcdef";
	static const char more[] = "\x02\x10\x4b\x04\x00\x62\x00\x62\x00\x00" "0123456789abcdef";
	char with_marker[2][32];
	struct ocf_error err;

	(void)state;
	memcpy(with_marker[0], some, sizeof(some) - 1);
	memcpy(with_marker[0] + sizeof(some) - 1 - OCF_SYNC_SIZE, sync_marker, OCF_SYNC_SIZE);
	memcpy(with_marker[1], more, sizeof(more) - 1);
	memcpy(with_marker[1] + sizeof(more) - 1 - OCF_SYNC_SIZE, sync_marker, OCF_SYNC_SIZE);
	assert_true(block_result(OCF_DEFLATE, with_marker[0], sizeof(some) - 1, &err) >= 0);
	assert_int_equal(block_result(OCF_DEFLATE, with_marker[1], sizeof(more) - 1, &err), -EBADMSG);
}

static void
a_block_that_inflates_without_end_is_refused(void **state)
{
	enum { HUGE_BYTES = OCF_BLOCK_MAX + 1024 };
	z_stream z = { 0 };
	uint8_t *zeros = calloc(1, HUGE_BYTES), *small = malloc(1 << 20);
	struct bytes block = { 0 };
	struct ocf_error err;
	size_t len;
	uint8_t head[16];
	size_t at = 0;

	(void)state;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = zeros;
	z.avail_in = HUGE_BYTES;
	z.next_out = small;
	z.avail_out = 1 << 20;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	len = (1 << 20) - z.avail_out;
	deflateEnd(&z);
	head[at++] = 2;
	for (size_t n = 2 * len; ; n >>= 7) {
		head[at++] = (uint8_t)((n & 0x7f) | (n >= 0x80 ? 0x80 : 0));
		if (n < 0x80)
			break;
	}
	bytes_append(&block, head, at);
	bytes_append(&block, small, len);
	bytes_append(&block, sync_marker, OCF_SYNC_SIZE);
	assert_int_equal(block_result(OCF_DEFLATE, block.data, block.len, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "inflates"));
	bytes_done(&block);
	free(zeros);
	free(small);
}

static int
open_result(const void *data, size_t len, struct ocf_error *err)
{
	struct ocf_reader *r = NULL;
	int fd = file_of(data, len), result = ocf_reader_open(fd, &r, err);

	ocf_reader_close(r);
	close(fd);
	return result;
}

static void
foreign_files_and_codecs_are_named(void **state)
{
	static const char other[] = "Obj\1\x04\x16" "avro.schema\x10\"string\"\x14" "avro.codec\x0c"
	    "snappy\x00" "0123456789abcdef";
	static const char sized[] = "Obj\1\x01\x2a\x16" "avro.schema\x10\"string\"\x00"
	    "0123456789abcdef";
	static const char none[] = "Obj\1\x00" "0123456789abcdef";
	struct ocf_error err;

	(void)state;
	assert_int_equal(open_result("PAR1 is not Avro", 16, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "not an Avro"));
	assert_int_equal(open_result("{}", 2, &err), -EBADMSG);
	assert_int_equal(open_result("", 0, &err), -ENODATA);
	assert_int_equal(open_result(other, sizeof(other) - 1, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "snappy"));
	assert_int_equal(open_result(none, sizeof(none) - 1, &err), -EBADMSG);
	/* a map block with its size, as other writers make it; no codec is the null codec */
	assert_int_equal(open_result(sized, sizeof(sized) - 1, &err), 0);
}

static void
markers_are_not_repeated(void **state)
{
	uint8_t a[OCF_SYNC_SIZE], b[OCF_SYNC_SIZE];

	(void)state;
	assert_int_equal(ocf_sync_make(a), 0);
	assert_int_equal(ocf_sync_make(b), 0);
	assert_memory_not_equal(a, b, OCF_SYNC_SIZE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_codecs_come_back_with_the_original_schema),
		cmocka_unit_test(a_file_cut_at_any_byte_gives_its_whole_blocks_and_says_where),
		cmocka_unit_test(a_half_written_block_is_there_once_it_is_whole),
		cmocka_unit_test(a_flipped_byte_never_crashes_and_never_gives_more_records),
		cmocka_unit_test(reading_goes_on_behind_a_damaged_block),
		cmocka_unit_test(lengths_that_lie_are_refused),
		cmocka_unit_test(what_is_left_of_a_checksum_behind_a_deflated_block_does_no_harm),
		cmocka_unit_test(a_block_that_inflates_without_end_is_refused),
		cmocka_unit_test(foreign_files_and_codecs_are_named),
		cmocka_unit_test(markers_are_not_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
