/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as TRACEPARENT: accepted ids are well-formed and equal the text at their offset. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "identify/traceparent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);	/* so that ASan detects reads past its end */
	struct traceparent t;

	memcpy(text, data, size);
	text[size] = '\0';
	memset(&t, 'x', sizeof(t));
	if (traceparent_parse(text, &t)) {
		if (strlen(t.trace_id) != 32 || strlen(t.span_id) != 16 || memcmp(t.trace_id, text + 3, 32) != 0 ||
		    memcmp(t.span_id, text + 36, 16) != 0 || strspn(t.trace_id, "0123456789abcdef") != 32 ||
		    strspn(t.span_id, "0123456789abcdef") != 16 || strspn(t.trace_id, "0") == 32 ||
		    strspn(t.span_id, "0") == 16 || strtoul(text + 53, NULL, 16) != t.flags)
			abort();
	} else if (t.flags != 'x' || t.trace_id[32] != 'x' || t.span_id[16] != 'x') {
		abort();
	}
	free(text);
	return 0;
}
