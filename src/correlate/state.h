/*
 * SPDX-License-Identifier: Apache-2.0
 * state: what the files of correlate/ share: the correlator's tables. No other folder includes it.
 *
 *   process ──► text    what it runs (shared with the children that never exec)
 *      │
 *      ├──────► task ──► work (the sums)      tasks of one run, in order of start
 *      └──────► row  ──► work                 one a task name and tool, for the table
 *                run ──► work
 */
#ifndef SLUICE_CORRELATE_STATE_H
#define SLUICE_CORRELATE_STATE_H

#include <uthash.h>
#include <utlist.h>

#include "base/arena.h"
#include "correlate/correlator.h"
#include "correlate/cputime.h"
#include "correlate/rules.h"

#define PROGRAM_ID_SIZE 64
#define TEXT_BUDGET_BYTES (64u << 20)	/* of argv that is kept for END records */
#define CGROUPS_KNOWN_MAX 16384
#define CGROUPS_BYTES_MAX (8u << 20)	/* of their paths */
#define PROCESSES_MAX 65536		/* known at once; the kernel side follows fewer */
#define GONE_MAX 8192			/* of those, ended, and kept for children that never exec */
#define ROWS_MAX 10000
#define TASKS_MAX 100000

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

/* A program's names, in one block of memory: pointers, then all strings in the order below. */
struct text {
	unsigned refs;
	size_t size;			/* of the block, towards the budget */
	struct process_id noted_by;	/* whose note holds it ... */
	uint32_t noted_in;		/* ... since this checkpoint; 0: nobody's */
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	const char *tool_rule;		/* static */
	bool is_tool;			/* not a shell or glue */
	bool argv_truncated;
	const char *const *argv;	/* NULL unknown, or over the budget */
	size_t argc;
	char block[];
};

struct task {
	UT_hash_handle hh;
	struct process_id root;		/* the key: the process that it began with */
	char task_id[RULE_NAME_SIZE];
	char name[RULE_NAME_SIZE];	/* "" unknown */
	char sample[RULE_NAME_SIZE];	/* "" unknown */
	const char *engine;
	const char *source;
	double confidence;
	char *work_dir;			/* owned; NULL unknown */
	struct work work;
	struct usage live;		/* of its live programs; see tasks_sum_live() */
	struct task *next_dirty;
	bool is_dirty;			/* changed since its last note */
	uint32_t noted_in;		/* the checkpoint since which there are notes; 0: none */
	unsigned refs;			/* processes that point here */
	bool is_named;			/* by a rule: a program inside does not rename it */
	bool has_started;		/* START was sent */
	bool has_ended;			/* END was sent */
	bool root_ended;
	int32_t status;			/* of the root */
};

struct row {
	UT_hash_handle hh;
	char *key;			/* owned: task NUL sample NUL tool */
	size_t key_len;
	struct summary_row shown;
	struct work work;
};

/* What is to be noted of a process. */
enum process_news {
	NEWS_NONE,
	NEWS_USAGE,			/* sent, latest */
	NEWS_ALL,
	NEWS_SHOWN,			/* all, and a record was made of it */
};

struct process {
	UT_hash_handle hh;
	struct process_id id;		/* the key */
	struct program_key self;	/* of the program that it runs now */
	struct program_key parent;
	struct program_key anchor;
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
	bool is_over;			/* END was sent, the kernel's last word is yet to come */
	uint64_t gone_ns;		/* the kernel let go of it; kept a while for children that never exec */
	bool is_base_known;		/* no exec was missed since the last one */
	bool was_usage_sent;
	uint64_t unseen_since_ns;	/* passes of the iterator have not met it since; 0: the last did */
	uint64_t pass;			/* the last that did */
	struct text *text;		/* NULL: nothing known */
	struct task *task;		/* NULL: none */
	struct row *row;		/* while announced */
	struct usage_base base;
	struct usage latest;		/* of the current program, at the last snapshot */
	struct usage sent;		/* of the current program, at the last Usage record */
	uint64_t sent_ns;
	struct process *prev_gone, *next_gone;	/* while gone_ns != 0, and no journal is replayed */
	struct process *next_dirty;
	enum process_news news;		/* since its last note */
	bool is_text_noted;		/* its notes hold the text that it has now */
	uint32_t noted_in;		/* the checkpoint since which there are notes; 0: none */
};

struct cgroup_path {
	UT_hash_handle hh;
	struct {
		uint64_t id;
		uint64_t is_v2;
	} key;
	char path[];
};

/* A string that was static in the life before. */
struct kept_name {
	UT_hash_handle hh;
	char text[];
};

enum replay_state {
	REPLAY_NONE,			/* no beginning was seen */
	REPLAY_OURS,
	REPLAY_STALE,			/* notes of another boot or run */
};

