/*
 * SPDX-License-Identifier: Apache-2.0
 * state: what the files of correlate/ share: the correlator's tables. No other folder includes it.
 *
 *   process ──► text        what it runs (shared with the children that never exec)
 *      │
 *      ├──────► location    where it runs: job, container, limits
 *      ├──────► task ──► run     whose work it is; each with its sums
 *      └──────► row         one a task name and tool, for the table of `sluice run`
 *
 *   fact ──► run            what a run has said of tasks that are yet to come
 *   failure ──► failure     of a program that ended badly: whose it passed on; see findings.h
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
#define TEXT_BUDGET_BYTES (64u << 20)	/* of argv that is kept for END records */
#define CGROUPS_KNOWN_MAX 16384
#define CGROUPS_BYTES_MAX (8u << 20)	/* of their paths */
#define PROCESSES_MAX 65536		/* known at once; the kernel side follows fewer */
#define GONE_MAX 8192			/* of those, ended, and kept for children that never exec */
#define ROWS_MAX 10000
#define TASKS_MAX 100000
#define RUNS_MAX 4096
#define FACTS_MAX 100000
#define LOCATIONS_KEPT_MAX 256		/* that nobody runs in any more */
#define NAMES_MAX 4096			/* of engines, rules and evidence */
#define RUN_ID_SIZE 128

/* Is its failure to be told? See findings.h. */
enum failing {
	FAILING_NOT,
	FAILING_DUE,
	FAILING_OVER,			/* told, or left out */
};

/* What is to be logged of a thing; of a process more than that. */
enum news {
	NEWS_NONE,
	NEWS_USAGE,			/* sent, latest */
	NEWS_ALL,
	NEWS_SHOWN,			/* all, and a record was made of it */
};

/* What the write-ahead log keeps of each thing that it has entries of. */
struct mark {
	struct mark *prev, *next;	/* while there is news */
	enum news news;			/* since its last entry */
	uint32_t logged_in;		/* the checkpoint since which there are entries; 0: none */
};

/* Sums over some programs, and when any of them ran. */
struct work {
	struct usage done;		/* of ended programs */
	uint64_t programs;
	uint64_t failed;
	uint64_t live;
	uint64_t start_ns;
	uint64_t last_ns;		/* the latest end of any */
	uint64_t end_ns;		/* that, when live last fell to 0 */
	uint64_t busy_ns;		/* with live > 0, up to end_ns */
	uint64_t busy_since_ns;		/* while live > 0 */
};

struct process_id {
	uint64_t start_ns;
	uint64_t pid;
};

struct failure;				/* findings.h */
struct failures;

/* A program's names, in one block of memory: pointers, then all strings in the order below. */
struct text {
	unsigned refs;
	size_t size;			/* of the block, towards the budget */
	struct process_id logged_by;	/* whose entry holds it ... */
	uint32_t logged_in;		/* ... since this checkpoint; 0: nobody's */
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct subject_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;	/* of the environment; NULL none */
	size_t n_variables;
	const char *tool_rule;		/* kept_name() */
	bool is_tool;			/* not a shell or glue */
	bool argv_truncated;
	const char *const *argv;	/* NULL unknown, or over the budget */
	size_t argc;
	char block[];
};

/* What locations are in, by its id. */
struct container {
	UT_hash_handle hh;
	unsigned refs;			/* of locations; without any it is forgotten */
	const char *runtime;		/* kept_name(); NULL unknown */
	bool is_reported;
	char *name;			/* owned, as its runtime tells it; NULL unknown */
	char *image;			/* likewise */
	char id[];
};

/* Where programs run: the paths of their cgroups, and what these say. */
struct location {
	UT_hash_handle hh;
	struct {
		uint64_t v2, v1;
	} key;
	uint64_t generation;		/* of the rules that judged it */
	bool is_known;			/* a path of it was known then */
	unsigned refs;			/* of processes; without any it is kept a while, if it is in the table */
	struct location *prev, *next;	/* while refs is 0 */
	struct place place;
	struct container *container;	/* counted there; NULL: none, or without an id */
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
};

