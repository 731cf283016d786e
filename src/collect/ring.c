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

struct ring {
	uint64_t *consumer;	/* owned mapping */
	uint64_t *producer;	/* owned mapping, followed by the data */
	const char *data;
	uint64_t at;		/* position up to which records were read */
	size_t bytes;
	size_t page;
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
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->bytes = bytes;
	r->consumer = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (r->consumer == MAP_FAILED) {
		error = errno;
		free(r);
		return -error;
	}
	r->producer = mmap(NULL, r->page + bytes, PROT_READ, MAP_SHARED, map_fd, (off_t)r->page);
	if (r->producer == MAP_FAILED) {
		error = errno;
		munmap(r->consumer, r->page);
		free(r);
		return -error;
	}
	r->data = (const char *)r->producer + r->page;
	/* The ring contains arguments before redaction, which must not get into a core file. */
	madvise(r->producer, r->page + bytes, MADV_DONTDUMP);
	r->at = *r->consumer;
	if (after > r->at && after <= __atomic_load_n(r->producer, __ATOMIC_ACQUIRE))
		r->at = after;
	*ret = r;
	return 0;
}

void
ring_close(struct ring *r)
{
	if (r == NULL)
		return;
	munmap(r->consumer, r->page);
	munmap(r->producer, r->page + r->bytes);
	free(r->wrapped);
	free(r);
}

/* Returns the bytes of the record at offset; NULL: it wraps at the end, and there is no memory for a copy. */
static const char *
record_bytes(struct ring *r, size_t offset, size_t len)
{
	size_t first = r->bytes - offset;

	if (len <= first)
		return r->data + offset;
	if (len > r->wrapped_size) {
		char *grown = realloc(r->wrapped, len);

		if (grown == NULL)
			return NULL;
		r->wrapped = grown;
		r->wrapped_size = len;
	}
	memcpy(r->wrapped, r->data + offset, first);
	memcpy(r->wrapped + first, r->data, len - first);
	return r->wrapped;
}

size_t
ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max)
{
	size_t n = 0;

	while (n < max && r->at < __atomic_load_n(r->producer, __ATOMIC_ACQUIRE)) {
		size_t offset = r->at & (r->bytes - 1);
		uint32_t head = __atomic_load_n((const uint32_t *)(r->data + offset), __ATOMIC_ACQUIRE);
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			const char *record = record_bytes(r, (offset + BPF_RINGBUF_HDR_SZ) & (r->bytes - 1), len);

			if (record == NULL)
				break;
			cb(record, len, arg);
			if (record == r->wrapped)
				explicit_bzero(r->wrapped, len);
		}
		r->at += (len + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7);
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
