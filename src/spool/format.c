/*
 * SPDX-License-Identifier: Apache-2.0
 * format: packs and unpacks heads and entries. Unpacking trusts no length.
 */
#include "base/endian.h"
#include "spool/format.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"

#define SEGMENT_MAGIC "SLSG"

enum {
	SEGMENT_FIXED = 40,
	SEGMENT_TOPIC = 48,
	BATCH_FIXED = 96,
	BATCH_TOPIC = 16,
	BOOT_ID = 36,
};

size_t
spool_segment_head_pack(uint8_t *to, const struct spool_segment_head *h)
{
	size_t len = SEGMENT_FIXED + (size_t)h->n_topics * SEGMENT_TOPIC + sizeof(uint32_t);

	memset(to, 0, len);
	memcpy(to, SEGMENT_MAGIC, 4);
	le_put16(to + 4, SPOOL_VERSION);
	le_put16(to + 6, h->queue);
	le_put64(to + 8, h->number);
	le_put64(to + 16, h->first);
	le_put64(to + 24, h->needed_from);
	le_put32(to + 32, (uint32_t)len);
	le_put32(to + 36, h->n_topics);
	for (unsigned i = 0; i < h->n_topics; i++) {
		uint8_t *topic = to + SEGMENT_FIXED + i * SEGMENT_TOPIC;

		memcpy(topic, h->topics[i].name, strnlen(h->topics[i].name, SPOOL_NAME_SIZE - 1));
		le_put64(topic + SPOOL_NAME_SIZE, h->topics[i].schema);
		le_put64(topic + SPOOL_NAME_SIZE + 8, h->topics[i].next_seq);
	}
	le_put32(to + len - 4, crc32c(0, to, len - 4));
	return len;
}

int
spool_segment_head_unpack(const uint8_t *from, size_t len, struct spool_segment_head *ret)
{
	if (len < SPOOL_SEGMENT_HEAD_MIN || memcmp(from, SEGMENT_MAGIC, 4) != 0 ||
	    le_get16(from + 4) != SPOOL_VERSION)
		return -EBADMSG;
	ret->queue = le_get16(from + 6);
	ret->number = le_get64(from + 8);
	ret->first = le_get64(from + 16);
	ret->needed_from = le_get64(from + 24);
	ret->len = le_get32(from + 32);
	ret->n_topics = le_get32(from + 36);
	if (ret->queue >= SPOOL_QUEUES || ret->n_topics > SPOOL_TOPICS_MAX || ret->len > len ||
	    ret->len != SEGMENT_FIXED + ret->n_topics * SEGMENT_TOPIC + sizeof(uint32_t) ||
	    le_get32(from + ret->len - 4) != crc32c(0, from, ret->len - 4))
		return -EBADMSG;
	for (unsigned i = 0; i < ret->n_topics; i++) {
		const uint8_t *topic = from + SEGMENT_FIXED + i * SEGMENT_TOPIC;

		memcpy(ret->topics[i].name, topic, SPOOL_NAME_SIZE);
		ret->topics[i].name[SPOOL_NAME_SIZE - 1] = '\0';
		ret->topics[i].schema = le_get64(topic + SPOOL_NAME_SIZE);
		ret->topics[i].next_seq = le_get64(topic + SPOOL_NAME_SIZE + 8);
	}
	return 0;
}

size_t
spool_batch_head_size(unsigned n_topics)
{
	return BATCH_FIXED + (size_t)n_topics * BATCH_TOPIC;
}

void
spool_batch_head_pack(uint8_t *to, const struct spool_batch_head *h, unsigned n_topics)
{
	size_t len = spool_batch_head_size(n_topics);

	memset(to, 0, len);
	memcpy(to, SPOOL_BATCH_MAGIC, 4);
	le_put32(to + 8, h->len);
	le_put32(to + 12, h->entries);
	le_put32(to + 16, h->records);
	le_put16(to + 20, h->flags);
	le_put16(to + 22, h->queue);
	le_put64(to + 24, h->segment);
	le_put64(to + 32, h->offset);
	le_put64(to + 40, h->first);
	if (h->flags & SPOOL_BATCH_RING_OFFSET) {
		le_put64(to + 48, h->ring_offset.position);
		le_put32(to + 56, h->ring_offset.ring_id);
		memcpy(to + 60, h->ring_offset.boot_id, strnlen(h->ring_offset.boot_id, BOOT_ID));
	}
	for (unsigned i = 0; i < n_topics; i++) {
		le_put64(to + BATCH_FIXED + i * BATCH_TOPIC, h->next_seq[i]);
		le_put32(to + BATCH_FIXED + i * BATCH_TOPIC + 8, h->counts[i]);
	}
	le_put32(to + 4, crc32c(0, to + 8, len - 8));
}