/* An execution of a pipeline: of an engine, a scheduler's job, or by hand. */
struct run {
	UT_hash_handle hh;
	char id[RUN_ID_SIZE];		/* the key */
	enum engine_strength strength;
	const char *engine;		/* kept_name(), as is source */
	const char *source;
	double confidence;
	char *pipeline;			/* owned, as all strings here; NULL unknown */
	char *name;
	char *command;
	char *work_dir;
	char *root_dir;			/* in which all its tasks work */
	char *scheduler;
	char *job_id;
	char *parent_id;
	char *task;			/* by hand: all programs are this task's */
	char *sample;
	struct opt_u64 uid;
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct process_id root;		/* its driver; pid 0: it has none */
	int32_t status;			/* of that */
	bool root_ended;
	bool has_status;		/* its end was seen */
	bool has_started;		/* START was sent */
	bool has_ended;			/* END was sent */
	const char *inner;		/* by hand, and an engine drives it: that; kept_name() */
	uint64_t start_ns;
	uint64_t idle_ns;		/* since when nobody refers to it */
	uint64_t lost_before;		/* kernel events that were lost before it began */
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	enum failing failing;
	struct failure *failure;	/* of its root, counted there, while that is due; NULL unknown */
	uint32_t findings;		/* that were told */
	uint32_t failed_tasks;		/* with a finding each, and not made good by a later attempt */
	unsigned refs;			/* processes and tasks */
	struct mark mark;
};

/* What a run has said, by a key that says what it is about. */
struct fact {
	UT_hash_handle hh;
	struct run *run;
	uint32_t n;
	size_t len;
	char key[];
};

struct task {
	UT_hash_handle hh;
	UT_hash_handle by_id;		/* of those that have a key there */
	uint64_t number;		/* the key: counted */
	struct process_id root;		/* the process that it began with */
	struct run *run;		/* counted there */
	char *id_key;			/* owned: run NUL task_id NUL attempt; NULL: found by its processes only */
	size_t id_key_len;
	char task_id[ENGINE_NAME_SIZE];
	char name[ENGINE_NAME_SIZE];	/* "" unknown */
	char sample[ENGINE_NAME_SIZE];	/* "" unknown */
	const char *engine;		/* kept_name() */
	const char *source;		/* likewise */
	double confidence;
	struct opt_i32 attempt;
	char *work_dir;			/* owned, as the next two; NULL unknown */
	char *scheduler;		/* where its first program ran */
	char *job_id;
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	struct mark mark;
	unsigned refs;			/* processes that point here */
	bool is_named;			/* by a rule: a program inside does not rename it */
	bool has_started;		/* START was sent */
	bool has_ended;			/* END was sent */
	bool root_ended;
	int32_t status;			/* of the root */
	enum failing failing;
	struct failure *failure;	/* as a run's */
	uint32_t oom_kills;		/* programs that the kernel killed for want of memory */
};

struct row {
	UT_hash_handle hh;
	char *key;			/* owned: task NUL sample NUL tool */
	size_t key_len;
	struct summary_row shown;
	struct work work;
};

/* Does its program write titles over its arguments? Asked of the rules when that is wanted. */
enum titles {
	TITLES_UNKNOWN,
	TITLES_NONE,
	TITLES_READ,
};

struct title {
	uint64_t hash;			/* of what was judged last */
	uint64_t round;			/* in which it was read last */
	bool is_taken;			/* one gave it to a task, or to its engine */
	struct usage before;		/* of its program: before the task that it is in now */
};

