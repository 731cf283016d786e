/*
 * SPDX-License-Identifier: Apache-2.0
 * self_test: whether this program, on this kernel, records a known tree of programs exactly.
 */
#ifndef SLUICE_CLI_SELF_TEST_H
#define SLUICE_CLI_SELF_TEST_H

#include <stdbool.h>
#include <stddef.h>

/* The option by which the tree's programs, which are this program, learn which of them they are. */
#define SELF_TEST_PART "self-test-part"

/* Runs the tree by `sluice run`, compares its lake with the tree, and prints the verdict. Returns an exit status. */
int self_test(bool as_json);

/*
 * Compares what the tree printed with the records of it, as JSON lines. Returns how many faults there are, with the
 * first in fault; *ret_ends: END records. has_hosts_pids: the tree had the PIDs of the host.
 */
unsigned self_test_judge(const char *told, const char *records, bool has_hosts_pids, size_t *ret_ends, char *fault,
    size_t fault_size);

/* Is one program of the tree: does what that one does. Returns its exit status, 2 for a name that is none. */
int self_test_part(const char *name);

/* What is to be recorded of one program of the tree. */
struct self_test_program {
	const char *name;
	const char *parent;		/* NULL: the root */
	bool is_forked;			/* a child that does not call exec */
	bool is_replaced;		/* ends by exec; the next program has its pid */
	int exit_code;
	int exit_signal;		/* 0: it exits */
	long long wrote, read;		/* bytes: exactly, and at least; -1: not compared */
	bool is_busy;			/* its CPU time is compared */
};

extern const struct self_test_program self_test_programs[];
extern const unsigned self_test_n_programs;

#define SELF_TEST_BUSY_NS 30000000	/* CPU time of the busy one, at least */

#endif
