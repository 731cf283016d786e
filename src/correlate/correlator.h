/*
 * SPDX-License-Identifier: Apache-2.0
 * correlator: events in, records out. Decides whose work each program was, what it used, and what its task and its
 * run add up to.
 *
 * Pure: it reads no clock, no file and nothing of the kernel. All input arrives through these calls; records leave
 * through correlator_ops and are valid until the callback returns.
 */
#ifndef SLUICE_CORRELATE_CORRELATOR_H
#define SLUICE_CORRELATE_CORRELATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/cpu_busy.h"
#include "model/disk_counts.h"
#include "model/disk_space.h"
#include "model/finding_limits.h"
#include "model/optional_signals.h"
#include "model/record.h"
#include "model/ruleset.h"
#include "model/event.h"

struct correlator;
struct job_found;
struct job_sought;
struct redaction;

/* A file that names an engine's task in its head. */
struct header_place {
	const char *engine;
	const char *path;
	uint32_t uid;		/* the program's that shows the path: a file of another user names nothing */
};

struct correlator_ops {
	void (*program)(const struct program_record *r, void *arg);
	void (*usage)(const struct usage_record *r, void *arg);
	void (*task)(const struct work_record *r, void *arg);
	void (*run)(const struct work_record *r, void *arg);
	/*
	 * Receives entries of the write-ahead log: small opaque entries for what changed, to be kept in order and
	 * given to correlator_replay() of the next agent. NULL: no log is kept, at no cost.
	 */
	void (*wal)(const void *data, size_t len, void *arg);
	/*
	 * Reads the name and sample of an engine's task from the head of a file that contains them, into buffers of
	 * the sizes of engine_read_header(). NULL: such files are not read.
	 */
	bool (*header)(const struct header_place *at, char *task, char *sample, void *arg);
	/*
	 * Finds the job of a task whose engine keeps records of its local jobs, see identify/jobs.h. NULL: they are not
	 * read.
	 */
	bool (*job)(const struct job_sought *s, struct job_found *ret, void *arg);
	/*
	 * Is called once for each new container in which a program runs, but not during a replay. runtime: NULL
	 * unknown. May call correlator_name_container() and no other function of the correlator. NULL: no resolver.
	 */
	void (*container)(const char *runtime, const char *id, void *arg);
	/*
	 * Likewise for each new container in a pod, and for a new pod of which a program is in no container ("").
	 * May call correlator_name_pod() and no other function of the correlator. NULL: no kubelet.
	 */
	void (*pod)(const char *pod_uid, const char *container_id, void *arg);
	/*
	 * Asks for the room of the file system of a folder, as the program with that PID and start, which lives, names
	 * it, in that mount namespace; PID 0: none that lives is known there. is_anew: an answer from before does not
	 * do. Returns false if it is not known. NULL: there is nothing to ask.
	 */
	bool (*space)(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, bool is_anew,
	    struct disk_space *ret, void *arg);
	/*
	 * Likewise for what the block device there has done; folder NULL: the one with the number that ret has.
	 * NULL: there is nothing to ask.
	 */
	bool (*disk)(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns,
	    struct disk_counts *ret, void *arg);
	/* Asks how busy the host's CPUs were, not long ago. False: it is not known. NULL: there is nothing to ask. */
	bool (*cpus)(struct cpu_busy *ret, void *arg);
	/*
	 * Asks what the kernel counted of the control group with these paths, of which either may be NULL. Returns
	 * false if nothing is known. NULL: there is nothing to ask.
	 */
	bool (*group)(const char *v2_path, const char *v1_path, struct group_use *ret, void *arg);
	void (*finding)(const struct finding_record *r, void *arg);	/* NULL: no findings are made, at no cost */
};

/*
 * Strings are copied. NULL is unknown, except boot_id and rules, which are required. run_id NULL: the whole host,
 * with all runs discovered on it, and no summary rows; else everything seen belongs to that one run.
 */
