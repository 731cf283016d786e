/*
 * SPDX-License-Identifier: Apache-2.0
 * ocf: makes the headers and blocks of Avro object container files.
 */
#include "codec/ocf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <libdeflate.h>

#include "codec/varint.h"

enum {
	/* The cheapest, since the agent's CPU counts for more than the lake's bytes: zlib's takes twice the time,
	 * for 2 to 4 % fewer bytes. */
	DEFLATE_LEVEL = 1,
};

struct ocf_packer {
	enum ocf_codec			 codec;
	struct libdeflate_compressor	*z;	/* owned; NULL unless codec is OCF_DEFLATE */
};

int
ocf_packer_new(enum ocf_codec codec, struct ocf_packer **ret)
{
	struct ocf_packer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->codec = codec;
	if (codec == OCF_DEFLATE) {
		p->z = libdeflate_alloc_compressor(DEFLATE_LEVEL);
		if (p->z == NULL) {
			free(p);
			return -ENOMEM;
		}
	}
	*ret = p;
	return 0;
}

void
ocf_packer_free(struct ocf_packer *p)
{
	if (p == NULL)
		return;
	libdeflate_free_compressor(p->z);
	free(p);
}

int
ocf_sync_make(uint8_t sync[OCF_SYNC_SIZE])
{
	ssize_t n;

	do {
		n = getrandom(sync, OCF_SYNC_SIZE, 0);
	} while (n < 0 && errno == EINTR);
	if (n != OCF_SYNC_SIZE)
		return n < 0 ? -errno : -EIO;
	return 0;
}

static int
add_pair(struct bytes *out, const char *name, const void *text, size_t len)
{
	int r = varint_append_bytes(out, name, strlen(name));

	return r < 0 ? r : varint_append_bytes(out, text, len);
}

int
ocf_pack_header(struct ocf_packer *p, const char *schema, size_t len,
    const uint8_t sync[OCF_SYNC_SIZE], struct bytes *out)
{
	const char *codec = p->codec == OCF_DEFLATE ? "deflate" : "null";
	size_t start = out->len;
	int r;

	r = bytes_append(out, "Obj\1", 4);
	if (r == 0)
		r = varint_append(out, 2);	/* one map block of two pairs */
	if (r == 0)
		r = add_pair(out, "avro.schema", schema, len);
	if (r == 0)
		r = add_pair(out, "avro.codec", codec, strlen(codec));
	if (r == 0)
		r = varint_append(out, 0);	/* the end of the map */
	if (r == 0)
		r = bytes_append(out, sync, OCF_SYNC_SIZE);
	if (r < 0)
		out->len = start;
	return r;
}

int
ocf_pack_block(struct ocf_packer *p, const void *data, size_t len, uint64_t count,
    const uint8_t sync[OCF_SYNC_SIZE], struct bytes *out)
{
	size_t bound, stored, start = out->len, body, moved;
	int r;

	if (len > OCF_BLOCK_MAX || count > INT64_MAX)
		return -EMSGSIZE;
	bound = p->codec == OCF_DEFLATE ? libdeflate_deflate_compress_bound(p->z, len) : len;
	r = bytes_reserve(out, 2 * VARINT_MAX_BYTES + bound + OCF_SYNC_SIZE);
	if (r < 0)
		return r;
	/* The stored length precedes the body: room is left for the longest one. */
	body = start + 2 * VARINT_MAX_BYTES;
	out->len = body;
	if (p->codec == OCF_DEFLATE) {
		stored = libdeflate_deflate_compress(p->z, data, len, out->data + body, bound);
		if (stored == 0) {
			out->len = start;
			return -EIO;
		}
	} else {
		stored = len;
		if (len > 0)
			memcpy(out->data + body, data, len);
	}
	out->len = start;
	out->len += varint_write(out->data + out->len, (int64_t)count);
	out->len += varint_write(out->data + out->len, (int64_t)stored);
	moved = out->len;
	memmove(out->data + moved, out->data + body, stored);
	out->len = moved + stored;
	memcpy(out->data + out->len, sync, OCF_SYNC_SIZE);
	out->len += OCF_SYNC_SIZE;
	return 0;
}
