/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * What a thread that does not run waits for. bpf/ and src/ have the same numbers.
 */
#ifndef SLUICE_WAIT_H
#define SLUICE_WAIT_H

#include <linux/types.h>

/*
 * In the order of how specific they are: of the functions in a stack that have a class, the first class here counts. A
 * read of a file on NFS passes functions of files and of sockets, and is a wait for NFS.
 */
enum wait_class {
	WAIT_STOPPED,		/* by a signal, a tracer or a freezer */
	WAIT_NETWORK_FS,	/* a file system whose data another machine or program has: NFS, Lustre, FUSE */
	WAIT_SWAP,		/* pages that are read back from swap */
	WAIT_RECLAIM,		/* memory that is made free first */
	WAIT_BLOCK,		/* block devices and the file systems on them */
	WAIT_NETWORK,		/* internet sockets */
	WAIT_PIPE,		/* pipes, unix sockets, queues: another program of this host */
	WAIT_LOCK,		/* futexes, file locks, semaphores, locks of the kernel */
	WAIT_CHILD,		/* a process that it started */
	WAIT_TIMER,		/* sleep */
	WAIT_POLL,		/* any of several things, a request, a terminal, a signal */
	WAIT_OTHER,		/* known functions, of which none has a class */
	WAIT_THROTTLED,		/* runnable, but its control group has used up its quota of CPU time */
	WAIT_CLASSES,
	WAIT_UNNAMED = WAIT_CLASSES,	/* of a stack: user space is still to name its functions */
};

#define WAIT_FRAMES 12		/* of a stack, from the caller of the scheduler on; bpf_seq_printf() prints as many */
#define WAIT_UNNAMED_MAX 64	/* stacks that one pass finds for the first time */
/* Of each the least recently used give way. */
#define WAIT_STACKS_MAX 4096	/* stacks whose class is known */
#define WAIT_SLEEPERS_MAX 4096	/* threads whose place is known until they run again */

struct wait_stack {
	__u64 hash;
	__u64 frames[WAIT_FRAMES];	/* return addresses, from where it sleeps on; 0 behind the last */
};

#endif
