/*
 * SPDX-License-Identifier: Apache-2.0
 * reader: the queue of items, the reader that reads them, and those that hang.
 */
#include "reader/reader.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "model/losses.h"
#include "reader/penalty.h"

#define MS UINT64_C(1000000)
#define PATIENCE_NS (1000 * MS)
#define PATIENCE_LEAST_NS (20 * MS)
#define FORK_NS (5000 * MS)		/* for the nursery, which no user can hold up */
#define FILE_PATIENCE_NS (100 * MS)
#define FILE_STARVED_NS (1000 * MS)	/* the same with one that gets no CPU */
#define FILE_SHARE 10			/* part of the time that passes which is given back to either */
#define FILE_SLICE_NS (10 * MS)

enum {
	WINDOW = 32,		/* requests that are sent before they are answered */
	FINISH_HANGS_MAX = 32,	/* items that hang during reader_finish(), before the rest is not read */
	STARVED_MAX = 9,	/* times that the patience begins anew, as the reader gets no CPU */
	FILES_STUCK_MAX = 2,	/* of READER_STUCK_MAX, so that a file system does not take all */
};

struct item {
	uint32_t id;
	enum reader_kind kind;
	uint32_t pid;
	uint32_t uid;
	reader_done *done;
	void *arg;
};

/* The reader of a role. */
struct current {
	struct reader *r;
	enum reader_role role;
	int fd;			/* -1: there is none */
	pid_t pid;
	bool is_asked;		/* the nursery will send one */
	struct event *readable;	/* owned, of fd; NULL as fd is -1 */
	uint64_t since_ns;	/* when the first item was sent, or the last answered, or a reader asked for */
	unsigned starved;	/* times that it began anew since then */
};

/* A reader that was killed. */
struct stuck {
	pid_t pid;
	uint32_t uid;
	bool is_of_user;	/* false: it hangs in a file */
};

struct reader {
	struct event_base *base;	/* the caller's, as the nursery */
	struct nursery *nursery;
	bool is_alone;		/* the nursery is gone */
	bool reads_files;
	struct event *born;	/* the nursery's socket */
	struct event *deadline;	/* of the reader of processes */
	struct current current[READER_ROLES];
	struct item queue[READER_QUEUE];
	size_t head, n, n_sent;
	uint32_t last_id;
	unsigned finish_hangs;	/* during reader_finish() */
	bool is_finishing;
	uint64_t file_left_ns, starved_left_ns, file_seen_ns;	/* of the patience with files */
	struct penalties penalties;
	struct stuck stuck[READER_STUCK_MAX + READER_ROLES];	/* room for one more of each role */
	size_t n_stuck;
	struct reader_counts counts;
	struct user_losses user_losses;	/* of the counts: items of processes */
	char message[READER_ANSWER_MAX];
	/* Of files, which are read while the caller has the other. */
	char file_message[sizeof(struct reader_head) + READER_FILE_MAX + 1];
};

static struct item *
item_at(struct reader *r, size_t i)
{
	return &r->queue[(r->head + i) % READER_QUEUE];
}

/* Takes the first item off the queue and calls its caller. counter: why it was not read; NULL: it was. */
static void
finish_first(struct reader *r, const struct reader_answer *answer, uint64_t *counter)
{
	const struct item it = *item_at(r, 0);

	r->head = (r->head + 1) % READER_QUEUE;
	r->n--;
	if (r->n_sent > 0)
		r->n_sent--;
	if (counter != NULL) {
		++*counter;
		user_losses_count(&r->user_losses, &(struct user_loss){ .uid = it.uid, .cut = 1 });
	}
	it.done(answer, it.arg);
}

/* Readers that ended, as they should, or at last. */
static void
reap(struct reader *r)
{
	for (size_t i = 0; i < r->n_stuck;) {
		if (waitpid(r->stuck[i].pid, NULL, WNOHANG) == 0)
			i++;
		else
			r->stuck[i] = r->stuck[--r->n_stuck];
	}
}

/* Ends a reader. uid: of the user in whose item it hangs; NULL: in none. */
static void
leave(struct current *l, const uint32_t *uid)
{
	struct reader *r = l->r;

	if (l->fd < 0)
		return;
	event_free(l->readable);
	l->readable = NULL;
	close(l->fd);
	l->fd = -1;
	kill(l->pid, SIGKILL);
	/* There is room: at most READER_STUCK_MAX are there when one is forked, and each role has one. */
	r->stuck[r->n_stuck++] = (struct stuck){ l->pid, uid != NULL ? *uid : 0, uid != NULL };
	if (l->role == READER_OF_PROCESSES)
		r->n_sent = 0;
}

