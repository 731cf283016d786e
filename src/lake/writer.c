/*
 * SPDX-License-Identifier: Apache-2.0
 * writer: writes the lake in a thread of its own.
 *
 *	put ──► queue ──► taken ──► appender: blocks ──► files
 *	        the mutex's    the thread's
 *
 * The thread takes the whole queue once it has worked off what it took before, so that at most two halves of the limit
 * are in memory, beside a block for each topic. It counts what became of the records; the loop reports that.
 */
#include "lake/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/worker.h"
#include "lake/appender.h"
#include "lake/opening.h"

#define DEFAULT_QUEUE_BYTES (UINT64_C(4) << 20)
#define IDLE_TICK_US INT64_C(10000000)	/* for the age of files, where no record comes */
#define DEFAULT_REPAIR_US INT64_C(60000000)

enum {
	WAKE_BYTES = 64 * 1024,		/* about a block: the thread takes them without waiting for a tick */
	BUFFER_KEPT = 256 * 1024,	/* a larger buffer is freed after its records */
	ALIGNMENT = 8,
};

/* A record in the queue, followed by its key with the NUL, and its data. */
struct queued {
	const char	*schema;	/* of the writer's copies; NULL: the built-in one */
	uint64_t	 seq;
	int64_t		 time_us;
	size_t		 size;		/* of all of it, padded */
	size_t		 key_size;
	size_t		 len;
	enum topic	 topic;
	unsigned	 series;
	struct opt_u64	 user;
};

struct schema_text {
	struct schema_text *next;
	char		 text[];
};

enum recall {
	NO_RECALL,
	RECALL_WANTED,
	RECALL_ANSWERED,		/* the thread has given all back; the loop has not reported it */
};

/* What the thread has done and the loop has not reported. */
struct news {
	uint64_t	 synced;
	uint64_t	 given_back;
};

struct lake_writer {
	char		*host_id;	/* owned */
	uint64_t	 queue_max;	/* half of the limit */
	uint32_t	 put_wait_ms;
	int64_t		 repair_us;
	void		(*on_synced)(unsigned series, uint64_t records, void *arg);
	void		(*on_given_back)(unsigned series, uint64_t records, void *arg);
	void		(*on_repaired)(const struct lake_repair *repair, void *arg);
	void		*arg;		/* the caller's, as is the next one */
	struct lake_writer_stats *final_stats;
	int		 fd;		/* eventfd; -1: nothing is reported between ticks */
	struct worker	*worker;	/* owned; NULL: not started yet */
	struct worker_call call;	/* the thread's, read by both */

	/* The loop's. */
	struct schema_text *schemas;	/* owned; the thread reads the texts */
	const char	*schema[TOPIC_COUNT];	/* of the records that are put */
	int64_t		 ticked_us;	/* time of the last tick that woke the thread */

	/* The thread's. */
	struct lake_appender *appender;	/* owned */
	struct lake_opening opening;	/* of the lake; it has a mutex of its own */
	struct bytes	 taken;
	size_t		 taken_at;	/* the records before it are in the appender */
	int64_t		 repair_at_us;	/* monotonic, of the next repair; INT64_MAX: none */
	uint64_t	 left_seen;	/* files that the appender had left at the last repair, or before the next */
	struct lake_appender_counts told[LAKE_SERIES];	/* counted in stats and news */

	pthread_mutex_t	 mutex;		/* of the members below */
	pthread_cond_t	 has_room;
	struct bytes	 queue;
	bool		 is_woken;	/* for the records in the queue */
	bool		 is_full;	/* put was refused since the queue was taken */
	bool		 is_flush_due;
	bool		 is_closing;
	bool		 is_left;	/* the loop does not wait for the thread any more */
	bool		 is_repaired;
	bool		 has_repair_news;
	enum recall	 recall;
	int64_t		 now_us;	/* of the last tick */
	uint64_t	 pending;	/* records that are neither synced (or written, if that is enough) nor gone */
	int		 error;		/* of the last attempt */
	int		 close_error;
	struct lake_writer_stats stats;
	struct lake_retention_stats retention;
	uint64_t	 over[LAKE_OVER_SIZE];	/* users who have their shares, a bit each */
	struct news	 news[LAKE_SERIES];
	struct lake_repair repair;

