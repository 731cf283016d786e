/*
 * SPDX-License-Identifier: Apache-2.0
 * yaml_pack: a tree of nodes as bytes, for files that are part of the program: libyaml reads them when it is built, and
 * unpacking the result at each start takes a tenth of the time. Private to config/, rules/ and the build.
 */
#ifndef SLUICE_CONFIG_YAML_PACK_H
#define SLUICE_CONFIG_YAML_PACK_H

#include <stdint.h>

struct bytes;
struct yaml_node;

/* Appends the tree to out. 0, -ENOMEM, or -E2BIG if a line or a column is above 65535. */
int yaml_pack(const struct yaml_node *root, struct bytes *out);
/* Makes the tree that yaml_pack() wrote to data. 0 with *ret the caller's, or -ENOMEM. */
int yaml_unpack(const uint8_t *data, struct yaml_node **ret);

#endif
