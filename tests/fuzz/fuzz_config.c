/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration: either it is accepted, and its dump loads to the same configuration; or
 * there are errors, each of one line without control characters.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_errors(const struct config_errors *errors)
{
	if (errors->n == 0)
		abort();
	for (size_t i = 0; i < errors->n; i++) {
		const struct config_error *e = &errors->list[i];

		if (e->message[0] == '\0' || (e->line == 0) != (e->column == 0))
			abort();
		for (const char *p = e->message; *p != '\0'; p++) {
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				abort();
		}
		if (i > 0 && (e->line < e[-1].line || (e->line == e[-1].line && e->column < e[-1].column)))
			abort();
	}
}

static void
check_dump(const struct config *c)
{
	struct config_errors errors = { 0 };
	struct config_changes changes;
	struct config *again = NULL;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	config_dump(c, f);
	fclose(f);
	if (config_parse("dump", text, size, &again, &errors) != 0) {
		config_errors_print(&errors, stderr);
		abort();
	}
	config_differs(c, again, &changes);
	if (changes.n != 0)
		abort();
	config_free(again);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_parse("f", (const char *)data, size, &c, &errors);

	if (r == 0) {
		if (errors.n != 0)
			abort();
		check_dump(c);
	} else if (r == -EINVAL && c == NULL) {
		check_errors(&errors);
	} else {
		abort();
	}
	config_errors_done(&errors);
	config_free(c);
	return 0;
}
