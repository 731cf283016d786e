/*
 * SPDX-License-Identifier: Apache-2.0
 * fields_check: holds the table of fields against a parsed schema, once, at open. So an edit of one
 * of the two alone is refused instead of shifting values into wrong fields.
 */
#ifndef SLUICE_CODEC_FIELDS_CHECK_H
#define SLUICE_CODEC_FIELDS_CHECK_H

#include <avro.h>
#include <stddef.h>

#include "model/record.h"

/*
 * Returns 0 when the parsed schema of a topic is the one that fields.c describes: the same fields in the
 * same order with the same types, symbols and nested records. Otherwise returns -EPROTO, with the first
 * difference in err.
 */
int fields_check(enum topic topic, avro_schema_t schema, char *err, size_t err_size);

#endif