	struct lake_writer *next_left;
};

/* Writers whose threads hang in a call. They are never freed, and leak checkers find them here. */
static struct lake_writer *left_writers;

static bool
reports(const struct lake_writer *w)
{
	return w->on_synced != NULL;
}

static void
notify(const struct lake_writer *w)
{
	if (w->fd >= 0)
		(void)!eventfd_write(w->fd, 1);
}

/* Adds the number of records in b from an offset on to those of their series. */
static void
count_queued(const struct bytes *b, size_t at, uint64_t counts[LAKE_SERIES])
{
	while (at < b->len) {
		const struct queued *q = (const struct queued *)(const void *)(b->data + at);

		counts[q->series]++;
		at += q->size;
	}
}

static void
empty(struct bytes *b)
{
	b->len = 0;
	if (b->cap > BUFFER_KEPT)
		bytes_done(b);
}

/* Counts what became of records since the last call; discarded: those that are gone by request. The mutex is held. */
static void
tell(struct lake_writer *w, const struct lake_appender_counts counts[LAKE_SERIES],
    const struct lake_appender_stats *stats, const uint64_t discarded[LAKE_SERIES], int error)
{
	bool has_news = w->error != error || w->is_full;

	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		uint64_t written = counts[t].written - w->told[t].written;
		uint64_t synced = counts[t].synced - w->told[t].synced;
		uint64_t lost = counts[t].lost - w->told[t].lost;

		w->told[t] = counts[t];
		w->stats.written += written - lost;
		w->stats.synced += synced;
		w->pending -= reports(w) ? synced + lost + discarded[t] : written + discarded[t];
		if (w->on_given_back == NULL) {
			w->stats.dropped += lost + discarded[t];
			continue;
		}
		w->stats.accepted -= lost + discarded[t];
		w->news[t].synced += synced;
		w->news[t].given_back += lost + discarded[t];
		has_news = has_news || synced + lost + discarded[t] > 0;
	}
	w->stats.files = stats->files;
	w->stats.errors = stats->errors;
	w->stats.last_error = stats->last_error;
	w->error = error;
	if (has_news)
		notify(w);
}

static void
tell_now(struct lake_writer *w, const uint64_t discarded[LAKE_SERIES], int error)
{
	struct lake_appender_counts counts[LAKE_SERIES];

	for (unsigned t = 0; t < LAKE_SERIES; t++)
		counts[t] = *lake_appender_counts(w->appender, t);
	w->retention = *lake_appender_retention(w->appender);
	lake_appender_over(w->appender, w->over);
	tell(w, counts, lake_appender_stats(w->appender), discarded, error);
}

static bool
has_lost(const struct lake_writer *w)
{
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		if (lake_appender_counts(w->appender, t)->lost != w->told[t].lost)
			return true;
	}
	return false;
}

/*
 * Gives back all that is not written: its caller has asked for it, or records before it are lost, which it must not
 * precede. What is written is synced once more, so that little comes back that is on the disk already.
 */
static void
give_back(struct lake_writer *w, int error)
{
	uint64_t discarded[LAKE_SERIES];

	for (unsigned t = 0; t < LAKE_SERIES; t++)
		discarded[t] = lake_appender_discard(w->appender, t);
	pthread_mutex_lock(&w->mutex);
	w->recall = RECALL_WANTED;	/* put refuses from now on */
	count_queued(&w->taken, w->taken_at, discarded);
	count_queued(&w->queue, 0, discarded);
	empty(&w->queue);
	w->is_woken = false;
	pthread_mutex_unlock(&w->mutex);
	empty(&w->taken);
	w->taken_at = 0;
	(void)lake_appender_sync(w->appender);
	pthread_mutex_lock(&w->mutex);
	tell_now(w, discarded, error);
	w->recall = RECALL_ANSWERED;
	notify(w);
	pthread_mutex_unlock(&w->mutex);
}

