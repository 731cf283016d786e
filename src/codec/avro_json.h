/*
 * SPDX-License-Identifier: Apache-2.0
 * avro_json: Avro binary of any schema as lines of JSON.
 *
 * Field names are exactly the schema's; a union is its value alone; null is null. A
 * timestamp-micros or timestamp-millis is RFC 3339 in UTC, unless is_raw. Bytes that are not UTF-8
 * become \xNN; within the types bytes and fixed a backslash that looks like one becomes \x5c, so
 * that it can be undone. NaN and the infinities are strings, since JSON has no such numbers.
 *
 * Not through avro-c: its schemas have no logicalType, and its readers believe the lengths in the data.
 */
#ifndef SLUICE_CODEC_AVRO_JSON_H
#define SLUICE_CODEC_AVRO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct avro_json;		/* a parsed schema */

/* Parses a schema. Returns 0, or a negative errno with *ret untouched and the schema's fault in err. */
int avro_json_open(const char *schema, size_t len, struct avro_json **ret, char *err,
    size_t err_size);
void avro_json_close(struct avro_json *j);	/* NULL is fine */
/* Returns the full name of the schema, such as "sluice.Program"; "" when it has none. */
const char *avro_json_name(const struct avro_json *j);

/* Values that are read one after the other. */
struct avro_json_input {
	const uint8_t *data;	/* the caller's */
	size_t len;
	size_t at;		/* offset of the next value; after a failure, of the fault */
	bool is_raw;		/* timestamps as numbers */
	char error[160];	/* after a failure: why */
};

/*
 * Adds the next value and a newline to out, and moves in->at behind the value. 0, or a negative errno
 * with out->len as it was: -EBADMSG when the data is not of the schema, -EMSGSIZE when the line would be
 * too long.
 */
int avro_json_line(const struct avro_json *j, struct avro_json_input *in, struct bytes *out);

#endif
