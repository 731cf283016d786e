/*
 * SPDX-License-Identifier: Apache-2.0
 * correlator: events in, records out: whose program each was, what it used, and what its task and
 * its run add up to.
 *
 * Pure: no clock, no file, no kernel. Everything it knows comes through these calls, and its
 * records leave through correlator_ops, valid until the callback returns.
 */
#ifndef SLUICE_CORRELATE_CORRELATOR_H
#define SLUICE_CORRELATE_CORRELATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"
#include "model/ruleset.h"
#include "model/event.h"

struct correlator;
struct redaction;

struct correlator_ops {
	void (*program)(const struct program_record *r, void *arg);
	void (*usage)(const struct usage_record *r, void *arg);
	void (*task)(const struct work_record *r, void *arg);
	void (*run)(const struct work_record *r, void *arg);
	/*
	 * The write-ahead log: what changed, as small opaque entries to be kept in order and given to
	 * correlator_replay() by the next life. NULL: none is kept, at no cost.
	 */
	void (*wal)(const void *data, size_t len, void *arg);
	/*
	 * The name and sample of an engine's task out of the head of a file that names it; see
	 * engine_read_header(), whose sizes these are. NULL: such files are not read.
	 */
	bool (*header)(const char *engine, const char *path, char *task, char *sample, void *arg);
	/*
	 * Programs run in a container that was not known: once, but not while a write-ahead log is replayed. runtime:
	 * NULL unknown. It may call correlator_name_container() and nothing else. NULL: nobody can tell more.
	 */
	void (*container)(const char *runtime, const char *id, void *arg);
	void (*finding)(const struct finding_record *r, void *arg);	/* NULL: none are made, at no cost */
};

/*
 * Strings are copied. NULL is unknown, except boot_id and rules, which are needed. run_id NULL: the
 * whole host, with all runs that are found on it, and no rows; else all that we see is one run.
 */
struct correlator_options {
	const char *boot_id;
	const char *host_id;
	const char *cluster;		/* whose schedulers' job ids these are, where the paths do not say */
	struct ruleset *rules;		/* a reference is taken */
	const char *run_id;
	const char *pipeline;
	const char *task;		/* all programs of the run are this task's */
	const char *sample;
	const char *command;		/* the run's command line, UTF-8, redacted */
	const char *work_dir;
	bool has_network;		/* counters of sockets mean something, */
	uint64_t network_since_ns;	/* of programs that began at or after it: correlator_set_network() */
	struct opt_u64 host_memory_bytes;
	struct opt_u64 memory_limit_bytes;	/* of the run's cgroup */
	struct opt_double cpu_limit;
};

int correlator_new(const struct correlator_options *options, const struct correlator_ops *ops,
    void *arg, struct correlator **ret);
void correlator_free(struct correlator *c);	/* NULL is fine */

/* From here on; takes a reference. What runs already is judged anew as it execs. */
void correlator_set_rules(struct correlator *c, struct ruleset *rules);
/* How arguments are redacted from here on; takes it over. NULL, and until it is called: the shipped patterns. */
void correlator_set_redaction(struct correlator *c, struct redaction *redaction);
/* That; NULL: the shipped patterns. Valid until it is set anew. */
const struct redaction *correlator_redaction(const struct correlator *c);

/* What to add to CLOCK_BOOTTIME for microseconds since 1970; to be set before any event. */
void correlator_set_clock(struct correlator *c, int64_t wall_minus_boot_ns);
/* From now on the bytes of sockets are known of programs alone that began at or after since_ns. */
void correlator_set_network(struct correlator *c, uint64_t since_ns);

/*
 * Before any event: one entry of the write-ahead log, in the order in which they were made. 0; -EBADMSG: it
 * is not whole, or of a version that we do not know; -ESTALE: of another boot or run; -ENOMEM. Such
 * an entry changes nothing, but that the beginning of another boot voids what was before it. No
 * records and no entries come of it.
 */
int correlator_replay(struct correlator *c, const void *data, size_t len);

/*
 * What its runtime calls a container, and of which image it is, each NULL where it does not say: goes
 * before what arguments tell, in records from here on. Nothing, where no such container is known.
 */
void correlator_name_container(struct correlator *c, const char *container_id, const char *name, const char *image);
/* Calls ops.container for each that nobody has named: after a replay, and to ask again. */
void correlator_ask_containers(struct correlator *c);

struct replayed {
	uint64_t entries;		/* that were applied */
	uint64_t refused;	/* -EBADMSG or -ENOMEM */
	uint64_t stale;		/* -ESTALE */
	uint64_t incomplete;	/* applied, but they refer to what no entry before told */
	size_t processes;	/* known now */
};

/* After the last entry; ret may be NULL. From here on it is as if the correlator had never died. */
void correlator_replay_done(struct correlator *c, struct replayed *ret);

/* Entries for all that is known: whatever was logged before can be forgotten. */
void correlator_checkpoint(struct correlator *c);

void correlator_run_start(struct correlator *c, uint64_t now_ns);
void correlator_exec(struct correlator *c, const struct exec_event *s);
void correlator_state(struct correlator *c, const struct state_event *s);
void correlator_cgroup(struct correlator *c, const struct cgroup_event *s);

/*
 * Around the state events of one pass over all processes. with_usage: Usage records for the
 * programs that moved since the last such pass.
 */
