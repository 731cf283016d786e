/*
 * SPDX-License-Identifier: Apache-2.0
 * ring: the layout (kernel/bpf/ringbuf.c) is a page with the consumer position, writable by user space; a page with
 * the producer position; the data. A record is an 8-byte head (length, with a bit while it is being written and one
 * if it was discarded), then the bytes, rounded up to 8.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/ring.h"

#define RECORD_BYTES(len) (((len) + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7))	/* with its head */
#define WINDOW_BYTES ((size_t)256 << 10)	/* the kernel fills in all pages of a mapping at once */

struct ring {
	uint64_t *consumer;	/* owned mapping */
	const uint64_t *producer;	/* owned mapping */
	int map_fd;		/* the caller's */
	uint64_t at;		/* position up to which records were read */
	size_t bytes;
	size_t page;
	const char *window;	/* owned mapping of a part of the data; NULL: none */
	size_t window_at;	/* its offset in the data */
	size_t window_bytes;
	char *wrapped;		/* owned: a copy of a record that wraps at the end */
	size_t wrapped_size;
};

int
ring_open(int map_fd, size_t bytes, uint64_t after, struct ring **ret)
{
	struct ring *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return -ENOMEM;
	r->map_fd = map_fd;
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->bytes = bytes;
	r->consumer = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (r->consumer == MAP_FAILED) {
		error = errno;
		free(r);
		return -error;
	}
	r->producer = mmap(NULL, r->page, PROT_READ, MAP_SHARED, map_fd, (off_t)r->page);
	if (r->producer == MAP_FAILED) {
		error = errno;
		munmap(r->consumer, r->page);
		free(r);
		return -error;
	}
	r->at = *r->consumer;
	if (after > r->at && after <= __atomic_load_n(r->producer, __ATOMIC_ACQUIRE))
		r->at = after;
	*ret = r;
	return 0;
}

static void
close_window(struct ring *r)
{
	if (r->window != NULL)
		munmap((void *)(uintptr_t)r->window, r->window_bytes);
	r->window = NULL;
	r->window_bytes = 0;
}

void
ring_close(struct ring *r)
{
	if (r == NULL)
		return;
	close_window(r);
	munmap(r->consumer, r->page);
	munmap((void *)(uintptr_t)r->producer, r->page);
	free(r->wrapped);
	free(r);
}

/*
 * Returns len bytes of the data, which must not wrap, by moving the window if it does not have them. Valid until the
 * next call. NULL: they cannot be mapped.
 */
static const char *
bytes_at(struct ring *r, size_t offset, size_t len)
{
	size_t start = offset & ~(r->page - 1), size = offset + len - start;
	void *window;

	if (offset >= r->window_at && offset + len <= r->window_at + r->window_bytes)
		return r->window + (offset - r->window_at);
	close_window(r);
	if (size < WINDOW_BYTES)
		size = WINDOW_BYTES;
	if (size > r->bytes - start)
		size = r->bytes - start;
	window = mmap(NULL, size, PROT_READ, MAP_SHARED, r->map_fd, (off_t)(2 * r->page + start));
	if (window == MAP_FAILED)
		return NULL;
	/* The ring contains arguments before redaction, which must not get into a core file. */
	madvise(window, size, MADV_DONTDUMP);
	r->window = window;
	r->window_at = start;
	r->window_bytes = size;
	return r->window + (offset - start);
}

/* Returns the bytes of the record at offset; NULL: they cannot be mapped, or copied where they wrap at the end. */
static const char *
record_bytes(struct ring *r, size_t offset, size_t len)
{
	size_t first = r->bytes - offset;
	const char *part;

	if (len <= first)
		return bytes_at(r, offset, len);
	if (len > r->wrapped_size) {
		char *grown = realloc(r->wrapped, len);

		if (grown == NULL)
			return NULL;
		r->wrapped = grown;
		r->wrapped_size = len;
	}
	part = bytes_at(r, offset, first);
	if (part == NULL)
		return NULL;
	memcpy(r->wrapped, part, first);
	part = bytes_at(r, 0, len - first);
	if (part == NULL)
		return NULL;
	memcpy(r->wrapped + first, part, len - first);
	return r->wrapped;
}

size_t
ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max)
{
	size_t n = 0;

	while (n < max && r->at < __atomic_load_n(r->producer, __ATOMIC_ACQUIRE)) {
		size_t offset = r->at & (r->bytes - 1);
		const char *start = bytes_at(r, offset, BPF_RINGBUF_HDR_SZ);
		uint32_t head, len;

		if (start == NULL)
			break;
		head = __atomic_load_n((const uint32_t *)(const void *)start, __ATOMIC_ACQUIRE);
		len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		/* No record ends behind the producer's position: then this is not the head of one. */
		if ((head & BPF_RINGBUF_BUSY_BIT) || RECORD_BYTES(len) > ring_end(r) - r->at)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			const char *record = record_bytes(r, (offset + BPF_RINGBUF_HDR_SZ) & (r->bytes - 1), len);

			if (record == NULL)
				break;
			cb(record, len, arg);
			if (record == r->wrapped)
				explicit_bzero(r->wrapped, len);
		}
		r->at += RECORD_BYTES(len);
		n++;
	}
	return n;
}

uint64_t
ring_position(const struct ring *r)
{
	return r->at;
}

uint64_t
ring_end(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

void
ring_release(struct ring *r)
{
	__atomic_store_n(r->consumer, r->at, __ATOMIC_RELEASE);
}
