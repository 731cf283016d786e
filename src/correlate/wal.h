/*
 * SPDX-License-Identifier: Apache-2.0
 * wal: the format of the correlator's write-ahead log. wal_rows.h has the members of each entry; wal.c writes,
 * replay*.c read.
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


#define WAL_VERSION 5
/* A change of these numbers needs a new version, since masks get another bit. */
#define WAL_COUNTERS 28	/* numbers of struct counters */
#define WAL_USAGE_FIELDS 26	/* members of struct usage */
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

#endif