/* Returns whether items of a user are not read now. */
static bool
is_skipped(struct reader *r, uint32_t uid)
{
	reap(r);
	if (r->n_stuck >= READER_STUCK_MAX || (r->is_finishing && r->finish_hangs >= FINISH_HANGS_MAX))
		return true;
	for (size_t i = 0; i < r->n_stuck; i++) {
		if (r->stuck[i].is_of_user && r->stuck[i].uid == uid)
			return true;
	}
	return penalty_holds(&r->penalties, uid, clock_ns(CLOCK_BOOTTIME));
}

/* Returns how many readers hang in files. */
static size_t
stuck_in_files(const struct reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_stuck; i++)
		n += !r->stuck[i].is_of_user;
	return n;
}

static void fail_all(struct reader *r);

/* The reader's time begins: it has been asked, or has answered. */
static void
begin_patience(struct current *l)
{
	l->since_ns = clock_ns(CLOCK_MONOTONIC);
	l->starved = 0;
}

/* Asks for a reader, unless there is one or it is asked for. Returns false if there cannot be one. */
static bool
ask_for_one(struct current *l)
{
	struct reader *r = l->r;

	if (l->fd >= 0 || l->is_asked)
		return true;
	if (r->n_stuck > 0)
		reap(r);
	if (r->is_alone || r->n_stuck >= READER_STUCK_MAX ||
	    (l->role == READER_OF_FILES && stuck_in_files(r) >= FILES_STUCK_MAX) ||
	    nursery_ask(r->nursery, l->role) < 0)
		return false;
	l->is_asked = true;
	begin_patience(l);
	return true;
}

static uint64_t
patience_of(const struct reader *r)
{
	uint64_t ns = PATIENCE_NS;

	if (r->current[READER_OF_PROCESSES].fd < 0)
		return FORK_NS;
	if (r->is_finishing)
		ns = r->finish_hangs < 6 ? ns >> r->finish_hangs : 0;
	return ns > PATIENCE_LEAST_NS ? ns : PATIENCE_LEAST_NS;
}

/* Sets the timer of the first item, if there is one. */
static void
set_deadline(struct reader *r)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), at = r->current[READER_OF_PROCESSES].since_ns + patience_of(r);
	const uint64_t left = at > now ? at - now : 0;
	const struct timeval after = { (time_t)(left / (1000 * MS)), (suseconds_t)(left / 1000 % 1000000) };

	if (r->n > 0)
		event_add(r->deadline, &after);
	else
		event_del(r->deadline);
}

