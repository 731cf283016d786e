/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the correlator's tables, shared by the files of correlate/. No other folder includes it.
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
#include <utlist.h>

#include "base/arena.h"
#include "correlate/correlator.h"
#include "correlate/cputime.h"
#include "identify/engine.h"
#include "identify/place.h"

#define PROGRAM_ID_SIZE 64
#define TEXT_BUDGET_BYTES (64u << 20)	/* of arguments that are kept for END records */
#define CGROUPS_KNOWN_MAX 16384
#define CGROUPS_BYTES_MAX (8u << 20)	/* of paths, in total */
#define PROCESSES_MAX 65536		/* at once; the kernel side follows fewer */
#define GONE_MAX 8192			/* ended processes that are kept for children that never exec */
#define ROWS_MAX 10000
#define TASKS_MAX 100000
#define RUNS_MAX 4096
#define FACTS_MAX 100000
#define LOCATIONS_KEPT_MAX 256		/* without a process in them */
#define NAMES_MAX 4096			/* of engines, rules and evidence */
#define RUN_ID_SIZE 128

/* Whether a task's or run's failure is to be reported; see findings.h. */
enum failing {
	FAILING_NOT,
	FAILING_DUE,
	FAILING_OVER,			/* reported, or left out */
};

/* What is to be logged of an entity; NEWS_USAGE and NEWS_SHOWN are for processes only. */
enum news {
	NEWS_NONE,
	NEWS_USAGE,			/* sent and latest */
	NEWS_ALL,
	NEWS_SHOWN,			/* all, and a record was emitted */
};

/* Log state of an entity that has entries in the write-ahead log. */
struct mark {
	struct mark *prev, *next;	/* in its list in struct wal, while there is news */
	enum news news;			/* not logged yet */
	uint32_t logged_in;		/* checkpoint since which there are entries; 0: none */
};

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
};

struct process_id {
	uint64_t start_ns;
	uint64_t pid;
};

struct failure;				/* findings.h */
struct failures;

/* A program's names, in one block of memory: pointers, then all strings in the order of the members. */
struct text {
	unsigned refs;
	size_t size;			/* bytes of the block, for the budget */
	struct process_id logged_by;	/* the process whose entry contains it ... */
	uint32_t logged_in;		/* ... since this checkpoint; 0: none */
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct candidate_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;	/* of the environment; NULL: none */
	size_t n_variables;
	const char *tool_rule;		/* kept_name() */
	bool is_tool;			/* false: a shell or other glue */
	bool argv_truncated;
	const char *const *argv;	/* NULL: unknown, or over the budget */
	size_t argc;
	char block[];
};

/* A container, shared by its locations; the key is its id. */
struct container {
	UT_hash_handle hh;
	unsigned refs;			/* held by locations; without any it is freed */
	const char *runtime;		/* kept_name(); NULL unknown */
	bool is_reported;
	char *name;			/* owned, as its runtime reports it; NULL unknown */
	char *image;			/* owned, likewise */
	char id[];
};

/* Where programs run: the paths of their cgroups, and the job, container and limits that follow from them. */
struct location {
	UT_hash_handle hh;
	struct {
		uint64_t v2, v1;
	} key;
	uint64_t generation;		/* of the rules that judged it */
	bool is_known;			/* the paths were known then */
	unsigned refs;			/* held by processes; without any it is kept for a while if it is in the
					 * table */
	struct location *prev, *next;	/* while refs is 0 */
	struct place place;
	struct container *container;	/* a reference; NULL: none, or without an id */
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
};

