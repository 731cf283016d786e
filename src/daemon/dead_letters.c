/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letters: `sluice dead-letters replay`: puts dead letters back into the spool.
 *
 * The client has the file locked, and asks for one batch after the other. The answer is given once the records of a
 * batch are synced in the spool, and names the letters; only then does the client remove them. Whatever is killed in
 * between, a letter is in its file or its record in the spool, or both: it is then delivered again with the same
 * agent_id and seq, as after any crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/state.h"
#include "deliver/dead_letter_files.h"
#include "deliver/dead_letter_read.h"

#define BATCH_BYTES (1 << 20)
#define BATCH_LETTERS 1000
#define TURN_MS 20			/* the loop does nothing else meanwhile */
#define LOOK_MS 20
#define PROBLEMS 20			/* that one answer names */

/* A batch whose records are in the spool, until they are synced. */
struct letter_batch {
	struct control_request	*request;
	json_t			*answer;	/* owned */
	struct spool_mark	 mark;
	struct event		*again;		/* owned */
	struct daemon		*daemon;
	uint64_t		 letters;
};

struct batch_files {
	int fd;
	struct dead_letter_reader *reader;
	struct dead_letter_filter filter;
};

static void
forget(struct letter_batch *b)
{
	b->daemon->letter_batch = NULL;
	if (b->again != NULL)
		event_free(b->again);
	json_decref(b->answer);
	free(b);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval later = { 0, LOOK_MS * 1000 };
	struct letter_batch *b = arg;
	struct spool_stats spool;

	(void)fd;
	(void)what;
	if (spool_sync_up_to(b->daemon->spool, &b->mark) == 0) {
		if (b->letters > 0)
			log_fields(LOG_LEVEL_INFO, "dead_letters.replayed", LOG_FIELDS(LOG_U64("records", b->letters),
			    LOG_TEXT("file", json_string_value(json_object_get(b->answer, "file")))),
			    "records of dead letters are in the spool again");
		control_answer(b->request, json_incref(b->answer));
		forget(b);
		return;
	}
	spool_stats(b->daemon->spool, &spool);
	if (spool.last_error == 0 && evtimer_add(b->again, &later) == 0)
		return;
	control_answer_error(b->request, "the spool's disk refuses writes: %s; the letters stay where they are",
	    strerror(-spool.last_error));
	forget(b);
}

/* Names a letter that stays in its file. */
static void
add_problem(json_t *answer, const char *counter, uint64_t offset, const char *what)
{
	json_t *problems = json_object_get(answer, "problems");
	char text[TEXT_ESCAPE_MAX(200)];

	json_object_set_new(answer, counter, json_integer(json_integer_value(json_object_get(answer, counter)) + 1));
	text_escape(what, strlen(what), text, sizeof(text), NULL);
	if (json_array_size(problems) < PROBLEMS)
		json_array_append_new(problems, json_pack("{sI ss}", "offset", (json_int_t)offset, "problem", text));
}

/* Puts the record of a letter into the spool. NULL, or why it cannot be put. */
static const char *
put(struct daemon *d, const struct dead_letter *letter)
{
	struct spool_record r = { .schema = letter->schema, .seq = letter->seq, .time_us = letter->record_time_us,
	    .key = letter->key, .data = letter->data, .len = letter->len };
	int t = 0, error;

	while (t < TOPIC_COUNT && strcmp(letter->topic, topic_name((enum topic)t)) != 0)
		t++;
	if (t == TOPIC_COUNT)
		return "the agent does not know its topic: a newer version wrote it";
	r.topic = (enum topic)t;
	error = spool_put_again(d->spool, &r);
	if (error == -EAGAIN) {
		agent_commit(d->agent);
		error = spool_put_again(d->spool, &r);
	}
	switch (error) {
	case 0:
		return NULL;
	case -ENOKEY:
		return "its schema is not in the folder schemas of the spool: put SCHEMA.avsc there";
	case -EAGAIN:
	case -EMSGSIZE:
		return "it is too large for the spool: raise spool.max";
	default:
		return strerror(-error);
	}
}

static uint64_t
batch_bytes(const struct daemon *d)
{
	return d->config->spool.max_bytes / 8 < BATCH_BYTES ? d->config->spool.max_bytes / 8 : BATCH_BYTES;
}