void correlator_snapshot_begin(struct correlator *c, bool with_usage);
void correlator_snapshot_end(struct correlator *c, uint64_t now_ns);

/* A run by hand. Strings may be NULL, but for run_id and source: "sluice ctl tag". */
struct tag {
	const char *run_id;
	const char *pipeline;
	const char *task;	/* all of it is one task of this name */
	const char *sample;
	const char *source;
};

/*
 * Gives a live process and its descendants, those to come too, to a run. How many processes there
 * were, or -ESRCH: no such process is known; -EINVAL: the id is too long; -ENOSPC, -ENOMEM.
 */
int correlator_tag(struct correlator *c, uint32_t pid, const struct tag *tag, uint64_t now_ns);

/* What a record on the program that this process runs now would say. False: it is not known, or left out. */
bool correlator_show(struct correlator *c, uint32_t pid, void (*fn)(const struct program_record *r, void *arg),
    void *arg);

/*
 * Programs of some engines write what they do over their arguments (setproctitle). Which do is asked
 * after a pass over all processes; each gets its turn, max of them a call.
 */
struct titled {
	struct program_key key;
	uint64_t hash;		/* of what was read last; 0: nothing yet */
};
size_t correlator_titled(struct correlator *c, struct titled *titled, size_t max);
uint64_t correlator_title_hash(const char *title, size_t len);
/* What stands there now, up to the first NUL: bytes of any kind, redacted as any argument. */
void correlator_title(struct correlator *c, const struct program_key *key, const char *title, size_t len,
    uint64_t now_ns);

/* What a process that runs is in; strings live as long as the correlator. */
struct surroundings {
	bool is_inside;		/* it is or descends from a program that an include rule holds for */
	const char *engine;	/* of its run; NULL: none */
};
/* False: no such process is known. */
bool correlator_surroundings(struct correlator *c, uint32_t pid, struct surroundings *ret);

/* Was a START sent for the program that this process ran last? */
bool correlator_knows(struct correlator *c, const struct program_key *key);
/*
 * After the replay, where nobody watched between two lives: what was known to run may have ended
 * since. Each program counts as one whose end was not seen; those that still run can be found anew.
 */
void correlator_forget_live(struct correlator *c);

/*
 * In a pass, of one that has ended and was reaped: the kernel's last word on it, a STATE_EXIT, may still come.
 * Till then those above it are kept, and no finding is made of their failures.
 */
void correlator_ending(struct correlator *c, const struct state_event *s);

/* True if the last pass met this process: it is alive, or a zombie. */
bool correlator_has_seen(const struct correlator *c, const struct program_key *key);

/* Ends tasks that have been over for a moment; live: also LIVE records of tasks and the run. */
void correlator_tick(struct correlator *c, uint64_t now_ns, bool live);

/*
 * What has no program any more since a moment or longer, and is not told as ended yet: another program may join
 * it. A task is told a second after its last program, a run a second after its driver, or five after its last
 * program where it has none; a failure a second after it.
 */
struct correlator_held {
	uint64_t tasks;
	uint64_t runs;
	uint64_t failures;
};
void correlator_held(const struct correlator *c, uint64_t since_ns, struct correlator_held *ret);

/* Kernel events that were lost so far; they count to the run. */
void correlator_set_lost(struct correlator *c, uint64_t lost_events);

/* The run is over: END records of all tasks, then of the run. status: wait(2)'s of COMMAND. */
void correlator_run_end(struct correlator *c, uint64_t now_ns, int status);

/* Programs that are known to be alive. */
size_t correlator_live(const struct correlator *c);
/* Calls fn for each live process of the run: comm and exe (NULL unknown). */
void correlator_each_live(const struct correlator *c,
    void (*fn)(uint32_t pid, const char *comm, const char *exe, void *arg), void *arg);

/* Usage of all runs: what has ended, and the live as of the last snapshot. */
struct usage correlator_attributed_usage(const struct correlator *c);
/* Resident memory of their live programs as of the last snapshot. */
uint64_t correlator_attributed_rss(const struct correlator *c);

/* For the table at the end: one row a task and tool, in order of first start. */
struct summary_row {
	const char *task;	/* NULL: the driver and what belongs to no task */
	const char *sample;
	const char *tool;	/* NULL: shells and other glue */
	uint64_t programs;
	uint64_t failed;
	uint64_t wall_ns;	/* in which at least one of them ran */
	struct usage usage;
	enum bound bound;
	struct bound_shares shares;
};

/* The correlator's; valid until its next call. Returns how many. */
size_t correlator_summary(struct correlator *c, const struct summary_row **ret_rows);

/* Of the whole host: since this correlator was made, not since the first of its lives. */
struct run_totals {
	uint64_t programs;
	uint64_t failed;
	uint64_t live;
	uint64_t runs;		/* known now */
	uint64_t excluded;	/* programs that the rules left out here, not in the kernel */
	uint64_t lost_events;
	uint64_t lost_ends;	/* programs that vanished without their end being seen */
	uint64_t refused;	/* processes beyond the limit of those known at once */
	uint64_t findings_left_out;	/* beyond what is told of a run or task, as findings.h says */
	uint64_t failures_left_out;	/* programs that ended badly, and whose causes may be missing in findings */
	uint64_t lost_entries;	/* for want of memory: a checkpoint is due */
	uint64_t wall_ns;
	struct usage usage;
};
struct run_totals correlator_totals(const struct correlator *c, uint64_t now_ns);

#endif
