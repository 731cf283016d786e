/* SPDX-License-Identifier: Apache-2.0 */
/* ring: a file in memory with the layout of the kernel's ring buffer. No root, no kernel. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include <cmocka.h>

#include "collect/ring.h"

#define BYTES 4096u
#define LARGE_BYTES (1u << 20)	/* several windows */

struct fake {
	int fd;
	uint32_t bytes;
	size_t page;
	uint64_t *consumer;
	uint64_t *producer;
	char *data;
	struct ring *ring;
	/* what came */
	unsigned records;
	size_t last_len;
	char last[LARGE_BYTES];
};

static struct fake f;

static int
open_fake(uint32_t bytes)
{
	memset(&f, 0, sizeof(f));
	f.bytes = bytes;
	f.page = (size_t)sysconf(_SC_PAGESIZE);
	f.fd = memfd_create("ring", MFD_CLOEXEC);
	if (f.fd < 0 || ftruncate(f.fd, (off_t)(2 * f.page + f.bytes)) < 0)
		return -1;
	f.consumer = mmap(NULL, 2 * f.page + f.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	if (f.consumer == MAP_FAILED)
		return -1;
	f.producer = (uint64_t *)((char *)f.consumer + f.page);
	f.data = (char *)f.producer + f.page;
	return ring_open(f.fd, f.bytes, 0, &f.ring);
}

static int
setup(void **state)
{
	(void)state;
	return open_fake(BYTES);
}

static int
setup_large(void **state)
{
	(void)state;
	return open_fake(LARGE_BYTES);
}

static int
teardown(void **state)
{
	(void)state;
	ring_close(f.ring);
	munmap(f.consumer, 2 * f.page + f.bytes);
	close(f.fd);
	return 0;
}

/* Appends a record as the kernel does. */
static void
put(const char *text, size_t len, uint32_t bits)
{
	uint32_t at = *f.producer & (f.bytes - 1);
	uint32_t head = (uint32_t)len | bits;
	static char record[LARGE_BYTES];
	size_t whole = (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;

	memset(record, 0, whole);
	memcpy(record, &head, sizeof(head));
	memcpy(record + BPF_RINGBUF_HDR_SZ, text, len);
	for (size_t i = 0; i < whole; i++)
		f.data[(at + i) & (f.bytes - 1)] = record[i];
	*f.producer += whole;
}

static void
on_record(const void *data, size_t len, void *arg)
{
	assert_ptr_equal(arg, &f);
	assert_int_equal((uintptr_t)data % 8, 0);
	f.records++;
	f.last_len = len;
	memcpy(f.last, data, len);
}

static void
records_come_in_order_and_stay_until_released(void **state)
{
	(void)state;
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 0);
	put("one", 4, 0);
	put("seventeen letters", 18, 0);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 2);
	assert_int_equal(f.records, 2);
	assert_int_equal(f.last_len, 18);
	assert_string_equal(f.last, "seventeen letters");
	assert_int_equal(*f.consumer, 0);	/* a reader that died here had lost nothing */
	assert_int_equal(ring_position(f.ring), 48);
	ring_release(f.ring);
	assert_int_equal(*f.consumer, 48);
}

/* The next reader begins where the last one released, or later where it knows better. */
static void
a_reader_goes_on_where_the_last_one_was_safe(void **state)
{
	struct ring *next;

	(void)state;
	put("one", 4, 0);
	put("two", 4, 0);
	put("three", 6, 0);
	ring_drain(f.ring, on_record, &f, 1);
	ring_release(f.ring);
	ring_drain(f.ring, on_record, &f, 2);	/* and died */

	f.records = 0;
	assert_int_equal(ring_open(f.fd, BYTES, 0, &next), 0);
	assert_int_equal(ring_drain(next, on_record, &f, 10), 2);
	assert_string_equal(f.last, "three");
	ring_close(next);

	f.records = 0;
	assert_int_equal(ring_open(f.fd, BYTES, 32, &next), 0);	/* two was safe as well */
	assert_int_equal(ring_drain(next, on_record, &f, 10), 1);
	assert_string_equal(f.last, "three");
	ring_close(next);

	f.records = 0;
	assert_int_equal(ring_open(f.fd, BYTES, 1 << 20, &next), 0);	/* of another ring: no use */
	assert_int_equal(ring_drain(next, on_record, &f, 10), 2);
	ring_close(next);
}