/* Reads letters from the reader's offset on, and puts those that are wanted. Returns their number. */
static uint64_t
put_letters(struct daemon *d, const struct batch_files *f, json_t *answer)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + TURN_MS;
	json_t *replayed = json_object_get(answer, "replayed");
	struct dead_letter letter;
	struct ocf_error error;
	uint64_t n = 0, bytes = 0;
	int r = 1;

	while (n < BATCH_LETTERS && bytes < batch_bytes(d) && clock_ms(CLOCK_MONOTONIC) < until) {
		const char *why;

		r = dead_letter_reader_next(f->reader, &letter, &error);
		if (r == -EBADMSG) {
			add_problem(answer, "damaged", error.offset, error.text);
			continue;
		}
		if (r != 1)
			break;
		if (!dead_letter_is_wanted(&letter, &f->filter))
			continue;
		why = put(d, &letter);
		if (why != NULL) {
			add_problem(answer, "refused", letter.offset, why);
			continue;
		}
		json_array_append_new(replayed, json_pack("[II]", (json_int_t)letter.offset, (json_int_t)letter.end));
		n++;
		bytes += letter.len;
	}
	if (r == -ENODATA)
		add_problem(answer, "damaged", error.offset, error.text);
	else if (r < 0 && r != -EBADMSG)
		add_problem(answer, "refused", error.offset, error.text);
	json_object_set_new(answer, "next", json_integer((json_int_t)dead_letter_reader_offset(f->reader)));
	json_object_set_new(answer, "is_end", json_boolean(r == 0 || (r < 0 && r != -EBADMSG)));
	return n;
}

/* Opens the file that a request names, at its offset. False: the request was answered with the error. */
static bool
open_file(struct daemon *d, struct control_request *req, const json_t *args, struct batch_files *ret)
{
	const char *folder = json_string_value(json_object_get(args, "folder"));
	const char *file = json_string_value(json_object_get(args, "file"));
	json_int_t offset = json_integer_value(json_object_get(args, "offset"));
	struct ocf_error error;
	char path[4096];
	int r;

	if (folder == NULL || file == NULL || !dead_letter_is_name(file) || offset < 0) {
		control_answer_error(req, "dead-letters takes the folder, the file and the offset of letters; "
		    "use `sluice dead-letters replay`");
		return false;
	}
	if (strcmp(folder, d->config->dead_letters) != 0) {
		control_answer_error(req, "the agent has its dead letters in %s, not in %s: name its configuration with -c",
		    d->config->dead_letters, folder);
		return false;
	}
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	ret->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (ret->fd < 0) {
		control_answer_error(req, "%s: %s", path, strerror(errno));
		return false;
	}
	r = dead_letter_reader_open(ret->fd, &ret->reader, &error);
	if (r < 0) {
		control_answer_error(req, "%s: %s", path, error.text);
		close(ret->fd);
		return false;
	}
	if (offset > 0)
		dead_letter_reader_seek(ret->reader, (uint64_t)offset);
	ret->filter = (struct dead_letter_filter){ .topic = json_string_value(json_object_get(args, "topic")),
	    .reason = json_string_value(json_object_get(args, "reason")) };
	return true;
}

/* Returns NULL if the spool can take a batch now, else why the client has to wait. */
static json_t *
wait_for_room(struct daemon *d)
{
	struct spool_stats spool;
	char why[256];

	spool_stats(d->spool, &spool);
	/* A quarter stays free for new records: a batch must not be the reason why the oldest are dropped. */
	if (spool.bytes + batch_bytes(d) <= d->config->spool.max_bytes / 4 * 3 || spool.records == 0)
		return NULL;
	snprintf(why, sizeof(why), "the spool is three quarters full: %llu records wait for delivery",
	    (unsigned long long)spool.records);
	return json_pack("{ss}", "wait", why);
}

void
daemon_on_dead_letters_request(struct control_request *req, const json_t *args, void *arg)
{
	struct daemon *d = arg;
	struct batch_files f = { .fd = -1 };
	struct letter_batch *b;
	json_t *wait;

	if (d->letter_batch != NULL || d->is_stopping) {
		control_answer_error(req, d->is_stopping ? "the agent stops" : "another client replays dead letters");
		return;
	}
	dead_letters_scan(d->dead);	/* the client has removed some since */
	wait = wait_for_room(d);
	if (wait != NULL) {
		control_answer(req, wait);
		return;
	}
	if (!open_file(d, req, args, &f))
		return;
	b = calloc(1, sizeof(*b));
	if (b != NULL) {
		b->again = evtimer_new(d->base, on_look, b);
		b->answer = json_pack("{ss s[] s[]}", "file", json_string_value(json_object_get(args, "file")), "replayed",
		    "problems");
	}
	if (b == NULL || b->again == NULL || b->answer == NULL) {
		if (b != NULL && b->again != NULL)
			event_free(b->again);
		if (b != NULL)
			json_decref(b->answer);
		free(b);
		control_answer_error(req, "out of memory");
	} else {
		b->daemon = d;
		b->request = req;
		agent_commit(d->agent);		/* so that the batch has no other records */
		b->letters = put_letters(d, &f, b->answer);
		agent_commit(d->agent);
		spool_mark(d->spool, &b->mark);
		d->letter_batch = b;
		on_look(-1, 0, b);
	}
	dead_letter_reader_close(f.reader);
	close(f.fd);
}

void
daemon_free_letter_batch(struct daemon *d)
{
	if (d->letter_batch == NULL)
		return;
	control_answer_error(d->letter_batch->request, "the agent stops");
	forget(d->letter_batch);
}
