/*
 * SPDX-License-Identifier: Apache-2.0
 * disk: calls on files that return in bounded time.
 */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/space.h"
#include "base/worker.h"

#define POSTPONED_MAX 64
#define PATIENCE_SHARE 10	/* part of the time that passes which is given back to the patience */
#define MS UINT64_C(1000000)
#define KEPT_BYTES ((size_t)1 << 20)	/* a larger buffer is freed after its call */
#define PIECE_BYTES KEPT_BYTES		/* of what is appended: the thread has a copy of one at a time */

/* One call; run() has its result. The thread has it from its wake until is_done. */
struct call {
	ssize_t		(*run)(struct call *c);
	disk_function	*function;	/* of run_function() */
	void		(*undo)(struct call *c);	/* of a call that returned too late; NULL: nothing to undo */
	int		 fd;		/* owned if a thread makes the call */
	int		 flags;
	mode_t		 mode;
	uint64_t	 offset;
	uint64_t	 undo_to;	/* of undo_append(): the size of the file */
	size_t		 len;
	char		 name[PATH_MAX];
	struct space	 space;		/* of run_space() */
	struct bytes	 data;		/* owned; to be written, or read; only where a thread makes the call */
	ssize_t		 result;
};

/* What is done once a call that hangs has returned. */
struct postponed {
	int	 fd;			/* owned: to be closed, after the name in it was removed */
	char	 name[NAME_MAX + 1];	/* "": none */
};

struct disk {
	struct worker	*worker;	/* owned */
	uint64_t	 patience_ns;
	uint64_t	 left_ns;	/* of the patience, at looked_ns; only the caller uses these */
	uint64_t	 looked_ns;
	pthread_mutex_t	 mutex;
	pthread_cond_t	 changed;	/* is_done */
	struct call	 call;
	uint64_t	 began_ns;	/* when the thread began the call; 0: it has not yet */
	uint64_t	 ended_ns;
	bool		 is_done;
	bool		 is_hung;	/* the caller does not wait for the call, and it has not returned; atomic */
	struct postponed postponed[POSTPONED_MAX];
	int		 n_postponed;
	bool		 is_left;	/* the thread frees d */
};

static ssize_t
run_open(struct call *c)
{
	int fd = openat(c->fd, c->name, c->flags, c->mode);

	return fd < 0 ? -errno : fd;
}

static void
undo_open(struct call *c)
{
	if (c->result < 0)
		return;
	if (c->flags & O_EXCL)
		unlinkat(c->fd, c->name, 0);
	close((int)c->result);
}

static void
undo_open_by(struct call *c)
{
	if (c->result >= 0)
		close((int)c->result);
}

static ssize_t
run_unlink(struct call *c)
{
	return unlinkat(c->fd, c->name, 0) < 0 ? -errno : 0;
}

static ssize_t
run_append(struct call *c)
{
	return file_write(c->fd, c->data.data, c->data.len, c->offset);
}

static void
undo_append(struct call *c)
{
	(void)!ftruncate(c->fd, (off_t)c->undo_to);	/* after a failure a part may be there, too */
}

/* Overwrites a part of a file. Returns 0 or a negative errno. */
static int
overwrite(int fd, const uint8_t *data, size_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		offset += (size_t)n;
	}
	return 0;
}

static ssize_t
run_write(struct call *c)
{
	return overwrite(c->fd, c->data.data, c->data.len, c->offset);
}

/* Returns how many bytes were read, or a negative errno. */
static ssize_t
read_all(int fd, uint8_t *to, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && done == 0)
			return -errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t
run_read(struct call *c)
{
	return read_all(c->fd, c->data.data, c->len, c->offset);
}

static ssize_t
run_truncate(struct call *c)
{
	return ftruncate(c->fd, (off_t)c->offset) < 0 ? -errno : 0;
}

static ssize_t
run_allocate(struct call *c)
{
	return -posix_fallocate(c->fd, 0, (off_t)c->offset);
}

static ssize_t
run_links(struct call *c)
{
	struct stat st;

	return fstat(c->fd, &st) < 0 ? -errno : (ssize_t)st.st_nlink;
}

static ssize_t
run_space(struct call *c)
{
	return space_read(c->fd, &c->space);
}