struct process {
	UT_hash_handle hh;
	struct process_id id;		/* the key */
	struct program_key self;	/* of the program that it runs now */
	struct program_key parent;
	struct program_key anchor;
	struct program_key above;	/* the nearest program with a record that its own descends from; pid 0: none */
	uint32_t ppid;
	int64_t start_us;
	int64_t program_start_us;
	uint64_t program_start_ns;
	int64_t observed_us;		/* when the program was found running; 0: we saw it start */
	struct program_context context;
	bool has_context;
	bool is_forked;			/* has not exec'd */
	bool is_announced;		/* START was sent for the current program */
	bool is_driver;			/* what it forks are tasks */
	bool is_overhead;		/* its program is the engine's own doing: counted to no task */
	bool is_excluded;		/* its program has no record */
	bool is_inside;			/* it descends from an included one */
	bool is_engine;			/* its program drives a run */
	bool has_failed;		/* its last program ended badly, and is a struct failure */
	bool is_over;			/* END was sent, the kernel's last word is yet to come */
	uint64_t gone_ns;		/* the kernel let go of it; kept a while for children that never exec */
	bool is_base_known;		/* no exec was missed since the last one */
	bool was_usage_sent;
	uint64_t unseen_since_ns;	/* passes of the iterator have not met it since; 0: the last did */
	uint64_t pass;			/* the last that did */
	uint64_t ending_in;		/* the last that found a child of it ended and not told; 0: none did */
	struct text *text;		/* NULL: nothing known */
	struct location *location;	/* NULL unknown */
	struct run *run;		/* NULL: none */
	struct task *task;		/* of run; NULL: none */
	struct row *row;		/* while announced */
	uint64_t child_begin_ns;	/* the latest, of the children that its program started */
	struct failures *failures;	/* owned; NULL: none */
	struct usage_base base;
	struct usage latest;		/* of the current program, at the last snapshot */
	struct usage sent;		/* of the current program, at the last Usage record */
	uint64_t sent_ns;
	struct process *prev_gone, *next_gone;	/* while gone_ns != 0, and no write-ahead log is replayed */
	struct mark mark;
	bool is_text_logged;		/* its entries hold the text that it has now */
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

/* A word that outlives the rules which had it, and the life before. */
struct kept_name {
	UT_hash_handle hh;
	char text[];
};

enum replay_state {
	REPLAY_NONE,			/* no beginning was seen */
	REPLAY_OURS,
	REPLAY_STALE,			/* entries of another boot or run */
};

/* In the order in which they are logged: whatever refers to another stands behind it. */
enum marked {
	MARKED_RUNS,
	MARKED_TASKS,
	MARKED_PROCESSES,
	MARKED_FAILURES,
	MARKED_KINDS,
};

/* wal.c and replay.c */
struct wal {
	uint8_t *buffer;		/* owned: the entry under way */
	size_t size;
	bool has_begun;			/* a beginning was logged, or replayed */
	bool is_replaying;
	uint32_t checkpoint;		/* counted from 1 */
	struct mark *marked[MARKED_KINDS];	/* first marked first */
	bool has_marked;		/* since the last flush: else nothing is to be logged */
	bool has_lost;			/* to be logged */
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
	int64_t clock_ns;		/* wall minus boot */
	struct process *processes;
	struct run *runs;
	struct run *whole;		/* of `sluice run`: all that we see is its; NULL: the whole host */
	struct task *tasks;
	struct task *tasks_by_id;
	uint64_t next_task;
	struct fact *facts;
	struct failure *failures;
	uint64_t findings_due;		/* tasks and runs */
	uint64_t findings_left_out;	/* beyond a limit, as the next */
	uint64_t failures_left_out;
	uint64_t minute;		/* in which findings of programs in no run are counted */
	uint32_t findings_in_minute;
	struct row *rows;
	struct location *locations;
	struct location *idle_locations;	/* idle longest first */
	size_t n_idle_locations;
	struct container *containers;
	struct cgroup_path *cgroups;	/* least recently used first */
	size_t cgroup_bytes;
	struct kept_name *names;
	struct process *gone;		/* first gone first */
	size_t gone_count;
	struct arena arena;		/* of the text under way */
	size_t text_bytes;
	struct work all;		/* programs of the host, in runs or not; sums of those that are in any */
	uint64_t start_ns;
	uint64_t lost_events;
	uint64_t lost_ends;
	uint64_t excluded;
	uint64_t pass;
	uint64_t title_round;		/* in each of which all titles are read once */
	bool pass_with_usage;
	struct summary_row *summary;	/* owned */
	uint64_t refused;
	uint64_t runs_refused;
	struct wal wal;
};

/* state.c */

/* A time since boot as microseconds since 1970. */
int64_t state_wall_us(const struct correlator *c, uint64_t boot_ns);
/* name as a string that lives as long as c; NULL for NULL, and where there is no room for another. */
const char *kept_name(struct correlator *c, const char *name);
/* A copy in place of what is at *to; NULL is a value too. 0 or -ENOMEM, with nothing changed. */
int state_set_string(char **to, const char *text);
void program_id_format(const struct correlator *c, const struct program_key *key,
    char out[PROGRAM_ID_SIZE]);

/* Each NULL: not known. */
struct process *process_find(struct correlator *c, uint64_t start_ns, uint64_t pid);
struct process *process_of(struct correlator *c, const struct program_key *key);
struct task *task_find(struct correlator *c, uint64_t number);
struct run *run_find(struct correlator *c, const char *id);
/* Each makes an entry of its table, run_get() where there is none yet. NULL: no room, counted. */
struct process *process_new(struct correlator *c, const struct process_id *id);
struct run *run_get(struct correlator *c, const char *id);

/* process.c */
/* The nearest program with a record, of parent and those that it descends from. */
struct program_key process_above(struct correlator *c, const struct program_key *parent);
struct process *process_add(struct correlator *c, const struct program_key *self,
    const struct program_key *parent, const struct program_key *anchor);
void process_remove(struct correlator *c, struct process *p);
void process_forget(struct correlator *c, struct process *p);	/* logged, and removed */
void process_set_text(struct correlator *c, struct process *p, struct text *t);	/* takes t over */
void process_gone(struct correlator *c, struct process *p);	/* to the end of the line */

/*
 * wal.c: what changed is marked, and logged by wal_flush() at the end of each call. Without
 * a write-ahead log, and while one is replayed, nothing is marked.
 */
static inline bool
wal_is_on(const struct correlator *c)
{
	return c->ops.wal != NULL && !c->wal.is_replaying;
}
/* There is news of the thing of this mark. */
void wal_mark(struct correlator *c, enum marked kind, struct mark *m, enum news news);
void wal_run(struct correlator *c, struct run *r);		/* NULL is fine */
void wal_losses(struct correlator *c);
/* At once, and a fact's run before it. */
void wal_cgroup(struct correlator *c, const struct cgroup_path *g);
void wal_fact(struct correlator *c, const struct fact *f);
/* At once: it will be freed. */
void wal_forget(struct correlator *c, struct process *p);
void wal_forget_task(struct correlator *c, struct task *t);
void wal_forget_run(struct correlator *c, struct run *r);
void wal_forget_failure(struct correlator *c, struct mark *m);	/* without an entry: it goes with who holds it */
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

/* cgroups.c: NULL where the path is not known, or id is 0; valid until the next cgroup event */
struct cgroup_path *cgroup_find(struct correlator *c, uint64_t id, bool is_v2);
/* For a record: the same, and those that are not used go first when there is no room. */
struct cgroup_path *cgroup_use(struct correlator *c, uint64_t id, bool is_v2);
/* Forgets those used least where there is no room; path is UTF-8. NULL: known already, or no memory. */
struct cgroup_path *cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len);

