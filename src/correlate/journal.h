/*
 * SPDX-License-Identifier: Apache-2.0
 * journal: what a note of the correlator's journal looks like; note_rows.h has its members, journal.c writes,
 * replay*.c read.
 *
 * A note is its kind, its version, and fields in a fixed order: numbers as LEB128 varints, strings
 * with their NUL. A later version may only add to the end of a kind or take a new flag, and says so
 * by its number: a reader knows its own version and all before it, and refuses those after it.
 *
 *   BEGIN         boot, run         all notes before it are void; what follows is of these
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
 * Each note tells the whole state of its thing: of several, the last counts. What is not noted is
 * the owner's (the clock), or what the next pass over all processes says.
 */
#ifndef SLUICE_CORRELATE_JOURNAL_H
#define SLUICE_CORRELATE_JOURNAL_H


#define NOTE_VERSION 5
/* Another number of them is another version: their masks have a bit more. */
#define NOTE_COUNTERS 28	/* numbers of struct counters */
#define NOTE_USAGE_FIELDS 26	/* of struct usage */
#define NOTE_VERSION_FIRST 2	/* notes of one run only, before, are nothing to us */
#define NOTE_MAX_BYTES 65000u	/* of the longest: an owner's buffer of 64 KiB takes it, and its own head */
#define NOTE_TEXT_MAX 60000u	/* arguments that are longer by far than they were are left out */

enum note_kind {			/* 0 is left free */
	NOTE_BEGIN = 1,
	NOTE_CGROUP,
	NOTE_RUN,
	NOTE_TASK,
	NOTE_PROCESS,
	NOTE_USAGE,
	NOTE_FORGET,
	NOTE_FORGET_TASK,
	NOTE_FORGET_RUN,
	NOTE_FACT,
	NOTE_LOSSES,
	NOTE_FAILURE,			/* from version 4 on */
	NOTE_KINDS,
};

#endif
