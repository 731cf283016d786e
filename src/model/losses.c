/*
 * SPDX-License-Identifier: Apache-2.0
 * losses: the list and its room.
 */
#include "model/losses.h"

#include <stdlib.h>

enum {
	LOSSES_FIRST = 16,
};

void
losses_add(struct loss_list *l, const char *place, const char *reason, uint64_t count)
{
	if (count == 0)
		return;
	if (l->n == l->size) {
		size_t size = l->size > 0 ? 2 * l->size : LOSSES_FIRST;
		struct agent_loss *list = reallocarray(l->list, size, sizeof(*list));

		if (list == NULL)
			return;
		l->list = list;
		l->size = size;
	}
	l->list[l->n++] = (struct agent_loss){ place, reason, count };
}

/* Returns all that was lost of a user, arguments that were cut included. */
static uint64_t
all_of(const struct user_loss *l)
{
	return l->refused + l->lost + l->cut;
}

size_t
user_losses_add(struct user_loss list[USER_LOSSES], size_t n, const struct user_loss *l)
{
	struct user_loss sum = *l;
	size_t at = 0;

	if (all_of(l) == 0)
		return n;
	while (at < n && list[at].uid != l->uid)
		at++;
	if (at < n) {
		sum.refused += list[at].refused;
		sum.lost += list[at].lost;
		sum.cut += list[at].cut;
	} else if (n < USER_LOSSES) {
		n++;
	} else if (all_of(l) <= all_of(&list[--at])) {
		return n;
	}
	for (; at > 0 && all_of(&list[at - 1]) < all_of(&sum); at--)
		list[at] = list[at - 1];
	list[at] = sum;
	return n;
}

void
user_losses_count(struct user_losses *l, const struct user_loss *lost)
{
	struct user_loss *of;

	if (l->of == NULL)
		l->of = calloc(USERS_APART, sizeof(*l->of));
	if (l->of == NULL)
		return;
	of = &l->of[lost->uid % USERS_APART];
	of->uid = lost->uid;
	of->refused += lost->refused;
	of->lost += lost->lost;
	of->cut += lost->cut;
}

size_t
user_losses_list(const struct user_losses *l, struct user_loss list[USER_LOSSES], size_t n)
{
	for (size_t i = 0; i < USERS_APART && l->of != NULL; i++)
		n = user_losses_add(list, n, &l->of[i]);
	return n;
}

void
user_losses_free(struct user_losses *l)
{
	free(l->of);
	l->of = NULL;
}

void
losses_free(struct loss_list *l)
{
	free(l->list);
	*l = (struct loss_list){ 0 };
}
