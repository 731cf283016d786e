/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * What the kernel side keeps of each user of the host, and user space reads: the map `users`, see share.h.
 */
#ifndef SLUICE_USER_H
#define SLUICE_USER_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/*
 * Users of whom there is an element each. It is that of the id's remainder: ids are given in rows, so that two seldom
 * have one in common, and those that do are one user here. So each user has an element, and none needs to be freed.
 */
#define USERS 4096

struct user {
	__u32	uid;		/* of the last process of which something was refused, lost or cut */
	__u32	entries;	/* its processes that have an entry in procs */
	__u32	is_waiting;	/* one was refused since user space last looked for such processes */
	/* Bytes that it has written to the ring since ring_from, and before that, while the ring was scarce. */
	__u32	ring_now;
	__u32	ring_before;
	__u32	pad;
	__u64	ring_from;	/* position in the ring */
	__u64	ring_last;	/* position after its last record */
	/* counters of what was lost of it */
	__u64	refused;	/* programs for which there was no room in procs */
	__u64	lost;		/* records for which there was no room in the ring */
	__u64	cut;		/* arguments that were cut, for lack of room in the ring */
};

_Static_assert(sizeof(struct user) == 64, "user changed size");

#endif
