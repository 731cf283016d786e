/*
 * SPDX-License-Identifier: Apache-2.0
 * losses: a list of losses by component and reason, which the components fill in turn; and what was lost of each user.
 */
#ifndef SLUICE_MODEL_LOSSES_H
#define SLUICE_MODEL_LOSSES_H

#include "model/record.h"
#include "model/user_bytes.h"

/* Must be zeroed at first. The owner sets n to 0 to fill it anew, and frees it at the end. */
struct loss_list {
	struct agent_loss *list;	/* owned; the strings are static */
	size_t n;
	size_t size;			/* for how many there is room */
};

/*
 * What a component lost of each user, of what it counts by reason as well. Users whose ids are equal modulo USERS_APART
 * are one, with the id of whom something was lost last. Must be zeroed at first.
 */
struct user_losses {
	struct user_loss of[USERS_APART];
};

/* Appends a loss that is not 0. Without memory it is left out; its counter is not touched, and the next list has it. */
void losses_add(struct loss_list *l, const char *place, const char *reason, uint64_t count);
/*
 * Adds a user's losses to a list of n, by sum, largest first: to those of the same user, if it is there, or in place of
 * the smallest, if the list is full. Returns how many there are then.
 */
size_t user_losses_add(struct user_loss list[USER_LOSSES], size_t n, const struct user_loss *l);
/* Returns the counts of a user, in which the caller counts a loss. */
struct user_loss *user_losses_of(struct user_losses *l, uint64_t uid);
/* Adds what was lost of all users to a list of n, likewise. */
size_t user_losses_list(const struct user_losses *l, struct user_loss list[USER_LOSSES], size_t n);
/* Frees the list and leaves it empty; the names belong to others. */
void losses_free(struct loss_list *l);

#endif
