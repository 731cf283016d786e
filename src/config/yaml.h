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
	YAML_NODES_MAX = 4096,
};

enum node_kind {
	NODE_NULL,	/* nothing, ~ or null */
	NODE_TEXT,
	NODE_LIST,
	NODE_MAP,
};

struct node {
	enum node_kind kind;
	bool is_plain;			/* text without quotes */
	unsigned line, column;		/* from 1 */
	char *text;			/* of NODE_TEXT */
	char *name;			/* of what stands in a mapping */
	unsigned name_line, name_column;
	struct node *first, *next;	/* children, in the order of the file */
};

/*
 * 0 with the root, a mapping; an empty file has an empty one. A name that stands twice in a mapping
 * is added to errors, and the tree has both. -EINVAL with an error added, behind which nothing was
 * read, or -ENOMEM.
 */
int yaml_read(const char *file, const char *text, size_t len, struct node **ret,
    struct config_errors *errors);
void node_free(struct node *n);		/* NULL is fine */
/* "a list", "a mapping" ... */
const char *node_kind_name(const struct node *n);

#endif
