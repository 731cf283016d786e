/*
 * SPDX-License-Identifier: Apache-2.0
 * reader: a nursery and readers that are real processes; one hangs because it is stopped as it is born, and cannot be
 * killed because kill(2) does nothing. No root.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/own.h"
#include "reader/reader.h"
#include "tree.h"

#define S UINT64_C(1000000000)

enum {
	ME = 50000, ANOTHER,	/* users, of which only numbers are asked */
	BORN_MAX = 64,
};

static struct {
	int n_to_stop;		/* of those that are born next */
	bool kill_does_nothing;
	int n_starved;		/* how often those that were stopped seem to wait for a CPU, until they get one */
	pid_t pid[BORN_MAX];	/* of all that were born */
	int n;
} born;

int __real_nursery_take(struct nursery *n, struct nursling *ret);
int __wrap_nursery_take(struct nursery *n, struct nursling *ret);
int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);
bool __wrap_own_child_is_runnable(pid_t pid);

int
__wrap_nursery_take(struct nursery *n, struct nursling *ret)
{
	int r = __real_nursery_take(n, ret);

	if (r > 0 && ret->fd >= 0) {
		assert_true(born.n < BORN_MAX);
		born.pid[born.n++] = ret->pid;
		if (born.n_to_stop > 0 && born.n_to_stop-- > 0)
			__real_kill(ret->pid, SIGSTOP);
	}
	return r;
}

int
__wrap_kill(pid_t pid, int signo)
{
	return born.kill_does_nothing ? 0 : __real_kill(pid, signo);
}

/* A lack of CPUs can hardly be made for so long: the last that was born continues after it. */
bool
__wrap_own_child_is_runnable(pid_t pid)
{
	if (born.n_starved == 0)
		return false;
	if (--born.n_starved == 0)
		__real_kill(pid, SIGCONT);
	return true;
}

static struct event_base *base;
static struct nursery *nursery;
static struct reader *reader;

/* What was answered, in its order. */
static struct {
	int n;
	const void *arg[600];
	bool is_read[600];
	struct reader_answer last;
	char bytes[256];
} answered;

static void
on_answer(const struct reader_answer *answer, void *arg)
{
	answered.arg[answered.n] = arg;
	answered.is_read[answered.n++] = answer != NULL && answer->error == 0;
	memset(&answered.last, 0, sizeof(answered.last));
	answered.bytes[0] = '\0';
	if (answer == NULL)
		return;
	answered.last = *answer;
	if (answer->text[READER_BYTES].at != NULL)
		snprintf(answered.bytes, sizeof(answered.bytes), "%s", answer->text[READER_BYTES].at);
}

static int
open_all(void **state)
{
	(void)state;
	memset(&born, 0, sizeof(born));
	memset(&answered, 0, sizeof(answered));
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(nursery_start(&nursery), 0);
	assert_int_equal(nursery_become(nursery, NULL, 0, 0, false), 0);
	assert_int_equal(nursery_confine(nursery), 0);
	assert_int_equal(reader_open(base, nursery, false, &reader), 0);
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	born.kill_does_nothing = false;
	born.n_to_stop = 0;	/* reader_close() takes one that was born too late for its test, which ends by itself */
	for (int i = 0; i < born.n; i++)
		__real_kill(born.pid[i], SIGKILL);	/* still a child, or reaped in this very test */
	reader_close(reader);
	nursery_stop(nursery);
	event_base_free(base);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	return 0;
}

static void
ask(uint32_t uid)
{
	assert_true(reader_ask(reader, READER_TITLE, (uint32_t)getpid(), uid, on_answer, NULL));
}

/* Runs the loop until so many were answered. */
static void
run_until(int n)
{
	while (answered.n < n)
		event_base_loop(base, EVLOOP_ONCE);
}

static void
answers_come_in_the_order_of_the_questions(void **state)
{
	static int args[300];

	(void)state;
	for (int i = 0; i < 300; i++)
		assert_true(reader_ask(reader, i % 3 == 0 ? READER_PROCESS : READER_TITLE, (uint32_t)getpid(), ME,
		    on_answer, &args[i]));
	run_until(300);
	for (int i = 0; i < 300; i++) {
		assert_ptr_equal(answered.arg[i], &args[i]);
		assert_true(answered.is_read[i]);
	}
	assert_int_equal(born.n, 1);
	assert_int_equal(reader_room(reader), READER_QUEUE);
}

