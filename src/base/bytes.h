/*
 * SPDX-License-Identifier: Apache-2.0
 * bytes: a buffer that grows.
 */
#ifndef SLUICE_BASE_BYTES_H
#define SLUICE_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* All zero is empty. data is ours until bytes_done(). */
struct bytes {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* Room for more bytes behind len. 0 or -ENOMEM with b unchanged. */
int bytes_reserve(struct bytes *b, size_t more);
int bytes_append(struct bytes *b, const void *data, size_t len);
void bytes_done(struct bytes *b);

#endif
