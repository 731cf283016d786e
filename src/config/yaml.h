/*
 * SPDX-License-Identifier: Apache-2.0
 * yaml: one YAML file as a tree of nodes with their source locations. Private to config/ and rules/.
 *
 * The subset that a configuration needs: no anchors, aliases or tags, one document, unique names in each
 * mapping, and bounds on depth and number, so that the cost of a file is bounded by its size.
 */
#ifndef SLUICE_CONFIG_YAML_H
#define SLUICE_CONFIG_YAML_H

#include "config/config.h"

enum {
	YAML_DEPTH_MAX = 16,
	YAML_NAMES_MAX = 2048,	/* of one mapping: each is compared with all before it */
};

/* A kind of file: its bound, and the examples in its errors. */
struct yaml_form {
	unsigned nodes_max;
	const char *beyond;		/* the hint for a larger file */
	const char *name;		/* a valid name at the top: "interval" */
	const char *line;		/* "interval: 10s" */
};

extern const struct yaml_form yaml_config;

enum yaml_node_kind {
	YAML_NODE_NULL,	/* an empty value, ~ or null */
	YAML_NODE_TEXT,
	YAML_NODE_LIST,
	YAML_NODE_MAP,
};

struct yaml_node {
	enum yaml_node_kind kind;
	bool is_plain;			/* text without quotes */
	unsigned line, column;		/* from 1 */
	char *text;			/* of YAML_NODE_TEXT */
	char *name;			/* of a value in a mapping; else NULL */
	unsigned name_line, name_column;
	struct yaml_node *first, *next;	/* children, in the order of the file */
};

/*
 * 0 with the root, a mapping, which is empty for an empty file. A second value of the same name in a
 * mapping adds an error and is in the tree too. -EINVAL: an error was added, behind which nothing was
 * read; or -ENOMEM.
 */
int yaml_read(const struct yaml_form *form, const char *file, const char *text, size_t len,
    struct yaml_node **ret, struct config_errors *errors);
void yaml_node_free(struct yaml_node *n);		/* NULL is fine */
/* Returns "a list", "a mapping" ..., for messages; static. */
const char *yaml_node_kind_name(const struct yaml_node *n);

#endif
