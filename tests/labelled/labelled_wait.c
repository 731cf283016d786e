/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled_wait: kinds of work that wait for another program, a lock or a clock.
 */
#include "labelled.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW_THREADS 4

enum { SMALL = PAGE, LARGE = 16 * PAGE };	/* what a writer writes at once; all that a pipe takes */

/* Moves that many bytes at once, and pauses after each. */
static uint64_t
move(int fd, bool is_reader, size_t bytes, long pause)
{
	char *buf = memory(bytes);
	uint64_t n = 0;

	for (; is_time(); n++) {
		if ((is_reader ? read(fd, buf, bytes) : write(fd, buf, bytes)) <= 0)
			break;
		if (pause > 0)
			pause_ms(pause);
	}
	return n;
}

/* FILE is a pipe with a name, whose other end another program has. */
static uint64_t
pipe_reader(void)
{
	return move(open_file(O_RDONLY), true, SMALL, 0);
}

static uint64_t
pipe_writer(void)
{
	return move(open_file(O_WRONLY), false, LARGE, 0);
}

/* Makes the pipe, prints a line, and is the other end, a slow one. */
static uint64_t
slow_end(bool is_reader)
{
	if (mkfifo(path, 0600) < 0)
		err(1, "%s", path);
	puts("made");
	fflush(stdout);
	return move(open_file(is_reader ? O_RDONLY : O_WRONLY), is_reader, is_reader ? LARGE : SMALL, 50);
}

static uint64_t
slow_reader(void)
{
	return slow_end(true);
}

static uint64_t
slow_writer(void)
{
	return slow_end(false);
}

/* Reads what a child writes now and then. */
static uint64_t
unix_reader(void)
{
	int fds[2];
	uint64_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		err(1, "socketpair");
	pid = child();
	if (pid == 0) {
		move(fds[1], false, SMALL, 50);
		_exit(0);
	}
	close(fds[1]);
	n = move(fds[0], true, SMALL, 0);
	end_child(pid);
	return n;
}

/* Has a lock of FILE until SECONDS are over, and prints a line once it has it. */
static uint64_t
lock_holder(void)
{
	if (flock(open_file(O_RDWR | O_CREAT), LOCK_EX) < 0)
		err(1, "%s", path);
	puts("locked");
	fflush(stdout);
	while (is_time())
		pause_ms(100);
	return 1;
}

/* Waits for a lock that another program has; SECONDS end that wait. */
static uint64_t
file_lock(void)
{
	int fd = open_file(O_RDWR | O_CREAT);
	uint64_t n = 0;

	wake_each_second();
	for (; is_time(); n++) {
		alarm(1);
		if (flock(fd, LOCK_EX) == 0)
			errx(1, "%s: nobody holds its lock", path);
	}
	return n;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *
holder(void *index)
{
	(void)index;
	while (is_time()) {
		pthread_mutex_lock(&mutex);
		pause_ms(100);
		pthread_mutex_unlock(&mutex);
		pause_ms(1);	/* or the same thread takes it again at once */
	}
	return NULL;
}

static uint64_t
mutexes(void)
{
	return in_threads(FEW_THREADS, holder);
}

static uint64_t
sleeps(void)
{
	uint64_t n = 0;

	for (; is_time(); n++)
		pause_ms(500);
	return n;
}

/* The parent of a vfork waits uninterruptibly, in D, until the child executes another program: it never does. */
static uint64_t
in_d(void)
{
	volatile uint64_t n = 0;

	for (; is_time(); n++) {
		if (vfork() == 0) {
			pause_ms(500);
			_exit(0);
		}
		wait(NULL);
	}
	return n;
}

/* Waits for a child that is stopped. */
static uint64_t
stopped(void)
{
	pid_t pid = child();
	uint64_t n = 0;

	if (pid == 0) {
		cpu_thread(NULL);
		_exit(0);
	}
	kill(pid, SIGSTOP);
	wake_each_second();
	for (; is_time(); n++) {
		alarm(1);
		waitpid(pid, NULL, 0);
	}
	end_child(pid);
	return n;
}

const struct kind wait_kinds[] = {
	{ "pipe_reader", pipe_reader }, { "pipe_writer", pipe_writer }, { "slow_reader", slow_reader },
	{ "slow_writer", slow_writer }, { "unix_reader", unix_reader }, { "lock_holder", lock_holder },
	{ "file_lock", file_lock }, { "mutexes", mutexes }, { "sleeps", sleeps }, { "in_d", in_d },
	{ "stopped", stopped }, { NULL, NULL },
};