/* Puts the records that were taken into the appender. 0, or a negative errno: the rest waits. */
static int
append(struct lake_writer *w)
{
	if (w->opening.error < 0)
		return w->opening.error;
	while (w->taken_at < w->taken.len) {
		const struct queued *q = (const struct queued *)(const void *)(w->taken.data + w->taken_at);
		const char *key = (const char *)(q + 1);
		int r;

		if (__atomic_load_n(&w->is_left, __ATOMIC_RELAXED))
			return -ECANCELED;
		r = lake_appender_set_schema(w->appender, q->series, q->schema);
		if (r == 0)
			r = lake_appender_put(w->appender, &(struct encoded_record){ .topic = q->topic,
			    .time_us = q->time_us, .seq = q->seq, .key = key, .data = key + q->key_size,
			    .len = q->len, .user = q->user, .is_over = q->series != q->topic });
		if (r < 0)
			return r;
		w->taken_at += q->size;
		if (reports(w) && has_lost(w))
			return -EIO;
	}
	empty(&w->taken);
	w->taken_at = 0;
	return 0;
}

/* Takes the queue, if what was taken before is worked off. The mutex is held. */
static void
take(struct lake_writer *w)
{
	struct bytes worked_off = w->taken;

	if (w->taken_at < w->taken.len || w->queue.len == 0)
		return;
	w->taken = w->queue;
	w->queue = worked_off;
	w->is_woken = false;
	pthread_cond_signal(&w->has_room);
}

/* Writes all that is left, and closes the files. */
static void
close_files(struct lake_writer *w)
{
	struct lake_appender_counts counts[LAKE_SERIES];
	struct lake_appender_stats stats;
	uint64_t rest[LAKE_SERIES] = { 0 }, dropped;
	int r, closed;

	lake_appender_end_pause(w->appender);	/* the last attempt is not delayed */
	r = append(w);
	pthread_mutex_lock(&w->mutex);
	take(w);
	pthread_mutex_unlock(&w->mutex);
	if (r == 0)
		r = append(w);
	if (r == -ECANCELED)
		return;		/* the files, too, are left as they are */
	closed = lake_appender_close(w->appender, counts, &stats, &dropped);
	w->appender = NULL;
	pthread_mutex_lock(&w->mutex);
	tell(w, counts, &stats, rest, r < 0 ? r : closed);
	count_queued(&w->taken, w->taken_at, rest);
	count_queued(&w->queue, 0, rest);
	for (unsigned t = 0; t < LAKE_SERIES; t++)
		dropped += rest[t];
	if (w->on_given_back == NULL)
		w->stats.dropped += dropped;
	w->close_error = r < 0 ? r : closed;
	pthread_mutex_unlock(&w->mutex);
}

/*
 * Repairs files of dead writers, and those that this one has left. It is repeated where files of others have a live
 * writer, since the process of an agent that was stopped while the disk hung lives until that answers, and where a file
 * could not be repaired.
 */
static void
repair(struct lake_writer *w)
{
	struct lake_repair repaired;
	bool is_same, has_done;
	int r;

	worker_call_begin(&w->call, "repairing files");
	r = lake_repair(lake_appender_lake(w->appender), w->host_id, &repaired);
	worker_call_end(&w->call);
	if (r < 0 && repaired.failed++ == 0) {
		repaired.error = r;
		strncat(repaired.failed_path, lake_appender_lake(w->appender), sizeof(repaired.failed_path) - 1);
	}
	w->repair_at_us = repaired.failed > 0 || repaired.live > lake_appender_open_files(w->appender) ?
	    clock_us(CLOCK_MONOTONIC) + w->repair_us : INT64_MAX;
	has_done = repaired.files > 0 || repaired.empty > 0;
	pthread_mutex_lock(&w->mutex);
	is_same = w->is_repaired && !has_done && repaired.failed == w->repair.failed &&
	    repaired.error == w->repair.error;
	if (!is_same) {		/* the same failure is reported once */
		w->repair = repaired;
		w->has_repair_news = true;
		notify(w);
	}
	w->is_repaired = true;
	pthread_mutex_unlock(&w->mutex);
}

/* Has the files repaired that the appender has left since the last call, whose synced records no reader has. */
static void
repair_what_is_left(struct lake_writer *w)
{
	uint64_t left = lake_appender_stats(w->appender)->left;

	if (left != w->left_seen && w->repair_at_us == INT64_MAX)
		w->repair_at_us = clock_us(CLOCK_MONOTONIC) + w->repair_us;
	w->left_seen = left;
}

