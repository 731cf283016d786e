/*
 * SPDX-License-Identifier: Apache-2.0
 * ocf: Avro object container files: makes headers and blocks, and reads them with every length
 * checked.
 *
 * Not avro-c's: its writer puts a schema without logicalType, doc and default into the header,
 * takes the sync marker from rand() seeded by the second, compresses at level 9 in 16 KiB blocks;
 * its reader (1.11.1) trusts the lengths that it reads.
 */
#ifndef SLUICE_CODEC_OCF_H
#define SLUICE_CODEC_OCF_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum ocf_codec {
	OCF_NULL,
	OCF_DEFLATE,	/* raw deflate, as Avro wants it */
};

enum {
	OCF_SYNC_SIZE = 16,
	OCF_HEADER_MAX = 16 * 1024 * 1024,
	OCF_BLOCK_MAX = 64 * 1024 * 1024,	/* as stored, and inflated */
};

/* Makes headers and blocks; owns the compressor, which many files may share. */
struct ocf_packer;

/* Makes a packer that the caller frees. Returns 0, or -ENOMEM with *ret untouched. */
int ocf_packer_new(enum ocf_codec codec, struct ocf_packer **ret);
void ocf_packer_free(struct ocf_packer *p);	/* NULL is fine */

/* Makes a random sync marker, from the kernel's generator. Returns 0 or a negative errno. */
int ocf_sync_make(uint8_t sync[OCF_SYNC_SIZE]);

/* Each adds to out. 0, or a negative errno with out->len as it was. */
int ocf_pack_header(struct ocf_packer *p, const char *schema, size_t len,
    const uint8_t sync[OCF_SYNC_SIZE], struct bytes *out);
int ocf_pack_block(struct ocf_packer *p, const void *data, size_t len, uint64_t count,
    const uint8_t sync[OCF_SYNC_SIZE], struct bytes *out);

/* What is wrong, and the byte of the file at which it is. */
struct ocf_error {
	uint64_t offset;
	char text[160];
};

struct ocf_reader;

/*
 * Reads the header of fd, a regular file that stays the caller's and must outlive the reader.
 * 0, or with *ret untouched and err filled: -ENODATA when the file ends within the header,
 * -EBADMSG when this is no container file, -ENOTSUP for a codec that we lack, or an I/O error.
 */
int ocf_reader_open(int fd, struct ocf_reader **ret, struct ocf_error *err);
void ocf_reader_close(struct ocf_reader *r);	/* NULL is fine */

/* Returns the schema of the file, NUL-terminated and valid until ocf_reader_close(). ret_len may be NULL. */
const char *ocf_reader_schema(const struct ocf_reader *r, size_t *ret_len);

struct ocf_block {
	uint64_t offset;	/* of its first byte in the file */
	uint64_t count;		/* records, as the block claims */
	const uint8_t *data;	/* inflated; the reader's, good until its next call */
	size_t len;
};

/*
 * The next block: 1, or 0 at the end of the file. -ENODATA when the file ends within a block: it
 * is half written, or still being written, in which case a later call finds it whole. -EBADMSG
 * when it is damaged. After either, the reader is at the same offset as before.
 */
int ocf_reader_next(struct ocf_reader *r, struct ocf_block *ret, struct ocf_error *err);
/*
 * Returns how many records the heads of the blocks from here on claim, up to the first block that is not whole. Reads
 * no record, and leaves the reader where it is.
 */
uint64_t ocf_reader_count(const struct ocf_reader *r);
/* After -EBADMSG: continues behind the next sync marker. Returns 1, or 0 when there is none. */
int ocf_reader_resync(struct ocf_reader *r);
/* Returns the offset in bytes at which the next block starts, or would start. */
uint64_t ocf_reader_offset(const struct ocf_reader *r);
/* Continues at an offset that ocf_reader_offset() has returned for this file, perhaps of another reader. */
void ocf_reader_seek(struct ocf_reader *r, uint64_t offset);

#endif
