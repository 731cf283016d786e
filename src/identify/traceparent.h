/*
 * SPDX-License-Identifier: Apache-2.0
 * traceparent: the trace context of W3C's Recommendation, which programs pass on in the environment
 * variable TRACEPARENT: VERSION-TRACE-SPAN-FLAGS in lower-case hex.
 */
#ifndef SLUICE_IDENTIFY_TRACEPARENT_H
#define SLUICE_IDENTIFY_TRACEPARENT_H

#include <stdbool.h>
#include <stdint.h>

#define TRACEPARENT_NAME "TRACEPARENT"

struct traceparent {
	char trace_id[33];	/* 32 digits */
	char span_id[17];	/* 16 digits: the span that started the program */
	uint8_t flags;		/* 1: sampled */
};

/*
 * Parses a traceparent. Returns false, with *ret untouched, where text is not a valid one. Version 00 has exactly
 * 55 characters; in later versions more may follow after a dash. An id of zeros alone is invalid.
 */
bool traceparent_parse(const char *text, struct traceparent *ret);

#endif