/* location.c: a reference to where these cgroups are; NULL: nowhere, or no memory */
struct location *location_of(struct correlator *c, uint64_t cgroup_v2, uint64_t cgroup_v1);
/* The same for what a program's own arguments say beside its cgroups; takes and gives a reference. */
struct location *location_refine(struct correlator *c, struct location *l, const struct subject *s);
/* What from, that forked it or that it replaced, knew from arguments; l's reference is taken over. */
struct location *location_inherit(struct correlator *c, struct location *l, const struct location *from);
struct location *location_ref(struct location *l);		/* NULL is fine */
void location_unref(struct correlator *c, struct location *l);	/* likewise */
/* Where p is, by its cgroups and by who started it; before location_refine() of one that has exec'd. */
void location_set(struct correlator *c, struct process *p, const struct process *parent, bool has_execed);
/* Of its container, as the runtime or else arguments tell it; NULL: unknown, or it is in none. l may be NULL. */
const char *location_name(const struct location *l);
const char *location_image(const struct location *l);
void locations_free(struct correlator *c);

/* containers.c: a reference to the container of this place; NULL: it has no id, or no memory */
struct container *container_get(struct correlator *c, const struct place *place);
void container_unref(struct correlator *c, struct container *k);	/* NULL is fine */

/* life.c: no more is heard of it: it ended, or lives on unseen. */
void process_lose(struct correlator *c, struct process *p, uint64_t end_ns);
/* Whom the last pass did not meet is not alive, and no record of its end will come any more. */
void processes_lose_unseen(struct correlator *c, uint64_t now_ns);

