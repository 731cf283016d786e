/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice dead-letters replay: asks the running agent, which owns the spool, to put letters of one file after the other
 * into it, and removes those that the agent has named.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/format.h"
#include "base/spell.h"
#include "cli/control_client.h"
#include "cli/dead_letters.h"
#include "cli/print_json.h"
#include "config/config.h"
#include "deliver/dead_letter_files.h"

#define TIMEOUT_MS 60000
#define ROOM_PAUSE_MS 500
#define ROOM_PATIENCE_MS 60000
#define PROGRESS_MS 1000
#define PROGRESS_LOG_MS 10000		/* where stderr is no terminal */

struct replay {
	struct dead_letters_command *command;
	char socket[4096];
	int fd;				/* of the connection */
	uint64_t letters;		/* whose records are in the spool */
	uint64_t bytes;			/* of these letters in their files */
	uint64_t refused;		/* by the agent: they stay */
	int64_t shown_ms;		/* CLOCK_MONOTONIC; of the last progress */
	bool is_over;			/* an error after which nothing more is asked */
};

/* A file whose letters are being replayed. */
struct replay_file {
	const char *name;
	int fd;				/* locked */
	uint64_t header_end;
	struct dead_letter_range *done;	/* owned; neighbours are joined */
	size_t n_done;
	size_t cap;
};

static volatile sig_atomic_t stop;

static void
on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static void
show_progress(struct replay *r, const char *what)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);
	bool is_terminal = isatty(STDERR_FILENO) == 1;
	char count[FORMAT_SIZE];

	if (now - r->shown_ms < (is_terminal ? PROGRESS_MS : PROGRESS_LOG_MS))
		return;
	r->shown_ms = now;
	fprintf(stderr, "%s" DEAD_LETTERS_WHO ": %s replayed%s%s%s", is_terminal ? "\r\033[K" : "",
	    format_count(r->letters, count, sizeof(count)), what[0] != '\0' ? "; " : "", what, is_terminal ? "" : "\n");
}