static ssize_t
run_is_at(struct call *c)
{
	struct stat ours, named;

	if (fstat(c->fd, &ours) < 0)
		return -errno;
	return stat(c->name, &named) == 0 && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static ssize_t
run_function(struct call *c)
{
	return c->function(c->fd, c->name, c->data.data, c->data.len);
}

static void
do_postponed(struct postponed *p)
{
	if (p->name[0] != '\0')
		unlinkat(p->fd, p->name, 0);
	close(p->fd);
}

/* Makes what was postponed. The mutex is held, but not during a call. */
static void
do_all_postponed(struct disk *d)
{
	while (d->n_postponed > 0) {
		struct postponed p = d->postponed[0];

		d->n_postponed--;
		memmove(d->postponed, d->postponed + 1, (size_t)d->n_postponed * sizeof(p));
		pthread_mutex_unlock(&d->mutex);
		do_postponed(&p);
		pthread_mutex_lock(&d->mutex);
	}
}

static void
free_disk(struct disk *d)
{
	bytes_done(&d->call.data);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->mutex);
	free(d);
}

static void
run(void *arg)
{
	struct disk *d = arg;
	struct call *c = &d->call;
	ssize_t result;
	bool is_left;

	pthread_mutex_lock(&d->mutex);
	d->began_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&d->mutex);
	result = c->run(c);
	pthread_mutex_lock(&d->mutex);
	d->ended_ns = clock_ns(CLOCK_MONOTONIC);
	c->result = result;
	if (d->is_hung && c->undo != NULL) {
		pthread_mutex_unlock(&d->mutex);
		c->undo(c);
		pthread_mutex_lock(&d->mutex);
	}
	if (c->fd != AT_FDCWD)
		close(c->fd);
	do_all_postponed(d);
	__atomic_store_n(&d->is_hung, false, __ATOMIC_RELEASE);
	d->is_done = true;
	is_left = d->is_left;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->mutex);
	if (is_left)
		free_disk(d);
}

int
disk_start(uint32_t patience_ms, struct disk **ret)
{
	struct disk *d = calloc(1, sizeof(*d));
	pthread_condattr_t monotonic;
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->patience_ns = d->left_ns = patience_ms * MS;
	d->looked_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&d->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = worker_start(run, d, &d->worker);
	if (r < 0) {
		free_disk(d);
		return r;
	}
	*ret = d;
	return 0;
}

void
disk_stop(struct disk *d)
{
	struct worker *w;
	bool is_left;

	if (d == NULL)
		return;
	w = d->worker;
	pthread_mutex_lock(&d->mutex);
	is_left = d->is_left = d->is_hung;
	pthread_mutex_unlock(&d->mutex);
	(void)worker_stop(w, is_left ? 0 : -1);
	if (!is_left)
		free_disk(d);	/* else the thread does, or has done so */
}

bool
disk_hangs(const struct disk *d)
{
	return d != NULL && __atomic_load_n(&d->is_hung, __ATOMIC_ACQUIRE);
}

const char *
disk_error_text(int error)
{
	return error == -ETIMEDOUT ? "it does not answer in time" : strerror(-error);
}

/*
 * Returns a call to be filled in, of the file that fd is of, and of a name; NULL and a negative errno in *ret: it
 * cannot be made. own: the call if the caller makes it.
 */
static struct call *
begin(struct disk *d, struct call *own, int fd, const char *name, int *ret)
{
	struct call *c = d != NULL ? &d->call : own;

	*ret = strlen(name) < sizeof(c->name) ? 0 : -ENAMETOOLONG;
	if (*ret == 0 && disk_hangs(d))
		*ret = -ETIMEDOUT;
	if (*ret == 0 && d != NULL && fd != AT_FDCWD && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
		*ret = -errno;
	if (*ret < 0)
		return NULL;
	c->fd = fd;
	c->undo = NULL;
	c->data.len = 0;
	memcpy(c->name, name, strlen(name) + 1);
	return c;
}

/* Waits until the call is done or a time has passed. The mutex is held. */
static void
wait_for(struct disk *d, uint64_t ns)
{
	const struct timespec until = clock_deadline((uint32_t)((ns + MS - 1) / MS));
	int r = 0;

	while (!d->is_done && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&d->changed, &d->mutex, &until);
}

/* Gives back to the patience its part of the time that has passed. Returns the present time. */
static uint64_t
refill(struct disk *d)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), back_ns = (now_ns - d->looked_ns) / PATIENCE_SHARE;

	d->left_ns = back_ns < d->patience_ns - d->left_ns ? d->left_ns + back_ns : d->patience_ns;
	d->looked_ns = now_ns;
	return now_ns;
}

/*
 * Waits for the call as long as the patience lasts, and takes from it what the call took, or what it was waited for.
 * That the host does not run the thread is not the disk's fault: the time of the call begins when the thread makes it,
 * or after the whole patience. The mutex is held.
 */