/* program_record.c: fills what is the same in each record on a program; strings are p's and c's */
void program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head);
void program_identity_fill(const struct correlator *c, const struct process *p,
    struct program_identity *id, char self[PROGRAM_ID_SIZE], char parent[PROGRAM_ID_SIZE]);
void program_emit(struct correlator *c, const struct process *p, struct program_record *r);
void program_show(struct correlator *c, const struct process *p,
    void (*fn)(const struct program_record *r, void *arg), void *arg);

/* program_text.c: what a program is called */
struct text_parts {
	const char *const *argv;	/* NULL unknown */
	size_t argc;
	bool argv_truncated;
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct subject_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;
	size_t n_variables;
	const char *tool_rule;		/* not copied: a kept_name() */
	bool is_tool;
};
struct text *program_text_of(struct correlator *c, const struct text_parts *parts);	/* within the budget */
/*
 * *ret: with all arguments, also those that are not to be kept; valid until the arena is used again. known:
 * what was told of the same program before, for an exe and a cwd that s has not; NULL nothing.
 */
struct text *program_text_new(struct correlator *c, const struct exec_event *s, const struct text *known,
    struct subject *ret);
struct text *program_text_ref(struct text *t);
void program_text_unref(struct correlator *c, struct text *t);	/* NULL is fine */

/* A program as the rules see it, from what is kept of it. */
void program_subject(struct correlator *c, const struct process *p, struct subject *s);
/* The same, had it this text. */
void program_subject_of(struct correlator *c, const struct process *p, const struct text *x, struct subject *s);
/* Where and as whom it runs. */
void program_subject_context(struct correlator *c, const struct process *p, struct subject *s);

/* work.c: sums */
void work_begin(struct work *w, uint64_t now_ns);	/* one more is live */
void work_end(struct work *w, uint64_t now_ns);		/* one fewer */
void work_add(struct work *w, const struct usage *usage, bool has_failed, uint64_t end_ns);
void work_record_fill(const struct correlator *c, const struct run *run, const struct work *w,
    uint64_t now_ns, const struct usage *usage, struct work_record *r);
void work_set_status(struct work_record *r, int status);
/* account.c: what a program is to the sums of its task, its run, its row and the host */
void account_enter(struct correlator *c, struct process *p, uint64_t at_ns);
/* As if it had never entered: it is another's. */
void account_withdraw(struct correlator *c, struct process *p);
void account_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns);
/* Its task's part alone, around a change of task and is_overhead within its run; p->title is there. */
void account_leave_task(struct correlator *c, struct process *p, uint64_t now_ns);
void account_enter_task(struct correlator *c, struct process *p, uint64_t since_ns, uint64_t at_ns);

/* runs.c */
void run_release(struct correlator *c, struct run *r);		/* one reference less; NULL is fine */
void run_assign(struct correlator *c, struct process *p, struct run *r);	/* NULL: none; its task goes */
void run_emit(struct correlator *c, struct run *r, enum record_phase phase, uint64_t now_ns);
/* By which evidence it is a run, and how sure that is: 0 to 1. */
void run_set_origin(struct correlator *c, struct run *r, enum engine_strength strength, const char *source,
    double confidence);
