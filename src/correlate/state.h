/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the correlator, whose tables the files of correlate/ share. Each table has a header of its own; no other
 * folder includes them. Each member of a table is written in one file, which also marks the change in the write-ahead
 * log (tests/lint/writers.py).
 *
 *   process ──► text        what it runs (shared with the children that never exec)
 *      │
 *      ├──────► location    where it runs: job, container, limits
 *      ├──────► task ──► run     whose work it is; each with its sums
 *      └──────► row         one per task name and tool, for the table of `sluice run`
 *
 *   fact ──► run            key that ties a later task to a run
 *   failure ──► failure     failure of a program ──► the one that it passed on; see findings.h
 */
#ifndef SLUICE_CORRELATE_STATE_H
#define SLUICE_CORRELATE_STATE_H

#include <uthash.h>

#include "base/arena.h"
#include "correlate/correlator.h"
#include "correlate/judged.h"
#include "correlate/shared_texts.h"
#include "correlate/title.h"
#include "correlate/users.h"
#include "correlate/wal.h"
#include "correlate/work.h"
#include "model/losses.h"

#define PROGRAM_ID_SIZE 64
#define NAMES_MAX 4096			/* of engines, rules and evidence */
#define PROCESS_SLOTS 4096		/* a power of two; 32 KiB */

struct process_id {
	uint64_t start_ns;
	uint64_t pid;
};

/* A name that outlives the rules that contain it; restored names are kept here too. */
struct kept_name {
	UT_hash_handle hh;
	char text[];
};

struct correlator {
	struct correlator_options options;	/* strings owned */
	struct correlator_ops ops;
	void *arg;
	struct ruleset *rules;		/* a reference */
	struct redaction *redaction;	/* owned; NULL: the shipped patterns */
	int64_t clock_ns;		/* CLOCK_BOOTTIME to wall clock */
	struct process *processes;	/* oldest first */
	size_t n_processes;
	struct process *by_pid[PROCESS_SLOTS];	/* the first of each slot's list, see process_slot() */
	struct run *runs;
	struct run *whole;		/* the run of `sluice run`, which has everything seen; NULL: the whole host */
	struct task *tasks;
	struct task *tasks_by_id;
	uint64_t next_task;
	struct fact *facts;
	struct fact *claims;		/* the first about each folder, see struct fact */
	struct failure *failures;
	uint64_t findings_due;		/* of tasks and runs */
	uint64_t findings_left_out;	/* above a limit, as the next */
	uint64_t failures_left_out;
	uint64_t rules_gave_up;
	struct user *users;		/* least recently used first */
	struct recent_use all_steps;	/* of the rules, by all users together */
	struct recent_use all_text;
	uint64_t texts_trimmed;
	struct {
		uint32_t held[OWNERS];
		uint64_t n_refused;
	} shares[SHARES];
	uint64_t minute;		/* in which findings_in_minute counts, for programs in no run */
	uint32_t findings_in_minute;
	uint64_t groups;		/* that were a task's alone, in the last pass */
	uint32_t described;		/* findings of episodes in this tick */
	uint8_t findings_of[OWNERS];	/* of them */
	struct row *rows;
	struct location *locations;
	struct location *idle_locations;	/* idle longest first */
	size_t n_idle_locations;
	struct container *containers;
	struct pod *pods;
	struct cgroup_path *cgroups;	/* least recently used first, as in each list by owner */
	size_t cgroup_bytes;
	struct cgroup_owner *cgroup_owners;
	struct kept_name *names;
	struct process *gone;		/* ended processes, first ended first */
	size_t gone_count;
	struct arena arena;		/* text of the current event */
	size_t text_bytes;		/* see text_budget.h */
	uint32_t text_held[OWNERS];	/* of it, by the owner of programs */
	uint64_t texts_cut;		/* texts that lack what the budget had no room for */
	struct text *shared_texts[SHARED_TEXTS];	/* references; NULL: none */
	struct {
		struct judged key;
		bool is_inside;
		bool is_set;
	} judged_programs[JUDGED];
	struct work all;		/* programs: of the host; sums: of programs in a run */
	uint64_t start_ns;
	uint64_t lost_events;
	uint64_t lost_ends;
	uint64_t lost_lately;		/* of lost_events, since lost_since_ns: those that explain no missing end yet */
	uint64_t lost_before;		/* the same, of the window before that */
	uint64_t lost_since_ns;
	uint64_t excluded;
	uint64_t pass;
	struct title_share title_shares[OWNERS];	/* untouched until more titles are due than are read */
	size_t first_titled;		/* the owner who has the first odd one */
	uint64_t titles_left_out;
	bool pass_with_usage;
	struct summary_row *summary;	/* owned */
	uint64_t refused;
	struct user_losses user_losses;	/* of the above those that are known to be a user's */
	struct wal wal;
};

/* Returns a time since boot as microseconds since 1970. */
int64_t state_wall_us(const struct correlator *c, uint64_t boot_ns);
/* Returns a copy of name that lives as long as c; NULL if name is NULL or there is no room for another. */
const char *kept_name(struct correlator *c, const char *name);
/* Frees all kept names. */
void kept_names_free(struct correlator *c);
/* Returns s; NULL if it is "". s may be NULL. */
static inline const char *
name_or_null(const char *s)
{
	return s != NULL && s[0] != '\0' ? s : NULL;
}

/*
 * Replaces *to with a copy of text, which may be NULL. 0, or -ENOMEM with nothing changed. A long text for which the
 * budget of text_budget.h has no room, as the next function's, is left out and counted.
 */
int state_set_string(struct correlator *c, char **to, const char *text);
/* Sets *to to a copy of text if *to is NULL. NULL and "" are no value. */
void state_learn_string(struct correlator *c, char **to, const char *text);
/* Frees a string that one of the two has set; NULL is fine. */
void state_free_string(struct correlator *c, char *s);
/* Writes the program's id as records have it: boot, PID, start and index. */
void program_id_format(const struct correlator *c, const struct program_key *key,
    char out[PROGRAM_ID_SIZE]);

/*
 * Returns the slot of by_pid that has the list of the processes with the same last bits of their PID, linked by
 * same_slot: one or two, even in a storm. PIDs are given out in order, so that those of a burst share
 * cache lines.
 */
static inline size_t
process_slot(uint64_t pid)
{
	return pid % PROCESS_SLOTS;
}

/* Each find function returns NULL if there is no such entry. */
struct process *process_find(struct correlator *c, uint64_t start_ns, uint64_t pid);
struct process *process_of(struct correlator *c, const struct program_key *key);
struct task *task_find(struct correlator *c, uint64_t number);
struct run *run_find(struct correlator *c, const char *id);

#endif
