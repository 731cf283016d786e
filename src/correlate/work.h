/*
 * SPDX-License-Identifier: Apache-2.0
 * work: sums over programs, and the record fields that are filled from them.
 */
#ifndef SLUICE_CORRELATE_WORK_H
#define SLUICE_CORRELATE_WORK_H

#include "correlate/bill.h"
#include "correlate/contention.h"
#include "correlate/energy.h"
#include "correlate/memory.h"
#include "model/record.h"
#include "model/usage.h"

struct correlator;
struct run;

/* Sums over programs, and when any of them ran. */
struct work {
	struct usage done;		/* of ended programs */
	uint64_t programs;
	uint64_t failed;
	uint64_t live;
	uint64_t start_ns;
	uint64_t last_ns;		/* latest end of any of them */
	uint64_t end_ns;		/* latest end when live last fell to 0 */
	uint64_t busy_ns;		/* time with live > 0, up to end_ns */
	uint64_t busy_since_ns;		/* while live > 0 */
	struct own_bill own;		/* of a row only of the time in which its programs lived */
	struct held_together held;
	struct energy energy;		/* of a task or run */
	struct contention contention;	/* of a task, run or row */
};

void work_enter(struct work *w, uint64_t now_ns);	/* one more program, which is live */
void work_withdraw(struct work *w);			/* one fewer, as if it had never entered */
void work_cut(struct work *w, uint64_t now_ns);		/* ends it at now_ns even if programs are live */
/* Adds the usage of a program that ended. */
void work_add(struct work *w, const struct usage *usage, bool has_failed, uint64_t end_ns);
/* Divides its own time up to now. usage: of all its programs so far; cpus: that they may use at once. */
void work_bill(struct work *w, const struct usage *usage, uint64_t now_ns, struct opt_double cpus);
/* Returns how many CPUs work may use: those that it was given, or the host's if they are fewer. */
struct opt_double work_cpus(const struct correlator *c, struct opt_double given);
/* Adds what from, of a row, has, which has no live programs. Gaps of to in which they ran do not count as busy. */
void work_merge(struct work *to, const struct work *from);
/* Fills in r, whose phase is set, from the sums of a run or task. run may be NULL; its strings are not copied. */
void work_record_fill(const struct correlator *c, const struct run *run, const struct work *w,
    uint64_t now_ns, const struct usage *usage, struct work_record *r);
/*
 * Decides what r, which was filled in of w, would be bound by and what it was denied. memory_high: beyond which the
 * kernel takes memory back. is_limit_of_each: its programs may be in several control groups, each with these limits.
 */
void work_record_judge(const struct correlator *c, const struct work *w, struct opt_u64 memory_high,
    bool is_limit_of_each, struct work_record *r);
/* Sets exit code or signal from a wait(2) status. */
void work_set_status(struct work_record *r, int status);

#endif
