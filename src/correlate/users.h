/*
 * SPDX-License-Identifier: Apache-2.0
 * users: what each user's programs cost the agent, so that none burdens it at the expense of others.
 *
 * The rules may do RULES_STEPS over a program, and USER_STEPS a second over all programs of a user, ALL_STEPS over all
 * programs together. Once that is used up a program has LEAST_STEPS, which is several times what a usual one needs.
 */
#ifndef SLUICE_CORRELATE_USERS_H
#define SLUICE_CORRELATE_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/steps.h"

#define USERS_MAX 1024			/* whose use is known: those seen last */
#define USER_STEPS UINT64_C(2500000)	/* a second: some 5 % of a CPU */
#define ALL_STEPS (3 * USER_STEPS)
#define LEAST_STEPS 3000

struct correlator;

/* What may be used, and grows as time passes, up to that of two seconds. */
struct allowance {
	uint64_t left;
	uint64_t at_ns;			/* when that much was left; 0: never used */
};

struct user {
	UT_hash_handle hh;		/* least recently used first */
	uint32_t uid;
	struct allowance steps;
};

/* What the rules do over one thing of a user. */
struct judgement {
	struct steps steps;
	uint64_t allowed;
	struct user *user;		/* NULL: without memory */
};

/* Opens an account for what the rules may do over a program of this user. now_ns: CLOCK_BOOTTIME. */
void judgement_begin(struct correlator *c, struct judgement *j, uint32_t uid, uint64_t now_ns);
/* Closes it, takes from the user's what was used, and counts that the rules gave up if it was spent. */
void judgement_end(struct correlator *c, struct judgement *j);
/* Counts that the rules gave up, with an account of the caller's. */
void judgement_gave_up(struct correlator *c);
void users_free(struct correlator *c);

#endif