struct correlator_options {
	const char *boot_id;
	const char *host_id;
	const char *cluster;		/* of the schedulers' job ids, where cgroup paths do not name it */
	struct ruleset *rules;		/* the correlator takes a reference */
	const char *run_id;
	const char *pipeline;
	const char *task;		/* the task of all programs of the run */
	const char *sample;
	const char *command;		/* the run's command line, UTF-8, redacted */
	const char *work_dir;
	uint64_t start_after_ns;	/* see correlator_set_start_after() */
	uint64_t known_since_ns[OPTIONAL_SIGNALS];	/* see correlator_set_known_since() */
	size_t arena_bytes;		/* for the texts of one record; 0: enough for all */
	uint32_t max_processes;		/* that the kernel side follows at once; 0: 16,384 */
	struct opt_u64 host_memory_bytes;
	struct opt_double host_cpus;
	struct opt_u64 memory_limit_bytes;	/* of the run's cgroup */
	struct opt_u64 memory_high_bytes;	/* likewise, memory.high */
	struct opt_double cpu_limit;
	struct finding_limits finding_limits;
};

/*
 * Creates a correlator, which copies options and ops; arg is passed to each callback. Returns 0, or -ENOMEM with *ret
 * untouched.
 */
int correlator_new(const struct correlator_options *options, const struct correlator_ops *ops,
    void *arg, struct correlator **ret);
void correlator_free(struct correlator *c);	/* c may be NULL */

/* Applies rules from now on; takes a reference. Programs that run already are judged anew at their next exec. */
void correlator_set_rules(struct correlator *c, struct ruleset *rules);
/* Sets how arguments are redacted from now on; takes ownership. NULL (the default): the shipped patterns. */
void correlator_set_redaction(struct correlator *c, struct redaction *redaction);
/* Returns the redaction patterns in use; NULL: the shipped ones. Valid until correlator_set_redaction() is called. */
const struct redaction *correlator_redaction(const struct correlator *c);

/* Sets the offset from CLOCK_BOOTTIME to wall-clock time, in nanoseconds. Must be called before any event. */
void correlator_set_clock(struct correlator *c, int64_t wall_minus_boot_ns);
/*
 * Sets how long a program must live, in nanoseconds, until its START is emitted; 0: its START is emitted at exec. One
 * that ends before has only an END. A program that lives is looked at once in a pass.
 */
void correlator_set_start_after(struct correlator *c, uint64_t start_after_ns);
void correlator_set_finding_limits(struct correlator *c, const struct finding_limits *limits);
/*
 * From now on the fields of an optional signal are known only for programs that began at or after since_ns,
 * CLOCK_BOOTTIME; 0: for all, UINT64_MAX: for none.
 */
void correlator_set_known_since(struct correlator *c, enum optional_signal signal, uint64_t since_ns);

/*
 * Replays one entry of the write-ahead log; called before any event, with entries in the order in which they were
 * made. 0; -EBADMSG: the entry is incomplete or of an unknown version; -ESTALE: it is of another boot or run;
 * -ENOMEM. An entry that fails changes nothing, except that the beginning of another boot voids all entries before
 * it. Emits no records and no entries.
 */
int correlator_replay(struct correlator *c, const void *data, size_t len);

/*
 * Sets a container's name and image as its runtime reports them, each NULL if the runtime does not; they take
 * precedence over arguments, in records from now on. Does nothing if the container is not known.
 */
void correlator_name_container(struct correlator *c, const char *container_id, const char *name, const char *image);
/* Calls ops.container for each container without an answer: after a replay, and to ask again. */
void correlator_ask_containers(struct correlator *c);

/* What a kubelet reports of a pod, and of a container in it. NULL: unknown; container NULL: it does not know it. */
struct pod_answer {
	const char *pod;
	const char *name_space;
	const char *container;		/* as the pod's specification names it */
	const char *image;		/* that of the container's runtime takes precedence */
};

