/*
 * SPDX-License-Identifier: Apache-2.0
 * redact: removes passwords, tokens and keys from arguments before they leave correlate/.
 *
 * Each argument is read by up to three passes, which collect the ranges of text to redact:
 *	shapes		tokens, by what they look like; says whether the other passes are needed
 *	patterns	anywhere in the text: name=value, "name": "value", headers, URLs, SQL
 *	words		word by word as a shell would: --password VALUE, mysql -pVALUE; the arguments
 *			themselves are words, and so are those inside an argument that is a script
 */
#include "identify/redact.h"

#include <stdbool.h>
#include <string.h>

#include "base/steps.h"
#include "identify/patterns.h"
#include "identify/secret_ranges.h"
#include "identify/shapes.h"
#include "identify/words.h"

/* Reads argv[0]: a command, or the title that a program wrote over its arguments. */
static void
find_in_first(struct words *words, struct slice t, unsigned found, struct secret_ranges *ranges)
{
	size_t dash = t.p[0] == '-';		/* of a login shell */

	if ((found & SHAPES_NAME) != 0)
		patterns_find(t, false, ranges);
	if ((found & SHAPES_BLANK) != 0)
		words_read_text(words->rules, t, (found & SHAPES_NAME) != 0, ranges);
	words_set_command(words, (struct slice){ t.p + dash, t.len - dash });
}

/* Applies the shipped patterns to argument i. words: of the arguments before it. */
static void
find_builtin(struct words *words, struct slice t, size_t i, struct secret_ranges *ranges)
{
	unsigned found = shapes_find(t, ranges);

	if (i == 0) {
		find_in_first(words, t, found, ranges);
		return;
	}
	/* Most arguments: neither they nor the ones before can contain or announce a secret. */
	if (found == 0 && !words_are_expected(words) && !(t.len == 2 && t.p[0] == '-'))
		return;
	if ((found & SHAPES_NAME) != 0)
		patterns_find(t, words->expects_script, ranges);
	words_read(words, t, (found & SHAPES_NAME) != 0, ranges);
}

size_t
redaction_apply(const struct redaction *r, const struct ruleset *rules, const char **argv, size_t argc,
    struct arena *a)
{
	bool has_builtin = redaction_has_builtin(r), has_patterns = redaction_has_patterns(r);
	unsigned strikes = 0;
	struct secret_ranges ranges;
	struct words words;
	size_t changed = 0;

	words_init(&words, rules);
	for (size_t i = 0; i < argc; i++) {
		struct slice t = { argv[i], strlen(argv[i]) };

		secret_ranges_init(&ranges, t.len);
		if (has_builtin && !steps_are_spent())
			find_builtin(&words, t, i, &ranges);
		if (has_patterns && !steps_are_spent())
			redaction_find(r, t, &strikes, &ranges);
		if (steps_are_spent())
			secret_ranges_add(&ranges, 0, t.len);	/* unread, or not to its end */
		if (ranges.n > 0) {
			argv[i] = secret_ranges_replace(argv[i], &ranges, a);
			changed++;
		}
	}
	return changed;
}

size_t
redact_argv(const struct ruleset *rules, const char **argv, size_t argc, struct arena *a)
{
	return redaction_apply(NULL, rules, argv, argc, a);
}
