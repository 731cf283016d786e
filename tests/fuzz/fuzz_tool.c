/* SPDX-License-Identifier: Apache-2.0 */
/* Any exe, argv and comm get a bounded name of one line of UTF-8, and a rule. Lines: exe, argv. */
#include "args.h"
#include "base/text.h"
#include "rules/rules.h"
#include "identify/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads all of a word, so that ASan detects invalid pointers. */
static void
check_word(const char *word)
{
	if (word != NULL && strlen(word) == SIZE_MAX)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ruleset *rules;
	struct args args;
	const char *rule;
	size_t tool_size = 1;
	char *tool;

	if (rules == NULL)
		rules = rules_shipped();
	args_init(&args, data, size);
	if (size > 0)
		tool_size += data[size - 1] % TOOL_NAME_SIZE;
	tool = malloc(tool_size);
	for (int with = 0; with < 4; with++) {
		struct candidate s = {
			.exe = with & 1 && args.n > 0 ? args.v[0] : NULL,
			.argv = with & 2 && args.n > 0 ? (const char *const *)args.v + 1 : NULL,
			.comm = args.n > 0 ? args.v[args.n - 1] : NULL,
		};
		size_t len;

		s.argc = s.argv != NULL ? args.n - 1 : 0;
		rule = NULL;
		tool_name(rules, &s, tool, tool_size, &rule);
		len = strnlen(tool, tool_size);
		if (len == tool_size || rule == NULL || s.tool != (len > 0 ? tool : NULL))
			abort();
		check_word(s.words.subcommand);
		check_word(s.words.script);
		check_word(s.words.jar);
		check_word(s.words.class);
		for (size_t i = 0, width; i < len; i += width) {
			width = text_char(tool + i, len - i);
			if (width == 0 || (unsigned char)tool[i] < 0x20 || tool[i] == 0x7f)
				abort();
		}
	}
	free(tool);
	args_done(&args);
	return 0;
}
