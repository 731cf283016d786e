/*
 * SPDX-License-Identifier: Apache-2.0
 * http_request: the first line of a request of HTTP/1; its headers are read over.
 */
#ifndef SLUICE_CONTROL_HTTP_REQUEST_H
#define SLUICE_CONTROL_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the text has the empty line that ends a head. */
bool http_request_is_whole(const char *text, size_t len);
/*
 * Splits the first line, as "GET /metrics?x=1 HTTP/1.1", into method and path, without what follows a question mark;
 * both are parts of text, which is NUL-terminated and is changed. Returns false if it is no request.
 */
bool http_request_split(char *text, const char **ret_method, const char **ret_path);

#endif
