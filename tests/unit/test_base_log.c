/* SPDX-License-Identifier: Apache-2.0 */
/* log: each entry is one line and valid JSON for any bytes; floods are limited. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"
#include "hostile.h"

enum { WINDOW_MS = 500 };	/* a busy machine, too, logs all of a flood in less */

static int reader = -1, writer = -1;
static char got[1 << 16];

static int
setup(void **state)
{
	int fds[2];

	(void)state;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	reader = fds[0];
	writer = fds[1];
	fcntl(reader, F_SETFL, O_NONBLOCK);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (reader >= 0)
		close(reader);
	close(writer);
	return 0;
}

static void
open_as(enum log_format format, unsigned burst, uint32_t window_ms)
{
	log_open(&(struct log_options){ .level = LOG_LEVEL_INFO, .format = format, .fd = writer,
	    .burst = burst, .window_ms = window_ms });
}

/* All that was written so far. */
static const char *
drain(void)
{
	ssize_t n = read(reader, got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = '\0';
	return got;
}

static unsigned
lines(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return n;
}

static json_t *
line_json(const char *line)
{
	json_error_t e;
	json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, &e);

	if (j == NULL)
		fail_msg("not JSON: %s: %s", e.text, line);
	return j;
}

static const char *
member(json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static void
json_has_the_message_and_typed_fields(void **state)
{
	json_t *j;

	(void)state;
	open_as(LOG_FORMAT_JSON, 0, 0);
	log_fields(LOG_LEVEL_WARNING, "spool.disk",
	    LOG_FIELDS(LOG_TEXT("path", "/a \"b\""), LOG_U64("free", UINT64_C(9007199254740993)),
	    LOG_I64("errno", -28), LOG_REAL("share", 0.5), LOG_BOOL("again", true), LOG_TEXT("none", NULL)),
	    "the disk takes nothing: %s", "full");
	j = line_json(drain());
	assert_string_equal(member(j, "level"), "warning");
	assert_string_equal(member(j, "event"), "spool.disk");
	assert_string_equal(member(j, "message"), "the disk takes nothing: full");
	assert_string_equal(member(j, "path"), "/a \"b\"");
	assert_int_equal(json_integer_value(json_object_get(j, "free")), INT64_C(9007199254740993));
	assert_int_equal(json_integer_value(json_object_get(j, "errno")), -28);
	assert_true(json_real_value(json_object_get(j, "share")) == 0.5);
	assert_true(json_is_true(json_object_get(j, "again")));
	assert_true(json_is_null(json_object_get(j, "none")));
	/* 2026-11-21T12:00:00.000123Z */
	assert_int_equal(strlen(member(j, "time")), 27);
	assert_int_equal(member(j, "time")[19], '.');
	assert_int_equal(member(j, "time")[26], 'Z');
	json_decref(j);
}

static void
any_byte_makes_one_valid_line(void **state)
{
	char all[256];
	json_t *j;

	(void)state;
	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	open_as(LOG_FORMAT_JSON, 0, 0);
	log_fields(LOG_LEVEL_INFO, "x", LOG_FIELDS(LOG_TEXT("all", all)), "%s", all);
	assert_int_equal(lines(drain()), 1);
	j = line_json(got);
	assert_non_null(strstr(member(j, "all"), "\x01\x02"));
	assert_non_null(strstr(member(j, "message"), "\\xff"));
	json_decref(j);

	open_as(LOG_FORMAT_TEXT, 0, 0);
	log_fields(LOG_LEVEL_INFO, "x", LOG_FIELDS(LOG_TEXT("all", all)), "%s \xc2\x9b" "2J", all);
	assert_int_equal(lines(drain()), 1);
	for (const char *at = got; *at != '\n'; at++)
		assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
	assert_null(strstr(got, "\xc2\x9b"));	/* CSI in C1 */
}

static void
text_is_for_people(void **state)
{
	(void)state;
	open_as(LOG_FORMAT_TEXT, 0, 0);
	log_fields(LOG_LEVEL_ERROR, "a.b", LOG_FIELDS(LOG_TEXT("plain", "/v/s"), LOG_TEXT("spaced", "a b"),
	    LOG_TEXT("empty", ""), LOG_U64("n", 3)), "went wrong");
	assert_int_equal(drain()[20], ' ');
	assert_int_equal(got[19], 'Z');
	assert_string_equal(got + 21, "error a.b: went wrong  plain=/v/s spaced=\"a b\" empty=\"\" n=3\n");
	log_event(LOG_LEVEL_INFO, "a.c", "no fields");
	assert_string_equal(drain() + 21, "info a.c: no fields\n");
}

static void
too_long_is_cut_and_still_valid(void **state)
{
	static char huge[100000];
	json_t *j;

	(void)state;
	/* Quotes double, and the cut must not part an escape. */
	memset(huge, '"', sizeof(huge) - 1);
	open_as(LOG_FORMAT_JSON, 0, 0);
	log_fields(LOG_LEVEL_INFO, "x", LOG_FIELDS(LOG_TEXT("a", huge), LOG_TEXT("b", huge), LOG_TEXT("c", huge),
	    LOG_TEXT("d", huge), LOG_U64("e", 1)), "%s", huge);
	drain();
	assert_true(strlen(got) <= LOG_LINE_MAX);
	j = line_json(got);
	assert_true(json_is_true(json_object_get(j, "truncated")));
	assert_int_equal(json_integer_value(json_object_get(j, "e")), 1);
	json_decref(j);

	memset(huge, 1, sizeof(huge) - 1);
	log_fields(LOG_LEVEL_INFO, "x", LOG_FIELDS(LOG_TEXT("a", huge), LOG_TEXT("b", huge), LOG_TEXT("c", huge)), "%s",
	    huge);
	assert_true(strlen(drain()) <= LOG_LINE_MAX);
	json_decref(line_json(got));
}

static void
auto_is_text_on_a_terminal_only(void **state)
{
	int master, slave;
	char buf[512];
	ssize_t n;

	(void)state;
	open_as(LOG_FORMAT_AUTO, 0, 0);
	log_event(LOG_LEVEL_INFO, "x", "y");
	assert_int_equal(drain()[0], '{');
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		skip();		/* no pseudo terminals here */
	log_open(&(struct log_options){ .level = LOG_LEVEL_INFO, .fd = slave });
	log_event(LOG_LEVEL_INFO, "x", "y");
	n = read(master, buf, sizeof(buf) - 1);
	assert_true(n > 0);
	buf[n] = '\0';
	assert_non_null(strstr(buf, "Z info x: y"));
	close(master);
	close(slave);
}

static void
the_journal_gets_priorities(void **state)
{
	struct stat st;
	char stream[64];

	(void)state;
	assert_int_equal(fstat(writer, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	open_as(LOG_FORMAT_TEXT, 0, 0);
	log_event(LOG_LEVEL_WARNING, "x", "y");
	assert_string_equal(drain(), "<4>warning x: y\n");
	open_as(LOG_FORMAT_JSON, 0, 0);
	log_event(LOG_LEVEL_ERROR, "x", "y");
	assert_memory_equal(drain(), "<3>{\"time\"", 10);
	/* stderr was redirected: the variable is inherited and means another file. */
	setenv("JOURNAL_STREAM", "1:1", 1);
	open_as(LOG_FORMAT_JSON, 0, 0);
	log_event(LOG_LEVEL_ERROR, "x", "y");
	assert_memory_equal(drain(), "{\"time\"", 7);
	unsetenv("JOURNAL_STREAM");
}

static void
the_level_changes_at_run_time(void **state)
{
	(void)state;
	open_as(LOG_FORMAT_TEXT, 0, 0);
	log_event(LOG_LEVEL_DEBUG, "x", "hidden");
	assert_string_equal(drain(), "");
	log_open(&(struct log_options){ .level = LOG_LEVEL_DEBUG, .format = LOG_FORMAT_TEXT, .fd = writer });
	log_event(LOG_LEVEL_DEBUG, "x", "shown");
	assert_non_null(strstr(drain(), "shown"));
	assert_int_equal(log_level(), LOG_LEVEL_DEBUG);
}

/* Before the limit begins, every error of the start is logged. Must run before any test of limits. */
static void
start_up_is_never_suppressed(void **state)
{
	(void)state;
	open_as(LOG_FORMAT_TEXT, 2, 60000);
	for (int i = 0; i < 50; i++)
		log_event(LOG_LEVEL_ERROR, "config.bad", "line %d", i);
	assert_int_equal(lines(drain()), 50);
}

static void
floods_are_counted_by_event(void **state)
{
	(void)state;
	open_as(LOG_FORMAT_TEXT, 5, WINDOW_MS);
	log_limit_begin();
	for (int i = 0; i < 100; i++)
		log_event(LOG_LEVEL_WARNING, "flood.one", "no %d", i);
	log_event(LOG_LEVEL_WARNING, "flood.two", "another");
	assert_int_equal(lines(drain()), 6);
	assert_null(strstr(got, "suppressed"));
	usleep((WINDOW_MS + 10) * 1000);
	log_event(LOG_LEVEL_WARNING, "flood.one", "later");
	assert_non_null(strstr(drain(), "later  suppressed=95\n"));
	log_event(LOG_LEVEL_WARNING, "flood.one", "told once");
	assert_null(strstr(drain(), "suppressed"));
}

static void
what_was_left_out_is_logged_when_nothing_follows(void **state)
{
	(void)state;
	open_as(LOG_FORMAT_JSON, 1, WINDOW_MS);
	log_limit_begin();
	for (int i = 0; i < 4; i++)
		log_event(LOG_LEVEL_WARNING, "quiet.then", "no %d", i);
	assert_int_equal(lines(drain()), 1);
	log_tick();
	assert_string_equal(drain(), "");
	usleep((WINDOW_MS + 10) * 1000);
	log_tick();
	assert_non_null(strstr(drain(), "\"suppressed\":3}"));
	assert_non_null(strstr(got, "\"event\":\"quiet.then\""));
	log_tick();
	assert_string_equal(drain(), "");
}

static void
more_events_than_there_are_counters(void **state)
{
	char event[32];

	(void)state;
	open_as(LOG_FORMAT_TEXT, 1, 60000);
	log_limit_begin();
	for (int i = 0; i < 500; i++) {
		snprintf(event, sizeof(event), "many.%d", i);
		log_event(LOG_LEVEL_INFO, event, "x");
		assert_int_equal(lines(drain()), 1);
	}
}

static void
a_reader_that_sleeps_stops_nobody(void **state)
{
	unsigned reported = 0;
	const char *text;
	char event[32];

	(void)state;
	open_as(LOG_FORMAT_TEXT, 1000000, 0);
	errno = ENOSPC;
	for (int i = 0; i < 5000; i++) {
		snprintf(event, sizeof(event), "full.%d", i % 4);
		log_event(LOG_LEVEL_INFO, event, "some message that fills the pipe");
	}
	assert_int_equal(errno, ENOSPC);
	while ((text = drain())[0] != '\0')
		reported += lines(text);
	assert_true(reported > 0 && reported < 5000);
	log_event(LOG_LEVEL_INFO, "full.end", "back");
	snprintf(event, sizeof(event), "lines_lost=%u\n", 5000 - reported);
	assert_non_null(strstr(drain(), event));
}

/* SIGPIPE is as it was: it would end this test. */
static void
a_reader_that_is_gone_ends_nobody(void **state)
{
	open_as(LOG_FORMAT_TEXT, 0, 0);
	close(reader);
	log_event(LOG_LEVEL_INFO, "gone.reader", "to nobody");
	close(writer);
	assert_int_equal(setup(state), 0);
	open_as(LOG_FORMAT_TEXT, 0, 0);
	log_event(LOG_LEVEL_INFO, "next.reader", "to somebody");
	assert_non_null(strstr(drain(), "lines_lost=1\n"));
}

static void
a_line_is_safe(const struct hostile_name *h, void *arg)
{
	enum log_format format = *(enum log_format *)arg;
	json_t *j;

	open_as(format, 1000, 0);
	log_fields(LOG_LEVEL_INFO, "hostile", LOG_FIELDS(LOG_TEXT("name", h->name)), "%s", h->name);
	assert_int_equal(lines(drain()), 1);
	hostile_is_safe(h, got, true);
	if (format != LOG_FORMAT_JSON)
		return;
	j = line_json(got);
	if (text_is_plain(h->name, h->len) && h->len < 100)
		assert_string_equal(member(j, "name"), h->name);
	json_decref(j);
}

static void
no_hostile_name_ends_a_line_or_acts_on_its_reader(void **state)
{
	(void)state;
	for (enum log_format f = LOG_FORMAT_TEXT; f <= LOG_FORMAT_JSON; f++)
		hostile_each(a_line_is_safe, &f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(start_up_is_never_suppressed, setup, teardown),
		cmocka_unit_test_setup_teardown(json_has_the_message_and_typed_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(any_byte_makes_one_valid_line, setup, teardown),
		cmocka_unit_test_setup_teardown(no_hostile_name_ends_a_line_or_acts_on_its_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(text_is_for_people, setup, teardown),
		cmocka_unit_test_setup_teardown(too_long_is_cut_and_still_valid, setup, teardown),
		cmocka_unit_test_setup_teardown(auto_is_text_on_a_terminal_only, setup, teardown),
		cmocka_unit_test_setup_teardown(the_journal_gets_priorities, setup, teardown),
		cmocka_unit_test_setup_teardown(the_level_changes_at_run_time, setup, teardown),
		cmocka_unit_test_setup_teardown(floods_are_counted_by_event, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_left_out_is_logged_when_nothing_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(more_events_than_there_are_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reader_that_sleeps_stops_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reader_that_is_gone_ends_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
