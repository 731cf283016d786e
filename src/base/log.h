/*
 * SPDX-License-Identifier: Apache-2.0
 * log: what the daemon tells whoever runs it: one line a fact, for people or for machines.
 *
 *	text	2026-11-21T12:00:00Z warning spool.disk: the disk takes nothing  path=/var/lib/sluice/spool
 *	JSON	{"time":"2026-11-21T12:00:00.000123Z","level":"warning","event":"spool.disk","message":…,"path":…}
 *
 * A line is one write(2) of at most LOG_LINE_MAX bytes, so that lines of several writers to one pipe
 * never mix, and it is one line whatever bytes went into it: control characters are escaped, and what
 * is not UTF-8 becomes \xNN. What is too long is cut, and says so (truncated).
 *
 * Where stderr is the journal's (JOURNAL_STREAM names it), each line begins with <N>, the syslog
 * priority, which journald takes off again; text then carries no time, for the journal has its own.
 *
 * There is one log in a process; it belongs to the thread of the loop.
 */
#ifndef SLUICE_BASE_LOG_H
#define SLUICE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4096	/* PIPE_BUF: writes up to this are whole or not at all */

/* Not LOG_WARNING and the like: those are syslog.h's. */
enum log_level {
	LOG_LEVEL_ERROR,	/* somebody must do something */
	LOG_LEVEL_WARNING,	/* it goes on, with less than it should */
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

enum log_format {
	LOG_FORMAT_AUTO,	/* text on a terminal, JSON else */
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
		const char *text;	/* NULL: null */
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
/* For log_fields(): LOG_FIELDS(LOG_TEXT("path", path), LOG_U64("bytes", n)). */
#define LOG_FIELDS(...) \
	(const struct log_field[]){ __VA_ARGS__ }, \
	    sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field)

struct log_options {
	enum log_level level;
	enum log_format format;
	int fd;				/* the caller's; stays as it is (no O_NONBLOCK: others share it) */
	unsigned burst;			/* lines of one event in a window; 0: 5 */
	uint32_t window_ms;		/* 0: 10 s */
};

/*
 * From here on as the options say; may be called again, and forgets nothing that was suppressed.
 * Without it: level info, format auto, on stderr.
 */
void log_open(const struct log_options *o);
enum log_level log_level(void);

/*
 * From here on, what comes more often than the burst in a window is left out and counted, by event;
 * the next line of that event says suppressed=N. Not so at level debug. Call it once the loop runs:
 * an error of start-up is always told.
 */
void log_limit_begin(void);
/* About once a second: tells what was left out of events that no longer come. */
void log_tick(void);

/* event: "spool.disk": dotted, static, the name by which it is counted and found. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_fields(enum log_level level, const char *event, const struct log_field *fields, size_t n,
    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "error", "warning", "info", "debug" */
const char *log_level_name(enum log_level level);

#endif
