/*
 * SPDX-License-Identifier: Apache-2.0
 * configs: configurations parsed from text, and their errors as one text, for the tests of config/.
 */
#ifndef SLUICE_TESTS_UNIT_CONFIGS_H
#define SLUICE_TESTS_UNIT_CONFIGS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* Returns all errors, one per line. The caller frees the text. */
static inline char *
errors_text(struct config_errors *errors)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	config_errors_print(errors, f);
	fclose(f);
	config_errors_done(errors);
	return text;
}

/* Returns the errors of yaml, each line beginning with "f:LINE:COLUMN: ", or "". The caller frees the text. */
static inline char *
wrong_with(const char *yaml)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_parse("f", yaml, strlen(yaml), &c, &errors);

	assert_int_equal(r, errors.n > 0 ? -EINVAL : 0);
	assert_true((c == NULL) == (r < 0));
	config_free(c);
	return errors_text(&errors);
}

static inline void
wrong_is(const char *yaml, const char *want)
{
	char *got = wrong_with(yaml);

	assert_string_equal(got, want);
	free(got);
}

/* Parses a configuration that must be valid. The caller frees it. */
static inline struct config *
config_of(const char *yaml)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_parse("f", yaml, strlen(yaml), &c, &errors);
	char *text = errors_text(&errors);

	if (r != 0)
		fail_msg("%s", text);
	assert_string_equal(text, "");
	free(text);
	return c;
}

#endif