/* One execution of a pipeline: by an engine, as a scheduler's job, or set by hand. */
struct run {
	UT_hash_handle hh;
	char id[RUN_ID_SIZE];		/* hash key */
	enum engine_strength strength;
	const char *engine;		/* kept_name(), like source */
	const char *source;
	double confidence;
	char *pipeline;			/* owned, as all strings here; NULL unknown */
	char *name;
	char *command;
	char *work_dir;
	char *root_dir;			/* the folder in which all its tasks work */
	char *scheduler;
	char *job_id;
	char *parent_id;
	char *task;			/* set by hand: the one task of all its programs */
	char *sample;
	struct opt_u64 uid;
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct process_id root;		/* its driver; pid 0: none */
	int32_t status;			/* wait(2) status of root */
	bool root_ended;
	bool has_status;		/* the end of root was seen */
	bool has_started;		/* START was emitted */
	bool has_ended;			/* END was emitted */
	const char *inner;		/* engine that drives a run set by hand; kept_name(); NULL: none */
	uint64_t start_ns;
	uint64_t idle_ns;		/* since when nothing refers to it; 0: unknown */
	uint64_t lost_before;		/* kernel events lost before it began */
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	enum failing failing;
	struct failure *failure;	/* of its root, a reference while due; NULL unknown */
	uint32_t findings;		/* emitted */
	uint32_t failed_tasks;		/* those with a finding that no later attempt made good */
	unsigned refs;			/* held by processes and tasks */
	struct mark mark;
};

/* A fact that a run published, under a key of its kind (enum fact_kind) and what it is about; see facts.c. */
struct fact {
	UT_hash_handle hh;
	struct run *run;
	uint32_t n;
	size_t len;
	char key[];
};

struct task {
	UT_hash_handle hh;
	UT_hash_handle by_id;		/* in tasks_by_id, if it has an id_key */
	uint64_t number;		/* hash key, a running number */
	struct process_id root;		/* first process */
	struct run *run;		/* a reference */
	char *id_key;			/* owned: run NUL task_id NUL attempt; NULL: found through its processes only */
	size_t id_key_len;
	char task_id[ENGINE_NAME_SIZE];
	char name[ENGINE_NAME_SIZE];	/* "" unknown */
	char sample[ENGINE_NAME_SIZE];	/* "" unknown */
	const char *engine;		/* kept_name() */
	const char *source;		/* kept_name() */
	double confidence;
	struct opt_i32 attempt;
	char *work_dir;			/* owned, as the next two; NULL unknown */
	char *scheduler;		/* of its first program, as job_id */
	char *job_id;
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	struct mark mark;
	unsigned refs;			/* held by processes */
	bool is_named;			/* by a rule: a program inside does not rename it */
	bool has_started;		/* START was emitted */
	bool has_ended;			/* END was emitted */
	bool root_ended;
	int32_t status;			/* wait(2) status of root */
	enum failing failing;
	struct failure *failure;	/* of its root, a reference while due; NULL unknown */
	uint32_t oom_kills;		/* programs that the kernel killed for lack of memory */
};

struct row {
	UT_hash_handle hh;
	char *key;			/* owned: task NUL sample NUL tool */
	size_t key_len;
	struct summary_row shown;
	struct work work;
};

/* Whether a program writes titles over its arguments; TITLES_UNKNOWN until the rules are asked. */
enum titles {
	TITLES_UNKNOWN,
	TITLES_NONE,
	TITLES_READ,
};

struct title {
	uint64_t hash;			/* of the title judged last; see correlator_title_hash() */
	uint64_t round;			/* round in which it was read last */
	bool is_taken;			/* a title attributed the program to a task or its engine */
	struct usage before;		/* usage of its program before the task that it is in now */
};

struct process {
	UT_hash_handle hh;
	struct process_id id;		/* hash key */
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
	bool is_announced;		/* START was emitted for the current program */
	bool is_driver;			/* programs that it forks are tasks */
	bool is_overhead;		/* its program is the engine's own: counted to no task */
	bool is_excluded;		/* its program is not recorded */
	bool is_inside;			/* it descends from an included one */
	bool is_engine;			/* its program drives a run */
	bool has_failed;		/* its last program failed, and has a struct failure */
	bool is_over;			/* END was emitted, the kernel's final state has not arrived */
	uint64_t gone_ns;		/* when the kernel freed it; kept for a while for children that never exec */
	bool is_base_known;		/* no exec was missed since the last one */
	bool was_usage_sent;
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
	struct usage_base base;
	struct usage latest;		/* of the current program, at the last snapshot */
	struct usage sent;		/* of the current program, at the last Usage record */
	uint64_t sent_ns;
	struct process *prev_gone, *next_gone;	/* while gone_ns != 0, but not during a replay */
	struct mark mark;
	bool is_text_logged;		/* its entries contain the current text */
	enum titles titles;
	struct title *title;		/* owned; NULL: none was read */
};

