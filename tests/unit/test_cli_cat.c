/* SPDX-License-Identifier: Apache-2.0 */
/* sluice cat: each test runs cli_cat() in a child process and checks its whole output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "samples.h"
#include "lake/appender.h"

static char lake[64];
static char out[1 << 20], err[1 << 16];	/* of the last run */

static int
setup(void **state)
{
	(void)state;
	return sample_folder(lake) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	sample_remove(lake);
	return 0;
}

static struct lake_appender *writer;	/* of the stream that is open */

static struct stream *
open_stream(const char *agent_id)
{
	struct lake_appender_options o = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = agent_id };
	struct agent_identity id = sample_identity();
	struct stream *s = NULL;

	id.agent_id = agent_id;
	assert_int_equal(lake_appender_new(&o, &writer), 0);
	assert_int_equal(lake_appender_open(writer), 0);
	assert_int_equal(stream_open(&id, (struct record_writer){ lake_appender_put, writer }, &s), 0);
	return s;
}

static void
close_stream(struct stream *s)
{
	stream_close(s);
	assert_int_equal(lake_appender_close(writer, NULL, NULL, NULL), 0);
}

/* Two programs and a host record, each program in a block of its own. */
static void
make_lake(void)
{
	struct stream *s = open_stream(SAMPLE_AGENT);
	struct program_record start = sample_program_start(), end = sample_program_end();
	struct host_record host = sample_host();

	assert_int_equal(stream_host(s, &host), 0);
	assert_int_equal(stream_program(s, &start), 0);
	lake_appender_flush(writer, SAMPLE_TIME);
	assert_int_equal(stream_program(s, &end), 0);
	close_stream(s);
}

