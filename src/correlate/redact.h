/*
 * SPDX-License-Identifier: Apache-2.0
 * redact: takes passwords, tokens and keys out of arguments before they leave correlate/.
 *
 * What is recognised: options and assignments whose name says so (--password x, --api-key=x,
 * AWS_SECRET_ACCESS_KEY=x, "password": "x"), the short options of a few clients (mysql -px,
 * curl -u user:x), HTTP headers (Authorization: Bearer x), credentials and signatures in URLs, and
 * tokens whose shape gives them away; in arguments of their own and inside a script's text
 * (sh -c '...'). Each value becomes REDACTED; where in doubt, it goes. The tables are in secret.c.
 */
#ifndef SLUICE_CORRELATE_REDACT_H
#define SLUICE_CORRELATE_REDACT_H

#include <stddef.h>

#define REDACTED "***"

struct arena;

/*
 * Redacts argc arguments in place: a pointer in argv is replaced where its text changes, by a
 * string in a (or, where a is full, by the static REDACTED alone, so that nothing leaks for lack
 * of memory). The old strings are not written to. Returns how many arguments changed.
 */
size_t redact_argv(const char **argv, size_t argc, struct arena *a);

#endif
