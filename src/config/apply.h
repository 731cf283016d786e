/*
 * SPDX-License-Identifier: Apache-2.0
 * apply: the values of one file, checked key by key and written over those of a configuration. Private to config/.
 */
#ifndef SLUICE_CONFIG_APPLY_H
#define SLUICE_CONFIG_APPLY_H

#include "config/config.h"

struct yaml_node;

/*
 * root is that of c->files.list[file]. Everything wrong is added to errors; what is right is set all
 * the same, so that later files are checked against it. 0 or -ENOMEM.
 */
int config_apply(struct config *c, unsigned file, const struct yaml_node *root,
    struct config_errors *errors);

#endif
