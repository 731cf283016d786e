/*
 * SPDX-License-Identifier: Apache-2.0
 * facts: keys that tie a later task to a run.
 */
#ifndef SLUICE_CORRELATE_FACTS_H
#define SLUICE_CORRELATE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "correlate/users.h"

#define FACTS_MAX 100000

struct correlator;
struct run;

/* A fact that a run published, under a key of its kind (enum fact_kind) and what it is about; see facts.c. */
struct fact {
	UT_hash_handle hh;
	UT_hash_handle by_folder;	/* of the first of a list */
	struct fact *prev, *next;	/* those about one folder, for programs of system users */
	size_t folder_len;		/* so long is the part of the key that these have in common; 0: in no list */
	struct run *run;
	owner_t owner;		/* whose share it is of */
	uint32_t n;		/* a number, whose meaning its kind has */
	size_t len;
	char key[];
};

/*
 * Facts of a run about programs that do not descend from it. engine, root, task_id and names as in struct
 * engine_verdict; uid: of the program that shows them, or that asks. A user's facts are found by programs of that user
 * alone. A program of a system user, as root is in a container, finds the root of another user too, unless several
 * users who have shown the same have live runs: *is_contested is true then. The find functions return NULL if no run
 * has published the fact.
 */
void fact_add_root(struct correlator *c, struct run *r, uint32_t uid, const char *engine, const char *root);
struct run *fact_find_root(struct correlator *c, uint32_t uid, const char *engine, const char *root,
    bool *is_contested);
void fact_add_claim(struct correlator *c, struct run *r, uint32_t uid, const char *engine, const char *root,
    const char *task_id);
struct run *fact_find_claim(struct correlator *c, uint32_t uid, const char *engine, const char *root,
    const char *task_id);
/* Returns the number of the next attempt for a task of this name and sample: from 1, counting failed ones. */
int32_t fact_attempt(struct correlator *c, const struct run *r, const char *task, const char *sample);
/* Counts a failed attempt, for fact_attempt(). */
void fact_add_failure(struct correlator *c, struct run *r, const char *task, const char *sample);
/* Puts back a fact as it was logged. NULL: no room. */
struct fact *fact_restore(struct correlator *c, struct run *r, const char *key, size_t len, uint32_t n);
/* Adds the claims of other users that a log of an earlier release has no facts of, once it is replayed. */
void facts_replayed(struct correlator *c);
void facts_forget(struct correlator *c, const struct run *r);	/* r NULL: facts of all runs */

#endif
