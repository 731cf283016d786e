/*
 * SPDX-License-Identifier: Apache-2.0
 * program_record: what records and rules see of a program.
 */
#ifndef SLUICE_CORRELATE_PROGRAM_RECORD_H
#define SLUICE_CORRELATE_PROGRAM_RECORD_H

#include "correlate/state.h"
#include "model/record.h"

struct candidate;
struct process;
struct text;

/* Fills the head that all records on a program share; strings belong to p and c. */
void program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head);
/* Fills the ids of p's program and of its parent. id points into self and parent, which must outlive it. */
void program_identity_fill(const struct correlator *c, const struct process *p,
    struct program_identity *id, char self[PROGRAM_ID_SIZE], char parent[PROGRAM_ID_SIZE]);
/* Fills in the rest of r, whose phase is set, and emits it. */
void program_emit(struct correlator *c, const struct process *p, struct program_record *r);
/* Calls fn once with a START record of p's program, valid until fn returns. Nothing is emitted. */
void program_show(struct correlator *c, const struct process *p,
    void (*fn)(const struct program_record *r, void *arg), void *arg);

/* Fills s with a program as the rules see it, from what is kept of it. */
void program_candidate(struct correlator *c, const struct process *p, struct candidate *s);
/* Fills s like program_candidate(), as if the program had the text x. */
void program_candidate_of(struct correlator *c, const struct process *p, const struct text *x, struct candidate *s);
/* Fills only the location and the user in s. */
void program_candidate_context(struct correlator *c, const struct process *p, struct candidate *s);

#endif