/* Sends the next requests, and drops items of users that are skipped once they are the first. */
static void
send_items(struct reader *r)
{
	struct current *l = &r->current[READER_OF_PROCESSES];

	while (r->n_sent < WINDOW && r->n_sent < r->n) {
		const struct item *it = item_at(r, r->n_sent);
		struct reader_request q = { .id = it->id, .kind = it->kind, .pid = it->pid, .limit = READER_FILE_MAX };

		if (is_skipped(r, it->uid)) {
			if (r->n_sent > 0)
				break;
			finish_first(r, NULL, &r->counts.skipped);
			continue;
		}
		if (!ask_for_one(l)) {
			fail_all(r);
			break;
		}
		if (l->fd < 0 || send(l->fd, &q, reader_request_len(&q), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;		/* a reader that ended is readable: it is found there */
		if (r->n_sent++ == 0)
			begin_patience(l);
	}
	set_deadline(r);
}

/* Nothing can be read. */
static void
fail_all(struct reader *r)
{
	for (size_t n = r->n; n > 0; n--)
		finish_first(r, NULL, &r->counts.failed);
}

/* The reader hangs in the first item, or ended in it. */
static void
give_up_first(struct reader *r, uint64_t *counter)
{
	const uint32_t uid = item_at(r, 0)->uid;

	penalty_set(&r->penalties, uid, clock_ns(CLOCK_BOOTTIME));
	leave(&r->current[READER_OF_PROCESSES], &uid);
	r->finish_hangs += r->is_finishing;
	finish_first(r, NULL, counter);
}

/* Takes the answers that are there. */
static void
take_answers(struct reader *r)
{
	struct current *l = &r->current[READER_OF_PROCESSES];
	struct reader_answer a;

	while (l->fd >= 0) {
		ssize_t n = recv(l->fd, r->message, sizeof(r->message), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0 || (size_t)n > sizeof(r->message) || r->n_sent == 0 ||
		    reader_answer_decode(r->message, (size_t)n, &a) < 0 || a.id != item_at(r, 0)->id) {
			if (r->n_sent > 0)
				give_up_first(r, &r->counts.failed);
			else
				leave(l, NULL);
			break;
		}
		begin_patience(l);
		finish_first(r, &a, NULL);
	}
	explicit_bzero(r->message, sizeof(r->message));	/* arguments before redaction */
	send_items(r);
}

/*
 * Returns whether the reader only waits for a CPU, as beside a user who takes them all; its time begins anew then. No
 * item makes it compute for that long, so that it is not a way to hold it up.
 */
static bool
is_starved(struct current *l)
{
	if (l->starved == STARVED_MAX || !own_child_is_runnable(l->pid))
		return false;
	l->starved++;
	l->since_ns = clock_ns(CLOCK_MONOTONIC);
	return true;
}

/* Whether the first item's time is over; what has been answered meanwhile is taken first. */
static void
look_at_deadline(struct reader *r)
{
	struct current *l = &r->current[READER_OF_PROCESSES];

	take_answers(r);
	if (r->n == 0 || clock_ns(CLOCK_MONOTONIC) - l->since_ns < patience_of(r))
		return;
	if (r->n_sent == 0)
		fail_all(r);	/* no reader came */
	else if (!is_starved(l))
		give_up_first(r, &r->counts.hung);
	send_items(r);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct current *l = arg;

	(void)fd;
	(void)what;
	if (l->role == READER_OF_PROCESSES)
		take_answers(l->r);
	else
		leave(l, NULL);	/* nothing was asked: it ended */
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	look_at_deadline(arg);
}

/* Takes the readers that the nursery sends. Returns false if one of processes could not be made. */
static bool
take_born(struct reader *r)
{
	struct nursling born;
	bool is_made = true;
	int n;

	while ((n = nursery_take(r->nursery, &born)) > 0) {
		struct current *l = &r->current[born.role < READER_ROLES ? born.role : READER_OF_PROCESSES];

		l->is_asked = false;
		if (born.fd < 0) {
			is_made &= l->role != READER_OF_PROCESSES;
			continue;
		}
		l->pid = born.pid;
		l->fd = born.fd;
		l->readable = event_new(r->base, l->fd, EV_READ | EV_PERSIST, on_readable, l);
		if (l->readable != NULL)
			event_add(l->readable, NULL);
		else
			leave(l, NULL);
	}
	if (n < 0) {
		r->is_alone = true;
		event_del(r->born);
		for (int i = 0; i < READER_ROLES; i++)
			r->current[i].is_asked = false;
	}
	return is_made;
}

/* Takes them, and has them read. */
static void
look_at_nursery(struct reader *r)
{
	if (!take_born(r))
		fail_all(r);
	send_items(r);
}

static void
on_born(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	look_at_nursery(arg);
}

int
reader_open(struct event_base *base, struct nursery *nursery, bool reads_files, struct reader **ret)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->base = base;
	r->nursery = nursery;
	for (int i = 0; i < READER_ROLES; i++)
		r->current[i] = (struct current){ .r = r, .role = (enum reader_role)i, .fd = -1 };
	r->file_left_ns = FILE_PATIENCE_NS;
	r->starved_left_ns = FILE_STARVED_NS;
	r->file_seen_ns = clock_ns(CLOCK_MONOTONIC);
	r->reads_files = reads_files;
	r->born = event_new(base, nursery_fd(nursery), EV_READ | EV_PERSIST, on_born, r);
	r->deadline = evtimer_new(base, on_deadline, r);
	if (r->born == NULL || r->deadline == NULL || event_add(r->born, NULL) < 0) {
		reader_close(r);
		return -ENOMEM;
	}
	reader_look(r);
	*ret = r;
	return 0;
}

void
reader_close(struct reader *r)
{
	struct nursling born;

	if (r == NULL)
		return;
	for (int i = 0; i < READER_ROLES; i++)
		leave(&r->current[i], NULL);
	while (r->nursery != NULL && nursery_take(r->nursery, &born) > 0) {
		if (born.fd >= 0)
			close(born.fd);		/* at which it ends */
	}
	if (r->born != NULL)
		event_free(r->born);
	if (r->deadline != NULL)
		event_free(r->deadline);
	user_losses_free(&r->user_losses);
	free(r);
}

bool
reader_ask(struct reader *r, enum reader_kind kind, uint32_t pid, uint32_t user, reader_done *done, void *arg)
{
	if (r->n == READER_QUEUE)
		return false;
	*item_at(r, r->n++) = (struct item){ .id = ++r->last_id, .kind = kind, .pid = pid, .uid = user, .done = done,
		.arg = arg };
	send_items(r);
	return true;
}

size_t
reader_room(const struct reader *r)
{
	return READER_QUEUE - r->n;
}

/* Waits for a reader or the nursery for at most a time; returns whether one of them has something. */
static bool
wait_for(const struct reader *r, const struct current *l, uint64_t ns)
{
	struct pollfd p[] = { { l->fd, POLLIN, 0 }, { r->is_alone ? -1 : nursery_fd(r->nursery), POLLIN, 0 } };

	return poll(p, 2, (int)((ns + MS - 1) / MS)) > 0;
}

void
reader_finish(struct reader *r, size_t n)
{
	const struct current *l = &r->current[READER_OF_PROCESSES];

	r->is_finishing = true;
	while (r->n > n) {
		uint64_t waited = clock_ns(CLOCK_MONOTONIC) - l->since_ns, patience = patience_of(r);

		if (wait_for(r, l, waited < patience ? patience - waited : 0))
			look_at_nursery(r);
		look_at_deadline(r);
	}
	r->is_finishing = false;
	if (n == 0)
		r->finish_hangs = 0;
	set_deadline(r);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A part of the time that has passed is given back to the patience with files. Returns the time. */
static uint64_t
renew_patience(struct reader *r)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), back = (now - r->file_seen_ns) / FILE_SHARE;

	r->file_left_ns = least(r->file_left_ns + back, FILE_PATIENCE_NS);
	r->starved_left_ns = least(r->starved_left_ns + back, FILE_STARVED_NS);
	return now;
}

