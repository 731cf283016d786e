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

void
losses_free(struct loss_list *l)
{
	free(l->list);
	*l = (struct loss_list){ 0 };
}
