/*
 * SPDX-License-Identifier: Apache-2.0
 * wal: what an entry of the correlator's write-ahead log looks like; wal_rows.h has its members, wal.c writes,
 * replay*.c read.
 *
 * An entry is its kind, its version, and fields in a fixed order: numbers as LEB128 varints, strings
 * with their NUL. A later version may only add to the end of a kind or take a new flag, and says so
 * by its number: a reader knows its own version and all before it, and refuses those after it.
 *
 *   BEGIN         boot, run         all entries before it are void; what follows is of these
 *   CGROUP        id, path
 *   LOSSES        events and ends that were lost so far
 *   RUN           id, names, root, sums
 *   FACT          what a run has said
 *   TASK          number, run, root, names, sums
 *   PROCESS       all that is known of one, but for what its flags leave out
 *   USAGE         the last Usage record of one
 *   FORGET        it is removed
 *   FORGET_TASK   so is this, once no process belongs to it
 *   FORGET_RUN    and this, with its facts
 *   FAILURE       a program that ended badly, and whose failure it passed on; forgotten with those who hold it
 *
 * Each entry tells the whole state of its thing: of several, the last counts. What is not logged is
 * the owner's (the clock), or what the next pass over all processes says.
 */
#ifndef SLUICE_CORRELATE_WAL_H
#define SLUICE_CORRELATE_WAL_H


#define WAL_VERSION 5
/* Another number of them is another version: their masks have a bit more. */
#define WAL_COUNTERS 28	/* numbers of struct counters */
#define WAL_USAGE_FIELDS 26	/* of struct usage */
#define WAL_VERSION_FIRST 2	/* entries of one run only, before, are nothing to us */
#define WAL_MAX_BYTES 65000u	/* of the longest: an owner's buffer of 64 KiB takes it, and its own head */
#define WAL_TEXT_MAX 60000u	/* arguments that are longer by far than they were are left out */

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
	WAL_FAILURE,			/* from version 4 on */
	WAL_KINDS,
};

#endif
