/*
 * SPDX-License-Identifier: Apache-2.0
 * A node is a byte of kind and flags, its line and column, its name with theirs, its text, and its children, behind the
 * last of which is END. Numbers have two bytes, the low one first; strings end with a NUL.
 */
#include "config/yaml_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "config/yaml.h"

enum {
	KIND_MASK = 0x0f,
	IS_PLAIN = 0x10,
	HAS_NAME = 0x20,
	END = 0xff,
};

static int
put_location(struct bytes *out, unsigned line, unsigned column)
{
	const uint8_t bytes[] = { (uint8_t)line, (uint8_t)(line >> 8), (uint8_t)column, (uint8_t)(column >> 8) };

	return line > UINT16_MAX || column > UINT16_MAX ? -E2BIG : bytes_append(out, bytes, sizeof(bytes));
}

static int
put_byte(struct bytes *out, uint8_t byte)
{
	return bytes_append(out, &byte, 1);
}

int
yaml_pack(const struct yaml_node *n, struct bytes *out)
{
	int r = put_byte(out, (uint8_t)((unsigned)n->kind | (n->is_plain ? IS_PLAIN : 0) |
	    (n->name != NULL ? HAS_NAME : 0)));

	if (r == 0)
		r = put_location(out, n->line, n->column);
	if (r == 0 && n->name != NULL)
		r = put_location(out, n->name_line, n->name_column);
	if (r == 0 && n->name != NULL)
		r = bytes_append(out, n->name, strlen(n->name) + 1);
	if (r == 0 && n->kind == YAML_NODE_TEXT)
		r = bytes_append(out, n->text, strlen(n->text) + 1);
	for (const struct yaml_node *child = n->first; r == 0 && child != NULL; child = child->next)
		r = yaml_pack(child, out);	/* no deeper than YAML_DEPTH_MAX */
	return r == 0 ? put_byte(out, END) : r;
}

static unsigned
get_number(const uint8_t **at)
{
	unsigned value = (unsigned)(*at)[0] | (unsigned)(*at)[1] << 8;

	*at += 2;
	return value;
}

static char *
get_string(const uint8_t **at)
{
	size_t size = strlen((const char *)*at) + 1;
	char *copy = malloc(size);

	if (copy != NULL)
		memcpy(copy, *at, size);
	*at += size;
	return copy;
}

/* Reads the node at *at, and moves *at behind it. On failure *ret is NULL. */
static int
unpack(const uint8_t **at, struct yaml_node **ret)
{
	uint8_t head = *(*at)++;
	struct yaml_node *n = calloc(1, sizeof(*n)), **end;
	int r = 0;

	*ret = NULL;
	if (n == NULL)
		return -ENOMEM;
	n->kind = (enum yaml_node_kind)(head & KIND_MASK);
	n->is_plain = head & IS_PLAIN;
	n->line = get_number(at);
	n->column = get_number(at);
	if (head & HAS_NAME) {
		n->name_line = get_number(at);
		n->name_column = get_number(at);
		n->name = get_string(at);
		r = n->name == NULL ? -ENOMEM : 0;
	}
	if (n->kind == YAML_NODE_TEXT) {
		n->text = get_string(at);
		r = n->text == NULL ? -ENOMEM : r;
	}
	for (end = &n->first; r == 0 && **at != END; end = &(*end)->next)
		r = unpack(at, end);
	(*at)++;
	if (r < 0) {
		yaml_node_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

int
yaml_unpack(const uint8_t *data, struct yaml_node **ret)
{
	struct yaml_node *root;
	int r = unpack(&data, &root);

	if (r == 0)
		*ret = root;
	return r;
}
