/*
 * SPDX-License-Identifier: Apache-2.0
 * user_bytes: how many bytes of a store that several users fill are each user's.
 *
 * Stores do not say whose each part of theirs is: with one that is removed goes the same part of what each user has.
 */
#ifndef SLUICE_MODEL_USER_BYTES_H
#define SLUICE_MODEL_USER_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/opt.h"

#define USERS_APART 4096	/* users whose ids are equal modulo this count as one */

struct user_bytes {
	uint64_t of[USERS_APART];
};

/* Returns where the bytes of a user (model/user.h) are counted; -1: nowhere, as of one who has no share. */
int user_bytes_index(const struct opt_u64 *user);
/*
 * Takes from each user its part of so many bytes, which are removed from a store that has `all` bytes. Returns whether
 * any user has some left.
 */
bool user_bytes_shrink(struct user_bytes *b, uint64_t less, uint64_t all);

#endif
