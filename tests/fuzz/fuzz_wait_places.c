/*
 * SPDX-License-Identifier: Apache-2.0
 * Any text as a line of on_wait_places: a line that is taken has a hash that prints as its first word, and no class but
 * that of one of its words; one that is refused changes nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/wait_places.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the most specific class of all beginnings of words that end at a +. */
static enum wait_class
class_of_words(const char *line, size_t len)
{
	enum wait_class class = WAIT_OTHER;
	size_t begin = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '+') {
			enum wait_class of = wait_places_of_name(line + begin, i - begin);

			if (of > WAIT_OTHER)
				abort();
			class = of < class ? of : class;
			while (i + 1 < len && line[i + 1] != ' ')
				i++;
		} else if (line[i] == ' ') {
			begin = i + 1;
		}
	}
	return class;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size > 0 ? size : 1);	/* so that ASan detects reads past its end */
	enum wait_class class = WAIT_CLASSES;
	uint64_t hash = 77, printed;
	size_t digits = 0;
	char text[17] = "";

	memcpy(line, data, size);
	if (wait_places_of_line(line, size, &hash, &class) == 0) {
		while (digits < size && digits < 16 && line[digits] != ' ' && line[digits] != '\n')
			digits++;
		memcpy(text, line, digits);
		if (digits == 0 || sscanf(text, "%" SCNx64, &printed) != 1 || printed != hash ||
		    class != class_of_words(line, size))
			abort();
	} else if (hash != 77 || class != WAIT_CLASSES) {
		abort();
	}
	free(line);
	return 0;
}