static void
a_process_is_read(void **state)
{
	struct proc_texts texts;
	struct proc_reader *f;

	(void)state;
	assert_true(reader_ask(reader, READER_PROCESS, (uint32_t)getpid(), ME, on_answer, NULL));
	reader_finish(reader, 0);
	assert_int_equal(answered.n, 1);
	texts = reader_answer_texts(&answered.last);
	assert_int_equal(proc_reader_new("/proc", &f), 0);
	assert_int_equal(texts.start_ticks, proc_reader_start_ticks(f, (uint32_t)getpid()));
	proc_reader_free(f);
	assert_non_null(strstr(answered.bytes, "test_reader"));
}

/* Also of one that was killed, until it is reaped: then it is among the children's. */
static void
what_readers_use_is_known(void **state)
{
	struct reader_usage before, after;
	uint64_t reaped = own_reaped_cpu_ns();

	(void)state;
	before = reader_usage(NULL);
	assert_int_equal(before.cpu_ns + before.rss_bytes, 0);
	ask(ME);
	run_until(1);
	before = reader_usage(reader);
	assert_true(before.cpu_ns > 0);
	assert_true(before.rss_bytes > 0);
	for (int i = 0; i < 300; i++)
		ask(ME);
	run_until(301);
	after = reader_usage(reader);
	assert_true(after.cpu_ns > before.cpu_ns);
	reader_close(reader);
	reader = NULL;
	while (waitpid(born.pid[0], NULL, 0) > 0)
		continue;
	assert_true(own_reaped_cpu_ns() - reaped >= after.cpu_ns / 2);	/* the kernel counts in microseconds there */
}

static void
one_that_is_gone_is_an_answer(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(reader_ask(reader, READER_PROCESS, (uint32_t)pid, ME, on_answer, NULL));
	run_until(1);
	assert_int_equal(answered.last.error, -ESRCH);
	assert_int_equal(reader_counts(reader).failed, 0);
}

static void
the_queue_is_bounded(void **state)
{
	(void)state;
	born.n_to_stop = 1;
	for (int i = 0; i < READER_QUEUE; i++)
		ask(ME);
	assert_false(reader_ask(reader, READER_TITLE, 1, ME, on_answer, NULL));
	assert_int_equal(reader_room(reader), 0);
}

static void
one_that_hangs_is_replaced_and_its_user_waits(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	struct user_loss losses[USER_LOSSES];

	(void)state;
	born.n_to_stop = 1;
	ask(ME);
	ask(ME);
	ask(ANOTHER);
	run_until(3);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= S);
	assert_false(answered.is_read[0]);
	assert_false(answered.is_read[1]);
	assert_true(answered.is_read[2]);
	assert_int_equal(reader_counts(reader).hung, 1);
	assert_int_equal(reader_counts(reader).skipped, 1);
	assert_int_equal(reader_user_losses(reader, losses, 0), 1);
	assert_int_equal(losses[0].uid, ME);
	assert_int_equal(losses[0].cut, 2);
	assert_int_equal(born.n, 2);
	ask(ME);		/* within the second */
	run_until(4);
	assert_false(answered.is_read[3]);
	while (clock_ns(CLOCK_MONOTONIC) - begin < 3 * S)
		usleep(10000);
	ask(ME);
	run_until(5);
	assert_true(answered.is_read[4]);
	assert_int_equal(reader_counts(reader).stuck, 0);
}

static void
one_that_waits_for_a_cpu_does_not_hang(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	(void)state;
	born.n_to_stop = 1;
	born.n_starved = 2;
	ask(ME);
	ask(ME);
	run_until(2);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= 2 * S);
	assert_true(answered.is_read[0]);
	assert_true(answered.is_read[1]);
	assert_int_equal(reader_counts(reader).hung, 0);
	assert_int_equal(born.n, 1);
}

static void
one_waits_for_a_cpu_for_ten_seconds_at_most(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), took;

	(void)state;
	born.n_to_stop = 1;
	born.n_starved = 1000;
	ask(ME);
	run_until(1);
	took = clock_ns(CLOCK_MONOTONIC) - begin;
	assert_true(took >= 10 * S);
	assert_false(answered.is_read[0]);
	assert_int_equal(reader_counts(reader).hung, 1);
}

