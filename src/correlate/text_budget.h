/*
 * SPDX-License-Identifier: Apache-2.0
 * text_budget: bounds the memory of all texts that are kept, as UTF-8: a byte that is none takes four. These are those
 * of programs, kept for END records, and of runs, tasks and facts, which have folders and commands of programs.
 *
 * The last quarter is closed for arguments, so that long ones of some programs leave room for the names of others.
 * Beyond it a program keeps only what has a bounded length, its comm, its tool and its trace, and a run and a task keep
 * short names.
 */
#ifndef SLUICE_CORRELATE_TEXT_BUDGET_H
#define SLUICE_CORRELATE_TEXT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "correlate/users.h"

struct correlator;

#define TEXT_BUDGET_BYTES (32u << 20)
#define TEXT_ARGV_BYTES (TEXT_BUDGET_BYTES / 4 * 3)

/* Returns whether so many bytes fit into the first limit bytes of the budget. */
bool text_budget_has(const struct correlator *c, size_t bytes, size_t limit);
/* Takes bytes from the budget, also beyond it; the same number is given back once. */
void text_budget_take(struct correlator *c, size_t bytes);
void text_budget_give_back(struct correlator *c, size_t bytes);
/*
 * The same for text of a user's programs, who has a share: more of it fits only while the user has less than is free
 * (users.h). owner 0: no user's.
 */
bool text_budget_has_for(const struct correlator *c, owner_t owner, size_t bytes, size_t limit);
void text_budget_take_for(struct correlator *c, owner_t owner, size_t bytes);
void text_budget_give_back_for(struct correlator *c, owner_t owner, size_t bytes);
/* Counts a text of which something was left out. owner: likewise. */
void text_budget_count_cut(struct correlator *c, owner_t owner);

#endif