static void
a_record_being_written_ends_the_drain(void **state)
{
	(void)state;
	put("one", 4, 0);
	put("two", 4, BPF_RINGBUF_BUSY_BIT);
	put("three", 6, 0);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 1);
	assert_int_equal(ring_position(f.ring), 16);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 0);
	*(uint32_t *)(void *)(f.data + 16) = 4;	/* now it is written */
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 2);
	assert_int_equal(f.records, 3);
	assert_string_equal(f.last, "three");
}

static void
a_record_given_up_is_stepped_over(void **state)
{
	(void)state;
	put("gone", 5, BPF_RINGBUF_DISCARD_BIT);
	put("here", 5, 0);
	ring_drain(f.ring, on_record, &f, 10);
	assert_int_equal(f.records, 1);
	assert_string_equal(f.last, "here");
	assert_int_equal(ring_position(f.ring), *f.producer);
}

/* The position may have been moved by another reader, to where no record begins. */
static void
a_length_beyond_what_was_written_ends_the_drain(void **state)
{
	uint32_t head = 1u << 29;

	(void)state;
	put("one", 4, 0);
	put("two", 4, 0);
	memcpy(f.data + 16, &head, sizeof(head));
	assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 1);
	assert_string_equal(f.last, "one");
	assert_int_equal(ring_position(f.ring), 16);
}

static void
max_bounds_a_drain(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		put("x", 2, 0);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 3), 3);
	assert_int_equal(f.records, 3);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 3), 2);
	assert_int_equal(ring_drain(f.ring, on_record, &f, 0), 0);
}

static void
a_record_over_the_edge_is_whole(void **state)
{
	char text[200];

	(void)state;
	memset(text, 'y', sizeof(text));
	for (int i = 0; i < 1000; i++) {	/* many times around */
		text[0] = (char)('a' + i % 26);
		put(text, sizeof(text) - (size_t)i % 50, 0);
		assert_int_equal(ring_drain(f.ring, on_record, &f, 10), 1);
		ring_release(f.ring);
		assert_int_equal(f.last_len, sizeof(text) - (size_t)i % 50);
		assert_memory_equal(f.last, text, f.last_len);
	}
}

/* Only a part of a large ring is mapped at a time: records lie within it, over its end, or are larger than it. */
static void
a_window_moves_through_a_large_ring(void **state)
{
	static char text[600 << 10];

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		size_t len = i % 50 == 0 ? sizeof(text) : 1 + i * 7919 % 40000;

		memset(text, (int)('a' + i % 26), len);
		put(text, len, 0);
		put("small", 6, 0);
		assert_int_equal(ring_drain(f.ring, on_record, &f, 1), 1);
		ring_release(f.ring);
		assert_int_equal(f.last_len, len);
		assert_memory_equal(f.last, text, len);
		assert_int_equal(ring_drain(f.ring, on_record, &f, 2), 1);
		assert_string_equal(f.last, "small");
		ring_release(f.ring);
	}
}

static void
what_is_no_ring_is_an_error(void **state)
{
	struct ring *ring = NULL;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_true(ring_open(fds[0], BYTES, 0, &ring) < 0);
	assert_null(ring);
	assert_int_equal(ring_open(-1, BYTES, 0, &ring), -EBADF);
	close(fds[0]);
	close(fds[1]);
	ring_close(NULL);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(records_come_in_order_and_stay_until_released),
		TEST(a_reader_goes_on_where_the_last_one_was_safe),
		TEST(a_record_being_written_ends_the_drain),
		TEST(a_record_given_up_is_stepped_over),
		TEST(a_length_beyond_what_was_written_ends_the_drain),
		TEST(max_bounds_a_drain),
		TEST(a_record_over_the_edge_is_whole),
		cmocka_unit_test_setup_teardown(a_window_moves_through_a_large_ring, setup_large, teardown),
		TEST(what_is_no_ring_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
