/*
 * SPDX-License-Identifier: Apache-2.0
 * users: what each user's programs cost the agent, so that none burdens it at the expense of others.
 *
 * Redaction and the rules may do RULES_STEPS over a program: LEAST_STEPS in any case, which is several times what a
 * usual one needs, and beyond that USER_STEPS a second over all programs of a user, ALL_STEPS over all programs
 * together. Likewise with the text of arguments and names: LEAST_TEXT, USER_TEXT and ALL_TEXT.
 *
 * What all may use together is shared as tables are: a user may use more while it has used less, within the last
 * seconds, than is free. Of n users that use as much as they can, each has one part of n + 1, and one stays free.
 * Another is not refused before it has half of that at once, and as much as the others as their use becomes old.
 *
 * Tables of the correlator are shared as the kernel side shares its own (bpf/share.h): a user may have another entry
 * while having fewer than are free. One user alone gets half of a table, two get a third each, and so on; and there is
 * room for each user who has less. All ids that a user uses in user namespaces are that one user (model/user.h).
 */
#ifndef SLUICE_CORRELATE_USERS_H
#define SLUICE_CORRELATE_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/steps.h"

#define USERS_MAX 1024			/* whose use is known: those seen last */
#define USE_SECONDS 2			/* a burst may use at once what is meant for them */
#define USER_STEPS UINT64_C(500000)	/* a second: some 1 % of a CPU */
#define ALL_STEPS (6 * USER_STEPS)
#define LEAST_STEPS 2000

#define LEAST_TEXT 1024			/* bytes of its names and arguments that each program has */
#define USER_TEXT (UINT64_C(1) << 19)	/* beyond that, a second */
#define ALL_TEXT (4 * USER_TEXT)

#define OWNERS 4096			/* users whose ids are equal modulo this have one share together */

enum share {
	SHARE_RUNS,
	SHARE_TASKS,
	SHARE_FACTS,
	SHARE_FAILURES,
	SHARES,
};

/* Whose share an entry is of: 1 + the user's id; 0: of none. */
typedef uint64_t owner_t;

struct correlator;
struct exec_event;
struct program_context;

/* What was used within the last USE_SECONDS, which is that of a window and of a part of the one before. */
struct recent_use {
	uint64_t window;		/* number of the present one */
	uint64_t now;
	uint64_t before;
};

struct user {
	UT_hash_handle hh;		/* least recently used first */
	uint32_t uid;
	struct recent_use steps;
	struct recent_use text;
};

/* What the rules do over one thing of a user. */
struct judgement {
	struct steps steps;
	uint64_t allowed;
	struct user *user;		/* NULL: without memory */
	owner_t owner;			/* that user */
};

/* Opens an account for what the rules may do over a program, of the user behind it. now_ns: CLOCK_BOOTTIME. */
void judgement_begin(struct correlator *c, struct judgement *j, const struct program_context *of, uint64_t now_ns);
/* Closes it, takes from the user's what was used, and counts that the rules gave up if it was spent. */
void judgement_end(struct correlator *c, struct judgement *j);
/* Counts that the rules gave up over something of this user's, with an account of the caller's. */
void judgement_gave_up(struct correlator *c, const struct program_context *of);
/*
 * Returns s; or, if the user's programs have used up their text, ret: a copy of it that lacks long names and the
 * arguments beyond LEAST_TEXT, which is counted.
 */
const struct exec_event *users_trim(struct correlator *c, const struct exec_event *s, struct exec_event *ret);
/* Returns the owner that a user is. UINT32_MAX: the user is not known; those have one share together. */
static inline owner_t
owner_of(uint32_t uid)
{
	return 1 + (owner_t)uid;
}

/* Returns where a table of OWNERS has this one, which is not 0. */
static inline size_t
owner_at(owner_t owner)
{
	return (size_t)((owner - 1) % OWNERS);
}

/*
 * Counts that the owner's user has not got an entry of a table, or that something of its program was cut or not judged.
 * The caller has counted that by reason; of no owner, and of a user that is not known, nothing is counted here.
 */
void user_refused(struct correlator *c, owner_t owner);
void user_cut(struct correlator *c, owner_t owner);

/*
 * Takes an entry of a table that has `used` of `most`. False: there is none for this owner, which is counted. What was
 * logged is restored whatever the shares.
 */
bool share_take(struct correlator *c, enum share share, owner_t owner, size_t used, size_t most);
void share_give_back(struct correlator *c, enum share share, owner_t owner);
/* Counts an entry that is there already. */
void share_add(struct correlator *c, enum share share, owner_t owner);
void users_free(struct correlator *c);

#endif
