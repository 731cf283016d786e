/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of a daemon's socket yields names of one line, or none. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/container_resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const char *text)
{
	size_t len = strnlen(text, CONTAINER_NAME_SIZE);

	if (len == CONTAINER_NAME_SIZE || !text_is_plain(text, len))
		abort();
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char id[] = "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51";
	char *text = malloc(size), name[CONTAINER_NAME_SIZE], image[CONTAINER_NAME_SIZE];

	if (size == 0) {
		free(text);
		return 0;
	}
	memcpy(text, data, size);	/* an allocation of its own, so that ASan detects reads past its end */
	container_resolver_parse(text, size, id, name, image);
	check(name);
	check(image);
	free(text);
	return 0;
}