static void
a_user_in_whose_item_one_is_stuck_waits_until_it_ends(void **state)
{
	(void)state;
	born.n_to_stop = 1;
	born.kill_does_nothing = true;
	ask(ME);
	run_until(1);
	assert_int_equal(reader_counts(reader).stuck, 1);
	sleep(2);		/* the penalty is over */
	ask(ME);
	ask(ANOTHER);
	run_until(3);
	assert_false(answered.is_read[1]);
	assert_true(answered.is_read[2]);
	assert_int_equal(__real_kill(born.pid[0], SIGKILL), 0);
	while (reader_counts(reader).stuck > 0) {
		reader_look(reader);
		usleep(1000);
	}
	ask(ME);
	run_until(4);
	assert_true(answered.is_read[3]);
}

static void
as_many_as_may_are_stuck_and_then_nothing_is_read(void **state)
{
	(void)state;
	born.n_to_stop = BORN_MAX;
	born.kill_does_nothing = true;
	for (uint32_t i = 0; i < READER_STUCK_MAX + 3; i++)
		ask(ME + i);
	reader_finish(reader, 0);
	assert_int_equal(answered.n, READER_STUCK_MAX + 3);
	assert_int_equal(reader_counts(reader).stuck, READER_STUCK_MAX);
	assert_int_equal(reader_counts(reader).hung, READER_STUCK_MAX);
	assert_int_equal(reader_counts(reader).skipped, 3);
	assert_int_equal(born.n, READER_STUCK_MAX);
	born.n_to_stop = 0;
	assert_int_equal(__real_kill(born.pid[0], SIGKILL), 0);
	while (reader_counts(reader).stuck == READER_STUCK_MAX) {
		reader_look(reader);
		usleep(1000);
	}
	ask(ME + 100);
	run_until(READER_STUCK_MAX + 4);
	assert_true(answered.is_read[READER_STUCK_MAX + 3]);
}

static void
the_wait_for_all_is_bounded(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), took;

	(void)state;
	born.n_to_stop = BORN_MAX;
	for (uint32_t i = 0; i < 100; i++)
		ask(ME + i);
	reader_finish(reader, 0);
	took = clock_ns(CLOCK_MONOTONIC) - begin;
	assert_int_equal(answered.n, 100);
	assert_true(took >= 2 * S - S / 10);
	assert_true(took < 20 * S);	/* each alone would be 100 s */
	assert_true(reader_counts(reader).hung <= 32);
	assert_int_equal(reader_counts(reader).hung + reader_counts(reader).skipped, 100);
}

static void
one_that_ends_is_replaced(void **state)
{
	(void)state;
	ask(ME);
	run_until(1);
	assert_int_equal(__real_kill(born.pid[0], SIGKILL), 0);
	/* It may end before the question or after. */
	for (int i = 2; !answered.is_read[answered.n - 1] || i == 2; i++) {
		ask(ME + (uint32_t)i);
		run_until(i);
	}
	assert_int_equal(born.n, 2);
	assert_int_equal(reader_counts(reader).hung, 0);
}

static void
without_a_nursery_nothing_is_read(void **state)
{
	char path[64], text[64] = "";
	FILE *f;
	int pid;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	if (f == NULL)
		skip();
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	pid = atoi(text);
	assert_int_equal(__real_kill(pid, SIGKILL), 0);
	ask(ME);
	run_until(1);
	ask(ME);
	run_until(2);
	assert_false(answered.is_read[0] || answered.is_read[1]);
	assert_int_equal(reader_counts(reader).failed, 2);
}

/* Reads a file that is there always, by a path with a link. */
static ssize_t
read_stat(char buf[16])
{
	return reader_file(reader, &(struct reader_path){ .text = "/proc/self/stat", .owner = getuid() }, 0, buf, 16, NULL);
}

/* Returns the path of a file of this user without links, valid until the next call. */
static const struct reader_path *
own(struct tree *tree, const char *name)
{
	static char text[PATH_MAX];
	static struct reader_path path;

	snprintf(text, sizeof(text), "%s", tree_path(tree, name));
	path = (struct reader_path){ .text = text, .owner = getuid(), .is_resolved = true };
	return &path;
}