static void
slurp(int fd, char *text, size_t size)
{
	ssize_t n;
	size_t len = 0;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	while ((n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fd);
}

static int
temporary(void)
{
	char path[] = "/tmp/sluice-test-out-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static pid_t
start(int out_fd, int err_fd, const char *folder, char **argv)
{
	pid_t pid = fork();
	int argc = 0;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	while (argv[argc] != NULL)
		argc++;
	if (folder != NULL && chdir(folder) < 0)
		_exit(99);
	dup2(out_fd, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	_exit(cli_cat(argc, argv));
}

static int
finish(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Runs cat to its end; out and err have what it wrote. */
static int
run(char **argv)
{
	int out_fd = temporary(), err_fd = temporary(), status;

	status = finish(start(out_fd, err_fd, NULL, argv));
	slurp(out_fd, out, sizeof(out));
	slurp(err_fd, err, sizeof(err));
	return status;
}

#define RUN(...) run((char *[]){ (char *)"cat", __VA_ARGS__, NULL })
#define ARG(text) ((char *)(uintptr_t)(text))

static size_t
lines(void)
{
	size_t n = 0;

	for (const char *p = out; *p != '\0'; p++)
		n += *p == '\n';
	return n;
}

/* The nth line as JSON; the caller's. */
static json_t *
record(size_t n)
{
	const char *p = out;
	json_t *json;

	while (n-- > 0)
		p = strchr(p, '\n') + 1;
	json = json_loadb(p, strcspn(p, "\n"), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	return json;
}

static void
assert_record(size_t n, const char *name, const char *want)
{
	json_t *json = record(n), *value = json_object_get(json, name);

	assert_non_null(value);
	if (want == NULL)
		assert_true(json_is_null(value));
	else
		assert_string_equal(json_string_value(value), want);
	json_decref(json);
}

static char *
file_of(const char *topic)
{
	static char path[PATH_MAX];
	glob_t g;

	snprintf(path, sizeof(path), "%s/%s/*/*/[!.]*.avro", lake, topic);
	assert_int_equal(glob(path, 0, NULL, &g), 0);
	snprintf(path, sizeof(path), "%s", g.gl_pathv[0]);
	globfree(&g);
	return path;
}

static void
a_lake_is_printed_topic_by_topic_in_order(void **state)
{
	(void)state;
	make_lake();
	assert_int_equal(RUN(lake), 0);
	assert_string_equal(err, "");
	assert_int_equal(lines(), 3);
	assert_record(0, "phase", "START");
	assert_record(0, "time", "2026-11-21T10:35:00.123456Z");
	assert_record(0, "usage", NULL);
	assert_record(1, "phase", "END");
	assert_record(2, "kernel", "6.1");
}

static void
a_topic_is_chosen_by_either_name(void **state)
{
	(void)state;
	make_lake();
	assert_int_equal(RUN(ARG("--topic"), ARG("program"), lake), 0);
	assert_int_equal(lines(), 2);
	assert_int_equal(RUN(ARG("--topic"), ARG("sluice.host"), lake), 0);
	assert_int_equal(lines(), 1);
	assert_int_equal(RUN(ARG("-t"), ARG("host"), ARG("-t"), ARG("program"), lake), 0);
	assert_int_equal(lines(), 3);
	assert_int_equal(RUN(ARG("--topic"), ARG("task"), lake), 0);
	assert_int_equal(lines(), 0);
	assert_int_equal(RUN(ARG("--topic"), ARG("nonsense"), lake), 2);
	assert_non_null(strstr(err, "nonsense"));
}

static void
the_topic_of_a_file_elsewhere_is_that_of_its_schema(void **state)
{
	char moved[PATH_MAX];

	(void)state;
	make_lake();
	snprintf(moved, sizeof(moved), "%s/moved.avro", lake);
	assert_int_equal(rename(file_of("sluice.program"), moved), 0);
	assert_int_equal(RUN(ARG("--topic"), ARG("program"), moved), 0);
	assert_int_equal(lines(), 2);
	assert_int_equal(RUN(ARG("--topic"), ARG("host"), moved), 0);
	assert_int_equal(lines(), 0);
}

static void
raw_times_are_integers(void **state)
{
	json_t *json;

	(void)state;
	make_lake();
	assert_int_equal(RUN(ARG("--raw"), file_of("sluice.program")), 0);
	json = record(0);
	assert_true(json_integer_value(json_object_get(json, "time")) == SAMPLE_TIME);
	json_decref(json);
}

static void
files_come_in_the_order_of_date_agent_and_first_seq(void **state)
{
	struct program_record r = sample_program_start();
	struct stream *s = open_stream(SAMPLE_AGENT);

	(void)state;
	/* a file for each: the day goes to and fro by more than an hour, seq 8 to 11 */
	stream_skip(s, TOPIC_PROGRAM, 8);
	for (int i = 0; i < 4; i++) {
		r.head.time_us = SAMPLE_TIME + (i % 2) * INT64_C(86400000000);
		assert_int_equal(stream_program(s, &r), 0);
	}
	close_stream(s);
	assert_int_equal(RUN(lake), 0);
	assert_int_equal(lines(), 4);
	for (size_t i = 0; i < 4; i++) {
		static const int want[] = { 8, 10, 9, 11 };
		json_t *json = record(i);

		assert_int_equal(json_integer_value(json_object_get(json, "seq")), want[i]);
		json_decref(json);
	}
}

static void
a_live_agents_open_file_is_read_quietly(void **state)
{
	struct program_record r = sample_program_start();
	struct stream *s = open_stream(SAMPLE_AGENT);
	char path[PATH_MAX];
	glob_t g;
	int fd;

	(void)state;
	assert_int_equal(stream_program(s, &r), 0);
	lake_appender_flush(writer, SAMPLE_TIME);
	snprintf(path, sizeof(path), "%s/*/*/*/.*.part", lake);
	assert_int_equal(glob(path, 0, NULL, &g), 0);
	fd = open(g.gl_pathv[0], O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "\x02\x90\x01", 3), 3);	/* a block has begun */
	close(fd);
	globfree(&g);
	assert_int_equal(RUN(lake), 0);
	assert_string_equal(err, "");
	assert_int_equal(lines(), 1);
	close_stream(s);
}

static void
a_cut_file_is_printed_as_far_as_it_goes_with_file_and_byte(void **state)
{
	struct stat st;
	char *path;

	(void)state;
	make_lake();
	path = file_of("sluice.program");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	assert_int_equal(RUN(lake), 1);
	assert_int_equal(lines(), 2);		/* the host's too */
	assert_record(0, "phase", "START");
	assert_record(1, "kernel", "6.1");
	assert_non_null(strstr(err, path));
	assert_non_null(strstr(err, ": byte "));
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(RUN(path), 1);
	assert_int_equal(lines(), 0);
	assert_non_null(strstr(err, "byte 100"));
}

static void
behind_a_damaged_block_reading_goes_on(void **state)
{
	struct stat st;
	char *path;
	char byte;
	int fd;

	(void)state;
	make_lake();
	path = file_of("sluice.program");
	fd = open(path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	/* the first block starts where the header's marker, repeated at the very end, ends */
	{
		static char data[1 << 17];
		ssize_t n = read(fd, data, sizeof(data));
		char *first = memmem(data, (size_t)n, data + n - 16, 16);

		assert_true(n > 0 && first != NULL && first < data + n - 16);
		byte = (char)0xff;
		assert_int_equal(pwrite(fd, &byte, 1, first - data + 16 + 4), 1);
	}
	close(fd);
	assert_int_equal(RUN(path), 1);
	assert_int_equal(lines(), 1);
	assert_record(0, "phase", "END");
	assert_non_null(strstr(err, ": byte "));
}

static void
foreign_and_missing_things_are_named(void **state)
{
	char path[PATH_MAX];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/x.avro", lake);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, "hello there", 11), 11);
	close(fd);
	assert_int_equal(RUN(path), 1);
	assert_non_null(strstr(err, "not an Avro object container file"));
	assert_non_null(strstr(err, path));
	make_lake();
	assert_int_equal(RUN(lake), 1);		/* the good ones are printed all the same */
	assert_int_equal(lines(), 3);
	assert_int_equal(RUN(lake, ARG("/nonexistent/lake")), 2);
	assert_int_equal(lines(), 0);
	assert_string_equal(err, "sluice cat: /nonexistent/lake: No such file or directory: name a lake's folder, or Avro "
	    "files of one\n");
	assert_int_equal(RUN(ARG("--no-such-option")), 2);
	assert_int_equal(RUN(ARG("--help")), 0);
	assert_non_null(strstr(out, "--follow"));
}

static void
without_a_path_it_is_the_lake_here_and_a_missing_one_gets_advice(void **state)
{
	char *argv[] = { ARG("cat"), NULL };
	int out_fd = temporary(), err_fd = temporary();

	(void)state;
	assert_int_equal(finish(start(out_fd, err_fd, lake, argv)), 2);
	slurp(err_fd, err, sizeof(err));
	assert_non_null(strstr(err, "sluice run -- COMMAND"));
	close(out_fd);
}

/* Reads lines from a pipe until n are there, ten seconds at most. */
static void
wait_lines(int fd, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = strlen(out);

	while (lines() < n && poll(&p, 1, 10000) > 0) {
		ssize_t got = read(fd, out + len, sizeof(out) - 1 - len);

		if (got <= 0)
			break;
		len += (size_t)got;
		out[len] = '\0';
	}
	assert_int_equal(lines(), n);
}

static void
follow_prints_what_arrives_over_files_until_interrupted(void **state)
{
	char *argv[] = { ARG("cat"), ARG("--follow"), lake, NULL };
	struct program_record r = sample_program_start();
	struct host_record host = sample_host();
	int out_pipe[2], err_fd = temporary();
	struct stream *s;
	pid_t pid;

	(void)state;
	make_lake();
	out[0] = '\0';
	assert_int_equal(pipe2(out_pipe, O_CLOEXEC), 0);
	pid = start(out_pipe[1], err_fd, NULL, argv);
	close(out_pipe[1]);
	wait_lines(out_pipe[0], 3);
	s = open_stream("22222222-2222-3333-4444-555555555555");
	assert_int_equal(stream_program(s, &r), 0);
	lake_appender_flush(writer, SAMPLE_TIME);
	wait_lines(out_pipe[0], 4);
	assert_int_equal(stream_program(s, &r), 0);
	assert_int_equal(stream_host(s, &host), 0);
	close_stream(s);
	wait_lines(out_pipe[0], 6);
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(finish(pid), 0);
	assert_int_equal(read(out_pipe[0], out, 1), 0);		/* nothing twice */
	slurp(err_fd, err, sizeof(err));
	assert_string_equal(err, "");
	close(out_pipe[0]);
}

static void
a_closed_pipe_ends_it_quietly(void **state)
{
	char *once[] = { ARG("cat"), lake, NULL };
	char *forever[] = { ARG("cat"), ARG("-f"), lake, NULL };

	(void)state;
	make_lake();
	for (int i = 0; i < 2; i++) {
		int out_pipe[2], err_fd = temporary();

		assert_int_equal(pipe2(out_pipe, O_CLOEXEC), 0);
		close(out_pipe[0]);
		assert_int_equal(finish(start(out_pipe[1], err_fd, NULL, i ? forever : once)), 0);
		close(out_pipe[1]);
		slurp(err_fd, err, sizeof(err));
		assert_string_equal(err, "");
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_lake_is_printed_topic_by_topic_in_order),
		TEST(a_topic_is_chosen_by_either_name),
		TEST(the_topic_of_a_file_elsewhere_is_that_of_its_schema),
		TEST(raw_times_are_integers),
		TEST(files_come_in_the_order_of_date_agent_and_first_seq),
		TEST(a_live_agents_open_file_is_read_quietly),
		TEST(a_cut_file_is_printed_as_far_as_it_goes_with_file_and_byte),
		TEST(behind_a_damaged_block_reading_goes_on),
		TEST(foreign_and_missing_things_are_named),
		TEST(without_a_path_it_is_the_lake_here_and_a_missing_one_gets_advice),
		TEST(follow_prints_what_arrives_over_files_until_interrupted),
		TEST(a_closed_pipe_ends_it_quietly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
