/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute: whose work a program is.
 */
#ifndef SLUICE_CORRELATE_ATTRIBUTE_H
#define SLUICE_CORRELATE_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

struct candidate;
struct correlator;
struct process;
struct run;
struct text;

/*
 * Sets run, task and location of a program that has exec'd, and what follows from the rules. parent: from
 * attribute_parent(); before: the text of the program that it replaced, NULL: none; s: from program_text_new(). The
 * caller has begun a judgement (users.h); a program with which its account is spent is attributed by descent alone.
 */
void attribute_exec(struct correlator *c, struct process *p, struct process *parent, struct text *before,
    struct candidate *s);
/*
 * Sets run, task and location of a process that has forked but not exec'd, from those of its parent. parent may be
 * NULL.
 */
void attribute_fork(struct correlator *c, struct process *p, struct process *parent);
/* Gives p's program to the run r. is_root: p is the process that was chosen; others descend from it. */
void attribute_by_hand(struct correlator *c, struct process *p, struct run *r, bool is_root, uint64_t now_ns);
/*
 * Returns the process that p descends from, for its task: its parent or, where that was never seen, an entry made
 * for it; NULL: none is known.
 */
struct process *attribute_parent(struct correlator *c, const struct process *p);
/* Attributes p's program by the title that it wrote, which s has in place of arguments. */
void attribute_title(struct correlator *c, struct process *p, struct process *parent, const struct candidate *s,
    uint64_t now_ns);

#endif
