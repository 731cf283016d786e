/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled: what the kinds of work share, and the tables of them.
 */
#ifndef SLUICE_TESTS_LABELLED_H
#define SLUICE_TESTS_LABELLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	MOST_THREADS = 16,
	BLOCK = 1 << 20,
	PAGE = 4096,
};

struct kind {
	const char *name;
	uint64_t (*work)(void);		/* how often it did its work */
};

/* Each ends with one that has no name. */
extern const struct kind cpu_kinds[], file_kinds[], memory_kinds[], net_kinds[], wait_kinds[];

extern const char *path;		/* FILE; NULL where none is given */
extern unsigned long number;		/* NUMBER, or 0 */
extern volatile uint64_t sink;		/* what is computed is needed */

double now(void);			/* CLOCK_MONOTONIC, seconds */
double cpu_now(void);			/* CPU time of this thread, seconds */
bool is_time(void);			/* SECONDS are not over */
double left_s(void);			/* of SECONDS */
void pause_ms(long ms);
void compute(void);			/* some 5 ms of work in registers */
void compute_for(double seconds);	/* of CPU time */
pid_t child(void);			/* as fork(2); it ends with its parent */
void end_child(pid_t pid);
void *memory(size_t bytes);		/* zeroed and not yet touched */
int open_file(int flags);		/* FILE */
void wake_each_second(void);		/* a system call that waits: EINTR, once alarm(1) is called before each */
uint64_t in_threads(int n, void *(*of)(void *));	/* this one is the first; each gets its index, as a pointer */
void *cpu_thread(void *index);		/* computes until SECONDS are over */

#endif
