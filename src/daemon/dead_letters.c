/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letters: `sluice dead-letters replay`: puts dead letters back into the spool.
 *
 * The client has the file locked, and asks for one batch after the other. A thread reads it, since the folder's disk
 * may hang; the loop then puts what it has read. The answer is given once the records of a batch are synced in the
 * spool, and names the letters; only then does the client remove them. Whatever is killed in between, a letter is in
 * its file or its record in the spool, or both: it is then delivered again with the same agent_id and seq, as after any
 * crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/state.h"
#include "deliver/dead_letter_files.h"
#include "deliver/dead_letter_read.h"

#define BATCH_BYTES (1 << 20)
#define BATCH_LETTERS 1000
#define TURN_MS 20			/* the loop does nothing else meanwhile */
#define LOOK_MS 20
#define READ_LOOK_MS 2
#define READ_TURN_MS 500		/* in which the thread may find none that is wanted */
#define READ_MS 5000			/* after which a client is not kept waiting for the folder's disk */
#define SILENT "%s: its disk does not answer in time; the letters stay where they are"
#define PROBLEMS 20			/* that one answer names */

/* A letter that was read, or damage. */
struct item {
	TAILQ_ENTRY(item)	 at;
	bool			 is_damaged;	/* what is wrong is in text, at letter.offset */
	struct dead_letter	 letter;	/* texts and data are owned */
	uint64_t		 next;		/* offset behind it */
	char			*text;		/* owned: the texts, one after another */
};

/* What a thread reads of a file. It has it until it has returned. */
struct letter_reading {
	bool			 is_over;	/* atomic: loop or thread needs it no more; the second one frees it */
	char			*topic;		/* owned; of the filter, as the next one; NULL: any */
	char			*reason;
	uint64_t		 offset;
	uint64_t		 max_bytes;
	TAILQ_HEAD(, item)	 items;
	char			 problem[256];	/* not "": the file cannot be opened */
	struct ocf_error	 error;
	int			 result;	/* 1: there is more; 0: the end; or the negative errno of error */
	uint64_t		 next;
};

/* A batch: first it is read, then its records are in the spool until they are synced. */
struct letter_batch {
	struct control_request	*request;
	json_t			*answer;	/* owned */
	struct letter_reading	*reading;	/* NULL: it is read */
	int64_t			 began_ms;
	struct spool_mark	 mark;
	struct event		*again;		/* owned */
	struct daemon		*daemon;
	uint64_t		 letters;
};

static void
free_item(struct item *i)
{
	free(i->text);
	free(i);
}

/* Called by the loop and by the thread. */
static void
leave(struct letter_reading *r)
{
	struct item *i;

	if (!__atomic_exchange_n(&r->is_over, true, __ATOMIC_ACQ_REL))
		return;
	while ((i = TAILQ_FIRST(&r->items)) != NULL) {
		TAILQ_REMOVE(&r->items, i, at);
		free_item(i);
	}
	free(r->topic);
	free(r->reason);
	free(r);
}

static void
forget(struct letter_batch *b)
{
	b->daemon->letter_batch = NULL;
	if (b->reading != NULL)
		leave(b->reading);
	if (b->again != NULL)
		event_free(b->again);
	json_decref(b->answer);
	free(b);
}

/* Copies a text or data to where to points, with a NUL, and advances it. */
static char *
put_copy(char **to, const void *data, size_t len)
{
	char *copy = *to;

	memcpy(copy, data, len);
	copy[len] = '\0';
	*to += len + 1;
	return copy;
}

