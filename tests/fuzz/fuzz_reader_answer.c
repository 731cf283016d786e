/*
 * SPDX-License-Identifier: Apache-2.0
 * An answer of a reader, as a hostile process could send it. Checked: nothing outside the message is read, what the
 * result points to is in it and ends with a NUL, and what is taken is what would be sent for the same.
 */
#include <stdlib.h>
#include <string.h>

#include "reader/protocol.h"

#define REQUIRE(claim)			\
	do {				\
		if (!(claim))		\
			abort();	\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char again[READER_ANSWER_MAX];
	char *message = malloc(size > 0 ? size : 1);	/* so that ASan detects reads past its end */
	struct reader_answer a;

	REQUIRE(message != NULL);
	memcpy(message, data, size);
	if (reader_answer_decode(message, size, &a) == 0) {
		for (int i = 0; i < READER_TEXTS; i++) {
			if (a.text[i].at == NULL)
				continue;
			REQUIRE(a.text[i].at >= message && a.text[i].at + a.text[i].len < message + size);
			REQUIRE(a.text[i].at[a.text[i].len] == '\0');
			REQUIRE(i == READER_BYTES || strlen(a.text[i].at) == a.text[i].len);
		}
		REQUIRE(reader_answer_encode(&a, again) == size);
		REQUIRE(memcmp(message, again, size) == 0);
	}
	free(message);
	return 0;
}
