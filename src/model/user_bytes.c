/*
 * SPDX-License-Identifier: Apache-2.0
 * user_bytes: how many bytes of a store that several users fill are each user's.
 */
#include "model/user_bytes.h"

#include <stddef.h>

int
user_bytes_index(const struct opt_u64 *user)
{
	return user->known ? (int)(user->value % USERS_APART) : -1;
}

bool
user_bytes_shrink(struct user_bytes *b, uint64_t less, uint64_t all)
{
	const double part = less < all ? (double)less / (double)all : 1;
	bool is_any_left = false;

	/* Rounded up, so that nothing is left of what a user has once had. */
	for (size_t i = 0; i < USERS_APART; i++) {
		const uint64_t gone = (uint64_t)(part * (double)b->of[i]) + 1;

		b->of[i] -= gone < b->of[i] ? gone : b->of[i];
		is_any_left |= b->of[i] > 0;
	}
	return is_any_left;
}