/* Adds a copy of a letter, or of the error of damage where letter is NULL. False: no memory. */
static bool
add_item(struct letter_reading *r, const struct dead_letter *letter, uint64_t next)
{
	const struct dead_letter none = { .topic = "", .reason = "", .detail = r->error.text, .key = "",
	    .data = (const uint8_t *)"", .offset = r->error.offset };
	const struct dead_letter *l = letter != NULL ? letter : &none;
	struct item *i = calloc(1, sizeof(*i));
	char *to = malloc(strlen(l->topic) + strlen(l->reason) + strlen(l->detail) + strlen(l->key) + l->len + 5);

	if (i == NULL || to == NULL) {
		free(i);
		free(to);
		return false;
	}
	i->text = to;
	i->is_damaged = letter == NULL;
	i->next = next;
	i->letter = *l;
	i->letter.topic = put_copy(&to, l->topic, strlen(l->topic));
	i->letter.reason = put_copy(&to, l->reason, strlen(l->reason));
	i->letter.detail = put_copy(&to, l->detail, strlen(l->detail));
	i->letter.key = put_copy(&to, l->key, strlen(l->key));
	i->letter.data = (const uint8_t *)put_copy(&to, l->data, l->len);
	TAILQ_INSERT_TAIL(&r->items, i, at);
	return true;
}

/* Reads letters that are wanted, as many as a batch takes. */
static void
read_items(struct letter_reading *r, struct dead_letter_reader *reader)
{
	const struct dead_letter_filter filter = { .topic = r->topic, .reason = r->reason };
	const int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + READ_TURN_MS;
	uint64_t bytes = 0;
	bool is_added = true;
	int n = 0;

	r->result = 1;
	while (n < BATCH_LETTERS && bytes < r->max_bytes && is_added && clock_ms(CLOCK_MONOTONIC) < until_ms) {
		struct dead_letter letter;

		r->result = dead_letter_reader_next(reader, &letter, &r->error);
		if (r->result == -EBADMSG) {
			is_added = add_item(r, NULL, dead_letter_reader_offset(reader));
			n++;
		} else if (r->result != 1) {
			break;
		} else if (dead_letter_is_wanted(&letter, &filter)) {
			is_added = add_item(r, &letter, dead_letter_reader_offset(reader));
			bytes += letter.len;
			n++;
		}
		if (is_added)
			r->next = dead_letter_reader_offset(reader);
	}
	if (r->result == -EBADMSG)
		r->result = 1;
	if (!is_added) {
		r->result = -ENOMEM;
		r->error = (struct ocf_error){ .offset = r->next, .text = "out of memory" };
	}
}

/* A disk_function. */
static int
read_file(int dir_fd, const char *path, const void *data, size_t len)
{
	struct letter_reading *r = *(struct letter_reading *const *)data;
	int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct dead_letter_reader *reader;

	(void)len;
	if (fd < 0) {
		snprintf(r->problem, sizeof(r->problem), "%s", strerror(errno));
	} else if (dead_letter_reader_open(fd, &reader, &r->error) < 0) {
		snprintf(r->problem, sizeof(r->problem), "%s", r->error.text);
	} else {
		if (r->offset > 0)
			dead_letter_reader_seek(reader, r->offset);
		r->next = dead_letter_reader_offset(reader);
		read_items(r, reader);
		dead_letter_reader_close(reader);
	}
	if (fd >= 0)
		close(fd);
	leave(r);
	return 0;
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

/* Puts the letters that were read. Returns their number. */
static uint64_t
put_letters(struct daemon *d, struct letter_reading *r, json_t *answer)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + TURN_MS;
	json_t *replayed = json_object_get(answer, "replayed");
	bool is_end = r->result != 1;
	uint64_t n = 0, next = r->next;
	struct item *i;

	for (i = TAILQ_FIRST(&r->items); i != NULL; i = TAILQ_NEXT(i, at)) {
		const char *why;

		if (i->is_damaged) {
			add_problem(answer, "damaged", i->letter.offset, i->letter.detail);
		} else if ((why = put(d, &i->letter)) != NULL) {
			add_problem(answer, "refused", i->letter.offset, why);
		} else {
			json_array_append_new(replayed, json_pack("[II]", (json_int_t)i->letter.offset,
			    (json_int_t)i->letter.end));
			n++;
		}
		if (clock_ms(CLOCK_MONOTONIC) >= until && TAILQ_NEXT(i, at) != NULL) {
			next = i->next;
			is_end = false;
			break;
		}
	}
	/* An error in the middle of the file is that of the batch that gets there. */
	if (is_end && r->result < 0)
		add_problem(answer, r->result == -ENODATA ? "damaged" : "refused", r->error.offset, r->error.text);
	json_object_set_new(answer, "next", json_integer((json_int_t)next));
	json_object_set_new(answer, "is_end", json_boolean(is_end));
	return n;
}

