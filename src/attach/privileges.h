/*
 * SPDX-License-Identifier: Apache-2.0
 * privileges: gives up, for good, the privileges that are not needed once the probes are attached.
 *
 * Using what is open already (the ring, iterators, maps from 6.1 on) needs no privilege: access is checked at
 * open. 5.10 checks for CAP_BPF at each map call. A process that stays uid 0 can still open root's files,
 * because file modes are checked by uid, not by capabilities.
 */
#ifndef SLUICE_ATTACH_PRIVILEGES_H
#define SLUICE_ATTACH_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/capability.h>
#include <sys/types.h>

#define PRIVILEGE(cap) (UINT64_C(1) << (cap))	/* cap: CAP_BPF ... */

struct privileges_options {
	const char *user;	/* the account to change to, with its groups; NULL or "root": the uid stays */
	bool has_ids;		/* without user: the ids to change to, which may be of no account, without groups */
	uid_t uid;
	gid_t gid;
	uint64_t keep;		/* PRIVILEGE(…) | …: permitted and effective afterwards; no others are */
	uint64_t bound;		/* of these, what programs have that uid 0 executes: the bounding set; 0: none */
	bool no_new_privs;	/* executed programs cannot gain any either */
};

/*
 * Drops privileges. Capabilities belong to a thread: call it while this thread is the only one (-EBUSY
 * otherwise); new threads then have no more. It cannot be undone, and is checked: 0 means that the operations
 * that were given up were tried and failed. Otherwise returns a negative errno with a sentence in error; the
 * process may then be half-way and should exit.
 *
 * Afterwards the process is not dumpable: it writes no core file, whatever the value of fs.suid_dumpable, and
 * other processes of that account cannot read its memory, which may contain secrets.
 */
int privileges_drop(const struct privileges_options *o, char *error, size_t error_size);

/*
 * Returns whether this process may become an agent: it is root, or a service manager gave it the capabilities to load
 * probes with an account (AmbientCapabilities=). These are then its own alone: what it executes has none of them.
 */
bool privileges_may_start(void);

/* Sets *ret to a capability set of this thread, such as CAP_EFFECTIVE. Returns 0, or a negative errno with *ret 0. */
int privileges_held(cap_flag_t flag, uint64_t *ret);

/* Writes the names of the capabilities in set, "bpf sys_ptrace" or "none", to buf. Returns buf. */
char *privileges_names(uint64_t set, char *buf, size_t size);

/* Writes "uid 998 (sluice), capabilities bpf sys_ptrace, no new privileges" to buf, for people. Returns buf. */
char *privileges_text(char *buf, size_t size);

/*
 * Looks up the ids of an account, so that folders can be given to it before. 0; -ENOENT if it is unknown, or another
 * negative errno, with a sentence in error. To be called while this thread is the only one.
 */
int privileges_user_ids(const char *name, uid_t *ret_uid, gid_t *ret_gid, char *error, size_t error_size);

enum {
	PRIVILEGES_NEEDED = 16,
};

/*
 * Returns the capabilities to keep for probes that are attached. CAP_BPF: new rules need new maps, and before 6.1 every
 * call on a map or an iterator needs it. A container runtime that does not know CAP_BPF grants CAP_SYS_ADMIN instead,
 * which is too much to keep where open descriptors suffice.
 */
uint64_t privileges_to_keep(void);

/*
 * Returns whether the mode of a folder, and of those above it, lets this process write there without any capability. It
 * is to be called while this thread is the only one.
 */
bool privileges_may_write(const char *folder);

/* One capability that the agent starts with; for doctor. */
struct privilege_need {
	int cap;
	bool is_must;		/* the agent cannot run without it; else a feature is missing */
	const char *purpose;	/* "load the probes" */
	bool is_held;		/* held by this thread */
};
/* Writes at most max needs to ret; returns how many. */
size_t privileges_needed(struct privilege_need *ret, size_t max);

/*
 * Tests whether this kernel checks for CAP_BPF at each call on an open map, as 5.10 does. Returns 1, 0, or a
 * negative errno if that cannot be tested. Needs CAP_BPF; forks, so it must be called before any thread is
 * started.
 */
int privileges_maps_ask(void);

#endif
