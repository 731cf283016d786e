/*
 * SPDX-License-Identifier: Apache-2.0
 * encode: one record struct to Avro binary, straight into a buffer, fields by index.
 *
 * Not through avro-c's generic values: measured side by side, those took 4.5 to 6 us for the START
 * and END of a program where this takes 0.9 us, most of it in avro_value_write(). The unit test
 * compares fields.h with each schema, and decodes with avro-c what is written here.
 */
#ifndef SLUICE_CODEC_ENCODE_H
#define SLUICE_CODEC_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct encoder;

/* 0, or a negative errno with *ret untouched and a sentence in err. id is needed no longer. */
int encoder_open(const struct agent_identity *id, struct encoder **ret, char *err,
    size_t err_size);
void encoder_close(struct encoder *e);		/* NULL is fine */

/*
 * Encodes r, which is the record struct of topic, with the number seq. The bytes stay ours and
 * good until the next call. 0, or a negative errno.
 */
int encode(struct encoder *e, enum topic topic, const void *r, uint64_t seq,
    const uint8_t **ret_data, size_t *ret_len);

/* The original text of a topic's schema; NULL when it was not built in. */
const char *encode_schema(enum topic topic, size_t *ret_len);

#endif
