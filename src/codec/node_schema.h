/*
 * SPDX-License-Identifier: Apache-2.0
 * node_schema: a schema as a graph of nodes, for the decoder; private to avro_json.c. Not avro-c's schema, which keeps
 * no logicalType.
 *
 * Names and symbols are kept as the JSON that they will be printed as.
 */
#ifndef SLUICE_CODEC_NODE_SCHEMA_H
#define SLUICE_CODEC_NODE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum node_kind {
	NODE_NULL,
	NODE_BOOLEAN,
	NODE_INT,
	NODE_LONG,
	NODE_FLOAT,
	NODE_DOUBLE,
	NODE_BYTES,
	NODE_STRING,
	NODE_RECORD,
	NODE_ENUM,
	NODE_ARRAY,
	NODE_MAP,
	NODE_UNION,
	NODE_FIXED,
};

enum node_logical {
	LOGICAL_NONE,
	LOGICAL_TIMESTAMP_MICROS,
	LOGICAL_TIMESTAMP_MILLIS,
};

struct node;

/* A field of a record, a symbol of an enum, a branch of a union, the items of an array or map. */
struct node_part {
	char *json;		/* owned: "name": for a field, "SYMBOL" for a symbol, else NULL */
	size_t json_len;
	const struct node *node;	/* NULL for a symbol */
};

struct node {
	enum node_kind kind;
	enum node_logical logical;
	size_t n;
	struct node_part *parts;	/* owned */
	uint64_t size;			/* of a fixed */
	struct node *next;		/* of the schema's list of all */
};

struct node_schema;

/* Parses a schema. Returns 0, or a negative errno with *ret untouched and the schema's fault in err. */
int node_schema_parse(const char *text, size_t len, struct node_schema **ret, char *err,
    size_t err_size);
void node_schema_free(struct node_schema *s);	/* NULL is fine */
/* Returns the root of the schema; it lives as long as s. */
const struct node *node_schema_root(const struct node_schema *s);
/* Returns the full name of the schema's record; it lives as long as s. */
const char *node_schema_name(const struct node_schema *s);

/* Adds text as the inside of a JSON string; is_bytes: as said in json.h. 0 or -ENOMEM. */
int json_escape(struct bytes *out, const uint8_t *text, size_t len, int is_bytes);

#endif
