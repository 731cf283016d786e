/*
 * SPDX-License-Identifier: Apache-2.0
 * log: the daemon's log: one line for each log event, for people or for machines.
 *
 *	text	2026-11-21T12:00:00Z warning spool.disk: the disk takes nothing  path=/var/lib/sluice/spool
 *	JSON	{"time":"2026-11-21T12:00:00.000123Z","level":"warning","event":"spool.disk","message":…,"path":…}
 *
 * A line is one write(2) of at most LOG_LINE_MAX bytes, so that lines of several writers to one pipe never mix.
 * It is always one line: control characters are escaped, and bytes that are not UTF-8 become \xNN. A line that
 * is too long is cut and marked as truncated.
 *
 * Where stderr is a stream of journald (JOURNAL_STREAM names it), each line begins with <N>, the syslog
 * priority, which journald removes; text then has no time, because journald adds its own.
 *
 * A process has one log; only the thread of the event loop may use it.
 */
#ifndef SLUICE_BASE_LOG_H
#define SLUICE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4096	/* PIPE_BUF: a write of up to this size is atomic */

/* The names differ from LOG_WARNING and its neighbours, which belong to syslog.h. */
enum log_level {
	LOG_LEVEL_ERROR,	/* an operator must act */
	LOG_LEVEL_WARNING,	/* sluice continues with reduced function */
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

enum log_format {
	LOG_FORMAT_AUTO,	/* text on a terminal, else JSON */
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON,
};

enum log_field_kind {
	LOG_FIELD_TEXT,
	LOG_FIELD_UNSIGNED,
	LOG_FIELD_SIGNED,
	LOG_FIELD_REAL,
	LOG_FIELD_BOOL,
};

struct log_field {
	const char *key;	/* a word: letters, digits, '_' */
	enum log_field_kind kind;
	union {
		const char *text;	/* NULL: written as null */
		uint64_t u;
		int64_t i;
		double real;
		bool yes;
	};
};

#define LOG_TEXT(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_TEXT, .text = (v) })
#define LOG_U64(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_UNSIGNED, .u = (v) })
#define LOG_I64(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_SIGNED, .i = (v) })
#define LOG_REAL(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_REAL, .real = (v) })
#define LOG_BOOL(k, v) ((struct log_field){ .key = (k), .kind = LOG_FIELD_BOOL, .yes = (v) })
/* Makes the arguments of log_fields(): LOG_FIELDS(LOG_TEXT("path", path), LOG_U64("bytes", n)). */
#define LOG_FIELDS(...) \
	(const struct log_field[]){ __VA_ARGS__ }, \
	    sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field)

struct log_options {
	enum log_level level;
	enum log_format format;
	int fd;				/* the caller's; never made O_NONBLOCK: other processes share it */
	unsigned burst;			/* lines of one event that a window allows; 0: 5 */
	uint32_t window_ms;		/* length of a window; 0: 10 s */
};

/*
 * Applies the options from now on. May be called again, and keeps the counts of suppressed lines. Without it:
 * level info, format auto, on stderr.
 */
void log_open(const struct log_options *o);
enum log_level log_level(void);

/*
 * From now on suppresses and counts lines of an event beyond the burst in a window; the next line of that event
 * has suppressed=N. Level debug suppresses nothing. Call it once the loop runs, so that errors of the start are
 * always logged.
 */
void log_limit_begin(void);
/* Reports the suppressed lines of events that no longer occur. Call it about once a second. */
void log_tick(void);

/* Logs one line. event is a static dotted name ("spool.disk") by which lines are counted and searched. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Logs one line with fields, which are read during the call only. */
void log_fields(enum log_level level, const char *event, const struct log_field *fields, size_t n,
    const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
