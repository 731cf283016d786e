/*
 * SPDX-License-Identifier: Apache-2.0
 * bytes: a buffer that grows.
 */
#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
bytes_reserve(struct bytes *b, size_t more)
{
	size_t cap = b->cap != 0 ? b->cap : 256;
	uint8_t *data;

	if (more <= b->cap - b->len)
		return 0;
	if (more > SIZE_MAX / 4 - b->len)
		return -ENOMEM;
	while (cap - b->len < more)
		cap *= 2;
	data = realloc(b->data, cap);
	if (data == NULL)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int
bytes_append(struct bytes *b, const void *data, size_t len)
{
	int r = bytes_reserve(b, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

void
bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}