static void
the_begin_of_a_file_is_read(void **state)
{
	static char buf[16];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_write(&tree, "head", "0123456789abcdefghijklmnop");
	chmod(tree.root, 0755);
	assert_int_equal(reader_file(reader, own(&tree, "head"), 0, buf, sizeof(buf), NULL), 16);
	assert_memory_equal(buf, "0123456789abcdef", 16);
	assert_int_equal(reader_file(reader, own(&tree, "missing"), 0, buf, sizeof(buf), NULL), -ENOENT);
	assert_int_equal(symlink("head", tree_path(&tree, "link")), 0);
	assert_int_equal(reader_file(reader, own(&tree, "link"), 0, buf, sizeof(buf), NULL), -ELOOP);
	tree_done(&tree);
}

static void
a_later_part_of_a_file_is_read(void **state)
{
	static char buf[16];
	struct reader_file_facts facts = { 0 };
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_write(&tree, "log", "0123456789abcdefghijklmnop");
	chmod(tree.root, 0755);
	assert_int_equal(reader_file(reader, own(&tree, "log"), 20, buf, sizeof(buf), &facts), 6);
	assert_memory_equal(buf, "klmnop", 6);
	assert_int_equal(facts.size, 26);
	assert_true(facts.changed_s >= time(NULL) - 60 && facts.changed_s <= time(NULL));
	assert_int_equal(reader_file(reader, own(&tree, "log"), 26, buf, sizeof(buf), &facts), 0);
	tree_done(&tree);
}

static void
the_last_names_of_a_folder_are_read(void **state)
{
	static char buf[1024];
	struct tree tree;
	char name[16];

	(void)state;
	tree_init(&tree);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%02d", i);
		tree_write(&tree, name, "");
	}
	chmod(tree.root, 0755);
	assert_int_equal(reader_folder(reader, own(&tree, "."), buf, 12), 12);
	assert_memory_equal(buf, "f99\0f98\0f97", 12);
	assert_int_equal(reader_folder(reader, own(&tree, "."), buf, sizeof(buf)), 64 * 4);
	assert_memory_equal(buf + 63 * 4, "f36", 4);
	assert_int_equal(reader_folder(reader, own(&tree, "."), buf, 3), 0);
	assert_int_equal(reader_folder(reader, own(&tree, "f00"), buf, sizeof(buf)), -ELOOP);
	assert_int_equal(symlink(".", tree_path(&tree, "link")), 0);
	assert_int_equal(reader_folder(reader, own(&tree, "link"), buf, sizeof(buf)), -ELOOP);
	tree_done(&tree);
}

/* Reads a file at which a user's trap may be. Returns what it was refused with; 0: it was read. */
static int
trap(const char *text, uint32_t owner, bool is_resolved)
{
	const struct reader_path path = { text, owner, is_resolved };
	const uint64_t refused = reader_counts(reader).refused;
	char buf[16] = "";
	ssize_t n = reader_file(reader, &path, 0, buf, sizeof(buf), NULL);

	assert_true(n >= 0 || buf[0] == '\0');
	assert_int_equal(reader_counts(reader).refused - refused, n == -ELOOP || n == -EPERM);
	return n < 0 ? (int)n : 0;
}

static void
no_link_is_followed_in_a_resolved_path(void **state)
{
	static const char *const good = "a/b/log", *const links[] = { "first/b/log", "a/second/log", "a/b/last" };
	char buf[64], path[PATH_MAX];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	chmod(tree.root, 0755);
	assert_int_equal(mkdir(tree_path(&tree, "a"), 0755), 0);
	assert_int_equal(mkdir(tree_path(&tree, "a/b"), 0755), 0);
	tree_write(&tree, good, "secret");
	assert_int_equal(symlink("a", tree_path(&tree, "first")), 0);
	assert_int_equal(symlink("b", tree_path(&tree, "a/second")), 0);
	assert_int_equal(symlink("log", tree_path(&tree, "a/b/last")), 0);
	snprintf(path, sizeof(path), "%s", tree_path(&tree, good));
	assert_int_equal(trap(path, getuid(), true), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s", tree_path(&tree, links[i]));
		assert_int_equal(trap(path, getuid(), true), -ELOOP);
		/* Where the user may name any folder anyway, only the last part may be none. */
		assert_int_equal(trap(path, getuid(), false), i < 2 ? 0 : -ELOOP);
	}
	snprintf(path, sizeof(path), "%s", tree_path(&tree, "a/b/../b/log"));
	assert_int_equal(trap(path, getuid(), true), -ELOOP);
	snprintf(path, sizeof(path), "%s", tree_path(&tree, "a/b/log/log"));
	assert_int_equal(trap(path, getuid(), true), -ELOOP);
	assert_int_equal(reader_folder(reader, own(&tree, "first/b"), buf, sizeof(buf)), -ELOOP);
	assert_true(reader_folder(reader, own(&tree, "a/b"), buf, sizeof(buf)) > 0);
	tree_done(&tree);
}

