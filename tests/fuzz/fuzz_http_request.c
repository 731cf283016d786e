/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes to the port of the metrics is a request with a method and a path, or is none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);	/* so that ASan detects reads past its end */
	const char *method = NULL, *path = NULL;

	memcpy(text, data, size);
	text[size] = '\0';
	(void)http_request_is_whole(text, size);
	if (http_request_split(text, &method, &path)) {
		if (method[0] == '\0' || path[0] != '/' || strpbrk(method, " \r\n") != NULL || strpbrk(path, " ?\r\n") != NULL)
			abort();
		if (method != text || path != text + strlen(method) + 1 || path + strlen(path) >= text + size)
			abort();
	} else if (method != NULL || path != NULL) {
		abort();
	}
	free(text);
	return 0;
}