/* Answers once the records of the batch are synced. */
static void
await_sync(struct letter_batch *b)
{
	static const struct timeval later = { 0, LOOK_MS * 1000 };
	struct spool_stats spool;

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
	    disk_error_text(spool.last_error));
	forget(b);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0, READ_LOOK_MS * 1000 };
	struct letter_batch *b = arg;
	struct daemon *d = b->daemon;

	(void)fd;
	(void)what;
	if (b->reading != NULL && disk_hangs(d->letter_disk)) {
		if (clock_ms(CLOCK_MONOTONIC) - b->began_ms < READ_MS && evtimer_add(b->again, &soon) == 0)
			return;
		control_answer_error(b->request, SILENT, d->config->dead_letters);
		forget(b);
		return;
	}
	if (b->reading != NULL && (b->reading->problem[0] != '\0' || d->is_stopping)) {
		if (d->is_stopping)
			control_answer_error(b->request, "the agent stops");
		else
			control_answer_error(b->request, "%s/%s: %s", d->config->dead_letters,
			    json_string_value(json_object_get(b->answer, "file")), b->reading->problem);
		forget(b);
		return;
	}
	if (b->reading != NULL) {
		agent_commit(d->agent);		/* so that the batch has no other records */
		b->letters = put_letters(d, b->reading, b->answer);
		agent_commit(d->agent);
		spool_mark(d->spool, &b->mark);
		leave(b->reading);
		b->reading = NULL;
	}
	await_sync(b);
}

/* Has the thread read the file that a request names, from its offset on. False: the request was answered. */
static bool
begin_reading(struct daemon *d, struct control_request *req, const json_t *args, struct letter_reading **ret)
{
	const char *folder = json_string_value(json_object_get(args, "folder"));
	const char *file = json_string_value(json_object_get(args, "file"));
	const char *topic = json_string_value(json_object_get(args, "topic"));
	const char *reason = json_string_value(json_object_get(args, "reason"));
	json_int_t offset = json_integer_value(json_object_get(args, "offset"));
	struct letter_reading *r;
	char path[4096];
	int e = -ENOMEM;

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
	r = calloc(1, sizeof(*r));
	if (r != NULL) {
		TAILQ_INIT(&r->items);
		r->topic = topic != NULL ? strdup(topic) : NULL;
		r->reason = reason != NULL ? strdup(reason) : NULL;
		r->offset = (uint64_t)offset;
		r->max_bytes = batch_bytes(d);
	}
	if (r != NULL && (r->topic != NULL) == (topic != NULL) && (r->reason != NULL) == (reason != NULL))
		e = d->letter_disk == NULL ? disk_start(READ_MS, &d->letter_disk) : 0;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (e == 0)
		e = disk_begin(d->letter_disk, AT_FDCWD, path, &r, sizeof(r), read_file);
	if (e == 0) {
		*ret = r;
		return true;
	}
	if (e == -ETIMEDOUT)
		control_answer_error(req, SILENT, folder);
	else
		control_answer_error(req, "%s: %s", path, strerror(-e));
	if (r != NULL) {
		r->is_over = true;
		leave(r);
	}
	return false;
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
	struct letter_reading *reading;
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
	if (!begin_reading(d, req, args, &reading))
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
		leave(reading);
		control_answer_error(req, "out of memory");
		return;
	}
	b->daemon = d;
	b->request = req;
	b->reading = reading;
	b->began_ms = clock_ms(CLOCK_MONOTONIC);
	d->letter_batch = b;
	on_look(-1, 0, b);
}

void
daemon_free_letter_batch(struct daemon *d)
{
	if (d->letter_batch != NULL) {
		control_answer_error(d->letter_batch->request, "the agent stops");
		forget(d->letter_batch);
	}
	disk_stop(d->letter_disk);
	d->letter_disk = NULL;
}
