/*
 * SPDX-License-Identifier: Apache-2.0
 * job_share: the table of users, and the folder that gives way.
 */
#include "agent/job_share.h"

#define SECOND UINT64_C(1000000000)
#define ASKED_NS (10 * SECOND)

static uint64_t
used(struct job_share *u, uint64_t now_ns)
{
	const uint64_t seconds = (now_ns - u->halved_ns) / SECOND;

	u->used_ns = seconds < 64 ? u->used_ns >> seconds : 0;
	u->halved_ns += seconds * SECOND;
	return u->used_ns;
}

static struct job_share *
share_of(struct job_shares *s, uint32_t uid, uint64_t now_ns)
{
	struct job_share *least = &s->user[0];

	for (struct job_share *u = s->user; u < s->user + JOB_SHARE_USERS; u++) {
		if (u->asked_ns != 0 && u->uid == uid)
			return u;
		if (least->asked_ns != 0 && (u->asked_ns == 0 || used(u, now_ns) < used(least, now_ns)))
			least = u;
	}
	*least = (struct job_share){ .uid = uid, .asked_ns = now_ns, .halved_ns = now_ns };
	return least;
}

bool
job_shares_may(struct job_shares *s, uint32_t uid, unsigned patience, uint64_t now_ns)
{
	struct job_share *own = share_of(s, uid, now_ns);
	uint64_t sum = 0, n = 0;

	own->asked_ns = now_ns;
	for (struct job_share *u = s->user; u < s->user + JOB_SHARE_USERS; u++) {
		if (u->asked_ns == 0 || now_ns - u->asked_ns > ASKED_NS)
			continue;
		sum += used(u, now_ns);
		n++;
	}
	return patience >= JOB_SHARE_LOW || (patience >= JOB_SHARE_LEAST && used(own, now_ns) * n <= sum);
}

void
job_shares_use(struct job_shares *s, uint32_t uid, uint64_t ns, uint64_t now_ns)
{
	struct job_share *own = share_of(s, uid, now_ns);

	own->used_ns = used(own, now_ns) + ns;
}

static size_t
places_of(const struct job_place *places, size_t n, uint32_t uid)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += places[i].used_ns != 0 && places[i].uid == uid;
	return sum;
}

size_t
job_place_for(const struct job_place *places, size_t n, uint32_t uid)
{
	size_t most = 0, has, at = 0;

	for (size_t i = 0; i < n; i++) {
		if (places[i].used_ns == 0)
			return i;
		/* The new one counts, too. */
		has = 2 * places_of(places, n, places[i].uid) + (places[i].uid == uid);
		if (has > most || (has == most && places[i].used_ns < places[at].used_ns)) {
			most = has;
			at = i;
		}
	}
	return at;
}