static void
end_progress(const struct replay *r)
{
	if (r->shown_ms != 0 && isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
}

/* Returns the agent's answer to one request, the caller's; NULL after printing why there is none. */
static json_t *
ask(struct replay *r, const struct replay_file *f, uint64_t offset)
{
	const struct dead_letters_command *c = r->command;
	json_t *args = json_pack("{ss ss sI}", "folder", c->folder, "file", f->name, "offset", (json_int_t)offset);
	json_t *request, *answer;

	if (c->filter.topic != NULL)
		json_object_set_new(args, "topic", json_string(c->filter.topic));
	if (c->filter.reason != NULL)
		json_object_set_new(args, "reason", json_string(c->filter.reason));
	request = json_pack("{ss so}", "command", "dead-letters", "args", args);
	answer = request != NULL ? control_client_ask(DEAD_LETTERS_WHO, r->fd, r->socket, request, TIMEOUT_MS) : NULL;
	json_decref(request);
	if (answer != NULL && !json_is_true(json_object_get(answer, "ok"))) {
		const char *error = json_string_value(json_object_get(answer, "error"));

		end_progress(r);
		spell_line(stderr, DEAD_LETTERS_WHO ": %s\n", error != NULL ? error : "the agent refuses, without a reason");
		json_decref(answer);
		answer = NULL;
	}
	return answer;
}

/* Waits until the spool has room again. False: for too long, or interrupted. */
static bool
wait_for_room(struct replay *r, const char *why, int64_t *waited_ms)
{
	const struct timespec pause = { ROOM_PAUSE_MS / 1000, ROOM_PAUSE_MS % 1000 * 1000000 };

	show_progress(r, why);
	if (stop)
		return false;
	if (*waited_ms < ROOM_PATIENCE_MS) {
		*waited_ms += ROOM_PAUSE_MS;
		nanosleep(&pause, NULL);
		return true;
	}
	end_progress(r);
	spell_line(stderr, DEAD_LETTERS_WHO ": %s; see `sluice ctl status`, and repeat the replay when they are delivered\n", why);
	return false;
}

/* Notes that a letter is in the spool. False: out of memory. */
static bool
add_done(struct replay_file *f, uint64_t offset, uint64_t end)
{
	struct dead_letter_range *last = f->n_done > 0 ? &f->done[f->n_done - 1] : NULL;

	if (last != NULL && last->end == offset) {
		last->end = end;
		return true;
	}
	if (f->n_done == f->cap) {
		size_t cap = f->cap > 0 ? 2 * f->cap : 64;
		struct dead_letter_range *grown = realloc(f->done, cap * sizeof(*grown));

		if (grown == NULL)
			return false;
		f->done = grown;
		f->cap = cap;
	}
	f->done[f->n_done++] = (struct dead_letter_range){ offset, end };
	return true;
}

/* Notes what an answer reports. False: it is not an agent's, or memory is short. */
static bool
take_answer(struct replay *r, struct replay_file *f, const json_t *answer)
{
	uint64_t last = f->n_done > 0 ? f->done[f->n_done - 1].end : f->header_end;
	const json_t *replayed = json_object_get(answer, "replayed"), *problems = json_object_get(answer, "problems");
	uint64_t refused = (uint64_t)json_integer_value(json_object_get(answer, "refused"));
	uint64_t damaged = (uint64_t)json_integer_value(json_object_get(answer, "damaged"));

	for (size_t i = 0; i < json_array_size(replayed); i++) {
		const json_t *pair = json_array_get(replayed, i);
		uint64_t offset = (uint64_t)json_integer_value(json_array_get(pair, 0));
		uint64_t end = (uint64_t)json_integer_value(json_array_get(pair, 1));

		if (offset < last || end <= offset || !add_done(f, offset, end))
			return false;
		last = end;
		r->letters++;
		r->bytes += end - offset;
	}
	for (size_t i = 0; i < json_array_size(problems); i++) {
		const json_t *problem = json_array_get(problems, i);
		const char *text = json_string_value(json_object_get(problem, "problem"));

		end_progress(r);
		dead_letters_report(r->command, f->name, (uint64_t)json_integer_value(json_object_get(problem, "offset")),
		    text != NULL ? text : "");
	}
	r->command->damaged += damaged;
	r->refused += refused;
	if (refused + damaged > 0)
		r->command->status = EXIT_NO;
	return true;
}

/* Lets the agent put the letters of a file into the spool, batch by batch. */
static void
put_letters(struct replay *r, struct replay_file *f)
{
	uint64_t offset = f->header_end;
	int64_t waited_ms = 0;
	bool is_end = false;

	while (!is_end && !stop && !r->is_over) {
		json_t *answer = ask(r, f, offset);
		const char *wait = json_string_value(json_object_get(answer, "wait"));
		json_t *next = json_object_get(answer, "next");

		if (answer == NULL) {
			r->is_over = true;
		} else if (wait != NULL) {
			r->is_over = !wait_for_room(r, wait, &waited_ms);
		} else if (!take_answer(r, f, answer) || (uint64_t)json_integer_value(next) < offset) {
			fputs(DEAD_LETTERS_WHO ": the agent's answer is not understood, or memory is short\n", stderr);
			r->is_over = true;
		} else {
			offset = (uint64_t)json_integer_value(next);
			is_end = json_is_true(json_object_get(answer, "is_end"));
			waited_ms = 0;
			show_progress(r, "");
		}
		json_decref(answer);
	}
}

/* Reads where the file's letters begin. False after reporting that it is not one of dead letters. */
static bool
read_header(struct replay *r, struct replay_file *f)
{
	struct dead_letter_reader *reader;
	struct ocf_error error;

	if (dead_letter_reader_open(f->fd, &reader, &error) < 0) {
		dead_letters_report_damage(r->command, f->name, error.offset, error.text);
		return false;
	}
	f->header_end = dead_letter_reader_offset(reader);
	dead_letter_reader_close(reader);
	return true;
}

static void
replay_file(struct replay *r, const char *name)
{
	struct dead_letters_command *c = r->command;
	struct replay_file f = { .name = name, .fd = dead_letter_file_take(c->dir_fd, name) };
	int error;

	if (f.fd == -ENOENT)
		return;
	if (f.fd < 0) {
		dead_letters_report(c, name, 0, f.fd == -EBUSY ? "another process replays its letters" : strerror(-f.fd));
		return;
	}
	/* A connection that is idle while a large file is written anew would be closed. */
	r->fd = control_client_connect(DEAD_LETTERS_WHO, r->socket);
	r->is_over = r->fd < 0;
	if (!r->is_over && read_header(r, &f)) {
		put_letters(r, &f);
		error = dead_letter_file_remove(c->dir_fd, name, f.fd, f.done, f.n_done, f.header_end);
		if (error < 0) {
			end_progress(r);
			spell_line(stderr, DEAD_LETTERS_WHO ": %s/%s: its letters are replayed, but cannot be removed: %s; the next "
			    "replay repeats them\n", c->folder, name, strerror(-error));
			c->status = EXIT_NO;
			r->is_over = true;
		}
	}
	if (r->fd >= 0)
		close(r->fd);
	free(f.done);
	close(f.fd);
}

static void
print_result(const struct replay *r)
{
	const struct dead_letters_command *c = r->command;
	char letters[FORMAT_SIZE], refused[FORMAT_SIZE], damaged[FORMAT_SIZE];

	end_progress(r);
	if (c->as_json) {
		json_t *root = json_pack("{sI sI sI sI sb}", "replayed", (json_int_t)r->letters, "bytes", (json_int_t)r->bytes,
		    "refused", (json_int_t)r->refused, "damaged", (json_int_t)c->damaged, "complete",
		    c->status == EXIT_DONE && !r->is_over && !stop);

		print_json(stdout, root);
		json_decref(root);
		return;
	}
	printf("%s %s replayed, %s refused by the agent, %s damaged%s\n",
	    format_count(r->letters, letters, sizeof(letters)), r->letters == 1 ? "letter" : "letters",
	    format_count(r->refused, refused, sizeof(refused)), format_count(c->damaged, damaged, sizeof(damaged)),
	    stop ? "; interrupted, the rest stays" : "");
	if (r->letters > 0)
		puts("their records are in the agent's spool; `sluice ctl settle --delivered` waits for their delivery");
}

int
dead_letters_replay(struct dead_letters_command *c)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct replay r = { .command = c, .fd = -1, .shown_ms = clock_ms(CLOCK_MONOTONIC) };
	struct dead_letter_names names = { 0 };
	int error;

	control_client_path(c->socket, c->config, r.socket, sizeof(r.socket));
	error = c->dir_fd >= 0 ? dead_letter_names_read(c->dir_fd, &names) : 0;
	if (error < 0) {
		spell_line(stderr, DEAD_LETTERS_WHO ": %s: %s\n", c->folder, strerror(-error));
		c->status = EXIT_NO;
	}
	/* What is in the spool is noted before this process ends. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	for (size_t i = 0; i < names.n && !stop && !r.is_over; i++)
		replay_file(&r, names.list[i]);
	if (r.is_over || stop)
		c->status = EXIT_NO;
	print_result(&r);
	dead_letter_names_done(&names);
	return c->status;
}
