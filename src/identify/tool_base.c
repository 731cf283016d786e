/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_base: base names of programs, and suffixes that are cut off them.
 */
#include "identify/tool_base.h"

#include <ctype.h>
#include <string.h>

const char *
tool_base_of(const char *path, size_t *ret_len)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	*ret_len = end - start;
	return path + start;
}

void
tool_base_set(char base[TOOL_BASE_SIZE], const char *name, size_t len)
{
	if (len >= TOOL_BASE_SIZE)
		len = TOOL_BASE_SIZE - 1;
	memmove(base, name, len);
	base[len] = '\0';
}

void
tool_base_set_path(char base[TOOL_BASE_SIZE], const char *path)
{
	size_t len;
	const char *name = tool_base_of(path, &len);

	tool_base_set(base, name, len);
}

bool
tool_base_cut(char *base, const char *suffix)
{
	size_t len = strlen(base), n = strlen(suffix);

	if (len <= n || strcmp(base + len - n, suffix) != 0)
		return false;
	base[len - n] = '\0';
	return true;
}

void
tool_base_cut_version(char *base, bool any_version)
{
	size_t len = strlen(base), i = len;

	while (i > 0 && (isdigit((unsigned char)base[i - 1]) || base[i - 1] == '.'))
		i--;
	if (i == len || !isdigit((unsigned char)base[i]) ||
	    (!any_version && strchr(base + i, '.') == NULL))
		return;
	if (i > 0 && base[i - 1] == 'v')
		i--;
	if (i > 1 && (base[i - 1] == '-' || base[i - 1] == '_'))
		base[i - 1] = '\0';
}

void
tool_base_cut_cpu(char *base)
{
	static const char *const suffixes[] = {
		".avx512bw", ".avx512", ".avx2", ".avx", ".sse42", ".sse41", ".sse4", ".sse3", ".sse2",
	};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (tool_base_cut(base, suffixes[i]))
			return;
	}
}

bool
tool_base_cut_number(char *base)
{
	size_t len = strlen(base), i = len;

	while (i > 0 && (isdigit((unsigned char)base[i - 1]) || base[i - 1] == '.' || base[i - 1] == '-'))
		i--;
	if (i == 0 || i == len)
		return false;
	base[i] = '\0';
	return true;
}
