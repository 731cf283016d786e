/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter: letters wait in a batch while the thread writes and syncs the one before.
 */
#include "deliver/dead_letter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/worker.h"
#include "codec/varint.h"
#include "deliver/dead_letter_writer.h"

#define DEFAULT_MAX_BYTES (UINT64_C(100) << 20)

enum {
	STOP_MS = 5000,
};

struct letter {
	enum topic	topic;
	int64_t		now_us;		/* wall clock */
	size_t		at, len;	/* in data */
	int		error;		/* set by the thread */
};

struct batch {
	struct letter	*list;		/* owned */
	size_t		 n, size;
	struct bytes	 data;		/* encoded letters */
};

struct dead_letters {
	struct worker	*worker;	/* owned; NULL: not started yet */
	struct dead_letter_writer *writer;	/* owned; the thread's */
	struct batch	 next;
	struct batch	 round;		/* used by the thread while is_busy and not is_done */
	size_t		 n_returned;	/* of the round */
	bool		 is_busy;	/* not all of the round are returned */
	int		 is_done;	/* atomic */
	int		 is_scan_due;	/* atomic */
};

/* Runs on the thread. */
static void
run(void *arg)
{
	struct dead_letters *d = arg;
	struct batch *b = &d->round;
	int error;

	if (__atomic_exchange_n(&d->is_scan_due, 0, __ATOMIC_ACQUIRE))
		dead_letter_writer_scan(d->writer);
	for (size_t i = 0; i < b->n; i++) {
		struct letter *l = &b->list[i];

		l->error = dead_letter_writer_put(d->writer, l->topic, l->now_us, b->data.data + l->at, l->len);
	}
	error = dead_letter_writer_sync(d->writer);
	for (size_t i = 0; i < b->n; i++)
		if (b->list[i].error == 0)
			b->list[i].error = error;
	__atomic_store_n(&d->is_done, 1, __ATOMIC_RELEASE);
}

static void
begin(struct dead_letters *d)
{
	struct batch empty = d->round;

	if (d->is_busy || d->next.n == 0)
		return;
	/* Without a thread the letters wait, and the next tick tries again. */
	if (d->worker == NULL && worker_start(run, d, &d->worker) < 0)
		return;
	empty.n = 0;
	empty.data.len = 0;
	d->round = d->next;
	d->next = empty;
	d->n_returned = 0;
	d->is_busy = true;
	d->is_done = 0;
	worker_wake(d->worker);
}

int
dead_letters_open(const char *dir, uint64_t max_bytes, uint64_t free_min, struct dead_letters **ret)
{
	struct dead_letters *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	r = dead_letter_writer_new(dir, max_bytes != 0 ? max_bytes : DEFAULT_MAX_BYTES, free_min, &d->writer);
	if (r < 0) {
		free(d);
		return r;
	}
	*ret = d;
	return 0;
}

static void
batch_done(struct batch *b)
{
	free(b->list);
	bytes_done(&b->data);
}

void
dead_letters_close(struct dead_letters *d)
{
	int error;

	if (d == NULL)
		return;
	/* What waits is written, too: a restart hands out the records again, with new letters. */
	if (d->worker != NULL && !worker_stop(d->worker, STOP_MS))
		return;		/* the thread still uses d */
	d->worker = NULL;
	while (dead_letters_next(d, &error))
		;
	if (d->worker != NULL && !worker_stop(d->worker, STOP_MS))
		return;
	dead_letter_writer_free(d->writer);
	batch_done(&d->next);
	batch_done(&d->round);
	free(d);
}

static int
add_string(struct bytes *b, const char *text)
{
	return varint_append_bytes(b, text, strlen(text));
}

/* Encodes the fields in the order of dead_letter.avsc. */
static int
encode_letter(struct bytes *b, const struct spool_record *r, const char *reason,
    const char *detail, int64_t now_us)
{
	char fingerprint[17];
	int error;

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, r->schema);
	if ((error = add_string(b, topic_name(r->topic))) < 0 ||
	    (error = add_string(b, reason)) < 0 ||
	    (error = add_string(b, detail)) < 0 ||
	    (error = varint_append(b, now_us)) < 0 ||
	    (error = varint_append(b, r->time_us)) < 0 ||
	    (error = varint_append(b, (int64_t)r->seq)) < 0 ||
	    (error = add_string(b, r->key)) < 0 ||
	    (error = add_string(b, fingerprint)) < 0 ||
	    (error = varint_append_bytes(b, r->data, r->len)) < 0)
		return error;
	return 0;
}

int
dead_letters_put(struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail)
{
	struct batch *b = &d->next;
	struct letter l = { .topic = r->topic, .now_us = clock_us(CLOCK_REALTIME), .at = b->data.len };
	int error;

	if (b->n == b->size) {
		size_t size = b->size > 0 ? 2 * b->size : 64;
		struct letter *grown = realloc(b->list, size * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		b->list = grown;
		b->size = size;
	}
	error = encode_letter(&b->data, r, reason, detail, l.now_us);
	if (error < 0) {
		b->data.len = l.at;
		return error;
	}
	l.len = b->data.len - l.at;
	b->list[b->n++] = l;
	begin(d);
	return 0;
}

bool
dead_letters_next(struct dead_letters *d, int *ret_error)
{
	struct batch *b = &d->round;

	begin(d);
	if (!d->is_busy || !__atomic_load_n(&d->is_done, __ATOMIC_ACQUIRE))
		return false;
	*ret_error = b->list[d->n_returned++].error;
	if (d->n_returned == b->n) {
		d->is_busy = false;
		/* A burst may have been large. */
		batch_done(b);
		*b = (struct batch){ 0 };
		begin(d);
	}
	return true;
}

size_t
dead_letters_waiting(const struct dead_letters *d)
{
	return d->next.data.len + (d->is_busy ? d->round.data.len : 0);
}

void
dead_letters_scan(struct dead_letters *d)
{
	__atomic_store_n(&d->is_scan_due, 1, __ATOMIC_RELEASE);
}
