/*
 * SPDX-License-Identifier: Apache-2.0
 * privileges: giving up, for good, what is not needed once the probes are attached.
 *
 * What the agent still does with what it has open (the ring, iterators, maps from 6.1 on) needs no
 * privilege at all: the file descriptors are the privilege. 5.10 asks for CAP_BPF at each map call.
 * Who stays uid 0 still opens what root owns: files' modes go by the uid, not by capabilities.
 */
#ifndef SLUICE_ATTACH_PRIVILEGES_H
#define SLUICE_ATTACH_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PRIVILEGE(cap) (UINT64_C(1) << (cap))	/* cap: CAP_BPF ... of <sys/capability.h> */

struct privileges_options {
	const char *user;	/* the account to become, with its groups; NULL or "root": the uid stays */
	uint64_t keep;		/* PRIVILEGE(…) | …: permitted and effective afterwards, nothing else is */
	bool no_new_privs;	/* nor can anything that is executed gain any */
};

/*
 * Capabilities are a thread's: to be called while this thread is the only one (-EBUSY otherwise),
 * after which new threads have no more. Not undone, and checked: 0 means that what was given up was
 * tried and is gone. Otherwise a negative errno with a sentence in error; the process may then be
 * half-way and should exit.
 *
 * Afterwards the process is not dumpable: no core file, whatever fs.suid_dumpable says, and its
 * memory, which may hold secrets, is closed to other processes of that account.
 */
int privileges_drop(const struct privileges_options *o, char *error, size_t error_size);

/* "uid 998 (sluice), capabilities bpf sys_ptrace, no new privileges": for people. Returns buf. */
char *privileges_text(char *buf, size_t size);

/* The ids of an account, so that folders can be given to it before. 0, or -ENOENT unknown. */
int privileges_user_ids(const char *name, uid_t *ret_uid, gid_t *ret_gid);

enum {
	PRIVILEGES_NEEDED = 16,
};

/* One capability that the agent begins with; for doctor. */
struct privilege_need {
	int cap;
	bool is_must;		/* without it there is no agent; else what it is for is missing */
	const char *purpose;	/* "load the probes" */
	bool is_held;		/* by this thread */
};
/* How many were written to ret, at most max. */
size_t privileges_needed(struct privilege_need *ret, size_t max);

/*
 * Does this kernel ask for CAP_BPF at each call on an open map, as 5.10 does? 1, 0, or a negative
 * errno when it cannot be tried. Needs CAP_BPF; forks, so to be called before any thread is started.
 */
int privileges_maps_ask(void);

#endif
