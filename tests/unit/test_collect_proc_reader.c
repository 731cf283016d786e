/* SPDX-License-Identifier: Apache-2.0 */
/* proc_reader: a simulated /proc, and this process in the real one. No root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <dirent.h>

#include "collect/proc_reader.h"
#include "tree.h"

#define STAT "77 (a (b) c) S 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 %s %s 1 184\n"

static struct tree tree;
static struct proc_reader *found;

static int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	tree_write(&tree, "77/cgroup", "0::/job.slice\n");
	return proc_reader_new(tree.root, &found);
}

static int
teardown(void **state)
{
	(void)state;
	proc_reader_free(found);
	tree_done(&tree);
	return 0;
}

/* memory: what it takes of it, in bytes; "0": it has let go of it. */
static void
write_stat_of(const char *name, const char *start, const char *memory)
{
	char text[512];

	snprintf(text, sizeof(text), STAT, start, memory);
	tree_write(&tree, name, text);
}

static void
write_stat(const char *start)
{
	write_stat_of("77/stat", start, "1000");
}

static struct state_event
state_of(uint64_t start_ns)
{
	return (struct state_event){ .kind = STATE_DISCOVERED, .time_ns = 9000000000, .self = { start_ns, 77, 2 },
		.parent = { 5, 1, 0 }, .ppid = 1, .context = { .uid = 12, .cgroup_v2 = 34 }, .comm = "a (b) c",
		.counters = { .runtime_ns = 56 } };
}

static void
link_to(const char *name, const char *target)
{
	assert_int_equal(symlink(target, tree_path(&tree, name)), 0);
}

static void
everything_is_read(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;

	(void)state;
	write_stat("123");
	tree_write(&tree, "77/cgroup", "9:name=systemd:/x\n4:cpu,memory:/old\n0::/job.slice/step_0 (deleted)\n");
	link_to("77/exe", "/opt/tool (deleted)");
	link_to("77/cwd", "/srv/a b");
	{
		FILE *f = fopen(tree_path(&tree, "77/cmdline"), "w");

		fwrite("tool\0\0-x y\0", 1, 11, f);
		fclose(f);
	}
	assert_true(proc_reader_read(found, &s, &e));
	assert_true(e.is_discovered);
	assert_false(e.has_replaced);
	assert_int_equal(e.self.pid, 77);
	assert_int_equal(e.self.index, 2);
	assert_int_equal(e.parent.start_ns, 5);
	assert_int_equal(e.time_ns, 9000000000);
	assert_int_equal(e.context.uid, 12);
	assert_int_equal(e.replaced.runtime_ns, 56);
	assert_string_equal(e.comm, "a (b) c");
	assert_string_equal(e.exe, "/opt/tool");
	assert_string_equal(e.cwd, "/srv/a b");
	assert_int_equal(e.argc, 3);
	assert_string_equal(e.argv[0], "tool");
	assert_string_equal(e.argv[1], "");
	assert_string_equal(e.argv[2], "-x y");
	assert_int_equal(e.argv_len[2], 4);
	assert_false(e.argv_truncated);
	assert_string_equal(proc_reader_cgroup(found, true), "/job.slice/step_0");
	assert_string_equal(proc_reader_cgroup(found, false), "/old");
}