struct cgroup_path {
	UT_hash_handle hh;
	struct {
		uint64_t id;
		uint64_t is_v2;
	} key;
	struct opt_double cpus;		/* its limits */
	struct opt_u64 memory_bytes;
	char path[];
};

/* A name that outlives the rules that contain it; restored names are kept here too. */
struct kept_name {
	UT_hash_handle hh;
	char text[];
};

enum replay_state {
	REPLAY_NONE,			/* no BEGIN was replayed */
	REPLAY_OURS,
	REPLAY_STALE,			/* entries of another boot or run */
};

/* Order in which entities are logged: one is logged after those that it refers to. */
enum marked {
	MARKED_RUNS,
	MARKED_TASKS,
	MARKED_PROCESSES,
	MARKED_FAILURES,
	MARKED_KINDS,
};

/* State of the write-ahead log, for wal.c and replay.c. */
struct wal {
	uint8_t *buffer;		/* owned: the entry that is being written */
	size_t size;
	bool has_begun;			/* a BEGIN was logged, or replayed */
	bool is_replaying;
	uint32_t checkpoint;		/* counted from 1 */
	struct mark *marked[MARKED_KINDS];	/* first marked first */
	bool has_marked;		/* false: nothing to log since the last flush */
	bool has_lost;			/* losses are to be logged */
	uint64_t lost;
	enum replay_state replay;
	struct replayed replayed;
};

struct correlator {
	struct correlator_options options;	/* strings owned */
	struct correlator_ops ops;
	void *arg;
	struct ruleset *rules;		/* a reference */
	struct redaction *redaction;	/* owned; NULL: the shipped patterns */
	int64_t clock_ns;		/* CLOCK_BOOTTIME to wall clock */
	struct process *processes;
	struct run *runs;
	struct run *whole;		/* the run of `sluice run`, which has everything seen; NULL: the whole host */
	struct task *tasks;
	struct task *tasks_by_id;
	uint64_t next_task;
	struct fact *facts;
	struct failure *failures;
	uint64_t findings_due;		/* of tasks and runs */
	uint64_t findings_left_out;	/* above a limit, as the next */
	uint64_t failures_left_out;
	uint64_t minute;		/* in which findings_in_minute counts, for programs in no run */
	uint32_t findings_in_minute;
	struct row *rows;
	struct location *locations;
	struct location *idle_locations;	/* idle longest first */
	size_t n_idle_locations;
	struct container *containers;
	struct cgroup_path *cgroups;	/* least recently used first */
	size_t cgroup_bytes;
	struct kept_name *names;
	struct process *gone;		/* ended processes, first ended first */
	size_t gone_count;
	struct arena arena;		/* text of the current event */
	size_t text_bytes;
	struct work all;		/* programs: of the host; sums: of programs in a run */
	uint64_t start_ns;
	uint64_t lost_events;
	uint64_t lost_ends;
	uint64_t excluded;
	uint64_t pass;
	uint64_t title_round;		/* rounds in which all titles were read once */
	bool pass_with_usage;
	struct summary_row *summary;	/* owned */
	uint64_t refused;
	uint64_t runs_refused;
	struct wal wal;
};

/* state.c */

/* Returns a time since boot as microseconds since 1970. */
int64_t state_wall_us(const struct correlator *c, uint64_t boot_ns);
/* Returns a copy of name that lives as long as c; NULL if name is NULL or there is no room for another. */
const char *kept_name(struct correlator *c, const char *name);
/* Replaces *to with a copy of text, which may be NULL. 0, or -ENOMEM with nothing changed. */
int state_set_string(char **to, const char *text);
void program_id_format(const struct correlator *c, const struct program_key *key,
    char out[PROGRAM_ID_SIZE]);

/* Each find function returns NULL if there is no such entry. */
struct process *process_find(struct correlator *c, uint64_t start_ns, uint64_t pid);
struct process *process_of(struct correlator *c, const struct program_key *key);
struct task *task_find(struct correlator *c, uint64_t number);
struct run *run_find(struct correlator *c, const char *id);
/* Makes a process; NULL if there is no room, which is counted. */
struct process *process_new(struct correlator *c, const struct process_id *id);
struct run *run_get(struct correlator *c, const char *id);

