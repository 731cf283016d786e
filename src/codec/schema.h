/*
 * SPDX-License-Identifier: Apache-2.0
 * schema: the original text of every .avsc, embedded at build time.
 */
#ifndef SLUICE_CODEC_SCHEMA_H
#define SLUICE_CODEC_SCHEMA_H

#include <stddef.h>

struct schema_text {
	const char *name;	/* file name without .avsc: "program", "usage" ... */
	const char *text;	/* NUL-terminated; the bytes of the file */
	size_t len;		/* without the NUL */
};

extern const struct schema_text schema_texts[];	/* ends with a NULL name */

#endif
