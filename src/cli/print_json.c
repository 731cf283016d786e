/*
 * SPDX-License-Identifier: Apache-2.0
 * print_json: one JSON object as the output of a command.
 */
#include "cli/print_json.h"

#include <stdlib.h>

#include "base/spell.h"

int
print_json(FILE *f, const json_t *root)
{
	char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;

	if (text == NULL)
		return -1;
	spell_json_to(f, text);
	fputc('\n', f);
	free(text);
	return 0;
}
