/*
 * SPDX-License-Identifier: Apache-2.0
 * process: the processes that are known, and the program that each runs now.
 */
#ifndef SLUICE_CORRELATE_PROCESS_H
#define SLUICE_CORRELATE_PROCESS_H

#include <utlist.h>

#include "correlate/cputime.h"
#include "correlate/energy.h"
#include "correlate/memory.h"
#include "correlate/state.h"
#include "correlate/title.h"
#include "model/event.h"
#include "model/user.h"

#define PROCESSES_MAX 65536		/* at once, or twice as many as the kernel side follows if that is more */
#define GONE_MAX 8192			/* ended processes that are kept for children that never exec */

struct failures;
struct kill;
struct location;
struct row;
struct run;
struct task;
struct text;

struct process {
	struct process_id id;		/* no two have the same */
	struct process *same_slot;	/* next in the list of process_slot() */
	struct process *prev, *next;	/* of all processes */
	struct program_key self;	/* the program that it runs now */
	struct program_key parent;
	struct program_key anchor;
	struct program_key above;	/* nearest ancestor program that has a record; pid 0: none */
	uint32_t ppid;
	int64_t start_us;
	int64_t program_start_us;
	uint64_t program_start_ns;
	int64_t observed_us;		/* when the program was discovered; 0: its start was seen */
	struct program_context context;
	bool has_context;
	bool is_forked;			/* has not exec'd */
	bool is_announced;		/* the current program counts in sums and findings */
	bool is_start_due;		/* its START was not emitted yet; only while announced */
	bool is_driver;			/* programs that it forks are tasks */
	bool is_overhead;		/* its program is the engine's own: counted to no task */
	bool is_excluded;		/* its program is not recorded */
	bool is_inside;			/* it descends from an included one */
	bool is_engine;			/* its program drives a run */
	bool is_unjudged;		/* the rules gave up on its program: RULES_STEPS */
	bool is_elevated;		/* as context.is_elevated, or as what it forked from, or its exec was lost */
	bool has_failed;		/* its last program failed, and has a struct failure */
	bool is_over;			/* END was emitted, the kernel's final state has not arrived */
	uint64_t gone_ns;		/* when the kernel freed it; kept for a while for children that never exec */
	bool is_base_known;		/* no exec was missed since the last one */
	bool was_usage_sent;
	bool is_sent_unknown;		/* Usage of it may have been sent that the log lacks, until a pass sees it */
	uint64_t unseen_since_ns;	/* passes have not seen it since; 0: the last pass did */
	uint64_t pass;			/* last pass that saw it */
	uint64_t ending_in;		/* last pass with an ended, unreported child; 0: none */
	struct text *text;		/* a reference; NULL unknown */
	struct location *location;	/* a reference; NULL unknown */
	struct run *run;		/* a reference; NULL: none */
	struct task *task;		/* a reference, a task of run; NULL: none */
	struct row *row;		/* while announced */
	uint64_t child_begin_ns;	/* latest start of a child that its program started */
	struct failures *failures;	/* owned; NULL: none */
	struct kill *kill;		/* owned; NULL: no signal is known that ends it */
	struct usage_base base;
	struct held held;		/* of the current program, as the next */
	struct charged charged;
	struct usage latest;		/* of the current program, at the last snapshot */
	struct usage sent;		/* of the current program, at the last Usage record */
	uint64_t sent_ns;
	struct process *prev_gone, *next_gone;	/* while gone_ns != 0, but not during a replay */
	struct mark mark;
	bool is_text_logged;		/* its entries contain the current text */
	enum titles titles;
	struct title *title;		/* owned; NULL: none was read */
};

/* Returns true if id is that of p. */
static inline bool
process_is(const struct process *p, const struct process_id *id)
{
	return p->id.pid == id->pid && p->id.start_ns == id->start_ns;
}

/* Makes a process; NULL if there is no room, which is counted. */
struct process *process_new(struct correlator *c, const struct process_id *id);
/* Returns the nearest recorded program among parent and its ancestors. */
struct program_key process_above(struct correlator *c, const struct program_key *parent);
/* Makes a process that forked and has not exec'd. NULL if there is no room, which is counted. */
struct process *process_add(struct correlator *c, const struct program_key *self,
    const struct program_key *parent, const struct program_key *anchor);
/* Frees p with its references, without logging it. */
void process_remove(struct correlator *c, struct process *p);
void process_forget(struct correlator *c, struct process *p);	/* logs the removal and removes p */

/* Each of these marks p in the write-ahead log, if it changes p. */

/* Records that p runs already, and takes what s has of it, until process_exec() has the rest from /proc. */
void process_discovered(struct correlator *c, struct process *p, const struct state_event *s);
/* Records the exec that s reports. above: the nearest ancestor program that has a record. */
void process_exec(struct correlator *c, struct process *p, const struct exec_event *s, const struct program_key *above);
/*
 * Records that p runs the program of s, whose exec was not reported. had_record: the program that was known had a
 * record.
 */
void process_exec_lost(struct correlator *c, struct process *p, const struct state_event *s, bool had_record);
void process_set_text(struct correlator *c, struct process *p, struct text *t);	/* takes a reference over */
/* Sets p's parent, and from it the nearest recorded ancestor. */
void process_set_parent(struct correlator *c, struct process *p, const struct program_key *parent);
/* Sets the parent's PID as the kernel reports it now. */
void process_set_ppid(struct correlator *c, struct process *p, uint32_t ppid);
/* Sets user, namespaces and cgroups of p's program; context is copied. */
void process_set_context(struct correlator *c, struct process *p, const struct program_context *context);
/* Records that p, which never exec'd, runs the program of one that is elevated. */
void process_set_elevated(struct correlator *c, struct process *p);
/* Records that the current pass saw p. */
void process_seen(struct correlator *c, struct process *p);
/* Records that no pass sees p since now_ns, or since a time before. */
void process_unseen(struct correlator *c, struct process *p, uint64_t now_ns);
/* Records that p ended. */
void process_over(struct correlator *c, struct process *p);
/* Records that the kernel freed p, and queues it as ended. */
void process_gone(struct correlator *c, struct process *p, uint64_t gone_ns);

/* Returns whose share p's program uses. */
static inline owner_t
process_owner(const struct process *p)
{
	return owner_of(p->has_context ? user_behind(p->context.uid, p->context.user_uid) : UINT32_MAX);
}

/* Fills *ret with the user and the run of p's program. */
void process_belongings(const struct process *p, struct belongings *ret);

#endif