/* process.c */
/* Returns the nearest recorded program among parent and its ancestors. */
struct program_key process_above(struct correlator *c, const struct program_key *parent);
struct process *process_add(struct correlator *c, const struct program_key *self,
    const struct program_key *parent, const struct program_key *anchor);
void process_remove(struct correlator *c, struct process *p);
void process_forget(struct correlator *c, struct process *p);	/* logs the removal and removes p */
void process_set_text(struct correlator *c, struct process *p, struct text *t);	/* takes a reference over */
void process_gone(struct correlator *c, struct process *p);	/* queues p as ended */

/*
 * wal.c: changes are marked, and logged by wal_flush() at the end of each call. Without a write-ahead log, and
 * during a replay, nothing is marked.
 */
static inline bool
wal_is_on(const struct correlator *c)
{
	return c->ops.wal != NULL && !c->wal.is_replaying;
}
/* Marks an entity as changed. */
void wal_mark(struct correlator *c, enum marked kind, struct mark *m, enum news news);
void wal_run(struct correlator *c, struct run *r);		/* r may be NULL */
void wal_losses(struct correlator *c);
/* Logs a cgroup at once. */
void wal_cgroup(struct correlator *c, const struct cgroup_path *g);
void wal_fact(struct correlator *c, const struct fact *f);
/* Logs that p is removed, at once, before it is freed; likewise the next two. */
void wal_forget(struct correlator *c, struct process *p);
void wal_forget_task(struct correlator *c, struct task *t);
void wal_forget_run(struct correlator *c, struct run *r);
/* Clears a failure's mark. There is no entry: a replay frees the failure with its last reference. */
void wal_forget_failure(struct correlator *c, struct mark *m);
void wal_flush(struct correlator *c);
void wal_done(struct correlator *c);

static inline void
wal_process(struct correlator *c, struct process *p, enum news news)
{
	wal_mark(c, MARKED_PROCESSES, &p->mark, news);
}

static inline void
wal_task(struct correlator *c, struct task *t)
{
	wal_mark(c, MARKED_TASKS, &t->mark, NEWS_ALL);
}

/* cgroups.c */
/* Returns a cgroup's path; NULL if it is not known or id is 0. Valid until the next cgroup event. */
struct cgroup_path *cgroup_find(struct correlator *c, uint64_t id, bool is_v2);
/* Returns a cgroup's path for a record, like cgroup_find(), and marks it as used: unused ones are dropped first. */
struct cgroup_path *cgroup_use(struct correlator *c, uint64_t id, bool is_v2);
/* Adds a path (UTF-8); drops the least used ones if there is no room. NULL: known already, or no memory. */
struct cgroup_path *cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len);

/* location.c */
/* Returns a reference to the location of these cgroups; NULL: both ids are 0, or no memory. */
struct location *location_of(struct correlator *c, uint64_t cgroup_v2, uint64_t cgroup_v1);
/* Refines a location by a program's own arguments; takes over the reference to l and returns one. */
struct location *location_refine(struct correlator *c, struct location *l, const struct candidate *s);
/*
 * Adds what arguments showed of from, the location of the parent or of the replaced program; takes over the
 * reference to l.
 */
struct location *location_inherit(struct correlator *c, struct location *l, const struct location *from);
struct location *location_ref(struct location *l);		/* l may be NULL */
void location_unref(struct correlator *c, struct location *l);	/* l may be NULL */
/* Sets p's location from its cgroups and its parent's location; must precede location_refine() after an exec. */
void location_set(struct correlator *c, struct process *p, const struct process *parent, bool has_execed);
/*
 * Return the name or image of the container at l, from the runtime or else from arguments; NULL: unknown, or no
 * container. l may be NULL.
 */
const char *location_name(const struct location *l);
const char *location_image(const struct location *l);
void locations_free(struct correlator *c);

/* containers.c */
/* Returns a reference to the container of this place; NULL: it has no id, or no memory. */
struct container *container_get(struct correlator *c, const struct place *place);
void container_unref(struct correlator *c, struct container *k);	/* k may be NULL */

