/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema, a NUL, and data: the decoder must print JSON with nothing after it. Data without a NUL is
 * decoded by a schema that contains every type.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/avro_json.h"

enum {
	RECORDS_MAX = 16,	/* per input: more find nothing new */
	LINE_CHECKED = 1 << 16,	/* bytes; longer lines are not parsed again, which would only measure jansson */
};

static const char every_type[] =
    "{\"type\":\"record\",\"name\":\"n.r\",\"fields\":["
    "{\"name\":\"t\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}},"
    "{\"name\":\"u\",\"type\":[\"null\",\"r\",\"string\"]},"
    "{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":[\"null\",\"int\",\"double\"]}},"
    "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"bytes\"}},"
    "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\",\"B\"]}},"
    "{\"name\":\"f\",\"type\":{\"type\":\"fixed\",\"name\":\"f\",\"size\":3}},"
    "{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"x\",\"type\":\"float\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
	const char *schema = every_type;
	struct avro_json_input in = { 0 };
	size_t len = strlen(every_type);
	struct avro_json *j = NULL;
	struct bytes out = { 0 };
	char err[160];

	if (nul != NULL && data[0] >= ' ') {
		schema = (const char *)data;
		len = (size_t)(nul - data);
		size -= len + 1;
		data = nul + 1;
	}
	if (avro_json_open(schema, len, &j, err, sizeof(err)) != 0)
		return 0;
	in.data = data;
	in.len = size;
	for (int i = 0; i < RECORDS_MAX; i++) {
		json_error_t where;
		json_t *json;
		int r;

		out.len = 0;
		in.is_raw = i & 1;
		r = avro_json_line(j, &in, &out);
		if (in.at > in.len || (r < 0 && out.len != 0))
			abort();
		if (r < 0)
			break;
		if (out.len == 0 || out.data[out.len - 1] != '\n')
			abort();
		if (out.len < LINE_CHECKED) {
			json = json_loadb((const char *)out.data, out.len, JSON_DECODE_ANY |
			    JSON_ALLOW_NUL, &where);
			/* jansson accepts a NUL in a string, but not in a key. */
			if (json == NULL &&
			    json_error_code(&where) != json_error_null_byte_in_key)
				abort();
			json_decref(json);
		}
	}
	bytes_done(&out);
	avro_json_close(j);
	return 0;
}