/* Runs on the thread. */
static void
work(void *arg)
{
	static const uint64_t none[LAKE_SERIES];
	struct lake_writer *w = arg;
	bool is_flush_due, is_recalled, is_closing, is_left, has_more;
	int64_t now_us;
	int error, r;

	if (w->appender != NULL)
		(void)lake_opening_try(&w->opening, w->appender);
	/* The first time before the first file, which must not have the name of one that a dead agent left. */
	if (w->appender != NULL && w->opening.error == 0 && !__atomic_load_n(&w->is_left, __ATOMIC_RELAXED) &&
	    clock_us(CLOCK_MONOTONIC) >= w->repair_at_us) {
		pthread_mutex_lock(&w->mutex);
		lake_appender_over(w->appender, w->over);	/* records come while it repairs */
		pthread_mutex_unlock(&w->mutex);
		repair(w);
	}
	do {
		pthread_mutex_lock(&w->mutex);
		take(w);
		is_flush_due = w->is_flush_due;
		is_recalled = w->recall == RECALL_WANTED;
		is_closing = w->is_closing;
		is_left = w->is_left;
		now_us = w->now_us;
		w->is_flush_due = false;
		pthread_mutex_unlock(&w->mutex);
		if (is_left || w->appender == NULL)
			return;
		if (is_closing) {
			close_files(w);
			return;
		}
		error = is_recalled ? w->opening.error : append(w);
		if (error == 0 || !(reports(w) && has_lost(w))) {
			r = is_flush_due && !is_recalled ? lake_appender_flush(w->appender, now_us) : 0;
			error = error == 0 ? r : error;
			r = is_flush_due && reports(w) ? lake_appender_sync(w->appender) : 0;
			error = error == 0 ? r : error;
		}
		if (is_recalled || (reports(w) && has_lost(w)))
			give_back(w, error);
		repair_what_is_left(w);
		pthread_mutex_lock(&w->mutex);
		tell_now(w, none, error);
		has_more = w->is_flush_due || w->is_closing || w->recall == RECALL_WANTED ||
		    (w->taken.len == 0 && w->queue.len >= WAKE_BYTES);
		pthread_mutex_unlock(&w->mutex);
	} while (has_more);
}

/* Wakes the thread. Without one, the caller does its work. */
static void
wake(struct lake_writer *w)
{
	if (w->worker == NULL && worker_start(work, w, &w->worker) < 0)
		work(w);
	else
		worker_wake(w->worker);
}

/* Waits until the thread takes the queue, if the caller wants that. The mutex is held. False: there is no room. */
static bool
wait_for_room(struct lake_writer *w, size_t size)
{
	const struct timespec until = clock_deadline(w->put_wait_ms);
	int r = w->put_wait_ms == 0 || w->is_full ? ETIMEDOUT : 0;

	while (w->queue.len > 0 && w->queue.len + size > w->queue_max && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&w->has_room, &w->mutex, &until);
	w->is_full = w->queue.len > 0 && w->queue.len + size > w->queue_max;
	return !w->is_full;
}

