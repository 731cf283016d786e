/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_read: reads the files that dead_letter.h writes, which may be torn or damaged.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_READ_H
#define SLUICE_DELIVER_DEAD_LETTER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/ocf.h"

/* A dead letter. All texts have a NUL at their end and none within. */
struct dead_letter {
	const char *topic;		/* without a prefix; perhaps one that this program does not know */
	const char *reason;
	const char *detail;
	const char *key;
	int64_t time_us;		/* when it was given up */
	int64_t record_time_us;
	uint64_t seq;
	uint64_t schema;		/* fingerprint */
	const uint8_t *data;		/* Avro binary, without framing */
	size_t len;
	uint64_t offset;		/* of its first byte in the file */
	uint64_t end;			/* one past its last byte */
};

/*
 * Decodes the len bytes of one letter; offset and end are left alone. Texts are copied to texts, whose contents are
 * replaced; data points into bytes. 0; -ENOMEM; or -EBADMSG, with the reason in error.
 */
int dead_letter_decode(const uint8_t *bytes, size_t len, struct bytes *texts, struct dead_letter *ret, char *error,
    size_t error_size);

/* Which letters are meant; NULL: any. */
struct dead_letter_filter {
	const char *topic;
	const char *reason;
};
bool dead_letter_is_wanted(const struct dead_letter *letter, const struct dead_letter_filter *filter);

struct dead_letter_reader;

/*
 * Reads the header of fd, which stays the caller's and must outlive the reader. Returns as ocf_reader_open() does, and
 * -EBADMSG also for a container file with records of another kind.
 */
int dead_letter_reader_open(int fd, struct dead_letter_reader **ret, struct ocf_error *err);
void dead_letter_reader_close(struct dead_letter_reader *r);	/* NULL is fine */
/* Continues at an offset that the reader of this file, or an earlier one, has returned. */
void dead_letter_reader_seek(struct dead_letter_reader *r, uint64_t offset);
/* Returns the offset in bytes at which the next letter starts, or would start. */
uint64_t dead_letter_reader_offset(const struct dead_letter_reader *r);
/*
 * Reads the next letter, which is valid until the next call: 1; 0: the end of the file. -EBADMSG: damage, with its
 * offset and the reason in err; the next call continues behind it. -ENODATA: the last letter is torn, or is being
 * written. Another negative errno: the file cannot be read.
 */
int dead_letter_reader_next(struct dead_letter_reader *r, struct dead_letter *ret, struct ocf_error *err);

#endif
