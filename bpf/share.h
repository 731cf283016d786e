/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Shares of users, on a host that many share: of the entries in procs, and of the bytes in the ring.
 *
 * A user may have as much as is free, as buffers of switches are shared (dynamic thresholds, by Choudhury and
 * Hahne). One user alone gets half of all, n that want more than a share get 1/(n+1) each, and as much stays free: the
 * next user is not refused before it has half of that, whatever the others do. Nothing is set aside for users who need
 * nothing.
 *
 * A process counts for the user that it was forked as, and from its next exec, or its end, on for the one that it has
 * become. In a user namespace that is the owner of the outermost one, unless that is root: a user who may use many ids
 * there has one share. Each entry has the number of the user for whom it is counted, which entry_remove() gives back.
 * Events have the user's id for user space, where src/model/user.h decides likewise.
 *
 * A run (`sluice run`) has no shares: it is one user's.
 */
#ifndef SLUICE_SHARE_H
#define SLUICE_SHARE_H

#include "state.h"

#define ARGV_SHORT 256		/* bytes of arguments that are kept of a user above its share of the ring */

/* What a user may write to the ring. One above its share gives way in this order. */
enum ring_room {
	RING_ALL,
	RING_SHORT,		/* programs with ARGV_SHORT bytes of their arguments */
	RING_ENDS,		/* ends of programs: it has twice as much as is free, or 13/16 of the ring are in use */
	RING_NONE,		/* nothing: the last eighth is for users below their share */
};

/* Returns the number of the user behind a user namespace below the first one; uid: as the host knows it. */
u32 user_behind(u64 ns, u32 uid);
/* Returns enum ring_room for a user, while the ring is scarce. */
u32 ring_room_of(u32 user);
/* Adds a record to what a user has in the ring, while the ring is scarce. */
int ring_charge(u32 user, u32 bytes);

/* Returns the element of a user; NULL: there is none, in a run. user: its number, as in struct proc. */
static __always_inline struct user *
user_get(u32 user)
{
	u32 at = user - 1;

	return bpf_map_lookup_elem(&users, &at);
}

/* Sets the user for whom a process counts to that of its credentials. */
static __always_inline void
user_read(u32 *ret_user, u32 *ret_uid, struct task_struct *untrusted)
{
	struct user_namespace *ns;
	const struct cred *cred;
	u32 uid;

	READ_POINTER(cred, untrusted->real_cred);
	READ_POINTER(ns, cred->user_ns);
	uid = cred->uid.val;
	if (ns->level > 0)
		uid = user_behind((u64)BPF_CORE_READ(cred, user_ns), uid);
	*ret_uid = uid;
	*ret_user = (uid & (USERS - 1)) + 1;
}

static __always_inline u64
entries_free(void)
{
	s64 n = procs_max - (followed - removed);

	return n > 0 ? n : 0;
}

static __always_inline void
share_give_back(u32 user)
{
	struct user *u = user_get(user);

	if (u)
		__sync_fetch_and_add(&u->entries, -1);
}

/* Makes an entry, if its user is below its share. Returns 0 or a negative errno; -EEXIST: there is one. */
static __always_inline long
entry_make(const struct proc_key *key, const struct proc *p)
{
	struct user *u = user_get(p->user);
	long error;

	if (u && u->entries >= entries_free())
		return bpf_map_lookup_elem(&procs, key) ? -EEXIST : -E2BIG;
	if (u)
		__sync_fetch_and_add(&u->entries, 1);
	error = bpf_map_update_elem(&procs, key, p, BPF_NOEXIST);
	if (!error)
		__sync_fetch_and_add(&followed, 1);
	else if (u)
		__sync_fetch_and_add(&u->entries, -1);
	return error;
}

#define REFUSE_MARGIN_NS 1000000	/* two CPUs store their times in either order: more than these are apart */

