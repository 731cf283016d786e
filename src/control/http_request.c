/*
 * SPDX-License-Identifier: Apache-2.0
 * http_request: looks for blanks and ends of lines.
 */
#include "control/http_request.h"

#include <string.h>

#define VERSION "HTTP/1."

bool
http_request_is_whole(const char *text, size_t len)
{
	return memmem(text, len, "\r\n\r\n", 4) != NULL || memmem(text, len, "\n\n", 2) != NULL;
}

bool
http_request_split(char *text, const char **ret_method, const char **ret_path)
{
	char *path, *version;

	text[strcspn(text, "\r\n")] = '\0';
	path = strchr(text, ' ');
	version = path != NULL ? strchr(path + 1, ' ') : NULL;
	if (version == NULL || path == text || path[1] != '/' || strncmp(version + 1, VERSION, strlen(VERSION)) != 0)
		return false;
	*path++ = *version = '\0';
	path[strcspn(path, "?")] = '\0';
	*ret_method = text;
	*ret_path = path;
	return true;
}
