/*
 * SPDX-License-Identifier: Apache-2.0
 * nursery: a process that forks readers for the agent. The agent itself cannot: it has threads, secrets and BPF
 * descriptors, all of which its children would inherit. So it starts the nursery first of all, when it has none of
 * these, and asks it for readers whenever it lacks one. Readers are children of the agent, which kills and reaps them.
 *
 * The nursery has one descriptor, its socket, and ends when the agent does. It touches nothing that may hang.
 */
#ifndef SLUICE_READER_NURSERY_H
#define SLUICE_READER_NURSERY_H

#include <stdbool.h>
#include <sys/types.h>

#include "reader/serve.h"

struct nursery;

/* Starts the process; to be called before there is any thread or secret. 0, or a negative errno with *ret untouched. */
int nursery_start(struct nursery **ret);
/* Ends the process; n may be NULL. */
void nursery_stop(struct nursery *n);

/*
 * Tells it as whom readers run: user, an account with its groups; or, if that is NULL, uid and gid without groups; with
 * uid 0 it stays who it is. It keeps CAP_DAC_READ_SEARCH only if reads_all_files, and until nursery_confine()
 * CAP_SYS_PTRACE, by which exe and cwd of other users' processes are read: both only if it has them. Must be the first
 * message. 0 or a negative errno.
 */
int nursery_become(struct nursery *n, const char *user, uid_t uid, gid_t gid, bool reads_all_files);
/*
 * From now on it can only fork readers: it makes a short list of system calls, and opens files for reading alone.
 * Readers of processes have no capability, and can open no file but those of /proc.
 */
int nursery_confine(struct nursery *n);
/* Asks for a reader, which nursery_take() returns later. 0 or a negative errno. */
int nursery_ask(struct nursery *n, enum reader_role role);

/* Returns the socket, to wait for: it is readable when nursery_take() has something to return. */
int nursery_fd(const struct nursery *n);

/* A reader: its process, a child of this one, and the agent's end of its socket. */
struct nursling {
	enum reader_role role;
	pid_t pid;
	int fd;			/* -1: it could not be made, for the reason in error */
	int error;
};

/* Returns 1 and a reader, which the caller owns; 0: there is none yet; a negative errno: the nursery is gone. */
int nursery_take(struct nursery *n, struct nursling *ret);

#endif