static void
a_file_of_another_user_is_not_read(void **state)
{
	char path[PATH_MAX];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	chmod(tree.root, 0755);
	tree_write(&tree, "own", "secret");
	/* By whatever name: a hard link to it has the same owner. */
	snprintf(path, sizeof(path), "%s", tree_path(&tree, "own"));
	assert_int_equal(link(path, tree_path(&tree, "hard")), 0);
	snprintf(path, sizeof(path), "%s", tree_path(&tree, "hard"));
	for (int is_resolved = 0; is_resolved < 2; is_resolved++) {
		assert_int_equal(trap(path, getuid(), is_resolved), 0);
		assert_int_equal(trap(path, getuid() + 1, is_resolved), -EPERM);
	}
	tree_done(&tree);
}

static void
what_is_no_regular_file_is_not_read(void **state)
{
	static const char *const names[] = { "fifo", "folder" };
	char path[PATH_MAX];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	chmod(tree.root, 0755);
	assert_int_equal(mkfifo(tree_path(&tree, "fifo"), 0644), 0);
	assert_int_equal(mkdir(tree_path(&tree, "folder"), 0755), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s", tree_path(&tree, names[i]));
		assert_int_equal(trap(path, getuid(), true), -EPERM);
		assert_int_equal(trap(path, getuid(), false), -EPERM);
	}
	assert_int_equal(reader_counts(reader).hung, 0);
	tree_done(&tree);
}

static void
a_file_that_hangs_is_left(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	char buf[16];

	(void)state;
	born.n_to_stop = 3;
	born.kill_does_nothing = true;
	assert_int_equal(read_stat(buf), -ETIMEDOUT);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin < S);
	usleep(500000);		/* the patience grows by a tenth of that */
	assert_int_equal(read_stat(buf), -ETIMEDOUT);
	usleep(500000);
	/* Two of files may hang, which leaves processes to be read. */
	assert_int_equal(read_stat(buf), -EAGAIN);
	born.n_to_stop = 0;
	ask(ME);
	run_until(1);
	assert_true(answered.is_read[0]);
}

static void
one_of_files_that_waits_for_a_cpu_does_not_hang(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	char buf[16];

	(void)state;
	born.n_to_stop = 1;
	born.n_starved = 20;
	assert_true(read_stat(buf) > 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= S / 5);
	assert_int_equal(reader_counts(reader).hung, 0);
	assert_int_equal(born.n, 1);
}

static void
one_of_files_waits_for_a_cpu_for_a_second_at_most(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), took;
	char buf[16];

	(void)state;
	born.n_to_stop = 2;
	born.n_starved = 1000;
	assert_int_equal(read_stat(buf), -ETIMEDOUT);
	took = clock_ns(CLOCK_MONOTONIC) - begin;
	assert_true(took >= S && took < 2 * S);
	assert_int_equal(reader_counts(reader).hung, 1);
	/* What is given back meanwhile is a tenth. */
	usleep(500000);
	begin = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(read_stat(buf), -ETIMEDOUT);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin < S / 2);
}

/* Takes 9 of 10 ms of a CPU from all that are not real-time, until it is killed; it does so when this returns. */
static void
burn(const cpu_set_t *cpu, int ready)
{
	uint64_t begin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setaffinity(0, sizeof(*cpu), cpu) < 0 ||
	    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 1 }) < 0 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		begin = clock_ns(CLOCK_MONOTONIC);
		while (clock_ns(CLOCK_MONOTONIC) - begin < 9 * S / 1000)
			;
		usleep(1000);
	}
}

