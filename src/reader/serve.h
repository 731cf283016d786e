/*
 * SPDX-License-Identifier: Apache-2.0
 * serve: a reader, a process that reads for the agent what may hang: arguments of other users' processes, and their
 * files. It can do nothing else: it has no capability but the one that its role needs, no_new_privs, a seccomp filter,
 * Landlock where the kernel has it, and no descriptor but its socket.
 */
#ifndef SLUICE_READER_SERVE_H
#define SLUICE_READER_SERVE_H

#include <stdint.h>
#include <sys/types.h>

enum reader_role {
	READER_OF_PROCESSES,	/* opens files below /proc alone */
	READER_OF_FILES,	/* opens any file, with CAP_DAC_READ_SEARCH where the nursery has it */
	READER_ROLES,
};

/*
 * Gives up what it can, and answers the requests that come from fd until it is closed. agent: the process with which it
 * ends. keep: capabilities to keep, as PRIVILEGE(…); with CAP_SYS_PTRACE, which Landlock would not let it use, there is
 * no Landlock.
 */
_Noreturn void reader_serve(int fd, enum reader_role role, pid_t agent, uint64_t keep);

#endif