/* As proc(5) has it: the area of the arguments as it is, or, where its last byte is no NUL, one string from there. */
static void
write_cmdline(const char *bytes, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/77/cmdline", tree.root);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void
what_cannot_be_read_is_null(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;

	(void)state;
	write_stat("123");		/* it has memory: its links are not for us */
	tree_write(&tree, "77/cgroup", "");
	tree_write(&tree, "77/cmdline", "");
	assert_true(proc_reader_read(found, &s, &e));
	assert_null(e.exe);
	assert_null(e.cwd);
	assert_null(e.argv);
	assert_null(proc_reader_cgroup(found, true));
	assert_null(proc_reader_cgroup(found, false));
}

/* Its arguments may have been read before its memory went, its path not: rules would miss what it was. */
static void
one_that_is_ending_is_not_reported(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;

	(void)state;
	write_stat_of("77/stat", "123", "0");
	tree_write(&tree, "77/cgroup", "");
	write_cmdline("tool", sizeof("tool"));
	assert_false(proc_reader_read(found, &s, &e));
	tree_write(&tree, "77/task/77/cmdline", "");	/* no other thread */
	write_stat_of("77/task/77/stat", "123", "4096");
	assert_false(proc_reader_read(found, &s, &e));
	tree_write(&tree, "77/task/78/cmdline", "");	/* one that is ending, too */
	write_stat_of("77/task/78/stat", "123", "0");
	assert_false(proc_reader_read(found, &s, &e));
}

static void
one_whose_first_thread_has_ended_is_read_through_another(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;

	(void)state;
	write_stat_of("77/stat", "123", "0");
	tree_write(&tree, "77/cgroup", "0::/job\n");
	tree_write(&tree, "77/cmdline", "");
	write_stat_of("77/task/79/stat", "124", "4096");	/* a thread began later */
	tree_write(&tree, "77/task/79/cmdline", "tool");
	link_to("77/task/79/exe", "/opt/tool");
	link_to("77/task/79/cwd", "/srv");
	assert_true(proc_reader_read(found, &s, &e));
	assert_string_equal(e.exe, "/opt/tool");
	assert_string_equal(e.cwd, "/srv");
	assert_int_equal(e.argc, 1);
	assert_string_equal(e.argv[0], "tool");
	assert_string_equal(proc_reader_cgroup(found, true), "/job");
}

/* In the order in which they are read, 64 are asked: one that is ending may have very many. */
static void
only_so_many_threads_are_asked(void **state)
{
	struct state_event s = state_of(1230000000);
	char names[100][32], dir[4096];
	struct exec_event e;
	const struct dirent *d;
	size_t n = 0;
	DIR *tasks;

	(void)state;
	write_stat_of("77/stat", "123", "0");
	for (int tid = 100; tid < 200; tid++) {
		snprintf(names[0], sizeof(names[0]), "77/task/%d/stat", tid);
		write_stat_of(names[0], "123", "0");
	}
	snprintf(dir, sizeof(dir), "%s", tree_path(&tree, "77/task"));
	tasks = opendir(dir);
	assert_non_null(tasks);
	while ((d = readdir(tasks)) != NULL && n < 100) {
		if (d->d_name[0] != '.')
			snprintf(names[n++], sizeof(names[0]), "77/task/%.8s/stat", d->d_name);
	}
	closedir(tasks);
	assert_int_equal(n, 100);
	write_stat_of(names[64], "123", "4096");
	assert_false(proc_reader_read(found, &s, &e));
	write_stat_of(names[63], "123", "4096");
	assert_true(proc_reader_read(found, &s, &e));
}

/* Between the iterator and us a process can end, and its pid be given to another. */
static void
another_process_of_that_pid_is_refused(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;

	(void)state;
	assert_false(proc_reader_read(found, &s, &e));	/* no stat: it is gone */
	write_stat("124");
	assert_false(proc_reader_read(found, &s, &e));
	write_stat("");
	assert_false(proc_reader_read(found, &s, &e));
	tree_write(&tree, "77/stat", "77 (no end");
	assert_false(proc_reader_read(found, &s, &e));
	s.self.start_ns = 1239999999;
	write_stat("123");
	assert_true(proc_reader_read(found, &s, &e));
}

static void
many_arguments_are_cut_and_said_to_be(void **state)
{
	struct state_event s = state_of(1230000000);
	struct exec_event e;
	FILE *f;

	(void)state;
	write_stat("123");
	f = fopen(tree_path(&tree, "77/cmdline"), "w");
	for (int i = 0; i < 5000; i++)
		fwrite("a", 1, 2, f);
	fclose(f);
	assert_true(proc_reader_read(found, &s, &e));
	assert_int_equal(e.argc, 4096);
	assert_true(e.argv_truncated);
}

static void
a_title_ends_within_the_arguments(void **state)
{
	static const char padded[] = "ray::IDLE\0\0\0\0", blanks[] = "dask worker   \0\0";
	static const char beyond[] = "ray::train PATH=/secret";
	char title[64];

	(void)state;
	write_cmdline(padded, sizeof(padded) - 1);
	assert_int_equal(proc_reader_title(found, 77, title, sizeof(title)), 9);
	assert_memory_equal(title, "ray::IDLE", 9);
	write_cmdline(blanks, sizeof(blanks) - 1);
	assert_int_equal(proc_reader_title(found, 77, title, sizeof(title)), 11);
	write_cmdline(beyond, sizeof(beyond));		/* with its NUL */
	assert_int_equal(proc_reader_title(found, 77, title, sizeof(title)), 0);
	write_cmdline(beyond, sizeof(beyond) - 1);
	assert_int_equal(proc_reader_title(found, 77, title, sizeof(title)), 0);
	assert_int_equal(proc_reader_title(found, 78, title, sizeof(title)), 0);
}

static void
we_find_ourselves(void **state)
{
	struct state_event s = { .kind = STATE_DISCOVERED, .self = { .pid = (uint32_t)getpid() } };
	struct proc_reader *real;
	struct exec_event e;
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	long hz = sysconf(_SC_CLK_TCK);

	(void)state;
	assert_true(n > 0);
	exe[n] = '\0';
	assert_int_equal(proc_reader_new("/proc", &real), 0);
	s.self.start_ns = proc_reader_start_ticks(real, s.self.pid) * (1000000000 / (uint64_t)hz);
	assert_true(s.self.start_ns > 0);
	assert_true(proc_reader_read(real, &s, &e));
	assert_string_equal(e.exe, exe);
	assert_true(e.argc >= 1);
	proc_reader_free(real);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(everything_is_read),
		TEST(what_cannot_be_read_is_null),
		TEST(one_that_is_ending_is_not_reported),
		TEST(one_whose_first_thread_has_ended_is_read_through_another),
		TEST(only_so_many_threads_are_asked),
		TEST(another_process_of_that_pid_is_refused),
		TEST(many_arguments_are_cut_and_said_to_be),
		TEST(a_title_ends_within_the_arguments),
		TEST(we_find_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
