/*
 * SPDX-License-Identifier: Apache-2.0
 * avro_json: Avro binary of any schema as lines of JSON.
 *
 * Nothing that the data says is believed before it is checked, and what costs no data (nulls,
 * empty records) is paid from a budget: a few bytes cannot make this run or print without end.
 */
#include "codec/avro_json.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "codec/node_schema.h"
#include "codec/varint.h"

enum {
	DEPTH_MAX = 128,
	LINE_MAX_BYTES = 256 * 1024 * 1024,
	STEPS_FREE = 100000,		/* values that a record may have beyond STEPS_PER_BYTE */
	STEPS_PER_BYTE = 4,
};

struct avro_json {
	struct node_schema	*schema;	/* owned */
	locale_t		 locale;	/* owned: numbers with a point, whatever the user's */
};

/* One value that is being printed. */
struct walk {
	struct avro_json_input *in;
	int		 depth;
	uint64_t	 steps;		/* left */
	struct bytes	*out;
	size_t		 start;		/* of the line in out */
};

static int __attribute__((format(printf, 3, 4)))
fail(struct walk *w, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(w->in->error, sizeof(w->in->error), format, ap);
	va_end(ap);
	return error;
}

static int
add(struct walk *w, const void *text, size_t len)
{
	if (w->out->len - w->start + len > LINE_MAX_BYTES)
		return fail(w, -EMSGSIZE, "a record of more than %d MiB of JSON",
		    LINE_MAX_BYTES >> 20);
	return bytes_append(w->out, text, len) < 0 ? fail(w, -ENOMEM, "out of memory") : 0;
}

static int
take_long(struct walk *w, int64_t *ret)
{
	switch (varint_read(w->in->data, w->in->len, &w->in->at, ret)) {
	case VARINT_OK:
		return 0;
	case VARINT_SHORT:
		return fail(w, -EBADMSG, "the record ends within a number");
	case VARINT_BAD:
		break;
	}
	return fail(w, -EBADMSG, "a number of more than 64 bits");
}

static int
take_bytes(struct walk *w, uint64_t len, const uint8_t **ret)
{
	if (len > w->in->len - w->in->at)
		return fail(w, -EBADMSG, "%" PRIu64 " bytes are announced and %zu are left", len,
		    w->in->len - w->in->at);
	*ret = w->in->data + w->in->at;
	w->in->at += (size_t)len;
	return 0;
}

static int
add_long(struct walk *w, int64_t value)
{
	char text[24], *p = text + sizeof(text);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		*--p = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		*--p = '-';
	return add(w, p, (size_t)(text + sizeof(text) - p));
}

static void
two_digits(char *out, unsigned value)
{
	out[0] = (char)('0' + value / 10);
	out[1] = (char)('0' + value % 10);
}

/* "2026-11-21T10:35:00.123456Z"; a year of other than four digits stays a number. */
static int
add_time(struct walk *w, int64_t value, int64_t per_second)
{
	char text[] = "\"yyyy-mm-ddThh:mm:ss.uuuuuuZ\"";
	int64_t fraction = value % per_second, seconds = value / per_second;
	int64_t day, rest, era, year;
	unsigned of_era, year_of_era, of_year, month, micros;

	if (fraction < 0) {
		fraction += per_second;
		seconds--;
	}
	if (seconds < INT64_C(-62167219200) || seconds > INT64_C(253402300799))
		return add_long(w, value);
	micros = (unsigned)(fraction * (1000000 / per_second));
	day = seconds / 86400;
	rest = seconds % 86400;
	if (rest < 0) {
		rest += 86400;
		day--;
	}
	/* Years from March, in eras of 400: leap days come last in each. */
	day += 719468;
	era = (day >= 0 ? day : day - 146096) / 146097;
	of_era = (unsigned)(day - era * 146097);
	year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * of_year + 2) / 153;
	year = (int64_t)year_of_era + era * 400 + (month >= 10);
	two_digits(text + 1, (unsigned)year / 100);
	two_digits(text + 3, (unsigned)year % 100);
	two_digits(text + 6, month < 10 ? month + 3 : month - 9);
	two_digits(text + 9, of_year - (153 * month + 2) / 5 + 1);
	two_digits(text + 12, (unsigned)(rest / 3600));
	two_digits(text + 15, (unsigned)(rest / 60 % 60));
	two_digits(text + 18, (unsigned)(rest % 60));
	two_digits(text + 21, micros / 10000);
	two_digits(text + 23, micros / 100 % 100);
	two_digits(text + 25, micros % 100);
	return add(w, text, sizeof(text) - 1);
}

