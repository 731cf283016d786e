/*
 * SPDX-License-Identifier: Apache-2.0
 * encode: one record struct to Avro binary, straight into a buffer.
 */
#include "codec/encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/encode_record.h"
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
	r = encode_record(&e->identity, fields_of_identity, id, NULL);
	if (r < 0) {
		snprintf(err, err_size, r == -EINVAL ? "host, boot or agent id is missing" :
		    "out of memory");
		encoder_close(e);
		return r;
	}
	*ret = e;
	return 0;
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
