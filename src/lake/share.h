/*
 * SPDX-License-Identifier: Apache-2.0
 * share: how much of the lake each user has, so that one who fills it does not make the records of others leave it.
 *
 * A user who has a sixteenth of what the lake may have has its share. Its further records are beyond that: they are
 * written as well, but to files of their own, which leave the lake first while all other files have no more than half
 * of it (retention.c). So no record is refused; those of a user who has less than its share leave the lake when they
 * are the oldest of half of it at least; and a user has all that others leave. Users of the system have no share, nor
 * has what belongs to no user: their records are always with the others.
 *
 * Only what a user has within its share is counted, and less of it as such files are removed (model/user_bytes.h). The
 * counts are in a file of the lake, without which, or if it is damaged, each user has a new share:
 *
 *	<lake>/.shares-<host_id>
 *
 *	sluice-shares 1 <bytes of these files>
 *	<place of a user in the table> <bytes>		for each that has any
 *	end <CRC-32C of all before>
 */
#ifndef SLUICE_LAKE_SHARE_H
#define SLUICE_LAKE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "model/user_bytes.h"

struct lake_owner;

enum {
	LAKE_OVER_SIZE = USERS_APART / 64,
	LAKE_SHARES_MAX = 128 * 1024,	/* bytes of the file */
};

struct lake_shares {
	struct user_bytes users;
	uint64_t	 bytes;		/* of all files of records within shares */
	bool		 is_changed;	/* since the counts were written */
};

/* Whose the records of a block are. A zeroed one is valid and has none. */
struct lake_users {
	struct bytes	 parts;		/* of struct part */
};

/* Adds a record's bytes. Without memory they are not counted. */
void lake_users_add(struct lake_users *u, const struct opt_u64 *user, size_t bytes);
void lake_users_clear(struct lake_users *u);
/* Frees what it holds and leaves it empty. */
void lake_users_done(struct lake_users *u);

/* A block of records within their users' shares was written: `raw` bytes of records as so many bytes of a file. */
void lake_shares_take(struct lake_shares *s, const struct lake_users *u, uint64_t bytes, uint64_t raw);
/* Files of records within shares have so many bytes now: if that is less than at the last call, so has each user. */
void lake_shares_follow(struct lake_shares *s, uint64_t bytes);
/* Notes which users have their share of what the lake may have, a bit each. capacity: 0: unknown, and none has. */
void lake_shares_over(const struct lake_shares *s, uint64_t capacity, uint64_t over[LAKE_OVER_SIZE]);

/* Reads the counts of an agent before. They are 0 if there are none, or they are damaged or another user's. */
void lake_shares_read(struct lake_shares *s, const char *lake, const char *host_id, const struct lake_owner *owner);
/*
 * Writes the counts, if they have changed. They are not synced, and after an error those before may stay until the next
 * call: users of an agent that begins then have more or less than their shares.
 */
void lake_shares_write(struct lake_shares *s, const char *lake, const char *host_id,
    const struct lake_owner *owner);

#endif
