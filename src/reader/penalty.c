/*
 * SPDX-License-Identifier: Apache-2.0
 * penalty: a table of users.
 */
#include "reader/penalty.h"

#define SECOND_NS UINT64_C(1000000000)
#define LONGEST_NS (64 * SECOND_NS)
#define FORGOTTEN_NS (600 * SECOND_NS)	/* after the end of a penalty the next begins with a second */

void
penalty_set(struct penalties *p, uint32_t uid, uint64_t now_ns)
{
	struct penalty *user = &p->user[0];

	for (int i = 0; i < PENALTIES_MAX; i++) {
		struct penalty *at = &p->user[i];

		if (at->length_ns != 0 && at->uid == uid) {
			user = at;
			break;
		}
		if (at->until_ns < user->until_ns)
			user = at;
	}
	if (user->length_ns == 0 || user->uid != uid || user->until_ns + FORGOTTEN_NS < now_ns)
		user->length_ns = SECOND_NS;
	else if (user->length_ns < LONGEST_NS)
		user->length_ns *= 2;
	user->uid = uid;
	user->until_ns = now_ns + user->length_ns;
}

bool
penalty_holds(const struct penalties *p, uint32_t uid, uint64_t now_ns)
{
	for (int i = 0; i < PENALTIES_MAX; i++) {
		if (p->user[i].length_ns != 0 && p->user[i].uid == uid)
			return now_ns < p->user[i].until_ns;
	}
	return false;
}