static void
wait_patiently(struct disk *d)
{
	const uint64_t made_ns = refill(d);
	uint64_t now_ns, spent_ns;

	wait_for(d, d->left_ns);
	if (!d->is_done && d->began_ns == 0)
		wait_for(d, d->patience_ns - d->left_ns);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (!d->is_done && d->began_ns > 0 && now_ns < d->began_ns + d->left_ns) {
		wait_for(d, d->began_ns + d->left_ns - now_ns);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
	spent_ns = (d->is_done ? d->ended_ns : now_ns) - (d->began_ns > 0 ? d->began_ns : made_ns);
	d->left_ns -= spent_ns < d->left_ns ? spent_ns : d->left_ns;
	d->looked_ns = now_ns;
}

/* Has the thread make a call. It may still be at the end of the one before, with the mutex. */
static void
start(struct disk *d, struct call *c, ssize_t (*run_call)(struct call *c))
{
	pthread_mutex_lock(&d->mutex);
	c->run = run_call;
	d->is_done = false;
	d->began_ns = 0;
	pthread_mutex_unlock(&d->mutex);
	worker_wake(d->worker);
}

/* Makes a call and returns its result. */
static ssize_t
make(struct disk *d, struct call *c, ssize_t (*run_call)(struct call *c))
{
	ssize_t result;

	if (d == NULL)
		return run_call(c);
	start(d, c, run_call);
	pthread_mutex_lock(&d->mutex);
	wait_patiently(d);
	if (!d->is_done)
		__atomic_store_n(&d->is_hung, true, __ATOMIC_RELEASE);
	result = d->is_done ? c->result : -ETIMEDOUT;
	pthread_mutex_unlock(&d->mutex);
	return result;
}

/* Frees the buffer if it is large and no call has it. */
static void
trim(struct disk *d)
{
	if (!disk_hangs(d) && d->call.data.cap > KEPT_BYTES)
		bytes_done(&d->call.data);
}

/* Has a name in a directory removed, if it is not "", and fd closed, once the call that hangs has returned. */
static bool
postpone(struct disk *d, int fd, const char *name)
{
	bool is_postponed;

	pthread_mutex_lock(&d->mutex);
	is_postponed = d->is_hung && d->n_postponed < POSTPONED_MAX && strlen(name) <= NAME_MAX;
	if (is_postponed) {
		struct postponed *p = &d->postponed[d->n_postponed++];

		p->fd = fd;
		memcpy(p->name, name, strlen(name) + 1);
	}
	pthread_mutex_unlock(&d->mutex);
	return is_postponed;
}

int
disk_open(struct disk *d, int dir_fd, const char *name, int flags, mode_t mode)
{
	struct call own = { 0 }, *c;
	int r;

	c = begin(d, &own, dir_fd, name, &r);
	if (c == NULL)
		return r;
	c->flags = flags;
	c->mode = mode;
	c->undo = undo_open;
	return (int)make(d, c, run_open);
}

void
disk_close(struct disk *d, int fd)
{
	if (!disk_hangs(d) || !postpone(d, fd, ""))
		close(fd);
}

int
disk_unlink(struct disk *d, int dir_fd, const char *name)
{
	struct call own = { 0 }, *c;
	int r, fd;

	c = begin(d, &own, dir_fd, name, &r);
	if (c != NULL)
		return (int)make(d, c, run_unlink);
	fd = r == -ETIMEDOUT ? fcntl(dir_fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd >= 0 && postpone(d, fd, name))
		return 0;
	if (fd >= 0)
		close(fd);
	return r;
}

/* Has the thread write what was put into a call. */
static int
write_call(struct disk *d, struct call *c, ssize_t (*run_call)(struct call *c), int r)
{
	if (r == 0)
		r = (int)make(d, c, run_call);
	else
		close(c->fd);
	trim(d);
	return r;
}

/* Moves at most PIECE_BYTES of n buffers into a call. 0, or a negative errno: no memory. */
static int
put_piece(struct call *c, struct iovec *iov, int n)
{
	int r = 0;

	for (int i = 0; i < n && r == 0 && c->data.len < PIECE_BYTES; i++) {
		size_t len = PIECE_BYTES - c->data.len;

		if (len > iov[i].iov_len)
			len = iov[i].iov_len;
		r = bytes_append(&c->data, iov[i].iov_base, len);
		iov[i].iov_base = (uint8_t *)iov[i].iov_base + len;
		iov[i].iov_len -= len;
	}
	return r;
}

int
disk_append(struct disk *d, int fd, struct iovec *iov, int n, uint64_t end)
{
	uint64_t at = end;
	struct call *c;
	size_t left = 0;
	int r = 0;

	if (d == NULL)
		return file_writev(fd, iov, n, end);
	for (int i = 0; i < n; i++)
		left += iov[i].iov_len;
	while (left > 0 && r == 0) {
		c = begin(d, NULL, fd, "", &r);
		if (c == NULL)
			break;
		r = put_piece(c, iov, n);
		left -= c->data.len;
		c->offset = at;
		c->undo = undo_append;
		c->undo_to = end;
		at += c->data.len;
		r = write_call(d, c, run_append, r);
	}
	return r;
}

int
disk_write(struct disk *d, int fd, const void *data, size_t len, uint64_t offset)
{
	struct call *c;
	int r = 0;

	if (d == NULL)
		return overwrite(fd, data, len, offset);
	c = begin(d, NULL, fd, "", &r);
	if (c == NULL)
		return r;
	c->offset = offset;
	return write_call(d, c, run_write, bytes_append(&c->data, data, len));
}

ssize_t
disk_read(struct disk *d, int fd, void *to, size_t len, uint64_t offset)
{
	struct call *c;
	ssize_t n;
	int r;

	if (d == NULL)
		return read_all(fd, to, len, offset);
	c = begin(d, NULL, fd, "", &r);
	if (c == NULL)
		return r;
	c->offset = offset;
	c->len = len;
	n = bytes_reserve(&c->data, len);
	if (n == 0)
		n = make(d, c, run_read);
	else
		close(c->fd);
	if (n > 0)
		memcpy(to, c->data.data, (size_t)n);
	trim(d);
	return n;
}

/* Makes a call that has no data. */
static int
simple(struct disk *d, int fd, const char *name, uint64_t offset, ssize_t (*run_call)(struct call *c))
{
	struct call own = { 0 }, *c;
	int r;

	c = begin(d, &own, fd, name, &r);
	if (c == NULL)
		return r;
	c->offset = offset;
	return (int)make(d, c, run_call);
}

int
disk_truncate(struct disk *d, int fd, uint64_t len)
{
	return simple(d, fd, "", len, run_truncate);
}

int
disk_allocate(struct disk *d, int fd, uint64_t len)
{
	return simple(d, fd, "", len, run_allocate);
}

int
disk_links(struct disk *d, int fd)
{
	return simple(d, fd, "", 0, run_links);
}

int
disk_space(struct disk *d, int fd, struct space *ret)
{
	struct call own = { 0 }, *c;
	int r;

	c = begin(d, &own, fd, "", &r);
	if (c == NULL)
		return r;
	r = (int)make(d, c, run_space);
	if (r == 0)
		*ret = c->space;
	return r;
}

int
disk_is_at(struct disk *d, int dir_fd, const char *path)
{
	return simple(d, dir_fd, path, 0, run_is_at);
}

int
disk_run(struct disk *d, int dir_fd, const char *path, const void *data, size_t len, disk_function *function)
{
	struct call *c;
	int r;

	if (d == NULL)
		return function(dir_fd, path, data, len);
	c = begin(d, NULL, dir_fd, path, &r);
	if (c == NULL)
		return r;
	c->function = function;
	r = len > 0 ? bytes_append(&c->data, data, len) : 0;
	if (r == 0)
		r = (int)make(d, c, run_function);
	else if (c->fd != AT_FDCWD)
		close(c->fd);
	trim(d);
	return r;
}

int
disk_begin(struct disk *d, int dir_fd, const char *path, const void *data, size_t len, disk_function *function)
{
	struct call *c;
	int r;

	if (d == NULL) {
		(void)function(dir_fd, path, data, len);
		return 0;
	}
	c = begin(d, NULL, dir_fd, path, &r);
	if (c == NULL)
		return r;
	r = bytes_append(&c->data, data, len);
	if (r < 0) {
		if (c->fd != AT_FDCWD)
			close(c->fd);
		return r;
	}
	c->function = function;
	__atomic_store_n(&d->is_hung, true, __ATOMIC_RELEASE);
	start(d, c, run_function);
	return 0;
}

void
disk_settle(struct disk *d, uint32_t timeout_ms)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&d->mutex);
	if (d->is_hung)
		wait_for(d, timeout_ms * MS);
	pthread_mutex_unlock(&d->mutex);
	d->left_ns = d->patience_ns;
}

int
disk_open_by(struct disk *d, int dir_fd, const char *path, disk_function *function)
{
	struct call *c;
	int r;

	if (d == NULL)
		return function(dir_fd, path, NULL, 0);
	c = begin(d, NULL, dir_fd, path, &r);
	if (c == NULL)
		return r;
	c->function = function;
	c->undo = undo_open_by;
	return (int)make(d, c, run_function);
}