/* Returns such a process; -1 where this user may have none. */
static pid_t
burner_on(const cpu_set_t *cpu)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		burn(cpu, ready[1]);
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

/* Has the reader of files run on one CPU, on which this process does not if there is another. */
static void
part_from_reader(cpu_set_t *cpu)
{
	cpu_set_t others;

	assert_int_equal(sched_getaffinity(0, sizeof(others), &others), 0);
	CPU_ZERO(cpu);
	CPU_SET(sched_getcpu(), cpu);
	CPU_XOR(&others, &others, cpu);
	if (CPU_COUNT(&others) > 0)
		assert_int_equal(sched_setaffinity(0, sizeof(others), &others), 0);
	assert_int_equal(sched_setaffinity(born.pid[0], sizeof(*cpu), cpu), 0);
}

/* Each answer is some milliseconds late, all of them together more than a file system is waited for. */
static void
many_late_answers_beside_a_busy_cpu(void **state)
{
	uint64_t late = 0;
	ssize_t len = 1;
	char buf[16];
	cpu_set_t cpu;
	pid_t burner;

	(void)state;
	assert_true(read_stat(buf) > 0);
	part_from_reader(&cpu);
	burner = burner_on(&cpu);
	if (burner < 0)
		skip();		/* no CAP_SYS_NICE */
	for (int i = 0; i < 1000 && late < S / 5 && len > 0; i++) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC);

		len = read_stat(buf);
		late += clock_ns(CLOCK_MONOTONIC) - begin;
		usleep(1000);
	}
	assert_int_equal(__real_kill(burner, SIGKILL), 0);
	waitpid(burner, NULL, 0);
	assert_true(len > 0);
	assert_true(late >= S / 5);
	assert_int_equal(reader_counts(reader).hung + reader_counts(reader).failed, 0);
	assert_int_equal(born.n, 1);
}

/* Returns a number of /proc/PID/status, in hexadecimal. */
static unsigned long
status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	unsigned long value = ~0ul;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtoul(line + strlen(name) + 1, NULL, 16);
	}
	fclose(f);
	return value;
}

static void
it_may_do_nothing_else(void **state)
{
	(void)state;
	ask(ME);
	run_until(1);
	assert_int_equal(status_of(born.pid[0], "CapPrm"), 0);
	assert_int_equal(status_of(born.pid[0], "CapEff"), 0);
	if (geteuid() == 0)	/* else it has no CAP_SETPCAP, and no_new_privs does the same */
		assert_int_equal(status_of(born.pid[0], "CapBnd"), 0);
	assert_int_equal(status_of(born.pid[0], "NoNewPrivs"), 1);
	assert_int_equal(status_of(born.pid[0], "Seccomp"), 2);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
	const struct CMUnitTest tests[] = {
		TEST(answers_come_in_the_order_of_the_questions),
		TEST(a_process_is_read),
		TEST(what_readers_use_is_known),
		TEST(one_that_is_gone_is_an_answer),
		TEST(the_queue_is_bounded),
		TEST(one_that_hangs_is_replaced_and_its_user_waits),
		TEST(one_that_waits_for_a_cpu_does_not_hang),
		TEST(one_waits_for_a_cpu_for_ten_seconds_at_most),
		TEST(a_user_in_whose_item_one_is_stuck_waits_until_it_ends),
		TEST(as_many_as_may_are_stuck_and_then_nothing_is_read),
		TEST(the_wait_for_all_is_bounded),
		TEST(one_that_ends_is_replaced),
		TEST(without_a_nursery_nothing_is_read),
		TEST(the_begin_of_a_file_is_read),
		TEST(a_later_part_of_a_file_is_read),
		TEST(the_last_names_of_a_folder_are_read),
		TEST(no_link_is_followed_in_a_resolved_path),
		TEST(a_file_of_another_user_is_not_read),
		TEST(what_is_no_regular_file_is_not_read),
		TEST(a_file_that_hangs_is_left),
		TEST(one_of_files_that_waits_for_a_cpu_does_not_hang),
		TEST(one_of_files_waits_for_a_cpu_for_a_second_at_most),
		TEST(many_late_answers_beside_a_busy_cpu),
		TEST(it_may_do_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