/* life.c */
/* Ends p without its end record: that was lost, or p lives on unseen. */
void process_lose(struct correlator *c, struct process *p, uint64_t end_ns);
/* Ends all processes that the last pass did not see; no records of their ends will arrive. */
void processes_lose_unseen(struct correlator *c, uint64_t now_ns);

/* program_record.c */
/* Fills the head that all records on a program share; strings belong to p and c. */
void program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head);
void program_identity_fill(const struct correlator *c, const struct process *p,
    struct program_identity *id, char self[PROGRAM_ID_SIZE], char parent[PROGRAM_ID_SIZE]);
void program_emit(struct correlator *c, const struct process *p, struct program_record *r);
void program_show(struct correlator *c, const struct process *p,
    void (*fn)(const struct program_record *r, void *arg), void *arg);

/* program_text.c */
/* The parts of a program's text. */
struct text_parts {
	const char *const *argv;	/* NULL unknown */
	size_t argc;
	bool argv_truncated;
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct candidate_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;
	size_t n_variables;
	const char *tool_rule;		/* not copied: a kept_name() */
	bool is_tool;
};
struct text *program_text_of(struct correlator *c, const struct text_parts *parts);	/* keeps the budget */
/*
 * Makes the text of a program that exec'd. *ret is filled with all arguments, also those that are not kept; valid
 * until the arena is used again. known: text of the same program from before, for an exe and a cwd that s lacks;
 * NULL: none.
 */
struct text *program_text_new(struct correlator *c, const struct exec_event *s, const struct text *known,
    struct candidate *ret);
struct text *program_text_ref(struct text *t);
void program_text_unref(struct correlator *c, struct text *t);	/* t may be NULL */

/* Fills s with a program as the rules see it, from what is kept of it. */
void program_candidate(struct correlator *c, const struct process *p, struct candidate *s);
/* Fills s like program_candidate(), as if the program had the text x. */
void program_candidate_of(struct correlator *c, const struct process *p, const struct text *x, struct candidate *s);
/* Fills only the place and user in s. */
void program_candidate_context(struct correlator *c, const struct process *p, struct candidate *s);

/* work.c */
void work_begin(struct work *w, uint64_t now_ns);	/* one more is live */
void work_end(struct work *w, uint64_t now_ns);		/* one fewer */
void work_add(struct work *w, const struct usage *usage, bool has_failed, uint64_t end_ns);
void work_record_fill(const struct correlator *c, const struct run *run, const struct work *w,
    uint64_t now_ns, const struct usage *usage, struct work_record *r);
void work_set_status(struct work_record *r, int status);
/* account.c */
/* Adds p's program to the sums of its task, run, row and the host. */
void account_enter(struct correlator *c, struct process *p, uint64_t at_ns);
/* Takes p's program out of the sums as if it had never been added, since it belongs elsewhere. */
void account_withdraw(struct correlator *c, struct process *p);
void account_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns);
/* Leave or enter the task alone, when p changes task or is_overhead within its run; p->title must be set. */
void account_leave_task(struct correlator *c, struct process *p, uint64_t now_ns);
void account_enter_task(struct correlator *c, struct process *p, uint64_t since_ns, uint64_t at_ns);

/* runs.c */
void run_release(struct correlator *c, struct run *r);		/* drops a reference; r may be NULL */
void run_assign(struct correlator *c, struct process *p, struct run *r);	/* r NULL: none; drops p's task too */
void run_emit(struct correlator *c, struct run *r, enum record_phase phase, uint64_t now_ns);
/* Sets the evidence from which a run was made, and the confidence in it: 0 to 1. */
void run_set_origin(struct correlator *c, struct run *r, enum engine_strength strength, const char *source,
    double confidence);