/* journal.c and replay.c */
struct journal {
	uint8_t *buffer;		/* owned: the note under way */
	size_t size;
	bool has_begun;			/* a beginning was noted, or replayed */
	bool is_replaying;
	bool is_run_dirty;
	uint32_t checkpoint;		/* counted from 1 */
	struct process *dirty;		/* first marked first */
	struct process **dirty_end;
	struct task *dirty_tasks;
	struct task **dirty_tasks_end;
	uint64_t lost;
	enum replay_state replay;
	struct replayed replayed;
	struct kept_name *names;
};

struct correlator {
	struct correlator_options options;	/* strings owned */
	struct correlator_ops ops;
	void *arg;
	int64_t clock_ns;		/* wall minus boot */
	struct process *processes;
	struct task *tasks;
	struct row *rows;
	struct cgroup_path *cgroups;	/* least recently used first */
	size_t cgroup_bytes;
	struct process *gone;		/* first gone first */
	size_t gone_count;
	struct arena arena;		/* of the text under way */
	size_t text_bytes;
	struct work run;
	uint64_t run_start_ns;
	uint64_t lost_events;
	uint64_t lost_ends;
	uint64_t pass;
	bool pass_with_usage;
	struct process_id root;
	struct summary_row *summary;	/* owned */
	uint64_t refused;
	struct journal journal;
};

/* Host-wide: no run, so that no tasks, rows or sums are kept either. */
static inline bool
state_has_run(const struct correlator *c)
{
	return c->options.run_id != NULL;
}

int64_t state_wall_us(const struct correlator *c, uint64_t boot_ns);
void program_id_format(const struct correlator *c, const struct program_key *key,
    char out[PROGRAM_ID_SIZE]);

/* correlator.c */
struct process *process_find(struct correlator *c, uint64_t start_ns, uint64_t pid);
struct process *process_new(struct correlator *c, const struct process_id *id);	/* NULL: no room */
void process_remove(struct correlator *c, struct process *p);
void process_set_text(struct correlator *c, struct process *p, struct text *t);	/* takes t over */
void process_gone(struct correlator *c, struct process *p);	/* to the end of the line */

/*
 * journal.c: what changed is marked, and noted by journal_flush() at the end of each call. Without
 * a journal, and while one is replayed, nothing is marked.
 */
static inline bool
journal_is_on(const struct correlator *c)
{
	return c->ops.note != NULL && !c->journal.is_replaying;
}
void journal_process(struct correlator *c, struct process *p, enum process_news news);
void journal_task(struct correlator *c, struct task *t);
void journal_run(struct correlator *c);
void journal_cgroup(struct correlator *c, const struct cgroup_path *g);	/* at once */
void journal_forget(struct correlator *c, const struct process *p);	/* at once: it will be removed */
void journal_forget_task(struct correlator *c, struct task *t);		/* likewise */
void journal_flush(struct correlator *c);
void journal_done(struct correlator *c);

/* cgroups.c: NULL where the path is not known, or id is 0; valid until the next cgroup signal */
const char *cgroup_find(struct correlator *c, uint64_t id, bool is_v2);
/* Forgets those used least where there is no room; path is UTF-8. NULL: known already, or no memory. */
struct cgroup_path *cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len);

/* program_record.c: fills what is the same in each record on a program; strings are p's and c's */
void program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head);
void program_identity_fill(const struct correlator *c, const struct process *p,
    struct program_identity *id, char self[PROGRAM_ID_SIZE], char parent[PROGRAM_ID_SIZE]);
void program_emit(struct correlator *c, const struct process *p, struct program_record *r);

/* program_text.c: what a program is called */
struct text_parts {
	const char *const *argv;	/* NULL unknown */
	size_t argc;
	bool argv_truncated;
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	const char *tool_rule;		/* not copied */
	bool is_tool;
};
struct text *program_text_of(struct correlator *c, const struct text_parts *parts);	/* within the budget */
struct text *program_text_new(struct correlator *c, const struct exec_signal *s);
struct text *program_text_ref(struct text *t);
void program_text_unref(struct correlator *c, struct text *t);	/* NULL is fine */

/* work.c: sums, tasks, rows, the run */
void work_begin(struct work *w, uint64_t now_ns);	/* one more is live */
void work_end(struct work *w, uint64_t now_ns);		/* one fewer */
struct task *task_find(struct correlator *c, const struct process_id *root);
struct task *task_get(struct correlator *c, const struct process_id *root);	/* made where it is not; NULL: no room */
void task_assign(struct correlator *c, struct process *p, struct task *t);	/* NULL: none */
void task_reap(struct correlator *c, struct task *t);	/* frees one that is over and unused */
struct task *task_of_exec(struct correlator *c, struct process *p, const struct process *parent);
struct task *task_of_fork(struct correlator *c, struct process *p, const struct process *parent);
void tasks_sum_live(struct correlator *c);	/* before LIVE records, and ENDs of tasks that go on */
void task_emit(struct correlator *c, struct task *t, enum record_phase phase, uint64_t now_ns);
void run_emit(struct correlator *c, enum record_phase phase, uint64_t now_ns, int status);
struct row *row_of(struct correlator *c, const struct process *p);
void rows_free(struct correlator *c);
void tasks_free(struct correlator *c);

#endif
