/* SPDX-License-Identifier: Apache-2.0 */
/* args: a fuzzer's bytes as an argument vector: strings that end in NUL or newline. */
#ifndef SLUICE_TESTS_FUZZ_ARGS_H
#define SLUICE_TESTS_FUZZ_ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 64

struct args {
	char *v[ARGS_MAX];	/* each its own allocation, so that ASan sees its end */
	size_t n;
};

/* 0x01 in the data stands for a newline, for seeds are text files. */
static inline void
args_init(struct args *args, const uint8_t *data, size_t size)
{
	args->n = 0;
	for (size_t i = 0; i < size && args->n < ARGS_MAX;) {
		size_t len = 0;
		char *s;

		while (i + len < size && data[i + len] != '\0' && data[i + len] != '\n')
			len++;
		s = malloc(len + 1);
		memcpy(s, data + i, len);
		s[len] = '\0';
		for (char *p = s; (p = strchr(p, 1)) != NULL;)
			*p = '\n';
		args->v[args->n++] = s;
		i += len + 1;
	}
}

static inline void
args_done(struct args *args)
{
	for (size_t i = 0; i < args->n; i++)
		free(args->v[i]);
}

#endif