/* It is one because somebody said so. */
void run_set_by_hand(struct correlator *c, struct run *r, const char *source);
/* One more program is in it, from start_ns on: the first is its START. */
void run_joined(struct correlator *c, struct run *r, uint64_t start_ns, uint64_t at_ns);
/* Its driver has ended. status: wait(2)'s; NULL: nobody knows. */
void run_root_ended(struct correlator *c, struct run *r, const int32_t *status);
/* Neither its driver nor any other program of it runs. */
bool run_is_idle(const struct run *r);
void runs_tick(struct correlator *c, uint64_t now_ns, bool live);
void runs_sum_live(struct correlator *c);	/* tasks too; before LIVE records, and ENDs of what goes on */
void run_free(struct correlator *c, struct run *r);		/* its facts too; nobody may refer to it */
void runs_free(struct correlator *c);

/*
 * facts.c: what a run has said of programs that will not descend from it. engine, root, task_id and
 * names as in struct engine_verdict; NULL: nobody has.
 */
void fact_add_root(struct correlator *c, struct run *r, const char *engine, const char *root);
struct run *fact_find_root(struct correlator *c, const char *engine, const char *root);
void fact_add_claim(struct correlator *c, struct run *r, const char *engine, const char *root, const char *task_id);
struct run *fact_find_claim(struct correlator *c, const char *engine, const char *root, const char *task_id);
/* Which attempt the next task of this name and sample is, from 1: failed ones count. */
int32_t fact_attempt(struct correlator *c, const struct run *r, const char *task, const char *sample);
void fact_add_failure(struct correlator *c, struct run *r, const char *task, const char *sample);
struct fact *fact_get(struct correlator *c, struct run *r, const char *key, size_t len);	/* NULL: no room */
void facts_forget(struct correlator *c, const struct run *r);	/* NULL: of all */

/* tasks.c */
struct task *task_find_id(struct correlator *c, const struct run *r, const char *task_id, struct opt_i32 attempt);
struct task *task_new(struct correlator *c, struct run *r, uint64_t number);	/* NULL: no room */
void task_set_id_key(struct correlator *c, struct task *t);	/* by its run, task_id and attempt */
void task_unset_id_key(struct correlator *c, struct task *t);
void task_assign(struct correlator *c, struct process *p, struct task *t);	/* NULL: none */
void task_reap(struct correlator *c, struct task *t);	/* frees one that is over and unused */
/* One more program is in it: the first is its START. */
void task_joined(struct correlator *c, struct task *t, uint64_t at_ns);
/* Writes its END. */
void task_end(struct correlator *c, struct task *t, uint64_t now_ns);
/* Its first program has ended. status: wait(2)'s. */
void task_root_ended(struct correlator *c, struct task *t, int32_t status);
/* Its driving program failed: the attempts after it count one more. Some began before that was told. */
void task_failed(struct correlator *c, struct task *t, uint64_t end_ns);
void tasks_tick(struct correlator *c, uint64_t now_ns, bool live);
void tasks_free(struct correlator *c);

/*
 * attribute.c, attribute_run.c: whose work is it? Sets run, task, location and what follows from the rules, of a
 * program that has exec'd, or of a child that has not. parent: attribute_parent()'s; before: what it
 * replaced, NULL nothing; s: of program_text_new().
 */
void attribute_exec(struct correlator *c, struct process *p, struct process *parent, const struct text *before,
    struct subject *s);
void attribute_fork(struct correlator *c, struct process *p, struct process *parent);
void attribute_by_hand(struct correlator *c, struct process *p);	/* its run was just set */
/*
 * The process that p descends from, for its task: its parent, or where that was never seen a place kept for it;
 * NULL: none is known.
 */
struct process *attribute_parent(struct correlator *c, const struct process *p);
/* It has written a title, which s has for its arguments. */
void attribute_title(struct correlator *c, struct process *p, struct process *parent, const struct subject *s,
    uint64_t now_ns);

/* title.c */
struct title *title_of(struct process *p);	/* made where it is not; NULL: no memory */
void title_forget(struct process *p);
/* Of what its program has used: the part of the task that it is in now. */
struct usage title_usage(const struct process *p, const struct usage *usage);

/* rows.c: the table of `sluice run` */
struct row *row_of(struct correlator *c, const struct process *p);
void rows_free(struct correlator *c);

#endif