unsigned
reader_patience(const struct reader *r)
{
	const uint64_t back = (clock_ns(CLOCK_MONOTONIC) - r->file_seen_ns) / FILE_SHARE;
	const uint64_t left = least(r->file_left_ns + back, FILE_PATIENCE_NS) * 100 / FILE_PATIENCE_NS;

	return (unsigned)least(left, least(r->starved_left_ns + back, FILE_STARVED_NS) * 100 / FILE_STARVED_NS);
}

/* Waits for the reader of files, as long as the patience with files lasts. */
static void
wait_for_reader_of_files(struct reader *r)
{
	const struct current *l = &r->current[READER_OF_FILES];
	const uint64_t begin = renew_patience(r);
	uint64_t waited = 0;

	while (waited < r->file_left_ns && l->fd < 0) {
		if (wait_for(r, l, r->file_left_ns - waited)) {
			(void)take_born(r);
			event_active(r->born, EV_READ, 0);	/* it sends; the caller is not to be called now */
		}
		if (!l->is_asked)
			break;
		waited = clock_ns(CLOCK_MONOTONIC) - begin;
	}
	r->file_seen_ns = clock_ns(CLOCK_MONOTONIC);
	r->file_left_ns -= least(r->file_seen_ns - begin, r->file_left_ns);
}

/*
 * Waits for its answer likewise. For how long the reader was without a CPU meanwhile, the file system is not to blame:
 * that has a patience of its own, so that on a busy host neither one answer nor many of a moment wear out the other.
 */
static void
wait_for_answer(struct reader *r)
{
	const struct current *l = &r->current[READER_OF_FILES];
	const uint64_t begin = renew_patience(r), delay = own_child_run_delay_ns(l->pid);
	struct pollfd p = { l->fd, POLLIN, 0 };
	uint64_t waited, starved;
	bool is_over;

	do {
		const uint64_t slice = least(r->file_left_ns, FILE_SLICE_NS);

		is_over = poll(&p, 1, slice > MS ? (int)(slice / MS) : 1) > 0;
		waited = clock_ns(CLOCK_MONOTONIC) - begin;
		starved = own_child_run_delay_ns(l->pid);
		starved = starved > delay ? least(starved - delay, waited) : 0;		/* unknown once it is gone */
		/* It waits for a CPU now, which is not in the sum yet, or its CPU was taken away by a hypervisor. */
		if (!is_over && waited - starved >= r->file_left_ns && own_child_is_runnable(l->pid))
			starved = waited;
		is_over |= starved >= r->starved_left_ns || waited - starved >= r->file_left_ns;
	} while (!is_over);
	r->file_seen_ns = begin + waited;
	r->file_left_ns -= least(waited - starved, r->file_left_ns);
	r->starved_left_ns -= least(starved, r->starved_left_ns);
}

