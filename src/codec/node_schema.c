/*
 * SPDX-License-Identifier: Apache-2.0
 * node_schema: parses the JSON of an Avro schema into a graph of nodes.
 */
#include "codec/node_schema.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/spell.h"
#include "base/text.h"

enum {
	DEPTH_MAX = 64,
	NODES_MAX = 200000,
};

/* A named type; nested types and later fields refer to it. */
struct named {
	char *name;		/* owned, full */
	struct node *node;
	UT_hash_handle hh;
};

struct node_schema {
	struct node	*all;		/* owned */
	size_t		 n_all;
	struct named	*names;		/* owned */
	const struct node *root;
	char		*full_name;	/* owned, "" for none */
	char		*err;		/* the caller's, while parsing */
	size_t		 err_size;
};

static int __attribute__((format(printf, 2, 3)))
fail(struct node_schema *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(s->err, s->err_size, format, ap);
	va_end(ap);
	return -EINVAL;
}

static int
no_memory(struct node_schema *s)
{
	fail(s, "out of memory");
	return -ENOMEM;
}

int
json_escape(struct bytes *out, const uint8_t *text, size_t len, int is_bytes)
{
	static const char hex[] = "0123456789abcdef";
	char spelt[SPELL_JSON_MAX + 1];
	size_t n_spelt;

	/* \u00NN is the longest that one byte can become. */
	if (bytes_reserve(out, 6 * len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < len;) {
		uint8_t c = text[i], *to = out->data + out->len;
		size_t n = 1;

		if (c == '"' || (c == '\\' && !(is_bytes && len - i >= 4 && text[i + 1] == 'x' &&
		    text_unescape((const char *)text + i, 4, (char *)to) == 1))) {
			*to++ = '\\';
			*to++ = c;
		} else if (c == '\\') {		/* looks like an escape: \x5c */
			memcpy(to, "\\\\x5c", 5);
			to += 5;
		} else if (c == '\n' || c == '\t' || c == '\r') {
			*to++ = '\\';
			*to++ = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
		} else if (c >= 0x20 && c < 0x7f) {
			*to++ = c;
		} else if ((n = text_char((const char *)text + i, len - i)) > 0) {
			if (spell_is_hidden((const char *)text + i, n)) {
				n_spelt = spell_json_char((const char *)text + i, n, spelt);
				memcpy(to, spelt, n_spelt);
				to += n_spelt;
			} else {
				memcpy(to, text + i, n);
				to += n;
			}
		} else {
			n = 1;
			memcpy(to, "\\\\x", 3);
			to[3] = (uint8_t)hex[c >> 4];
			to[4] = (uint8_t)hex[c & 15];
			to += 5;
		}
		out->len = (size_t)(to - out->data);
		i += n;
	}
	return 0;
}

/* text as a JSON string with what follows it; owned by the caller. NULL without memory. */
static char *
json_text(const char *text, size_t len, const char *after, size_t *ret_len)
{
	struct bytes out = { 0 };

	if (bytes_append(&out, "\"", 1) < 0 ||
	    json_escape(&out, (const uint8_t *)text, len, false) < 0 ||
	    bytes_append(&out, after, strlen(after) + 1) < 0) {
		bytes_done(&out);
		return NULL;
	}
	*ret_len = out.len - 1;
	return (char *)out.data;
}

static struct node *
new_node(struct node_schema *s, enum node_kind kind, size_t n)
{
	struct node *node;

	if (s->n_all >= NODES_MAX)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (node == NULL)
		return NULL;
	node->kind = kind;
	node->next = s->all;
	s->all = node;
	s->n_all++;
	if (n > 0) {
		node->parts = calloc(n, sizeof(*node->parts));
		if (node->parts == NULL)
			return NULL;	/* the list has it */
		node->n = n;
	}
	return node;
}

static bool
find_primitive(const char *name, enum node_kind *ret)
{
	static const char *const names[] = {
		[NODE_NULL] = "null", [NODE_BOOLEAN] = "boolean", [NODE_INT] = "int",
		[NODE_LONG] = "long", [NODE_FLOAT] = "float", [NODE_DOUBLE] = "double",
		[NODE_BYTES] = "bytes", [NODE_STRING] = "string",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum node_kind)i;
			return true;
		}
	}
	return false;
}

/* "space.name", or the name alone when it is full already or there is no namespace. Owned. */
static char *
full_name(const char *space, const char *name)
{
	char *full;

	if (strchr(name, '.') != NULL || space == NULL || space[0] == '\0')
		return strdup(name);
	return asprintf(&full, "%s.%s", space, name) < 0 ? NULL : full;
}