/* Sets the names of a pod and of a container in it, in records from now on. Does nothing if the pod is not known. */
void correlator_name_pod(struct correlator *c, const char *pod_uid, const char *container_id,
    const struct pod_answer *names);
/* Calls ops.pod for each container in a pod, and each pod, without an answer: after a replay, and to ask again. */
void correlator_ask_pods(struct correlator *c);

struct replayed {
	uint64_t entries;		/* applied */
	uint64_t refused;	/* -EBADMSG or -ENOMEM */
	uint64_t stale;		/* -ESTALE */
	uint64_t incomplete;	/* applied, but referring to something that no entry before it contains */
	size_t processes;	/* known after the replay */
};

/* Ends the replay; ret may be NULL. From now on the correlator behaves as if it had never stopped. */
void correlator_replay_done(struct correlator *c, struct replayed *ret);

/* Emits entries for all current state: entries made before it are no longer needed. */
void correlator_checkpoint(struct correlator *c);

/* Sets when the observation began, in CLOCK_BOOTTIME, and emits the START of the run if run_id is set. */
void correlator_run_start(struct correlator *c, uint64_t now_ns);
/*
 * Takes a process that ran before we watched, which correlator_exec() completes once its text is read. If it ends
 * before that, its record is that of a program that was discovered. Nothing of s is kept by reference.
 */
void correlator_discovered(struct correlator *c, const struct state_event *s);
/* Takes an exec, or a program that was discovered. Nothing of s is kept by reference. */
void correlator_exec(struct correlator *c, const struct exec_event *s);
/* Takes the totals of a process: in a snapshot, or at its end. Nothing of s is kept by reference. */
void correlator_state(struct correlator *c, const struct state_event *s);
/* Takes the signal of which a process will end. Nothing of s is kept by reference. */
void correlator_signal(struct correlator *c, const struct signal_event *s);
/* Takes the path and the limits of a cgroup, for the events with its id that follow. */
void correlator_cgroup(struct correlator *c, const struct cgroup_event *s);

/*
 * Enclose the state events of one pass over all processes. with_usage: Usage records are emitted for programs that
 * made progress since the last such pass.
 */
void correlator_snapshot_begin(struct correlator *c, bool with_usage);
void correlator_snapshot_end(struct correlator *c, uint64_t now_ns);

/* Emits START of each live program that began at begun_ns or before and has none yet, however young it is. */
void correlator_write_starts(struct correlator *c, uint64_t begun_ns, uint64_t now_ns);

/*
 * Calls fn with a record of the program that this process runs now. Returns false if it is not known or is
 * excluded.
 */
bool correlator_show(struct correlator *c, uint32_t pid, void (*fn)(const struct program_record *r, void *arg),
    void *arg);

/*
 * A process whose title is to be read. Programs of some engines write their current work over their arguments
 * (setproctitle).
 */
struct titled {
	struct program_key key;
	uint64_t hash;		/* of the title read last; 0: none yet */
	uint32_t user;		/* behind it, see model/user.h */
};
/*
 * Fills in up to max processes whose titles are to be read in this second, and returns how many. Where there are more,
 * no user has fewer of them than another, unless it has no more; the others are counted as left out.
 */
size_t correlator_titled(struct correlator *c, struct titled *titled, size_t max);
/* Returns the hash of a title's len bytes, to compare it with struct titled. */
uint64_t correlator_title_hash(const char *title, size_t len);
/* Takes a title as read from a process, up to the first NUL: arbitrary bytes, redacted as arguments are. */
void correlator_title(struct correlator *c, const struct program_key *key, const char *title, size_t len,
    uint64_t now_ns);

