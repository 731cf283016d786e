/*
 * SPDX-License-Identifier: Apache-2.0
 * bytes: a buffer that grows.
 */
#ifndef SLUICE_BASE_BYTES_H
#define SLUICE_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed buffer is valid and empty. data is owned until bytes_done(). */
struct bytes {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* Makes room for more bytes after len. Returns 0, or -ENOMEM with b unchanged. */
int bytes_reserve(struct bytes *b, size_t more);
/* Appends a copy of data. Returns 0, or -ENOMEM with b unchanged. */
int bytes_append(struct bytes *b, const void *data, size_t len);
/* Frees the data and leaves b empty; it may be used again. */
void bytes_done(struct bytes *b);

#endif
