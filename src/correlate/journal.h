/*
 * SPDX-License-Identifier: Apache-2.0
 * journal: what a note of the correlator's journal looks like; journal.c writes, replay*.c read.
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

#include <stddef.h>
#include <stdint.h>

#include "model/signal.h"

#define NOTE_VERSION 4
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

enum process_flag {
	PROCESS_HAS_CONTEXT = 1 << 0,
	PROCESS_IS_FORKED = 1 << 1,
	PROCESS_IS_ANNOUNCED = 1 << 2,
	PROCESS_IS_DRIVER = 1 << 3,
	PROCESS_IS_OVER = 1 << 4,
	PROCESS_IS_BASE_KNOWN = 1 << 5,
	PROCESS_WAS_USAGE_SENT = 1 << 6,
	PROCESS_HAS_BASE = 1 << 7,	/* else all 0 */
	PROCESS_HAS_SENT = 1 << 8,
	PROCESS_HAS_RUN = 1 << 9,
	PROCESS_HAS_TASK = 1 << 10,
	PROCESS_WAS_SHOWN = 1 << 11,	/* a record was made of it: its cgroups were used */
	PROCESS_ANCHOR_IS_PARENT = 1 << 12,
	PROCESS_IS_OBSERVED = 1 << 13,
	PROCESS_IS_GONE = 1 << 14,
	PROCESS_IS_UNSEEN = 1 << 15,
	PROCESS_IS_OVERHEAD = 1 << 16,
	PROCESS_IS_EXCLUDED = 1 << 17,
	PROCESS_IS_INSIDE = 1 << 18,
	PROCESS_HAS_LATEST = 1 << 19,	/* else what was sent last */
	PROCESS_ABOVE_IS_PARENT = 1 << 20,
	PROCESS_HAS_TITLE = 1 << 21,	/* from version 3 on */
	PROCESS_IS_ENGINE = 1 << 22,	/* from version 4 on, as the next two */
	PROCESS_HAS_FAILED = 1 << 23,
	PROCESS_HAS_FAILED_CHILD = 1 << 24,
	PROCESS_FLAGS = (1 << 25) - 1,
};

/* Where a process's text stands. */
enum note_text {
	NOTE_TEXT_NONE,			/* it has none */
	NOTE_TEXT_HERE,
	NOTE_TEXT_KEPT,			/* the one of its last note */
	NOTE_TEXT_OF,			/* another process has it */
	NOTE_TEXTS,
};

enum text_flag {
	TEXT_IS_TOOL = 1 << 0,
	TEXT_ARGV_TRUNCATED = 1 << 1,
	TEXT_HAS_ARGV = 1 << 2,
	TEXT_HAS_EXE = 1 << 3,
	TEXT_HAS_COMM = 1 << 4,
	TEXT_HAS_CWD = 1 << 5,
	TEXT_HAS_TOOL = 1 << 6,
	TEXT_HAS_RULE = 1 << 7,
	TEXT_HAS_SUBCOMMAND = 1 << 8,
	TEXT_HAS_SCRIPT = 1 << 9,
	TEXT_HAS_JAR = 1 << 10,
	TEXT_HAS_CLASS = 1 << 11,
	TEXT_HAS_TRACE_ID = 1 << 12,
	TEXT_HAS_SPAN_ID = 1 << 13,
	TEXT_FLAGS = (1 << 14) - 1,
};

enum task_flag {
	TASK_IS_NAMED = 1 << 0,
	TASK_HAS_STARTED = 1 << 1,
	TASK_HAS_ENDED = 1 << 2,
	TASK_ROOT_ENDED = 1 << 3,
	TASK_HAS_ENGINE = 1 << 4,
	TASK_HAS_SOURCE = 1 << 5,
	TASK_HAS_WORK_DIR = 1 << 6,
	TASK_HAS_ID_KEY = 1 << 7,
	TASK_HAS_ATTEMPT = 1 << 8,
	TASK_HAS_CPUS = 1 << 9,
	TASK_HAS_MEMORY = 1 << 10,
	TASK_HAS_SCHEDULER = 1 << 11,
	TASK_HAS_JOB = 1 << 12,
	TASK_FAILING_DUE = 1 << 13,	/* from version 4 on, as the next two */
	TASK_FAILING_OVER = 1 << 14,
	TASK_HAS_OOM_KILLS = 1 << 15,
	TASK_FLAGS = (1 << 16) - 1,
};

enum run_flag {
	RUN_ROOT_ENDED = 1 << 0,
	RUN_HAS_STATUS = 1 << 1,
	RUN_HAS_STARTED = 1 << 2,
	RUN_HAS_ENDED = 1 << 3,
	RUN_HAS_UID = 1 << 4,
	RUN_HAS_CPUS = 1 << 5,
	RUN_HAS_MEMORY = 1 << 6,
	RUN_IS_WHOLE = 1 << 7,
	RUN_FIRST_STRING = 1 << 8,	/* from here on: which of its strings are there */
	RUN_STRINGS = 13,
	RUN_FAILING_DUE = 1 << (8 + RUN_STRINGS),	/* from version 4 on, as the next two */
	RUN_FAILING_OVER = 1 << (9 + RUN_STRINGS),
	RUN_HAS_FINDINGS = 1 << (10 + RUN_STRINGS),
	RUN_FLAGS = (1 << (11 + RUN_STRINGS)) - 1,
};

enum failure_flag {
	FAILURE_IS_OOM = 1 << 0,
	FAILURE_IS_ENGINE = 1 << 1,
	FAILURE_IS_RUN_ROOT = 1 << 2,
	FAILURE_HAS_PEAK = 1 << 3,
	FAILURE_HAS_LIMIT = 1 << 4,
	FAILURE_HAS_OF = 1 << 5,
	FAILURE_HAS_PARENT = 1 << 6,
	FAILURE_FLAGS = (1 << 7) - 1,
};

enum counters_flag {
	COUNTERS_HAS_PEAK = 1 << 0,
	COUNTERS_HAS_BLOCK_IO = 1 << 1,
	COUNTERS_IS_REAPED = 1 << 2,
	COUNTERS_IS_COMPLETE = 1 << 3,
	COUNTERS_FLAGS = (1 << 4) - 1,
};

/* struct counters as an array: its first members are all uint64_t. */
#define COUNTERS_NUMBERS (offsetof(struct counters, threads) / sizeof(uint64_t))
_Static_assert(offsetof(struct counters, unix_tx_bytes) == 26 * sizeof(uint64_t) &&
    offsetof(struct counters, threads) == 27 * sizeof(uint64_t), "notes hold other counters: a new version?");
_Static_assert(sizeof(struct counters) == 27 * sizeof(uint64_t) + 2 * sizeof(uint32_t) + 8,
    "notes hold other counters: a new version?");

#endif