/* The user and the run of a process. Strings live until the correlator is called again. */
struct belongings {
	const char *run_id;	/* NULL: none */
	bool is_by_hand;	/* the run was set by hand */
	struct opt_u64 run_uid;	/* of the run's first program */
	struct opt_u64 uid;	/* of the program; unknown also where it is, or may become, another user: elevated */
	uint32_t user;		/* behind the program, as far as it is known, see model/user.h */
	uint64_t cgroup_v2;	/* ids; 0 none */
	uint64_t cgroup_v1;
};

/* The context of a live process, for rules. Strings live as long as the correlator. */
struct surroundings {
	uint32_t ppid;
	bool is_inside;		/* an include rule holds for its program or an ancestor */
	bool is_forked;		/* it has not called exec */
	const char *engine;	/* of its run; NULL: none */
	struct belongings of;
};
/* Fills *ret; returns false if no such process is known. */
bool correlator_surroundings(struct correlator *c, uint32_t pid, struct surroundings *ret);
/* Returns true if a process lives that descends from this one. */
bool correlator_has_descendants(struct correlator *c, uint32_t pid);

/* A run that is set by hand with "sluice ctl tag". Strings may be NULL, except run_id and source. */
struct tag {
	const char *run_id;
	const char *pipeline;
	const char *task;	/* one task of this name holds all programs */
	const char *sample;
	const char *source;
	/* Returns true if a descendant with these belongings stays where it is. NULL: none does. Gets arg. */
	bool (*leaves_out)(const struct belongings *of, const void *arg);
	const void *arg;
};

/*
 * Attributes a live process and its descendants, also later ones, to a run. Returns how many processes there were;
 * -ESRCH: no such process is known; -EINVAL: the id is too long; -ENOSPC, -ENOMEM.
 */
int correlator_tag(struct correlator *c, uint32_t pid, const struct tag *tag, uint64_t now_ns);

/* Returns true if the program that this process ran last is recorded, by this agent or one before it. */
bool correlator_knows(struct correlator *c, const struct program_key *key);
/* Fills *ret with what the program belongs to that this process ran last; returns false if no such process is known. */
bool correlator_belongings(struct correlator *c, const struct program_key *key, struct belongings *ret);
/* Returns true if the program that this process ran last belongs to the run of this id. */
bool correlator_is_of_run(struct correlator *c, const struct program_key *key, const char *run_id);
/* Returns the path of a cgroup, valid until the correlator is called again; NULL: it is not known. */
const char *correlator_cgroup_path(struct correlator *c, uint64_t id, bool is_v2);
/*
 * Forgets all live processes: after a replay, if there was a time without an agent in which they may have ended.
 * Each program counts as one whose end was not seen; those that still run can be discovered again.
 */
void correlator_forget_live(struct correlator *c);

/*
 * After a replay whose log lacks the last entries: Usage records may have been sent of which it does not know. What
 * each live process uses up to the next pass that sees it is in no Usage record any more, only in its END: it may be
 * missing from their sum, and is never in it twice.
 */
void correlator_doubt_usage(struct correlator *c);

/*
 * Reports, during a pass, a process that ended and was reaped while its STATE_EXIT may still arrive. Until then its
 * ancestors are kept, and no finding is made of their failures.
 */
void correlator_ending(struct correlator *c, const struct state_event *s);

/* Returns true if the last pass saw this process: it is alive, or a zombie. */
bool correlator_has_seen(struct correlator *c, const struct program_key *key);

/*
 * Divides what the host's meter counted since the last call among runs and tasks, by CPU time up to now; energy.h
 * has the definition. uj: microjoules; capacity_ns: the time that all CPUs offered. Returns microjoules that runs
 * have of it. A source of ENERGY_UNKNOWN: nothing is known, and CPU time up to now costs nothing.
 */
uint64_t correlator_charge(struct correlator *c, uint64_t uj, enum energy_source source, uint64_t capacity_ns);

/* Ends tasks and runs that have been idle long enough. live: also emits LIVE records of tasks and runs. */
void correlator_tick(struct correlator *c, uint64_t now_ns, bool live);

