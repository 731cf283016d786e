/*
 * SPDX-License-Identifier: Apache-2.0
 * format: the binary format of a segment, without any file access.
 *
 * All numbers are little-endian. A segment is a head followed by batches; a batch is a head followed by
 * entries. Every head has a CRC-32C of its own, and an entry's CRC covers its key and data too, so any byte of
 * a segment is covered by exactly one.
 *
 *	segment head	 0 u32 "SLSG"	 4 u16 version	 6 u16 queue	 8 u64 number of the segment
 *			16 u64 number of its first record	24 u64 oldest segment that a replay needs
 *			32 u32 length of the head	36 u32 topics n
 *			40 n times: char name[32], u64 fingerprint of the schema, u64 next seq
 *			length-4 u32 CRC of all before
 *	batch head	 0 u32 "SLBT"	 4 u32 CRC of the rest of the head
 *			 8 u32 bytes of entries	12 u32 entries	16 u32 records among them
 *			20 u16 flags	22 u16 queue
 *			24 u64 number of the segment	32 u64 offset of this head in it
 *			40 u64 number of the first record
 *			48 u64 ring offset	56 u32 ring id	60 char boot id[36]
 *			96 n times: u64 next seq, u32 records, u32 0
 *	entry		 0 u32 CRC of the rest	 4 u8 kind	 5 u8 topic, an index into the segment's
 *			 6 u16 length of the key	 8 u32 length of the data	12 u32 uid
 *			16 u64 seq	24 i64 time in microseconds
 *			32 key, NUL, data
 *
 * A batch head contains its own position, so that a copy of one inside a record, or in a block of another file
 * that a power cut left in this one, is not taken for a batch.
 *
 * A commit writes a Usage batch, if there are Usage records, and then a main batch, which may have no entries. Both
 * heads have the same next seq of Usage: a Usage batch that has a higher one than the last main batch was written
 * without its own, in a crash.
 *
 * Records of a queue are numbered from 0; the numbers may have gaps and never decrease.
 */
#ifndef SLUICE_SPOOL_FORMAT_H
#define SLUICE_SPOOL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

enum {
	SPOOL_VERSION = 1,
	SPOOL_TOPICS_MAX = 32,
	SPOOL_NAME_SIZE = 32,
	SPOOL_RECORD_MAX = 16 << 20,
	SPOOL_BATCH_MAX = 64 << 20,	/* limit for the entries of one batch */
	SPOOL_SEGMENT_HEAD_MIN = 44,
	SPOOL_SEGMENT_HEAD_MAX = 44 + SPOOL_TOPICS_MAX * 48,
	SPOOL_BATCH_HEAD_MAX = 96 + SPOOL_TOPICS_MAX * 16,
	SPOOL_ENTRY_HEAD = 32,
};

#define SPOOL_BATCH_MAGIC "SLBT"
#define SPOOL_NUMBER_MAX (UINT64_MAX / 64)	/* a larger one is damage: an id has six more bits */

enum spool_entry_kind {
	SPOOL_ENTRY_RECORD = 1,
	SPOOL_ENTRY_WAL = 2,
	SPOOL_ENTRY_CHECKPOINT = 3,	/* entries before this one are not replayed */
};

enum spool_batch_flag {
	SPOOL_BATCH_RING_OFFSET = 1,		/* has a ring offset */
	SPOOL_BATCH_CHECKPOINT = 2,	/* contains a checkpoint */
	SPOOL_BATCH_WAL = 4,
	SPOOL_BATCH_RETURNED = 8,	/* of records that were set aside: earlier they may have been handed out */
};

struct spool_segment_head {
	uint16_t queue;
	uint64_t number;
	uint64_t first;
	uint64_t needed_from;
	uint32_t len;
	uint32_t n_topics;
	struct spool_topic {
		char name[SPOOL_NAME_SIZE];
		uint64_t schema;
		uint64_t next_seq;
	} topics[SPOOL_TOPICS_MAX];
};

struct spool_batch_head {
	uint32_t len;			/* length of all entries */
	uint32_t entries;
	uint32_t records;
	uint16_t flags;
	uint16_t queue;
	uint64_t segment;
	uint64_t offset;
	uint64_t first;
	struct ring_offset ring_offset;	/* with SPOOL_BATCH_RING_OFFSET */
	uint64_t next_seq[SPOOL_TOPICS_MAX];
	uint32_t counts[SPOOL_TOPICS_MAX];
};

struct spool_entry {
	enum spool_entry_kind kind;
	uint8_t topic;			/* an index into the segment's table */
	uint32_t uid;			/* whose record it is; 0: root's, or no user's */
	uint64_t seq;
	int64_t time_us;
	const char *key;
	size_t key_len;
	const uint8_t *data;
	size_t data_len;
	size_t len;			/* length of the whole entry */
};

/* Packs a head into to, which has room for SPOOL_SEGMENT_HEAD_MAX bytes. Returns its length. */
size_t spool_segment_head_pack(uint8_t *to, const struct spool_segment_head *h);
/* Unpacks a head. len may exceed the head's length. 0, or -EBADMSG: not a head, or one of another version. */
int spool_segment_head_unpack(const uint8_t *from, size_t len, struct spool_segment_head *ret);

/* Returns the size of a packed batch head in bytes. */
size_t spool_batch_head_size(unsigned n_topics);
/* Packs a head into to, which has room for spool_batch_head_size() bytes. */
void spool_batch_head_pack(uint8_t *to, const struct spool_batch_head *h, unsigned n_topics);
/* Unpacks a head from spool_batch_head_size() bytes. 0 or -EBADMSG. */
int spool_batch_head_unpack(const uint8_t *from, unsigned n_topics, struct spool_batch_head *ret);

/* Returns the size of a packed entry in bytes. */
size_t spool_entry_size(size_t key_len, size_t data_len);
/* Packs an entry into to, which has room for spool_entry_size() bytes, and computes its CRC. */
void spool_entry_pack(uint8_t *to, const struct spool_entry *e);
/* Returns the length of the entry that begins with the SPOOL_ENTRY_HEAD bytes at from; 0: not an entry. */
size_t spool_entry_peek(const uint8_t *from, unsigned n_topics);
/* Unpacks an entry of len bytes, as returned by spool_entry_peek(). ret points into from. 0 or -EBADMSG. */
int spool_entry_unpack(const uint8_t *from, size_t len, struct spool_entry *ret);

/* Returns the CRC-64-AVRO of a schema's text, the fingerprint that Avro's specification defines. */
uint64_t spool_fingerprint(const void *text, size_t len);

#endif
