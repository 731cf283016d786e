/*
 * SPDX-License-Identifier: Apache-2.0
 * encode: one record struct to Avro binary, straight into a buffer.
 */
#include "codec/encode.h"

#include <avro.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/encode_record.h"
#include "codec/fields_check.h"
#include "codec/schema.h"

enum {
	KEEP_MAX = 1024 * 1024,	/* a buffer that one record made larger is not kept */
};

struct encoder {
	struct bytes identity;	/* the encoded fields that are the same in every record */
	struct bytes out;	/* of the last record */
};

const char *
encode_schema(enum topic topic, size_t *ret_len)
{
	const char *name = strchr(topic_name(topic), '.') + 1;

	for (const struct schema_text *s = schema_texts; s->name != NULL; s++) {
		if (strcmp(s->name, name) != 0)
			continue;
		if (ret_len != NULL)
			*ret_len = s->len;
		return s->text;
	}
	return NULL;
}

/* The schema as built in is the one that encode_record() writes. */
static int
check_schema(enum topic topic, char *err, size_t err_size)
{
	avro_schema_t schema = NULL;
	const char *text;
	size_t len = 0;
	int r;

	text = encode_schema(topic, &len);
	if (text == NULL) {
		snprintf(err, err_size, "topic %s: its schema was not built in", topic_name(topic));
		return -ENOENT;
	}
	if (avro_schema_from_json_length(text, len, &schema) != 0) {
		snprintf(err, err_size, "topic %s: bad schema: %s", topic_name(topic),
		    avro_strerror());
		return -EPROTO;
	}
	r = fields_check(topic, schema, err, err_size);
	avro_schema_decref(schema);
	return r;
}

int
encoder_open(const struct agent_identity *id, struct encoder **ret, char *err, size_t err_size)
{
	struct encoder *e;
	int r;

	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		r = check_schema(t, err, err_size);
		if (r < 0)
			goto fail;
	}
	r = encode_record(&e->identity, fields_of_identity, id, NULL);
	if (r < 0) {
		snprintf(err, err_size, r == -EINVAL ? "host, boot or agent id is missing" :
		    "out of memory");
		goto fail;
	}
	*ret = e;
	return 0;

fail:
	encoder_close(e);
	return r;
}

void
encoder_close(struct encoder *e)
{
	if (e == NULL)
		return;
	bytes_done(&e->identity);
	bytes_done(&e->out);
	free(e);
}

int
encode(struct encoder *e, enum topic topic, const void *record, uint64_t seq,
    const uint8_t **ret_data, size_t *ret_len)
{
	struct encode_stamp stamp = { &e->identity, seq };
	int r;

	if (e->out.cap > KEEP_MAX)
		bytes_done(&e->out);
	e->out.len = 0;
	r = encode_record(&e->out, fields_of(topic), record, &stamp);
	if (r < 0)
		return r;
	*ret_data = e->out.data;
	*ret_len = e->out.len;
	return 0;
}
