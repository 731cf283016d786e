/*
 * SPDX-License-Identifier: Apache-2.0
 * user: for whom a program counts, and whose word its arguments are, from two ids: uid, its own on the host, and
 * user_uid, of the user behind it. They differ in a user namespace, where one user may use many ids: that user is the
 * owner of the outermost one (bpf/share.h). If that is root, or not known, user_uid is uid or 0: each id is a user.
 */
#ifndef SLUICE_MODEL_USER_H
#define SLUICE_MODEL_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/opt.h"

/*
 * Users up to this one are the system's own (UID_MIN of login.defs less one): no other user can run a program as one of
 * them. User 65534 is not among them, since the containers and services of any user may run as that one.
 */
#define SYSTEM_UID_MAX 999

/* Returns the user whose share a program uses. */
static inline uint32_t
user_behind(uint32_t uid, uint32_t user_uid)
{
	return user_uid != 0 ? user_uid : uid;
}

/* Returns whether a user of the system runs it, and not in another user's namespace. */
static inline bool
user_is_of_system(uint32_t uid, uint32_t user_uid)
{
	return uid <= SYSTEM_UID_MAX && user_uid <= SYSTEM_UID_MAX;
}

/* Returns the user whose share a record takes; unknown: it takes none, as users of the system are trusted. */
static inline struct opt_u64
user_share(uint32_t uid, uint32_t user_uid)
{
	return (struct opt_u64){ user_behind(uid, user_uid), !user_is_of_system(uid, user_uid) };
}

/*
 * Returns the user whose word it is. An id that a user of the system uses in a namespace of its own is not believed as
 * that one is.
 */
static inline uint32_t
user_witness(uint32_t uid, uint32_t user_uid)
{
	return user_uid > SYSTEM_UID_MAX ? user_uid : uid;
}

#endif