/* The fewest digits that read back as the same number. */
static int
add_real(struct walk *w, double value, bool is_float)
{
	int digits = is_float ? 6 : 15, most = is_float ? 9 : 17;
	char text[40];

	if (isnan(value))
		return add(w, "\"NaN\"", 5);
	if (isinf(value))
		return value < 0 ? add(w, "\"-Infinity\"", 11) : add(w, "\"Infinity\"", 10);
	for (; digits <= most; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	if (strpbrk(text, ".e") == NULL)
		strcat(text, ".0");
	return add(w, text, strlen(text));
}

static int
walk_real(struct walk *w, bool is_float)
{
	const uint8_t *data = NULL;
	uint64_t bits;
	uint32_t half;
	double d;
	float f;
	int r;

	r = take_bytes(w, is_float ? sizeof(f) : sizeof(d), &data);
	if (r < 0)
		return r;
	if (is_float) {
		half = le_get32(data);
		memcpy(&f, &half, sizeof(f));
		return add_real(w, (double)f, true);
	}
	bits = le_get64(data);
	memcpy(&d, &bits, sizeof(d));
	return add_real(w, d, false);
}

static int
add_text(struct walk *w, const uint8_t *text, size_t len, bool is_bytes)
{
	int r;

	/* Before the memory for it is asked for. */
	if (w->out->len - w->start + len > LINE_MAX_BYTES)
		return add(w, text, len);
	r = add(w, "\"", 1);
	if (r == 0 && json_escape(w->out, text, len, is_bytes) < 0)
		r = fail(w, -ENOMEM, "out of memory");
	return r == 0 ? add(w, "\"", 1) : r;
}

/* A string, or bytes: its length, then it. */
static int
walk_text(struct walk *w, bool is_bytes)
{
	const uint8_t *text = NULL;
	size_t start = w->in->at;
	int64_t len;
	int r = take_long(w, &len);

	if (r < 0)
		return r;
	if (len < 0) {
		w->in->at = start;
		return fail(w, -EBADMSG, "a length of %" PRId64, len);
	}
	r = take_bytes(w, (uint64_t)len, &text);
	return r < 0 ? r : add_text(w, text, (size_t)len, is_bytes);
}

static int walk(struct walk *w, const struct node *node);

static int
walk_record(struct walk *w, const struct node *node)
{
	int r = add(w, "{", 1);

	for (size_t i = 0; i < node->n && r == 0; i++) {
		if (i > 0)
			r = add(w, ",", 1);
		if (r == 0)
			r = add(w, node->parts[i].json, node->parts[i].json_len);
		if (r == 0)
			r = walk(w, node->parts[i].node);
	}
	return r < 0 ? r : add(w, "}", 1);
}

/* An index into parts: of a symbol, of a branch. */
static int
take_part(struct walk *w, const struct node *node, const struct node_part **ret)
{
	size_t start = w->in->at;
	int64_t index;
	int r = take_long(w, &index);

	if (r < 0)
		return r;
	if (index < 0 || (uint64_t)index >= node->n) {
		w->in->at = start;
		return fail(w, -EBADMSG, "%s %" PRId64 " of %zu",
		    node->kind == NODE_ENUM ? "symbol" : "branch", index, node->n);
	}
	*ret = &node->parts[index];
	return 0;
}

/* Blocks of items, each with its count, until a count of 0. */
static int
walk_items(struct walk *w, const struct node *node)
{
	bool is_map = node->kind == NODE_MAP, is_first = true;
	int r = add(w, is_map ? "{" : "[", 1);

	while (r == 0) {
		size_t start = w->in->at;
		int64_t count, size;

		r = take_long(w, &count);
		if (r < 0 || count == 0)
			break;
		if (count == INT64_MIN) {
			w->in->at = start;
			return fail(w, -EBADMSG, "a count of %" PRId64, count);
		}
		if (count < 0) {	/* then the block's size in bytes follows */
			r = take_long(w, &size);
			count = -count;
		}
		for (; count > 0 && r == 0; count--) {
			if (!is_first)
				r = add(w, ",", 1);
			is_first = false;
			if (r == 0 && is_map) {
				r = walk_text(w, false);
				if (r == 0)
					r = add(w, ":", 1);
			}
			if (r == 0)
				r = walk(w, node->parts[0].node);
		}
	}
	return r < 0 ? r : add(w, is_map ? "}" : "]", 1);
}

static int
walk_number(struct walk *w, const struct node *node)
{
	size_t start = w->in->at;
	int64_t value;
	int r = take_long(w, &value);

	if (r < 0)
		return r;
	if (node->kind == NODE_INT && (value < INT32_MIN || value > INT32_MAX)) {
		w->in->at = start;
		return fail(w, -EBADMSG, "an int of %" PRId64, value);
	}
	if (!w->in->is_raw && node->logical == LOGICAL_TIMESTAMP_MICROS)
		return add_time(w, value, 1000000);
	if (!w->in->is_raw && node->logical == LOGICAL_TIMESTAMP_MILLIS)
		return add_time(w, value, 1000);
	return add_long(w, value);
}

static int
walk_kind(struct walk *w, const struct node *node)
{
	const struct node_part *part = NULL;
	const uint8_t *data = NULL;
	int r;

	switch (node->kind) {
	case NODE_NULL:
		return add(w, "null", 4);
	case NODE_BOOLEAN:
		r = take_bytes(w, 1, &data);
		if (r < 0)
			return r;
		if (*data > 1) {
			w->in->at--;
			return fail(w, -EBADMSG, "a boolean of %u", *data);
		}
		return *data ? add(w, "true", 4) : add(w, "false", 5);
	case NODE_INT:
	case NODE_LONG:
		return walk_number(w, node);
	case NODE_FLOAT:
		return walk_real(w, true);
	case NODE_DOUBLE:
		return walk_real(w, false);
	case NODE_BYTES:
		return walk_text(w, true);
	case NODE_STRING:
		return walk_text(w, false);
	case NODE_RECORD:
		return walk_record(w, node);
	case NODE_ENUM:
		r = take_part(w, node, &part);
		return r < 0 ? r : add(w, part->json, part->json_len);
	case NODE_ARRAY:
	case NODE_MAP:
		return walk_items(w, node);
	case NODE_UNION:
		r = take_part(w, node, &part);
		return r < 0 ? r : walk(w, part->node);
	case NODE_FIXED:
		r = take_bytes(w, node->size, &data);
		return r < 0 ? r : add_text(w, data, (size_t)node->size, true);
	}
	return -EINVAL;
}

static int
walk(struct walk *w, const struct node *node)
{
	int r;

	if (w->steps == 0)
		return fail(w, -EBADMSG, "more values than its bytes can mean");
	w->steps--;
	if (w->depth >= DEPTH_MAX)
		return fail(w, -EBADMSG, "values nested more than %d deep", DEPTH_MAX);
	w->depth++;
	r = walk_kind(w, node);
	w->depth--;
	return r;
}

int
avro_json_open(const char *schema, size_t len, struct avro_json **ret, char *err, size_t err_size)
{
	struct avro_json *j = calloc(1, sizeof(*j));
	int r;

	if (j == NULL)
		return -ENOMEM;
	r = node_schema_parse(schema, len, &j->schema, err, err_size);
	if (r < 0)
		goto fail;
	j->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (j->locale == (locale_t)0) {
		snprintf(err, err_size, "out of memory");
		r = -ENOMEM;
		goto fail;
	}
	*ret = j;
	return 0;

fail:
	avro_json_close(j);
	return r;
}

void
avro_json_close(struct avro_json *j)
{
	if (j == NULL)
		return;
	if (j->locale != (locale_t)0)
		freelocale(j->locale);
	node_schema_free(j->schema);
	free(j);
}

const char *
avro_json_name(const struct avro_json *j)
{
	return node_schema_name(j->schema);
}

int
avro_json_line(const struct avro_json *j, struct avro_json_input *in, struct bytes *out)
{
	struct walk w = {
		.in = in, .out = out, .start = out->len,
		.steps = STEPS_FREE + STEPS_PER_BYTE * (uint64_t)(in->len - in->at),
	};
	locale_t old = uselocale(j->locale);
	int r = walk(&w, node_schema_root(j->schema));

	uselocale(old);
	if (r == 0)
		r = add(&w, "\n", 1);
	if (r < 0)
		out->len = w.start;
	return r;
}