/*
 * Numbers of tasks, runs and failures that are over but not reported as ended yet, since another program may still
 * join. A task is reported 1 s after its last program; a run 1 s after its driver, or 5 s after its last program if
 * it has no driver; a failure 1 s after it.
 */
struct correlator_held {
	uint64_t tasks;
	uint64_t runs;
	uint64_t failures;
};
void correlator_held(const struct correlator *c, uint64_t since_ns, struct correlator_held *ret);

/* Counts n kernel events that were lost; each run counts those lost since it began. */
void correlator_lose(struct correlator *c, uint64_t n);

/* Ends the run: emits END records of all tasks, then of the run. status: the wait(2) status of COMMAND. */
void correlator_run_end(struct correlator *c, uint64_t now_ns, int status);

/* Returns the number of processes that are known to be alive. */
size_t correlator_live(const struct correlator *c);
/* Calls fn for each live process. comm and exe are NULL if unknown. */
void correlator_each_live(const struct correlator *c,
    void (*fn)(uint32_t pid, const char *comm, const char *exe, void *arg), void *arg);

/* Returns the usage of all runs: of ended programs, and of live ones as of the last snapshot. */
struct usage correlator_attributed_usage(const struct correlator *c);
/* Returns the resident memory of the runs' live programs, in bytes, as of the last snapshot. */
uint64_t correlator_attributed_rss(const struct correlator *c);

/* A row of the table of `sluice run`: one per task and tool, in order of first start. */
struct summary_row {
	const char *task;	/* NULL: the driver and programs of no task */
	const char *sample;
	const char *tool;	/* NULL: shells and other glue */
	uint64_t programs;
	uint64_t failed;
	uint64_t wall_ns;	/* time in which at least one of them ran */
	struct usage usage;
	struct opt_u64 peak_memory_bytes;	/* of its programs together */
	struct bill bill;
	struct verdict verdict;
	enum bound bound;
	struct bound_shares shares;
};

/* Returns the number of rows. They are the correlator's, valid until its next call. */
size_t correlator_summary(struct correlator *c, const struct summary_row **ret_rows);

/* Totals of the host since this correlator was made; earlier agents are not included. */
struct run_totals {
	uint64_t programs;
	uint64_t failed;
	uint64_t live;
	uint64_t runs;		/* known now */
	uint64_t excluded;	/* programs that rules excluded here, not in the kernel */
	uint64_t lost_events;
	uint64_t lost_ends;	/* programs that disappeared without an end being seen; no lost event explains it */
	uint64_t refused;	/* processes above the limit of those known at once */
	uint64_t runs_refused;	/* likewise, or above their user's share, as the next two */
	uint64_t tasks_refused;
	uint64_t facts_refused;
	uint64_t texts_trimmed;	/* of programs whose user had used up the share of text */
	uint64_t texts_cut;	/* of programs, runs and tasks, for parts of which their budget had no room */
	uint64_t findings_left_out;	/* above the limits of findings.h */
	uint64_t peak_memory_bytes;	/* of all programs of a run together; 0: unknown, as that of a host */
	uint64_t failures_left_out;	/* failed programs whose cause may be missing in findings */
	uint64_t titles_left_out;	/* of seconds in which more were due than are read */
	uint64_t rules_gave_up;		/* programs, titles and cgroups with which all steps of the rules were spent */
	uint64_t wall_ns;
	struct usage usage;
};
/* Reads all processes. */
struct run_totals correlator_totals(const struct correlator *c, uint64_t now_ns);
/* Adds what of it was lost of each user's programs, as far as that is known, to a list of n, as user_losses_add(). */
size_t correlator_user_losses(const struct correlator *c, struct user_loss list[USER_LOSSES], size_t n);
/* Returns how many entries of the write-ahead log were lost for lack of memory; after one a checkpoint is due. */
uint64_t correlator_lost_entries(const struct correlator *c);

#endif
