/*
 * SPDX-License-Identifier: Apache-2.0
 * ocf_read: reads Avro object container files that may be torn, damaged, foreign or hostile.
 *
 * Every length is held against the file's size and a limit before memory is asked for, so that a
 * lying length costs nothing, and a block that would inflate beyond OCF_BLOCK_MAX is refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdeflate.h>

#include "codec/ocf.h"
#include "codec/varint.h"

enum {
	HEADER_FIRST_READ = 32 * 1024,
	RESYNC_CHUNK = 256 * 1024,
	INFLATE_FIRST = 128 * 1024,	/* bytes of room for a block, at least, */
	INFLATE_TIMES = 8,		/* and so many times what is stored; doubled while it is not enough */
	KEEP_MAX = 1024 * 1024,		/* buffers that one large block made larger are not kept */
};

struct ocf_reader {
	int		 fd;		/* the caller's */
	char		*schema;	/* owned, NUL-terminated */
	size_t		 schema_len;
	enum ocf_codec	 codec;
	uint8_t		 sync[OCF_SYNC_SIZE];
	uint64_t	 offset;	/* of the next block */
	struct bytes	 raw;		/* the block as stored */
	struct bytes	 inflated;
	struct libdeflate_decompressor *z;	/* owned; NULL unless codec is OCF_DEFLATE */
};

static int __attribute__((format(printf, 4, 5)))
fail(struct ocf_error *err, int error, uint64_t offset, const char *format, ...)
{
	va_list ap;

	err->offset = offset;
	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	return error;
}

/* Reads len bytes at offset, or fewer at the end of the file. The count, or a negative errno. */
static ssize_t
read_at(int fd, void *data, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)data + done, len - done, (off_t)(offset + done));

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* A part of the header that is being parsed. */
struct cursor {
	const uint8_t *data;
	size_t len;
	size_t at;
};

static int
take_long(struct cursor *c, int64_t *ret, struct ocf_error *err)
{
	switch (varint_read(c->data, c->len, &c->at, ret)) {
	case VARINT_OK:
		return 0;
	case VARINT_SHORT:
		return fail(err, -ENODATA, c->len, "the file ends within its header");
	case VARINT_BAD:
		break;
	}
	return fail(err, -EBADMSG, c->at, "a number of more than 64 bits in the header");
}

static int
take_text(struct cursor *c, const uint8_t **ret, size_t *ret_len, struct ocf_error *err)
{
	size_t start = c->at;
	int64_t len;
	int r = take_long(c, &len, err);

	if (r < 0)
		return r;
	if (len < 0 || len > OCF_HEADER_MAX)
		return fail(err, -EBADMSG, start, "a length of %" PRId64 " in the header", len);
	if ((size_t)len > c->len - c->at)
		return fail(err, -ENODATA, c->len, "the file ends within its header");
	*ret = c->data + c->at;
	*ret_len = (size_t)len;
	c->at += (size_t)len;
	return 0;
}

static bool
is_text(const uint8_t *data, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(data, text, len) == 0;
}

static int
set_pair(struct ocf_reader *r, uint64_t offset, const uint8_t *name, size_t name_len,
    const uint8_t *value, size_t len, struct ocf_error *err)
{
	if (is_text(name, name_len, "avro.schema")) {
		free(r->schema);
		r->schema = malloc(len + 1);
		if (r->schema == NULL)
			return fail(err, -ENOMEM, offset, "out of memory");
		memcpy(r->schema, value, len);
		r->schema[len] = '\0';
		r->schema_len = len;
	} else if (is_text(name, name_len, "avro.codec")) {
		if (is_text(value, len, "deflate"))
			r->codec = OCF_DEFLATE;
		else if (is_text(value, len, "null") || len == 0)
			r->codec = OCF_NULL;
		else
			return fail(err, -ENOTSUP, offset, "codec \"%.*s\" is not supported, only "
			    "null and deflate are", (int)(len < 32 ? len : 32), (const char *)value);
	}
	return 0;
}

static int
parse_header(struct ocf_reader *r, struct cursor *c, struct ocf_error *err)
{
	size_t have = c->len < 4 ? c->len : 4;

	if (memcmp(c->data, "Obj\1", have) != 0)
		return fail(err, -EBADMSG, 0, "not an Avro object container file");
	if (have < 4)
		return fail(err, -ENODATA, c->len, "the file ends within its header");
	c->at = 4;
	for (;;) {
		size_t start = c->at;
		int64_t count, size;
		int e = take_long(c, &count, err);

		if (e < 0)
			return e;
		if (count == 0)
			break;
		if (count < 0) {	/* then the block's size in bytes follows */
			e = take_long(c, &size, err);
			if (e < 0)
				return e;
			if (count == INT64_MIN)
				return fail(err, -EBADMSG, start, "a bad count in the header");
			count = -count;
		}
		for (; count > 0; count--) {
			const uint8_t *name = NULL, *value = NULL;
			size_t name_len = 0, len = 0;

			start = c->at;
			e = take_text(c, &name, &name_len, err);
			if (e == 0)
				e = take_text(c, &value, &len, err);
			if (e == 0)
				e = set_pair(r, start, name, name_len, value, len, err);
			if (e < 0)
				return e;
		}
	}
	if (c->len - c->at < OCF_SYNC_SIZE)
		return fail(err, -ENODATA, c->len, "the file ends within its header");
	memcpy(r->sync, c->data + c->at, OCF_SYNC_SIZE);
	c->at += OCF_SYNC_SIZE;
	if (r->schema == NULL)
		return fail(err, -EBADMSG, 0, "the header has no avro.schema");
	return 0;
}

