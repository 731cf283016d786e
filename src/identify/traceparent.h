/*
 * SPDX-License-Identifier: Apache-2.0
 * traceparent: the trace context that W3C's Recommendation carries from program to program, as the
 * value of the variable TRACEPARENT: VERSION-TRACE-SPAN-FLAGS in lower-case hex.
 */
#ifndef SLUICE_IDENTIFY_TRACEPARENT_H
#define SLUICE_IDENTIFY_TRACEPARENT_H

#include <stdbool.h>
#include <stdint.h>

#define TRACEPARENT_NAME "TRACEPARENT"

struct traceparent {
	char trace_id[33];	/* 32 digits */
	char span_id[17];	/* 16 digits: of the span that started the program */
	uint8_t flags;		/* 1: sampled */
};

/*
 * False where text is none: *ret is then untouched. Of version 00 it is these 55 characters and no
 * more; of a later one more may follow behind a dash. Ids of zeros alone are none.
 */
bool traceparent_parse(const char *text, struct traceparent *ret);

#endif