static int
add_name(struct node_schema *s, char *name, struct node *node)
{
	struct named *named;

	HASH_FIND_STR(s->names, name, named);
	if (named != NULL) {
		fail(s, "type \"%s\" is defined twice", name);
		free(name);
		return -EINVAL;
	}
	named = calloc(1, sizeof(*named));
	if (named == NULL) {
		free(name);
		return no_memory(s);
	}
	named->name = name;
	named->node = node;
	HASH_ADD_KEYPTR(hh, s->names, named->name, strlen(named->name), named);
	return 0;
}

static int
find_name(struct node_schema *s, const char *name, const char *space, const struct node **ret)
{
	char *full = full_name(space, name);
	struct named *named;

	if (full == NULL)
		return no_memory(s);
	HASH_FIND_STR(s->names, full, named);
	free(full);
	if (named == NULL)
		HASH_FIND_STR(s->names, name, named);
	if (named == NULL)
		return fail(s, "unknown type \"%s\"", name);
	*ret = named->node;
	return 0;
}

static int parse(struct node_schema *s, const json_t *json, const char *space, int depth,
    const struct node **ret);

static int
parse_primitive(struct node_schema *s, enum node_kind kind, const json_t *attributes,
    const struct node **ret)
{
	const char *logical = json_string_value(json_object_get(attributes, "logicalType"));
	struct node *node = new_node(s, kind, 0);

	if (node == NULL)
		return no_memory(s);
	if (kind == NODE_LONG && logical != NULL) {
		if (strcmp(logical, "timestamp-micros") == 0)
			node->logical = LOGICAL_TIMESTAMP_MICROS;
		else if (strcmp(logical, "timestamp-millis") == 0)
			node->logical = LOGICAL_TIMESTAMP_MILLIS;
	}
	*ret = node;
	return 0;
}

