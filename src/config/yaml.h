/*
 * SPDX-License-Identifier: Apache-2.0
 * yaml: one YAML file as a tree that knows its lines. Private to config/.
 *
 * Only what a configuration needs: no anchors, aliases or tags, one document, names once in each
 * mapping, and bounds on depth and number, so that no file costs more than its bytes.
 */
#ifndef SLUICE_CONFIG_YAML_H
#define SLUICE_CONFIG_YAML_H

#include "config/config.h"

enum {
	YAML_DEPTH_MAX = 16,
	YAML_NAMES_MAX = 2048,	/* in one mapping: each is compared with all before it */
};

/* A kind of file: its bound, and what its errors give as an example. */
struct yaml_form {
	unsigned nodes_max;
	const char *beyond;		/* what to say of a larger one */
	const char *name;		/* that may stand at the top: "interval" */
	const char *line;		/* "interval: 10s" */
};

extern const struct yaml_form yaml_config;

enum yaml_node_kind {
	YAML_NODE_NULL,	/* nothing, ~ or null */
	YAML_NODE_TEXT,
	YAML_NODE_LIST,
	YAML_NODE_MAP,
};

struct yaml_node {
	enum yaml_node_kind kind;
	bool is_plain;			/* text without quotes */
	unsigned line, column;		/* from 1 */
	char *text;			/* of YAML_NODE_TEXT */
	char *name;			/* of what stands in a mapping */
	unsigned name_line, name_column;
	struct yaml_node *first, *next;	/* children, in the order of the file */
};

/*
 * 0 with the root, a mapping; an empty file has an empty one. A name that stands twice in a mapping
 * is added to errors, and the tree has both. -EINVAL with an error added, behind which nothing was
 * read, or -ENOMEM.
 */
int yaml_read(const struct yaml_form *form, const char *file, const char *text, size_t len,
    struct yaml_node **ret, struct config_errors *errors);
void yaml_node_free(struct yaml_node *n);		/* NULL is fine */
/* "a list", "a mapping" ... */
const char *yaml_node_kind_name(const struct yaml_node *n);

#endif
