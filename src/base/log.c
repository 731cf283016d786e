/*
 * SPDX-License-Identifier: Apache-2.0
 * log: one line for each log event, rate-limited by event, each written by one write(2).
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spell.h"
#include "base/text.h"

#define DEFAULT_BURST 5
#define DEFAULT_WINDOW_MS 10000
#define PATIENCE_MS 20		/* how long a line may wait for its reader */

enum {
	EVENTS = 64,		/* events that are counted separately; a new one replaces the longest idle one */
	EVENT_SIZE = 48,
	MESSAGE_SIZE = 2048,
	VALUE_SIZE = 1024,	/* bytes of one value, escaped */
	TAIL_SIZE = 128,	/* bytes reserved for the end of a line */
};

/* Counts the lines of one event in the window that began at since_ns. */
struct counted {
	char event[EVENT_SIZE];	/* "": a free entry */
	enum log_level level;	/* level of the last line that was suppressed */
	uint64_t since_ns;
	unsigned written;
	uint64_t suppressed;	/* lines that were suppressed and not reported yet */
};

static struct {
	enum log_level level;
	bool is_open;
	bool is_json;
	bool is_journal;	/* fd is a stream of journald */
	bool is_socket;
	bool is_limited;
	bool was_blocked;	/* the last line was not written: do not wait again */
	int fd;
	unsigned burst;
	uint64_t window_ns;
	uint64_t lost_unreported;
	struct counted counted[EVENTS];
} the_log = {
	.level = LOG_LEVEL_INFO,
	.fd = STDERR_FILENO,
};

static const char *const level_names[] = { "error", "warning", "info", "debug" };

/* A line under construction. A piece is added whole or not at all, so that JSON stays valid. */
struct line {
	char text[LOG_LINE_MAX];
	size_t len;
	size_t limit;
	bool is_cut;
};

static bool
put_bytes(struct line *l, const char *bytes, size_t len)
{
	if (len > l->limit - l->len)
		return false;
	memcpy(l->text + l->len, bytes, len);
	l->len += len;
	return true;
}

static bool
put(struct line *l, const char *s)
{
	return put_bytes(l, s, strlen(s));
}

/* Writes the character at `at`, escaped for quotes or for a message, to out; returns its length. */
static size_t
spell(const char *at, size_t width, bool is_json, bool is_quoted, char out[24])
{
	unsigned char c = (unsigned char)at[0];

	if (width == 0 && is_json)	/* not UTF-8: there is no \uXXXX for it */
		return (size_t)sprintf(out, "\\\\x%02x", c);
	if (is_json && c != '\n' && c != '\t' && spell_is_hidden(at, width))
		return spell_json_char(at, width, out);
	if (spell_is_hidden(at, width))
		return spell_out(at, width, out);
	if (is_quoted && (c == '"' || c == '\\'))
		return (size_t)sprintf(out, "\\%c", c);
	memcpy(out, at, width);
	return width;
}

/* Appends text, escaped, at most max bytes of it; longer text is cut between characters. */
static void
put_text(struct line *l, const char *s, bool is_quoted, size_t max)
{
	size_t left = strlen(s);

	while (left > 0) {
		char out[24];
		size_t width = text_char(s, left);
		size_t n = spell(s, width, the_log.is_json, is_quoted, out);

		if (n > max || !put_bytes(l, out, n)) {
			l->is_cut = true;
			return;
		}
		max -= n;
		width += width == 0;
		s += width;
		left -= width;
	}
}

/* Returns true where a reader of the text format could not see the end of the value without quotes. */
static bool
wants_quotes(const char *s)
{
	if (*s == '\0')
		return true;
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\' || (unsigned char)*s >= 0x7f)
			return true;
	}
	return false;
}