static int
parse_fields(struct node_schema *s, struct node *node, const json_t *fields, const char *space,
    int depth)
{
	size_t i;
	json_t *field;

	json_array_foreach(fields, i, field) {
		const char *name = json_string_value(json_object_get(field, "name"));
		const json_t *type = json_object_get(field, "type");
		struct node_part *part = &node->parts[i];
		int r;

		if (name == NULL || type == NULL)
			return fail(s, "a field without name or type");
		part->json = json_text(name, strlen(name), "\":", &part->json_len);
		if (part->json == NULL)
			return no_memory(s);
		r = parse(s, type, space, depth + 1, &part->node);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
parse_symbols(struct node_schema *s, struct node *node, const json_t *symbols)
{
	size_t i;
	json_t *symbol;

	json_array_foreach(symbols, i, symbol) {
		struct node_part *part = &node->parts[i];

		if (!json_is_string(symbol))
			return fail(s, "an enum symbol that is not a string");
		part->json = json_text(json_string_value(symbol), json_string_length(symbol), "\"",
		    &part->json_len);
		if (part->json == NULL)
			return no_memory(s);
	}
	return 0;
}

/* Record, enum, fixed: the types that have a name. */
static int
parse_named(struct node_schema *s, const char *type, const json_t *json, const char *space,
    int depth, const struct node **ret)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	const char *own_space = json_string_value(json_object_get(json, "namespace"));
	const json_t *members = NULL;
	enum node_kind kind;
	struct node *node;
	char *full, *inner, *dot;
	int r;

	if (strcmp(type, "enum") == 0) {
		kind = NODE_ENUM;
		members = json_object_get(json, "symbols");
	} else if (strcmp(type, "fixed") == 0) {
		kind = NODE_FIXED;
	} else {
		kind = NODE_RECORD;
		members = json_object_get(json, "fields");
	}
	if (name == NULL)
		return fail(s, "a type %s without a name", type);
	if (kind != NODE_FIXED && !json_is_array(members))
		return fail(s, "type \"%s\" without its %s", name,
		    kind == NODE_ENUM ? "symbols" : "fields");
	node = new_node(s, kind, json_array_size(members));
	full = full_name(own_space != NULL ? own_space : space, name);
	if (node == NULL || full == NULL) {
		free(full);
		return no_memory(s);
	}
	if (depth == 0) {
		s->full_name = strdup(full);
		if (s->full_name == NULL) {
			free(full);
			return no_memory(s);
		}
	}
	inner = strdup(full);	/* its namespace is that of the types within */
	r = add_name(s, full, node);
	if (r == 0 && inner == NULL)
		r = no_memory(s);
	if (r < 0)
		goto out;
	dot = strrchr(inner, '.');
	*(dot != NULL ? dot : inner) = '\0';
	if (kind == NODE_RECORD) {
		r = parse_fields(s, node, members, inner, depth);
	} else if (kind == NODE_ENUM) {
		r = parse_symbols(s, node, members);
	} else {
		const json_t *size = json_object_get(json, "size");

		if (!json_is_integer(size) || json_integer_value(size) < 0)
			r = fail(s, "fixed \"%s\" without a size", name);
		else
			node->size = (uint64_t)json_integer_value(size);
	}
	*ret = node;

out:
	free(inner);
	return r;
}

static int
parse_items(struct node_schema *s, enum node_kind kind, const json_t *items, const char *space,
    int depth, const struct node **ret)
{
	struct node *node = new_node(s, kind, 1);

	if (node == NULL)
		return no_memory(s);
	if (items == NULL)
		return fail(s, "an array or map without the type of its items");
	*ret = node;
	return parse(s, items, space, depth + 1, &node->parts[0].node);
}

static int
parse_union(struct node_schema *s, const json_t *json, const char *space, int depth,
    const struct node **ret)
{
	struct node *node = new_node(s, NODE_UNION, json_array_size(json));
	size_t i;
	json_t *branch;

	if (node == NULL)
		return no_memory(s);
	json_array_foreach(json, i, branch) {
		int r = parse(s, branch, space, depth + 1, &node->parts[i].node);

		if (r < 0)
			return r;
	}
	*ret = node;
	return 0;
}

static int
parse(struct node_schema *s, const json_t *json, const char *space, int depth,
    const struct node **ret)
{
	enum node_kind kind;
	const json_t *inner;
	const char *type;

	if (depth > DEPTH_MAX)
		return fail(s, "types nested more than %d deep", DEPTH_MAX);
	if (json_is_array(json))
		return parse_union(s, json, space, depth, ret);
	if (json_is_string(json)) {
		type = json_string_value(json);
		if (find_primitive(type, &kind))
			return parse_primitive(s, kind, NULL, ret);
		return find_name(s, type, space, ret);
	}
	inner = json_object_get(json, "type");
	if (inner == NULL)
		return fail(s, "a type that is neither a name, a list nor an object with a type");
	if (!json_is_string(inner))	/* {"type": {"type": ...}} */
		return parse(s, inner, space, depth + 1, ret);
	type = json_string_value(inner);
	if (find_primitive(type, &kind))
		return parse_primitive(s, kind, json, ret);
	if (strcmp(type, "array") == 0)
		return parse_items(s, NODE_ARRAY, json_object_get(json, "items"), space, depth, ret);
	if (strcmp(type, "map") == 0)
		return parse_items(s, NODE_MAP, json_object_get(json, "values"), space, depth, ret);
	if (strcmp(type, "record") == 0 || strcmp(type, "error") == 0 ||
	    strcmp(type, "enum") == 0 || strcmp(type, "fixed") == 0)
		return parse_named(s, type, json, space, depth, ret);
	return find_name(s, type, space, ret);
}

int
node_schema_parse(const char *text, size_t len, struct node_schema **ret, char *err,
    size_t err_size)
{
	struct node_schema *s = calloc(1, sizeof(*s));
	const struct node *root = NULL;
	json_error_t where;
	json_t *json;
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->err = err;
	s->err_size = err_size;
	json = json_loadb(text, len, JSON_DECODE_ANY, &where);
	if (json == NULL)
		r = fail(s, "schema is not JSON: line %d: %s", where.line, where.text);
	else
		r = parse(s, json, NULL, 0, &root);
	json_decref(json);
	if (r == 0 && s->full_name == NULL) {
		s->full_name = strdup("");
		if (s->full_name == NULL)
			r = no_memory(s);
	}
	if (r < 0) {
		node_schema_free(s);
		return r;
	}
	s->root = root;
	s->err = NULL;
	*ret = s;
	return 0;
}

void
node_schema_free(struct node_schema *s)
{
	struct named *named, *next_named;
	struct node *next;

	if (s == NULL)
		return;
	HASH_ITER(hh, s->names, named, next_named) {
		HASH_DEL(s->names, named);
		free(named->name);
		free(named);
	}
	for (struct node *node = s->all; node != NULL; node = next) {
		next = node->next;
		for (size_t i = 0; i < node->n; i++)
			free(node->parts[i].json);
		free(node->parts);
		free(node);
	}
	free(s->full_name);
	free(s);
}

const struct node *
node_schema_root(const struct node_schema *s)
{
	return s->root;
}

const char *
node_schema_name(const struct node_schema *s)
{
	return s->full_name;
}
