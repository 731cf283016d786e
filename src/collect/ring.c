/*
 * SPDX-License-Identifier: Apache-2.0
 * Layout (kernel/bpf/ringbuf.c): a page with the consumer position, writable by us; a page with
 * the producer position; the data, mapped twice in a row so that no record wraps. A record is an
 * 8-byte head (length, with a bit while it is being written and one if it was given up), then the
 * bytes, rounded up to 8.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/ring.h"

struct ring {
	uint64_t *consumer;	/* owned mapping */
	uint64_t *producer;	/* owned mapping, data behind it */
	const char *data;
	size_t bytes;
	size_t page;
};

int
ring_open(int map_fd, size_t bytes, struct ring **ret)
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
	r->producer = mmap(NULL, r->page + 2 * bytes, PROT_READ, MAP_SHARED, map_fd, (off_t)r->page);
	if (r->producer == MAP_FAILED) {
		error = errno;
		munmap(r->consumer, r->page);
		free(r);
		return -error;
	}
	r->data = (const char *)r->producer + r->page;
	*ret = r;
	return 0;
}

void
ring_close(struct ring *r)
{
	if (r == NULL)
		return;
	munmap(r->consumer, r->page);
	munmap(r->producer, r->page + 2 * r->bytes);
	free(r);
}

size_t
ring_drain(struct ring *r, ring_cb cb, void *arg, size_t max)
{
	uint64_t at = *r->consumer;
	size_t n = 0;

	while (n < max && at < __atomic_load_n(r->producer, __ATOMIC_ACQUIRE)) {
		const char *record = r->data + (at & (r->bytes - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT))
			cb(record + BPF_RINGBUF_HDR_SZ, len, arg);
		at += (len + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7);
		n++;
	}
	__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	return n;
}

uint64_t
ring_pending_bytes(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - *r->consumer;
}
