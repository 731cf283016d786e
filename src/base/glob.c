/*
 * SPDX-License-Identifier: Apache-2.0
 * glob: texts in which a star matches any bytes. fnmatch(3) is not used because it also treats ? and [ as
 * patterns, where rules promise that only the star is one, and because it needs NUL-terminated texts.
 */
#include "base/glob.h"

#include <stdint.h>
#include <string.h>

bool
glob_holds(const char *glob, size_t glob_len, const char *text, size_t len)
{
	size_t g = 0, i = 0, star = SIZE_MAX, from = 0;

	while (i < len) {
		if (g < glob_len && glob[g] == '*') {
			star = ++g;	/* the star matches nothing so far */
			from = i;
		} else if (g < glob_len && glob[g] == text[i]) {
			g++;
			i++;
		} else if (star != SIZE_MAX) {
			g = star;	/* the last star matches one byte more; match the rest again */
			i = ++from;
		} else {
			return false;
		}
	}
	while (g < glob_len && glob[g] == '*')
		g++;
	return g == glob_len;
}

bool
glob_holds_path(const char *glob, const char *path)
{
	for (;;) {
		size_t glob_len, len;

		glob += strspn(glob, "/");
		path += strspn(path, "/");
		glob_len = strcspn(glob, "/");
		len = strcspn(path, "/");
		if (glob_len == 0)
			return true;
		if (len == 0 || !glob_holds(glob, glob_len, path, len))
			return false;
		glob += glob_len;
		path += len;
	}
}
