/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_read: reads the files that dead_letter.h writes, which may be torn or damaged.
 */
#include "deliver/dead_letter_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/avro_json.h"
#include "codec/varint.h"

/* The letter that is being decoded. */
struct cursor {
	const uint8_t *data;
	size_t len;
	size_t at;
};

static bool
take_long(struct cursor *c, int64_t *ret)
{
	return varint_read(c->data, c->len, &c->at, ret) == VARINT_OK;
}

static bool
take_bytes(struct cursor *c, const uint8_t **ret, size_t *ret_len)
{
	int64_t len;

	if (!take_long(c, &len) || len < 0 || (uint64_t)len > c->len - c->at)
		return false;
	*ret = c->data + c->at;
	*ret_len = (size_t)len;
	c->at += (size_t)len;
	return true;
}

/* Reads 16 hex digits in lower case. */
static bool
is_fingerprint(const char *text, uint64_t *ret)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*ret = strtoull(text, NULL, 16);
	return true;
}

int
dead_letter_decode(const uint8_t *bytes, size_t len, struct bytes *texts, struct dead_letter *ret, char *error,
    size_t error_size)
{
	enum { TOPIC, REASON, DETAIL, KEY, SCHEMA, TEXTS };
	struct cursor c = { bytes, len, 0 };
	const uint8_t *text[TEXTS];
	size_t text_len[TEXTS], at[TEXTS];
	int64_t seq;

	/* In the order of dead_letter.avsc. */
	if (!take_bytes(&c, &text[TOPIC], &text_len[TOPIC]) || !take_bytes(&c, &text[REASON], &text_len[REASON]) ||
	    !take_bytes(&c, &text[DETAIL], &text_len[DETAIL]) || !take_long(&c, &ret->time_us) ||
	    !take_long(&c, &ret->record_time_us) || !take_long(&c, &seq) ||
	    !take_bytes(&c, &text[KEY], &text_len[KEY]) || !take_bytes(&c, &text[SCHEMA], &text_len[SCHEMA]) ||
	    !take_bytes(&c, &ret->data, &ret->len)) {
		snprintf(error, error_size, "the letter ends early, at its byte %zu", c.at);
		return -EBADMSG;
	}
	if (c.at != len) {
		snprintf(error, error_size, "%zu bytes follow the letter", len - c.at);
		return -EBADMSG;
	}
	texts->len = 0;
	for (int i = 0; i < TEXTS; i++) {
		at[i] = texts->len;
		if (text_len[i] > 0 && memchr(text[i], '\0', text_len[i]) != NULL) {
			snprintf(error, error_size, "a text of the letter has a NUL in it");
			return -EBADMSG;
		}
		if (bytes_append(texts, text[i], text_len[i]) < 0 || bytes_append(texts, "", 1) < 0) {
			snprintf(error, error_size, "out of memory");
			return -ENOMEM;
		}
	}
	ret->topic = (const char *)texts->data + at[TOPIC];
	ret->reason = (const char *)texts->data + at[REASON];
	ret->detail = (const char *)texts->data + at[DETAIL];
	ret->key = (const char *)texts->data + at[KEY];
	ret->seq = (uint64_t)seq;
	if (seq < 0 || !is_fingerprint((const char *)texts->data + at[SCHEMA], &ret->schema)) {
		snprintf(error, error_size, "the letter has no valid %s", seq < 0 ? "seq" : "fingerprint of a schema");
		return -EBADMSG;
	}
	return 0;
}

bool
dead_letter_is_wanted(const struct dead_letter *letter, const struct dead_letter_filter *filter)
{
	return (filter->topic == NULL || strcmp(filter->topic, letter->topic) == 0) &&
	    (filter->reason == NULL || strcmp(filter->reason, letter->reason) == 0);
}

struct dead_letter_reader {
	struct ocf_reader	*file;		/* owned */
	struct bytes		 texts;		/* of the current letter */
	int			 fd;		/* the caller's */
};

/* Returns whether the file's schema is that of dead letters. */
static bool
has_letters(const struct ocf_reader *file)
{
	struct avro_json *json;
	const char *text;
	char why[160];
	bool is_same;
	size_t len;

	text = ocf_reader_schema(file, &len);
	if (avro_json_open(text, len, &json, why, sizeof(why)) < 0)
		return false;
	is_same = strcmp(avro_json_name(json), "sluice.DeadLetter") == 0;
	avro_json_close(json);
	return is_same;
}

int
dead_letter_reader_open(int fd, struct dead_letter_reader **ret, struct ocf_error *err)
{
	struct dead_letter_reader *r = calloc(1, sizeof(*r));
	int e;

	if (r == NULL) {
		*err = (struct ocf_error){ .text = "out of memory" };
		return -ENOMEM;
	}
	e = ocf_reader_open(fd, &r->file, err);
	if (e == 0 && !has_letters(r->file)) {
		*err = (struct ocf_error){ .text = "a file of other records, not of dead letters" };
		e = -EBADMSG;
	}
	if (e < 0) {
		dead_letter_reader_close(r);
		return e;
	}
	r->fd = fd;
	*ret = r;
	return 0;
}

void
dead_letter_reader_close(struct dead_letter_reader *r)
{
	if (r == NULL)
		return;
	ocf_reader_close(r->file);
	bytes_done(&r->texts);
	free(r);
}

void
dead_letter_reader_seek(struct dead_letter_reader *r, uint64_t offset)
{
	ocf_reader_seek(r->file, offset);
}

uint64_t
dead_letter_reader_offset(const struct dead_letter_reader *r)
{
	return ocf_reader_offset(r->file);
}

int
dead_letter_reader_next(struct dead_letter_reader *r, struct dead_letter *ret, struct ocf_error *err)
{
	struct ocf_block block;
	struct stat st;
	int e;

	e = ocf_reader_next(r->file, &block, err);
	if (e == -EBADMSG) {
		if (ocf_reader_resync(r->file) != 1 && fstat(r->fd, &st) == 0)
			ocf_reader_seek(r->file, (uint64_t)st.st_size);
		return e;
	}
	if (e != 1)
		return e;
	err->offset = block.offset;
	if (block.count != 1) {
		snprintf(err->text, sizeof(err->text), "a block of %" PRIu64 " letters, where an agent writes one",
		    block.count);
		return -EBADMSG;
	}
	e = dead_letter_decode(block.data, block.len, &r->texts, ret, err->text, sizeof(err->text));
	if (e < 0)
		return e;
	ret->offset = block.offset;
	ret->end = ocf_reader_offset(r->file);
	return 1;
}
