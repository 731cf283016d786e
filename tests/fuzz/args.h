/* SPDX-License-Identifier: Apache-2.0 */
/* args: splits a fuzzer's bytes into an argument vector of strings that end in NUL or newline. */
#ifndef SLUICE_TESTS_FUZZ_ARGS_H
#define SLUICE_TESTS_FUZZ_ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 64

struct args {
	char *v[ARGS_MAX];	/* each an allocation of its own, so that ASan detects reads past its end */
	size_t n;
};

/* 0x01 in the data is a newline in an argument, since seeds are text files. */
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
