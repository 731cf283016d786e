/*
 * SPDX-License-Identifier: Apache-2.0
 * Any bytes as a dead letter: what is accepted has texts that end, and data within the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "deliver/dead_letter_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes texts = { 0 };
	struct dead_letter letter;
	char error[160];
	size_t sum;

	if (dead_letter_decode(data, len, &texts, &letter, error, sizeof(error)) == 0) {
		sum = strlen(letter.topic) + strlen(letter.reason) + strlen(letter.detail) + strlen(letter.key);
		sum += letter.len;
		if (sum > len || letter.data < data || letter.data + letter.len > data + len)
			abort();
	}
	bytes_done(&texts);
	return 0;
}