/* Appends the record to the queue. The mutex is held. 0 or a negative errno. */
static int
enqueue(struct lake_writer *w, const struct encoded_record *r)
{
	struct queued q = { .schema = w->schema[r->topic], .seq = r->seq, .time_us = r->time_us,
	    .key_size = strlen(r->key) + 1, .len = r->len, .topic = r->topic,
	    .series = lake_series(r), .user = r->user };
	uint8_t *to;

	if (r->len > LAKE_RECORD_MAX)
		return -EMSGSIZE;
	q.size = (sizeof(q) + q.key_size + q.len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (w->recall != NO_RECALL || !wait_for_room(w, q.size))
		return -EAGAIN;
	if (bytes_reserve(&w->queue, q.size) < 0)
		return -ENOMEM;
	to = w->queue.data + w->queue.len;
	memcpy(to, &q, sizeof(q));
	memcpy(to + sizeof(q), r->key, q.key_size);
	memcpy(to + sizeof(q) + q.key_size, r->data, q.len);
	w->queue.len += q.size;
	w->pending++;
	return 0;
}

int
lake_writer_put(void *writer, const struct encoded_record *r)
{
	struct lake_writer *w = writer;
	bool is_due;
	int error;

	pthread_mutex_lock(&w->mutex);
	error = enqueue(w, r);
	if (error < 0)
		w->stats.refused++;
	else
		w->stats.accepted++;
	is_due = w->queue.len >= WAKE_BYTES && !w->is_woken;
	w->is_woken = w->is_woken || is_due;
	pthread_mutex_unlock(&w->mutex);
	if (is_due)
		wake(w);
	return error;
}

void
lake_writer_tick(struct lake_writer *w, int64_t now_us)
{
	bool is_due;

	pthread_mutex_lock(&w->mutex);
	is_due = w->pending > 0 || !w->is_repaired || now_us < w->ticked_us || now_us - w->ticked_us >= IDLE_TICK_US;
	w->is_flush_due = w->is_flush_due || is_due;
	w->now_us = now_us;
	pthread_mutex_unlock(&w->mutex);
	if (is_due) {
		w->ticked_us = now_us;
		wake(w);
	}
	lake_writer_report(w);
}

void
lake_writer_recall(struct lake_writer *w)
{
	bool is_new;

	pthread_mutex_lock(&w->mutex);
	is_new = w->recall == NO_RECALL;
	if (is_new)
		w->recall = RECALL_WANTED;
	pthread_mutex_unlock(&w->mutex);
	if (is_new)
		wake(w);
}

int
lake_writer_fd(const struct lake_writer *w)
{
	return w->fd;
}

/* Calls the callbacks; for what is given back unless the writer is closing, when its caller keeps that anyway. */
static void
report(struct lake_writer *w, bool is_closing)
{
	struct news news[LAKE_SERIES];
	struct lake_repair repaired;
	bool has_repaired;
	eventfd_t n;

	if (w->fd >= 0)
		(void)!eventfd_read(w->fd, &n);
	pthread_mutex_lock(&w->mutex);
	memcpy(news, w->news, sizeof(news));
	memset(w->news, 0, sizeof(w->news));
	repaired = w->repair;
	has_repaired = w->has_repair_news;
	w->has_repair_news = false;
	if (w->recall == RECALL_ANSWERED)
		w->recall = NO_RECALL;
	pthread_mutex_unlock(&w->mutex);
	if (has_repaired && w->on_repaired != NULL)
		w->on_repaired(&repaired, w->arg);
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		if (news[t].synced > 0)
			w->on_synced(t, news[t].synced, w->arg);
		if (news[t].given_back > 0 && !is_closing)
			w->on_given_back(t, news[t].given_back, w->arg);
	}
}

void
lake_writer_report(struct lake_writer *w)
{
	report(w, false);
}

void
lake_writer_stats(struct lake_writer *w, struct lake_writer_stats *ret)
{
	pthread_mutex_lock(&w->mutex);
	*ret = w->stats;
	pthread_mutex_unlock(&w->mutex);
}

void
lake_writer_retention(struct lake_writer *w, struct lake_retention_stats *ret)
{
	pthread_mutex_lock(&w->mutex);
	*ret = w->retention;
	pthread_mutex_unlock(&w->mutex);
}

bool
lake_writer_is_over(struct lake_writer *w, const struct opt_u64 *user)
{
	const int i = user_bytes_index(user);
	bool is_over;

	pthread_mutex_lock(&w->mutex);
	is_over = i >= 0 && (w->over[i / 64] & UINT64_C(1) << i % 64) != 0;
	pthread_mutex_unlock(&w->mutex);
	return is_over;
}

void
lake_writer_state(struct lake_writer *w, struct lake_writer_state *ret)
{
	ret->waits_for = worker_call_now(&w->call, &ret->waits_since_ns);
	pthread_mutex_lock(&w->mutex);
	ret->error = w->error;
	ret->queued_bytes = w->queue.len;
	pthread_mutex_unlock(&w->mutex);
	ret->is_open = lake_opening_is_open(&w->opening);	/* after the error, which the opening ends */
}