static void
put_value(struct line *l, const struct log_field *f)
{
	char number[32];
	bool is_quoted;

	switch (f->kind) {
	case LOG_FIELD_UNSIGNED:
		snprintf(number, sizeof(number), "%" PRIu64, f->u);
		put(l, number);
		return;
	case LOG_FIELD_SIGNED:
		snprintf(number, sizeof(number), "%" PRId64, f->i);
		put(l, number);
		return;
	case LOG_FIELD_REAL:
		snprintf(number, sizeof(number), "%.6g", f->real);
		put(l, isfinite(f->real) ? number : "null");
		return;
	case LOG_FIELD_BOOL:
		put(l, f->yes ? "true" : "false");
		return;
	case LOG_FIELD_TEXT:
		break;
	}
	if (f->text == NULL) {
		put(l, "null");
		return;
	}
	is_quoted = the_log.is_json || wants_quotes(f->text);
	if (is_quoted)
		put(l, "\"");
	put_text(l, f->text, is_quoted, VALUE_SIZE);
	if (is_quoted)
		put(l, "\"");
}

static void
put_field(struct line *l, const struct log_field *f, bool is_first)
{
	/* The longest escaped form of this field must fit, or the whole field is left out. */
	size_t most = strlen(f->key) + 16 + (f->kind == LOG_FIELD_TEXT ? VALUE_SIZE : 32);

	if (most > l->limit - l->len) {
		l->is_cut = true;
		return;
	}
	if (the_log.is_json) {
		put(l, ",\"");
		put(l, f->key);
		put(l, "\":");
	} else {
		put(l, is_first ? "  " : " ");
		put(l, f->key);
		put(l, "=");
	}
	put_value(l, f);
}

static void
put_head(struct line *l, enum log_level level, const char *event)
{
	static const char *const priority[] = { "<3>", "<4>", "<6>", "<7>" };
	struct timespec ts;
	struct tm tm;
	char stamp[64];

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	if (the_log.is_journal)
		put(l, priority[level]);
	if (the_log.is_json) {
		snprintf(stamp + strlen(stamp), 16, ".%06ldZ", ts.tv_nsec / 1000);
		put(l, "{\"time\":\"");
		put(l, stamp);
		put(l, "\",\"level\":\"");
		put(l, level_names[level]);
		put(l, "\",\"event\":\"");
		put(l, event);
		put(l, "\",\"message\":\"");
		return;
	}
	if (!the_log.is_journal) {
		put(l, stamp);
		put(l, "Z ");
	}
	put(l, level_names[level]);
	put(l, " ");
	put(l, event);
	put(l, ": ");
}

/* Returns true if the line was written. Waits a moment at most, and not at all while no reader keeps up. */
static bool
write_line(const char *text, size_t len)
{
	struct pollfd p = { .fd = the_log.fd, .events = POLLOUT };
	ssize_t n;

	/* POLLERR: the other end is closed, and a write would raise SIGPIPE. */
	if (poll(&p, 1, the_log.was_blocked ? 0 : PATIENCE_MS) == 1 &&
	    (p.revents & (POLLOUT | POLLERR)) == POLLOUT) {
		/* A pipe that polls writable has room for PIPE_BUF bytes; for a socket the flag prevents waiting. */
		do {
			n = the_log.is_socket ? send(the_log.fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
			    write(the_log.fd, text, len);
		} while (n < 0 && errno == EINTR);
		the_log.was_blocked = n < 0;
		return n == (ssize_t)len;
	}
	the_log.was_blocked = true;
	return false;
}

static void
write_event(enum log_level level, const char *event, uint64_t suppressed, const char *message,
    const struct log_field *fields, size_t n)
{
	struct line l = { .limit = LOG_LINE_MAX - TAIL_SIZE };
	bool is_first = true;

	put_head(&l, level, event);
	put_text(&l, message, the_log.is_json, MESSAGE_SIZE);
	if (the_log.is_json)
		put(&l, "\"");
	for (size_t i = 0; i < n; i++) {
		put_field(&l, &fields[i], is_first);
		is_first = false;
	}
	l.limit = LOG_LINE_MAX;
	if (l.is_cut) {
		put_field(&l, &LOG_BOOL("truncated", true), is_first);
		is_first = false;
	}
	if (suppressed > 0) {
		put_field(&l, &LOG_U64("suppressed", suppressed), is_first);
		is_first = false;
	}
	if (the_log.lost_unreported > 0)
		put_field(&l, &LOG_U64("lines_lost", the_log.lost_unreported), is_first);
	put(&l, the_log.is_json ? "}\n" : "\n");
	the_log.lost_unreported = write_line(l.text, l.len) ? 0 : the_log.lost_unreported + 1;
}

static struct counted *
counted_find(const char *event, uint64_t now)
{
	struct counted *quiet = &the_log.counted[0];

	for (size_t i = 0; i < EVENTS; i++) {
		struct counted *c = &the_log.counted[i];

		if (strncmp(c->event, event, EVENT_SIZE - 1) == 0)
			return c;
		if (quiet->event[0] != '\0' && (c->event[0] == '\0' || c->since_ns < quiet->since_ns))
			quiet = c;
	}
	*quiet = (struct counted){ .since_ns = now };
	snprintf(quiet->event, sizeof(quiet->event), "%s", event);
	return quiet;
}

/* Returns true if the line is to be written; *ret_suppressed is the number of lines that it reports as suppressed. */
static bool
is_allowed(enum log_level level, const char *event, uint64_t *ret_suppressed)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct counted *c;

	*ret_suppressed = 0;
	if (!the_log.is_limited || level == LOG_LEVEL_DEBUG)	/* level debug shows all lines */
		return true;
	c = counted_find(event, now);
	if (now - c->since_ns >= the_log.window_ns) {
		c->since_ns = now;
		c->written = 0;
	}
	if (c->written >= the_log.burst) {
		c->suppressed++;
		c->level = level;
		return false;
	}
	c->written++;
	*ret_suppressed = c->suppressed;
	c->suppressed = 0;
	return true;
}