/* Headers are small: reads more only while the parser asks for more and the file has it. */
static int
read_header(struct ocf_reader *r, struct ocf_error *err)
{
	size_t want = HEADER_FIRST_READ;

	for (;;) {
		struct cursor c;
		ssize_t n;
		int e;

		r->raw.len = 0;
		if (bytes_reserve(&r->raw, want) < 0)
			return fail(err, -ENOMEM, 0, "out of memory");
		n = read_at(r->fd, r->raw.data, want, 0);
		if (n < 0)
			return fail(err, (int)n, 0, "cannot read: %s", strerror((int)-n));
		if (n == 0)
			return fail(err, -ENODATA, 0, "the file is empty");
		c = (struct cursor){ r->raw.data, (size_t)n, 0 };
		e = parse_header(r, &c, err);
		if (e == 0)
			r->offset = c.at;
		if (e != -ENODATA || (size_t)n < want)
			return e;
		if (want >= OCF_HEADER_MAX)
			return fail(err, -EBADMSG, want, "a header of more than %d MiB",
			    OCF_HEADER_MAX >> 20);
		want *= 4;
	}
}

int
ocf_reader_open(int fd, struct ocf_reader **ret, struct ocf_error *err)
{
	struct ocf_reader *r;
	struct stat st;
	int e;

	if (fstat(fd, &st) < 0)
		return fail(err, -errno, 0, "cannot read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(err, -EBADMSG, 0, "not a regular file");
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return fail(err, -ENOMEM, 0, "out of memory");
	r->fd = fd;
	e = read_header(r, err);
	if (e < 0)
		goto fail;
	if (r->codec == OCF_DEFLATE) {
		r->z = libdeflate_alloc_decompressor();
		if (r->z == NULL) {
			e = fail(err, -ENOMEM, 0, "out of memory");
			goto fail;
		}
	}
	*ret = r;
	return 0;

fail:
	ocf_reader_close(r);
	return e;
}

void
ocf_reader_close(struct ocf_reader *r)
{
	if (r == NULL)
		return;
	if (r->z != NULL)
		libdeflate_free_decompressor(r->z);
	bytes_done(&r->raw);
	bytes_done(&r->inflated);
	free(r->schema);
	free(r);
}

const char *
ocf_reader_schema(const struct ocf_reader *r, size_t *ret_len)
{
	if (ret_len != NULL)
		*ret_len = r->schema_len;
	return r->schema;
}

uint64_t
ocf_reader_offset(const struct ocf_reader *r)
{
	return r->offset;
}

void
ocf_reader_seek(struct ocf_reader *r, uint64_t offset)
{
	r->offset = offset;
}

/* Inflates len bytes of raw, which are at offset in the file. */
static int
inflate_block(struct ocf_reader *r, size_t len, uint64_t offset, struct ocf_error *err)
{
	struct bytes *out = &r->inflated;
	enum libdeflate_result result;
	size_t room = len * INFLATE_TIMES, used = 0;

	if (room < INFLATE_FIRST)
		room = INFLATE_FIRST;
	for (;; room *= 2) {
		if (room > OCF_BLOCK_MAX)
			room = OCF_BLOCK_MAX;
		out->len = 0;
		if (bytes_reserve(out, room) < 0)
			return fail(err, -ENOMEM, offset, "out of memory");
		result = libdeflate_deflate_decompress_ex(
		    r->z, r->raw.data, len, out->data, room, &used, &out->len);
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			break;
		if (room == OCF_BLOCK_MAX)
			return fail(err, -EBADMSG, offset, "a block that inflates to more than %d MiB",
			    OCF_BLOCK_MAX >> 20);
	}
	/* Some writers leave the rest of zlib's checksum behind. */
	if (result != LIBDEFLATE_SUCCESS || len - used > 4) {
		out->len = 0;
		return fail(err, -EBADMSG, offset, "a block that does not inflate: %s",
		    result == LIBDEFLATE_SUCCESS ? "bytes left over" : "its bytes are damaged, or end too early");
	}
	return 0;
}

static void
trim(struct bytes *b)
{
	if (b->cap > KEEP_MAX)
		bytes_done(b);
}

uint64_t
ocf_reader_count(const struct ocf_reader *r)
{
	uint64_t at = r->offset, total = 0;

	for (;;) {
		uint8_t head[2 * VARINT_MAX_BYTES], sync[OCF_SYNC_SIZE];
		int64_t count = 0, size = 0;
		ssize_t n = read_at(r->fd, head, sizeof(head), at);
		size_t len = 0;

		if (n <= 0 || varint_read(head, (size_t)n, &len, &count) != VARINT_OK ||
		    varint_read(head, (size_t)n, &len, &size) != VARINT_OK)
			return total;
		if (count < 0 || size < 0 || size > OCF_BLOCK_MAX)
			return total;
		at += len + (uint64_t)size;
		if (read_at(r->fd, sync, sizeof(sync), at) != (ssize_t)sizeof(sync) ||
		    memcmp(sync, r->sync, OCF_SYNC_SIZE) != 0)
			return total;
		at += OCF_SYNC_SIZE;
		total += (uint64_t)count;
	}
}

int
ocf_reader_next(struct ocf_reader *r, struct ocf_block *ret, struct ocf_error *err)
{
	uint8_t head[2 * VARINT_MAX_BYTES];
	enum varint_result v;
	uint64_t left;
	struct stat st;
	int64_t count = 0, size = 0;
	size_t at = 0;
	ssize_t n;
	int e;

	n = read_at(r->fd, head, sizeof(head), r->offset);
	if (n < 0)
		return fail(err, (int)n, r->offset, "cannot read: %s", strerror((int)-n));
	if (n == 0)
		return 0;
	v = varint_read(head, (size_t)n, &at, &count);
	if (v == VARINT_OK)
		v = varint_read(head, (size_t)n, &at, &size);
	if (v == VARINT_SHORT)
		return fail(err, -ENODATA, r->offset, "the file ends within a block (half written?)");
	if (v == VARINT_BAD || count < 0 || size < 0 || size > OCF_BLOCK_MAX)
		return fail(err, -EBADMSG, r->offset, "no block starts here, or one of more than %d MiB",
		    OCF_BLOCK_MAX >> 20);
	if (fstat(r->fd, &st) < 0)
		return fail(err, -errno, r->offset, "cannot read: %s", strerror(errno));
	left = (uint64_t)st.st_size > r->offset ? (uint64_t)st.st_size - r->offset : 0;
	if (left < at + (uint64_t)size + OCF_SYNC_SIZE)
		return fail(err, -ENODATA, r->offset, "the file ends within a block (half written?)");
	trim(&r->raw);
	trim(&r->inflated);
	r->raw.len = 0;
	if (bytes_reserve(&r->raw, (size_t)size + OCF_SYNC_SIZE) < 0)
		return fail(err, -ENOMEM, r->offset, "out of memory");
	n = read_at(r->fd, r->raw.data, (size_t)size + OCF_SYNC_SIZE, r->offset + at);
	if (n < 0)
		return fail(err, (int)n, r->offset, "cannot read: %s", strerror((int)-n));
	if ((size_t)n < (size_t)size + OCF_SYNC_SIZE)
		return fail(err, -ENODATA, r->offset, "the file ends within a block (half written?)");
	if (memcmp(r->raw.data + size, r->sync, OCF_SYNC_SIZE) != 0)
		return fail(err, -EBADMSG, r->offset + at + (uint64_t)size,
		    "the block of byte %" PRIu64 " does not end with the file's sync marker", r->offset);
	ret->offset = r->offset;
	ret->count = (uint64_t)count;
	ret->data = r->raw.data;
	ret->len = (size_t)size;
	if (r->codec == OCF_DEFLATE) {
		e = inflate_block(r, (size_t)size, r->offset + at, err);
		if (e < 0)
			return e;
		ret->data = r->inflated.data;
		ret->len = r->inflated.len;
	}
	r->offset += at + (uint64_t)size + OCF_SYNC_SIZE;
	return 1;
}

int
ocf_reader_resync(struct ocf_reader *r)
{
	/* Not before the next byte, or a block whose body alone is bad would be found again. */
	uint64_t at = r->offset + 1;

	for (;;) {
		const uint8_t *found;
		ssize_t n;

		r->raw.len = 0;
		if (bytes_reserve(&r->raw, RESYNC_CHUNK) < 0)
			return 0;
		n = read_at(r->fd, r->raw.data, RESYNC_CHUNK, at);
		if (n < OCF_SYNC_SIZE)
			return 0;
		found = memmem(r->raw.data, (size_t)n, r->sync, OCF_SYNC_SIZE);
		if (found != NULL) {
			r->offset = at + (uint64_t)(found - r->raw.data) + OCF_SYNC_SIZE;
			return 1;
		}
		at += (uint64_t)n - (OCF_SYNC_SIZE - 1);
	}
}