int
lake_writer_set_schema(struct lake_writer *w, enum topic topic, const char *text)
{
	struct schema_text *s = w->schemas;

	while (text != NULL && s != NULL && strcmp(s->text, text) != 0)
		s = s->next;
	if (text != NULL && s == NULL) {
		s = malloc(sizeof(*s) + strlen(text) + 1);
		if (s == NULL)
			return -ENOMEM;
		strcpy(s->text, text);
		s->next = w->schemas;
		w->schemas = s;
	}
	w->schema[topic] = text != NULL ? s->text : NULL;
	return 0;
}

static void
free_writer(struct lake_writer *w)
{
	struct schema_text *s;

	lake_appender_close(w->appender, NULL, NULL, NULL);
	while ((s = w->schemas) != NULL) {
		w->schemas = s->next;
		free(s);
	}
	bytes_done(&w->queue);
	bytes_done(&w->taken);
	if (w->fd >= 0)
		close(w->fd);
	pthread_cond_destroy(&w->has_room);
	pthread_mutex_destroy(&w->mutex);
	lake_opening_done(&w->opening);
	free(w->host_id);
	free(w);
}

int
lake_writer_close(struct lake_writer *w, int timeout_ms)
{
	bool has_ended = true;
	int r;

	if (w == NULL)
		return 0;
	pthread_mutex_lock(&w->mutex);
	w->is_closing = true;
	pthread_mutex_unlock(&w->mutex);
	/* A caller that waits without limit anyway needs no thread for a few records. */
	if (w->worker == NULL && timeout_ms < 0) {
		work(w);
	} else {
		wake(w);
		has_ended = worker_stop(w->worker, timeout_ms);
	}
	pthread_mutex_lock(&w->mutex);
	__atomic_store_n(&w->is_left, !has_ended, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&w->mutex);
	report(w, true);
	if (w->final_stats != NULL)
		lake_writer_stats(w, w->final_stats);
	r = has_ended ? w->close_error : -ETIMEDOUT;
	if (has_ended) {
		free_writer(w);
	} else {
		w->next_left = left_writers;
		left_writers = w;
	}
	return r;
}

/* Has the lake opened, and waits for that as long as the caller wants. 0, or a negative errno: it cannot be opened. */
static int
begin_to_open(struct lake_writer *w, uint32_t wait_ms)
{
	int r;

	if (wait_ms == 0 || worker_start(work, w, &w->worker) < 0)
		return lake_opening_try(&w->opening, w->appender);
	worker_wake(w->worker);
	r = lake_opening_wait(&w->opening, wait_ms);
	if (r < 0)
		(void)worker_stop(w->worker, -1);
	return r;
}

int
lake_writer_open(const struct lake_writer_options *o, struct lake_writer **ret)
{
	struct lake_writer *w = calloc(1, sizeof(*w));
	struct lake_appender_options appender = o->appender;
	pthread_condattr_t monotonic;
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->queue_max = (o->queue_bytes != 0 ? o->queue_bytes : DEFAULT_QUEUE_BYTES) / 2;
	w->put_wait_ms = o->put_wait_ms;
	w->repair_us = o->repair_us != 0 ? o->repair_us : DEFAULT_REPAIR_US;
	w->on_synced = o->on_synced;
	w->on_given_back = o->on_given_back;
	w->on_repaired = o->on_repaired;
	w->arg = o->arg;
	w->final_stats = o->final_stats;
	w->fd = -1;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->has_room, &monotonic);
	pthread_condattr_destroy(&monotonic);
	lake_opening_init(&w->opening, o->maker, &w->call);
	appender.syncs_folders = reports(w);
	appender.call = &w->call;
	r = lake_appender_new(&appender, &w->appender);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	w->host_id = strdup(appender.host_id);
	if (w->host_id == NULL)
		goto fail;
	if (reports(w)) {
		w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (w->fd < 0) {
			r = -errno;
			goto fail;
		}
	}
	r = begin_to_open(w, o->open_wait_ms);
	if (r < 0)
		goto fail;
	*ret = w;
	return 0;

fail:
	free_writer(w);
	return r;
}