/* Has the reader of files read what q names. Returns the number of bytes, or a negative errno; *a is of the answer. */
static ssize_t
ask_for_bytes(struct reader *r, struct reader_request *q, const struct reader_path *path, char *buf, size_t size,
    struct reader_answer *a)
{
	struct current *l = &r->current[READER_OF_FILES];
	size_t len = strlen(path->text);
	ssize_t n;

	if (len >= sizeof(q->path))
		return -ENAMETOOLONG;
	q->id = ++r->last_id;
	q->limit = (uint32_t)(size < READER_FILE_MAX ? size : READER_FILE_MAX);
	q->owner = path->owner;
	q->is_resolved = path->is_resolved;
	memcpy(q->path, path->text, len + 1);
	if (!ask_for_one(l)) {
		r->n_stuck > 0 ? r->counts.skipped++ : r->counts.failed++;
		return -EAGAIN;
	}
	wait_for_reader_of_files(r);
	if (l->fd < 0 || send(l->fd, q, reader_request_len(q), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		r->counts.failed++;
		leave(l, NULL);
		return -EAGAIN;
	}
	wait_for_answer(r);
	n = recv(l->fd, r->file_message, sizeof(r->file_message), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == EAGAIN) {
		r->counts.hung++;
		leave(l, NULL);
		return -ETIMEDOUT;
	}
	if (n <= 0 || (size_t)n > sizeof(r->file_message) || reader_answer_decode(r->file_message, (size_t)n, a) < 0 ||
	    a->id != q->id || a->text[READER_BYTES].len > q->limit) {
		r->counts.failed++;
		leave(l, NULL);
		return -EBADMSG;
	}
	r->counts.refused += a->error == -ELOOP || a->error == -EPERM;
	if (a->error < 0)
		return a->error;
	if (a->text[READER_BYTES].at != NULL)
		memcpy(buf, a->text[READER_BYTES].at, a->text[READER_BYTES].len);
	return (ssize_t)a->text[READER_BYTES].len;
}

ssize_t
reader_file(struct reader *r, const struct reader_path *path, uint64_t offset, char *buf, size_t size,
    struct reader_file_facts *facts)
{
	struct reader_request q = { .kind = READER_FILE, .offset = offset };
	struct reader_answer a;
	ssize_t n = ask_for_bytes(r, &q, path, buf, size, &a);

	if (n >= 0 && facts != NULL)
		*facts = a.file;
	return n;
}

ssize_t
reader_folder(struct reader *r, const struct reader_path *path, char *buf, size_t size)
{
	struct reader_request q = { .kind = READER_FOLDER };
	struct reader_answer a;

	return ask_for_bytes(r, &q, path, buf, size, &a);
}

void
reader_confine(struct reader *r)
{
	if (!r->is_alone)
		(void)nursery_confine(r->nursery);
	leave(&r->current[READER_OF_PROCESSES], NULL);
	send_items(r);
}

void
reader_look(struct reader *r)
{
	reap(r);
	if (r->reads_files)
		(void)ask_for_one(&r->current[READER_OF_FILES]);	/* before a file is to be read */
}

static void
add_usage(struct reader_usage *u, pid_t pid)
{
	u->cpu_ns += own_child_cpu_ns(pid);
	u->rss_bytes += own_child_rss_bytes(pid);
}

struct reader_usage
reader_usage(const struct reader *r)
{
	struct reader_usage u = { 0 };

	for (int role = 0; r != NULL && role < READER_ROLES; role++)
		if (r->current[role].fd >= 0)
			add_usage(&u, r->current[role].pid);
	for (size_t i = 0; r != NULL && i < r->n_stuck; i++)
		add_usage(&u, r->stuck[i].pid);
	return u;
}

struct reader_counts
reader_counts(const struct reader *r)
{
	struct reader_counts counts = { 0 };

	if (r != NULL)
		counts = r->counts;
	if (r != NULL)
		counts.stuck = (unsigned)r->n_stuck;
	return counts;
}

size_t
reader_user_losses(const struct reader *r, struct user_loss list[USER_LOSSES], size_t n)
{
	return r != NULL ? user_losses_list(&r->user_losses, list, n) : n;
}