int
spool_batch_head_unpack(const uint8_t *from, unsigned n_topics, struct spool_batch_head *ret)
{
	size_t len = spool_batch_head_size(n_topics);

	if (memcmp(from, SPOOL_BATCH_MAGIC, 4) != 0 || le_get32(from + 4) != crc32c(0, from + 8, len - 8))
		return -EBADMSG;
	ret->len = le_get32(from + 8);
	ret->entries = le_get32(from + 12);
	ret->records = le_get32(from + 16);
	ret->flags = le_get16(from + 20);
	ret->queue = le_get16(from + 22);
	ret->segment = le_get64(from + 24);
	ret->offset = le_get64(from + 32);
	ret->first = le_get64(from + 40);
	ret->ring_offset = (struct ring_offset){ 0 };
	if (ret->flags & SPOOL_BATCH_RING_OFFSET) {
		ret->ring_offset.position = le_get64(from + 48);
		ret->ring_offset.ring_id = le_get32(from + 56);
		memcpy(ret->ring_offset.boot_id, from + 60, BOOT_ID);
	}
	/* Each entry has at least a head, so the counts cannot be larger than the bytes allow. */
	if (ret->len > SPOOL_BATCH_MAX || ret->entries > ret->len / SPOOL_ENTRY_HEAD ||
	    ret->records > ret->entries || ret->first > SPOOL_NUMBER_MAX)
		return -EBADMSG;
	for (unsigned i = 0; i < n_topics; i++) {
		ret->next_seq[i] = le_get64(from + BATCH_FIXED + i * BATCH_TOPIC);
		ret->counts[i] = le_get32(from + BATCH_FIXED + i * BATCH_TOPIC + 8);
		if (ret->counts[i] > ret->records)
			return -EBADMSG;
	}
	return 0;
}

size_t
spool_entry_size(size_t key_len, size_t data_len)
{
	return SPOOL_ENTRY_HEAD + key_len + 1 + data_len;
}

void
spool_entry_pack(uint8_t *to, const struct spool_entry *e)
{
	size_t len = spool_entry_size(e->key_len, e->data_len);

	to[4] = (uint8_t)e->kind;
	to[5] = e->topic;
	le_put16(to + 6, (uint16_t)e->key_len);
	le_put32(to + 8, (uint32_t)e->data_len);
	le_put32(to + 12, e->uid);
	le_put64(to + 16, e->seq);
	le_put64(to + 24, (uint64_t)e->time_us);
	if (e->key_len > 0)
		memcpy(to + SPOOL_ENTRY_HEAD, e->key, e->key_len);
	to[SPOOL_ENTRY_HEAD + e->key_len] = '\0';
	if (e->data_len > 0)
		memcpy(to + SPOOL_ENTRY_HEAD + e->key_len + 1, e->data, e->data_len);
	le_put32(to, crc32c(0, to + 4, len - 4));
}

size_t
spool_entry_peek(const uint8_t *from, unsigned n_topics)
{
	uint32_t data_len = le_get32(from + 8);

	if (from[4] < SPOOL_ENTRY_RECORD || from[4] > SPOOL_ENTRY_CHECKPOINT ||
	    data_len > SPOOL_RECORD_MAX || (from[4] == SPOOL_ENTRY_RECORD && from[5] >= n_topics))
		return 0;
	return spool_entry_size(le_get16(from + 6), data_len);
}

int
spool_entry_unpack(const uint8_t *from, size_t len, struct spool_entry *ret)
{
	if (le_get32(from) != crc32c(0, from + 4, len - 4))
		return -EBADMSG;
	ret->kind = (enum spool_entry_kind)from[4];
	ret->topic = from[5];
	ret->key_len = le_get16(from + 6);
	ret->data_len = le_get32(from + 8);
	ret->uid = le_get32(from + 12);
	ret->seq = le_get64(from + 16);
	ret->time_us = (int64_t)le_get64(from + 24);
	ret->key = (const char *)from + SPOOL_ENTRY_HEAD;
	ret->data = from + SPOOL_ENTRY_HEAD + ret->key_len + 1;
	ret->len = len;
	/* The spool never writes a key with a NUL inside, or without one at its end. */
	return memchr(ret->key, '\0', ret->key_len + 1) == ret->key + ret->key_len ? 0 : -EBADMSG;
}

uint64_t
spool_fingerprint(const void *text, size_t len)
{
	const uint64_t empty = UINT64_C(0xc15d213aa4d7a795);
	const uint8_t *p = text;
	uint64_t fp = empty;

	while (len-- > 0) {
		fp ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			fp = (fp >> 1) ^ (empty & -(fp & 1));
	}
	return fp;
}