/* Marks a run as made by hand: with "sluice run" or "sluice ctl tag", the source. */
void run_set_by_hand(struct correlator *c, struct run *r, const char *source);
/* Adds a program to the run from start_ns on; the first emits its START. */
void run_joined(struct correlator *c, struct run *r, uint64_t start_ns, uint64_t at_ns);
/* Records the end of the run's driver. status: its wait(2) status; NULL: unknown. */
void run_root_ended(struct correlator *c, struct run *r, const int32_t *status);
/* Returns true if neither the run's driver nor any other program of it runs. */
bool run_is_idle(const struct run *r);
void runs_tick(struct correlator *c, uint64_t now_ns, bool live);
/* Sums the live programs of runs and tasks: before LIVE records, and before END records while programs still run. */
void runs_sum_live(struct correlator *c);
void run_free(struct correlator *c, struct run *r);		/* and its facts; no reference may remain */
void runs_free(struct correlator *c);

/*
 * facts.c: facts of a run about programs that do not descend from it. engine, root, task_id and names as in struct
 * engine_verdict. The find functions return NULL if no run has published the fact.
 */
void fact_add_root(struct correlator *c, struct run *r, const char *engine, const char *root);
struct run *fact_find_root(struct correlator *c, const char *engine, const char *root);
void fact_add_claim(struct correlator *c, struct run *r, const char *engine, const char *root, const char *task_id);
struct run *fact_find_claim(struct correlator *c, const char *engine, const char *root, const char *task_id);
/* Returns the number of the next attempt for a task of this name and sample: from 1, counting failed ones. */
int32_t fact_attempt(struct correlator *c, const struct run *r, const char *task, const char *sample);
void fact_add_failure(struct correlator *c, struct run *r, const char *task, const char *sample);
struct fact *fact_get(struct correlator *c, struct run *r, const char *key, size_t len);	/* NULL: no room */
void facts_forget(struct correlator *c, const struct run *r);	/* r NULL: facts of all runs */

/* tasks.c */
struct task *task_find_id(struct correlator *c, const struct run *r, const char *task_id, struct opt_i32 attempt);
struct task *task_new(struct correlator *c, struct run *r, uint64_t number);	/* NULL: no room */
void task_set_id_key(struct correlator *c, struct task *t);	/* by run, task_id and attempt */
void task_unset_id_key(struct correlator *c, struct task *t);
void task_assign(struct correlator *c, struct process *p, struct task *t);	/* t NULL: none */
void task_reap(struct correlator *c, struct task *t);	/* frees a task that is over and has no references */
/* Adds a program to the task; the first emits its START. */
void task_joined(struct correlator *c, struct task *t, uint64_t at_ns);
/* Emits the task's END. */
void task_end(struct correlator *c, struct task *t, uint64_t now_ns);
/* Records the end of the task's first program. status: its wait(2) status. */
void task_root_ended(struct correlator *c, struct task *t, int32_t status);
/* Records a failed attempt of the task. Later ones count one more, also those that began before this was reported. */
void task_failed(struct correlator *c, struct task *t, uint64_t end_ns);
void tasks_tick(struct correlator *c, uint64_t now_ns, bool live);
void tasks_free(struct correlator *c);

/* attribute.c, attribute_run.c: whose work a program is. */
/*
 * Sets run, task and location of a program that has exec'd, and what follows from the rules. parent: from
 * attribute_parent(); before: the text of the program that it replaced, NULL: none; s: from program_text_new().
 */
void attribute_exec(struct correlator *c, struct process *p, struct process *parent, const struct text *before,
    struct candidate *s);
void attribute_fork(struct correlator *c, struct process *p, struct process *parent);
void attribute_by_hand(struct correlator *c, struct process *p);	/* after its run was set */
/*
 * Returns the process that p descends from, for its task: its parent or, where that was never seen, an entry made
 * for it; NULL: none is known.
 */
struct process *attribute_parent(struct correlator *c, const struct process *p);
/* Attributes p's program by the title that it wrote, which s has in place of arguments. */
void attribute_title(struct correlator *c, struct process *p, struct process *parent, const struct candidate *s,
    uint64_t now_ns);

/* title.c */
struct title *title_of(struct process *p);	/* makes one if there is none; NULL: no memory */
void title_forget(struct process *p);
/* Returns the part of the usage of p's program that belongs to its current task. */
struct usage title_usage(const struct process *p, const struct usage *usage);

/* rows.c: the table of `sluice run` */
struct row *row_of(struct correlator *c, const struct process *p);
void rows_free(struct correlator *c);

#endif
