/*
 * SPDX-License-Identifier: Apache-2.0
 * note_reader: the fields of a note of the journal, one after the other. Trusts no length: what does not
 * hold marks the note as bad, and reads as 0 or "". Private to replay*.c.
 */
#ifndef SLUICE_CORRELATE_NOTE_READER_H
#define SLUICE_CORRELATE_NOTE_READER_H

#include "correlate/state.h"

struct note_reader {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

uint64_t note_get_u64(struct note_reader *r);
/* At most max, else the note is bad. */
uint64_t note_get_max(struct note_reader *r, uint64_t max);
uint32_t note_get_u32(struct note_reader *r);
/* UTF-8 up to its NUL, in place; "" where there is none. */
const char *note_get_string(struct note_reader *r);
const char *note_get_string_if(struct note_reader *r, bool is_there);
/* By the mask that stands before them. n < 64. */
void note_get_numbers(struct note_reader *r, uint64_t *values, size_t n);
void note_get_usage(struct note_reader *r, struct usage *u);
void note_get_counters(struct note_reader *r, struct counters *c);
void note_get_work(struct note_reader *r, struct work *w);
struct process_id note_get_id(struct note_reader *r);
struct program_key note_get_key(struct note_reader *r);
struct program_key note_get_ancestor(struct note_reader *r, uint64_t start_ns);
/* Was all of it read, and nothing bad? 0 or -EBADMSG. */
int note_reader_done(const struct note_reader *r);
double note_get_double(struct note_reader *r);
/* 0 to 1. */
double note_get_confidence(struct note_reader *r);
/* Of less than size bytes. */
const char *note_get_name(struct note_reader *r, size_t size);

#endif
