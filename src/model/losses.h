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
 * are one, with the id of whom something was lost last. Must be zeroed at first, and freed at the end.
 */
struct user_losses {
	struct user_loss *of;		/* owned, USERS_APART; NULL: nothing was lost */
};

/* Appends a loss that is not 0. Without memory it is left out; its counter is not touched, and the next list has it. */
void losses_add(struct loss_list *l, const char *place, const char *reason, uint64_t count);
/*
 * Adds a user's losses to a list of n, by sum, largest first: to those of the same user, if it is there, or in place of
 * the smallest, if the list is full. Returns how many there are then.
 */
size_t user_losses_add(struct user_loss list[USER_LOSSES], size_t n, const struct user_loss *l);
/* Counts what was lost of a user. Without memory for the first one it is left out: the counters by reason have it. */
void user_losses_count(struct user_losses *l, const struct user_loss *lost);
/* Adds what was lost of all users to a list of n, likewise. */
size_t user_losses_list(const struct user_losses *l, struct user_loss list[USER_LOSSES], size_t n);
void user_losses_free(struct user_losses *l);
/* Frees the list and leaves it empty; the names belong to others. */
void losses_free(struct loss_list *l);

#endif
