/*
 * SPDX-License-Identifier: Apache-2.0
 * penalty: users in whose items a reader hung, and until when theirs are not read.
 */
#ifndef SLUICE_READER_PENALTY_H
#define SLUICE_READER_PENALTY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PENALTIES_MAX = 64,	/* users; of more, the one whose penalty ended first is forgotten */
};

struct penalties {
	struct penalty {
		uint32_t uid;
		uint64_t length_ns;	/* 0: the entry is free */
		uint64_t until_ns;	/* CLOCK_BOOTTIME */
	} user[PENALTIES_MAX];
};

/* A reader hung in an item of a user, at now_ns: the penalty is a second, or twice the last one, a minute at most. */
void penalty_set(struct penalties *p, uint32_t uid, uint64_t now_ns);
/* Returns whether items of a user are not read at now_ns. */
bool penalty_holds(const struct penalties *p, uint32_t uid, uint64_t now_ns);

#endif