/* Notes that there is no room for a process of a user. */
static __always_inline void
refuse(const struct task_struct *leader, u32 user)
{
	u64 start_ns = leader->start_boottime;
	struct user *u = user_get(user);

	if (!refused_from_ns || start_ns - REFUSE_MARGIN_NS < refused_from_ns)
		refused_from_ns = start_ns - REFUSE_MARGIN_NS;
	if (start_ns + REFUSE_MARGIN_NS > refused_to_ns)
		refused_to_ns = start_ns + REFUSE_MARGIN_NS;
	if (u)
		u->is_waiting = 1;
	__sync_fetch_and_add(&refused, 1);
}

/* Removes an entry. Returns false if another program was faster. */
static __always_inline bool
entry_remove(const struct proc_key *key, const struct proc *p)
{
	u32 user = p->user;

	if (bpf_map_delete_elem(&procs, key))
		return false;
	__sync_fetch_and_add(&removed, 1);
	share_give_back(user);
	return true;
}

/*
 * Lets a process count for the user that it has become: as it execs, or as it ends without having done so. Not if it
 * became that one by an executable with the setuid bit that does not belong to a user of the system: who may use many
 * ids in user namespaces can make some of each. It stays with the user before until a user of the system runs it, as by
 * sudo.
 */
static __always_inline void
user_follow(struct proc *p, struct task_struct *untrusted)
{
	u32 user, uid, before = p->user;
	const struct cred *cred;
	u64 own, other, stays;
	struct user *u;

	if (!before)
		return;
	user_read(&user, &uid, untrusted);
	if (p->user_stays && uid > FILTER_SYSTEM_UID_MAX)
		return;
	READ_POINTER(cred, untrusted->real_cred);
	own = cred->uid.val;
	other = cred->euid.val;
	/* the sign: they differ, and neither is of the system; without a branch, which the verifier would follow */
	stays = -(own ^ other) & (FILTER_SYSTEM_UID_MAX - other) & (FILTER_SYSTEM_UID_MAX - (u64)uid);
	barrier_var(stays);
	p->user_stays = stays >> 63;
	if (p->user_uid == uid)
		return;
	p->user_uid = uid;
	if (user == before)
		return;
	u = user_get(user);
	if (!u)
		return;
	__sync_fetch_and_add(&u->entries, 1);
	p->user = user;
	share_give_back(before);
}

/* Counts what was lost of a user. */
#define USER_COUNT(number, of_uid, member, n)			\
	do {							\
		struct user *user_of_loss = user_get(number);	\
								\
		if (user_of_loss) {				\
			user_of_loss->uid = (of_uid);		\
			__sync_fetch_and_add(&user_of_loss->member, (n)); \
		}						\
	} while (0)

/* Counts programs that ran in a process while there was no room for it. at: what would have reported them. */
static __always_inline void
refused_count(enum event_program at, u64 programs, u32 user, u32 uid)
{
	count_loss(at, EVENT_LOSS_MAP);
	__sync_fetch_and_add(&lost_records, 2 * programs);
	USER_COUNT(user, uid, refused, programs);
}

/*
 * Removes the entry of a process that is not reported. If a pass had found room for it, and it ended before that pass
 * judged it, it is lost. One without end_ns ended before it was entered, and on_exit has counted it.
 */
static __always_inline void
unreported_remove(const struct proc_key *key, const struct proc *p)
{
	bool is_lost = follow_all && p->excluded == EXCLUDED_PENDING && p->end_ns && had_no_room(p->self.start_ns);
	u32 user = p->user, uid = p->user_uid;

	if (entry_remove(key, p) && is_lost)
		refused_count(EVENT_PROG_FORK, 1, user, uid);	/* those before it were counted as it was entered */
}

/* Returns whether shares of the ring hold for a record of p: an eighth of it is in use. */
static __always_inline bool
ring_is_scarce(const struct proc *p)
{
	return p->user && bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wake_at / 2;
}

#endif
