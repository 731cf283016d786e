/*
 * SPDX-License-Identifier: Apache-2.0
 * wal: the correlator's write-ahead log: its format, and the marks of what is to be logged. wal_rows.h has the members
 * of each entry; wal.c writes, replay*.c read.
 *
 * An entry is its kind, its version, and fields in a fixed order: numbers as LEB128 varints, strings
 * with their NUL. A later version may only add to the end of a kind or take a new flag, and has
 * another number: a reader accepts its own version and all before it, and refuses those after it.
 *
 *   BEGIN         boot, run         all entries before it are void; those after it belong to these
 *   CGROUP        id, path
 *   LOSSES        events and ends that were lost so far
 *   RUN           id, names, root, sums
 *   FACT          key that a run published
 *   TASK          number, run, root, names, sums
 *   PROCESS       its whole state, except what its flags leave out
 *   USAGE         the last Usage record of a process
 *   FORGET        a process is removed
 *   FORGET_TASK   a task is removed, once no process belongs to it
 *   FORGET_RUN    a run is removed, with its facts
 *   FAILURE       a failed program, and the failure that it passed on; removed with its last reference
 *
 * Each entry contains the whole state of its entity: of several, the last counts. Values that are not logged belong to
 * the owner (the clock), or are set by the next pass over all processes.
 */
#ifndef SLUICE_CORRELATE_WAL_H
#define SLUICE_CORRELATE_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "correlate/correlator.h"

struct cgroup_path;
struct fact;
struct process;
struct run;
struct task;

#define WAL_VERSION 16
/* A change of these numbers needs a new version, since masks get another bit. */
#define WAL_COUNTERS 51	/* numbers of struct counters */
#define WAL_USAGE_FIELDS 49	/* members of struct usage */
#define WAL_VERSION_FIRST 2	/* version 1, of one run only, is refused */
#define WAL_MAX_BYTES 65000u	/* of an entry: with the owner's head it fits a buffer of 64 KiB */
#define WAL_TEXT_MAX 60000u	/* of a text; longer arguments are left out */

enum wal_kind {			/* 0 is left free */
	WAL_BEGIN = 1,
	WAL_CGROUP,
	WAL_RUN,
	WAL_TASK,
	WAL_PROCESS,
	WAL_USAGE,
	WAL_FORGET,
	WAL_FORGET_TASK,
	WAL_FORGET_RUN,
	WAL_FACT,
	WAL_LOSSES,
	WAL_FAILURE,			/* since version 4 */
	WAL_KINDS,
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

/* State of the write-ahead log. */
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

/*
 * The file that writes a member marks its entity as changed; wal_flush() logs what is marked at the end of each call.
 * Without a write-ahead log, and during a replay, nothing is marked.
 */

/* Marks an entity as changed. */
void wal_mark(struct correlator *c, enum marked kind, struct mark *m, enum news news);
/* Each marks one kind of entity. */
void wal_process(struct correlator *c, struct process *p, enum news news);
void wal_process_text(struct correlator *c, struct process *p);	/* p's text is another */
void wal_run(struct correlator *c, struct run *r);		/* r may be NULL */
void wal_task(struct correlator *c, struct task *t);
void wal_losses(struct correlator *c);				/* the counts of losses */
/* Logs a cgroup at once. */
void wal_cgroup(struct correlator *c, const struct cgroup_path *g);
/* Logs a fact at once, after its run. */
void wal_fact(struct correlator *c, const struct fact *f);
/* Logs that p is removed, at once, before it is freed; likewise the next two. */
void wal_forget(struct correlator *c, struct process *p);
void wal_forget_task(struct correlator *c, struct task *t);
void wal_forget_run(struct correlator *c, struct run *r);
/* Clears a failure's mark. There is no entry: a replay frees the failure with its last reference. */
void wal_forget_failure(struct correlator *c, struct mark *m);
/* Logs all that is marked, each entity after those that it refers to. */
void wal_flush(struct correlator *c);
/* Frees the buffer of the log. */
void wal_done(struct correlator *c);

#endif