static bool
is_the_journal(const struct stat *st)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;

	return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	    device == st->st_dev && inode == st->st_ino;
}

void
log_open(const struct log_options *o)
{
	struct stat st;

	the_log.is_open = true;
	the_log.level = o->level;
	the_log.fd = o->fd;
	the_log.burst = o->burst > 0 ? o->burst : DEFAULT_BURST;
	the_log.window_ns = (uint64_t)(o->window_ms > 0 ? o->window_ms : DEFAULT_WINDOW_MS) * 1000000;
	the_log.was_blocked = false;
	the_log.is_json = o->format == LOG_FORMAT_JSON || (o->format == LOG_FORMAT_AUTO && !isatty(o->fd));
	the_log.is_socket = the_log.is_journal = false;
	if (fstat(o->fd, &st) == 0) {
		the_log.is_socket = S_ISSOCK(st.st_mode);
		the_log.is_journal = is_the_journal(&st);
	}
}

enum log_level
log_level(void)
{
	return the_log.level;
}

void
log_limit_begin(void)
{
	the_log.is_limited = true;
}

void
log_tick(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < EVENTS; i++) {
		struct counted *c = &the_log.counted[i];
		uint64_t suppressed = c->suppressed;

		if (suppressed == 0 || now - c->since_ns < the_log.window_ns)
			continue;
		c->suppressed = 0;
		write_event(c->level, c->event, suppressed, "lines of this event were suppressed", NULL, 0);
	}
}

static void
log_va(enum log_level level, const char *event, const struct log_field *fields, size_t n,
    const char *format, va_list args)
{
	char message[MESSAGE_SIZE + 1];
	uint64_t suppressed;

	if (level > the_log.level)
		return;
	if (!the_log.is_open)
		log_open(&(struct log_options){ .level = the_log.level, .fd = STDERR_FILENO });
	if (!is_allowed(level, event, &suppressed))
		return;
	vsnprintf(message, sizeof(message), format, args);
	write_event(level, event, suppressed, message, fields, n);
}

void
log_event(enum log_level level, const char *event, const char *format, ...)
{
	va_list args;
	int saved = errno;	/* logging between a failing call and a check of errno must not change errno */

	va_start(args, format);
	log_va(level, event, NULL, 0, format, args);
	va_end(args);
	errno = saved;
}

void
log_fields(enum log_level level, const char *event, const struct log_field *fields, size_t n,
    const char *format, ...)
{
	va_list args;
	int saved = errno;

	va_start(args, format);
	log_va(level, event, fields, n, format, args);
	va_end(args);
	errno = saved;
}
