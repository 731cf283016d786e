/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup: simulated hierarchies of v1, v2 and both.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "collect/cgroup.h"
#include "collect/cgroup_use.h"
#include "collect/proctext.h"
#include "tree.h"

static struct tree tree;
static struct cgroup_mounts *mounts;
static char proc[128];

static int
set_up(void **state)
{
	(void)state;
	mounts = NULL;
	tree_init(&tree);
	snprintf(proc, sizeof(proc), "%s/proc", tree.root);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	cgroup_mounts_close(mounts);
	tree_done(&tree);
	return 0;
}

/* One line of mountinfo for a hierarchy at ROOT/cg/NAME. */
static void
mount_it(char *text, size_t cap, const char *name, const char *root, const char *kind, const char *super)
{
	size_t len = strlen(text);

	snprintf(text + len, cap - len, "31 23 0:28 %s %s/cg/%s rw,relatime shared:1 - %s %s rw%s\n",
	    root, tree.root, name, kind, kind, super);
}

static void
open_v2(const char *root)
{
	char text[512] = "23 1 254:0 / / rw - ext4 /dev/root rw\n";

	mount_it(text, sizeof(text), "v2", root, "cgroup2", ",nsdelegate");
	tree_write(&tree, "proc/self/mountinfo", text);
	assert_int_equal(cgroup_mounts_open(proc, &mounts), 0);
}

static void
open_v1(void)
{
	char text[1024] = "";

	mount_it(text, sizeof(text), "cpu", "/", "cgroup", ",cpu,cpuacct");
	mount_it(text, sizeof(text), "cpuset", "/", "cgroup", ",cpuset");
	mount_it(text, sizeof(text), "memory", "/", "cgroup", ",memory");
	mount_it(text, sizeof(text), "v2", "/", "cgroup2", "");
	tree_write(&tree, "proc/self/mountinfo", text);
	assert_int_equal(cgroup_mounts_open(proc, &mounts), 0);
}

static struct cgroup_limits
read_it(const char *v2, const char *v1)
{
	struct cgroup_limits limits;

	cgroup_limits_read(mounts, v2, v1, 8, UINT64_C(64) << 30, &limits);
	return limits;
}

static void
v2_takes_the_tightest_ancestor(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/cpu.max", "200000 100000\n");
	tree_write(&tree, "cg/v2/a/memory.max", "1073741824\n");
	tree_write(&tree, "cg/v2/a/b/cpu.max", "max 100000\n");
	tree_write(&tree, "cg/v2/a/b/memory.max", "max\n");
	tree_write(&tree, "cg/v2/a/b/cpuset.cpus", "\n");
	tree_write(&tree, "cg/v2/a/b/c/cpu.max", "400000 100000\n");
	tree_write(&tree, "cg/v2/a/b/c/memory.max", "536870912\n");
	open_v2("/");
	l = read_it("/a/b/c", NULL);
	assert_true(l.cpus.known && l.cpus.value == 2);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 536870912);
	l = read_it("/a/b", NULL);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 1073741824);
	tree_write(&tree, "cg/v2/a/b/memory.high", "1000000000\n");
	l = read_it("/a/b/c", NULL);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 536870912);
	assert_true(l.memory_high.known && l.memory_high.value == 1000000000);
	tree_write(&tree, "cg/v2/a/b/memory.high", "0\n");
	l = read_it("/a/b", NULL);
	assert_false(l.memory_high.known);
	l = read_it("/a/b/gone/further", NULL);
	assert_true(l.cpus.known && l.cpus.value == 2);
	l = read_it("/ab", NULL);
	assert_false(l.cpus.known || l.memory_bytes.known);
}

static void
a_cpuset_smaller_than_the_quota_wins(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/cpu.max", "350000 100000\n");
	tree_write(&tree, "cg/v2/a/cpuset.cpus", "1,4-5\n");
	open_v2("/");
	l = read_it("/a", NULL);
	assert_true(l.cpus.known && l.cpus.value == 3);
}

static void
of_the_cpuset_what_is_effective_counts(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/cpuset.cpus", "0-5\n");
	tree_write(&tree, "cg/v2/a/cpuset.cpus.effective", "0-3\n");
	tree_write(&tree, "cg/v2/a/b/cpuset.cpus", "\n");
	tree_write(&tree, "cg/v2/a/b/cpuset.cpus.effective", "0-3\n");
	open_v2("/");
	l = read_it("/a/b", NULL);
	assert_true(l.cpus.known && l.cpus.value == 4);
	cgroup_mounts_close(mounts);
	tree_write(&tree, "cg/cpuset/a/cpuset.cpus", "1-6\n");
	tree_write(&tree, "cg/cpuset/a/cpuset.effective_cpus", "1-2\n");
	open_v1();
	l = read_it(NULL, "/a");
	assert_true(l.cpus.known && l.cpus.value == 2);
}

static void
both_hierarchies_limit_together(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/memory.max", "4096\n");
	tree_write(&tree, "cg/memory/a/memory.limit_in_bytes", "8192\n");
	tree_write(&tree, "cg/v2/a/cpu.max", "300000 100000\n");
	tree_write(&tree, "cg/cpu/a/cpu.cfs_quota_us", "200000\n");
	tree_write(&tree, "cg/cpu/a/cpu.cfs_period_us", "100000\n");
	open_v1();
	l = read_it("/a", "/a");
	assert_true(l.cpus.known && l.cpus.value == 2);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 4096);
}

static void
what_the_host_has_is_no_limit(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/cpu.max", "1600000 100000\n");
	tree_write(&tree, "cg/v2/a/cpuset.cpus", "0-7\n");
	tree_write(&tree, "cg/v2/a/memory.max", "68719476736\n");
	open_v2("/");
	l = read_it("/a", NULL);
	assert_false(l.cpus.known || l.memory_bytes.known);
	cgroup_limits_read(mounts, "/a", NULL, 0, 0, &l);
	assert_true(l.cpus.known && l.cpus.value == 8);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == UINT64_C(68719476736));
}

static void
v1_joins_its_hierarchies(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/cpu/job/cpu.cfs_quota_us", "150000\n");
	tree_write(&tree, "cg/cpu/job/cpu.cfs_period_us", "100000\n");
	tree_write(&tree, "cg/cpu/cpu.cfs_quota_us", "-1\n");
	tree_write(&tree, "cg/cpu/cpu.cfs_period_us", "100000\n");
	tree_write(&tree, "cg/cpuset/cpuset.cpus", "0-7\n");
	tree_write(&tree, "cg/cpuset/job/cpuset.cpus", "0-3\n");
	tree_write(&tree, "cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
	tree_write(&tree, "cg/memory/job/memory.limit_in_bytes", "2147483648\n");
	tree_mkdir(&tree, "cg/v2");
	open_v1();
	l = read_it("/", "/job/step_0");
	assert_true(l.cpus.known && l.cpus.value == 1.5);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 2147483648);
	l = read_it("/", "/");
	assert_false(l.cpus.known || l.memory_bytes.known);
}

static void
a_process_is_read_by_its_own_paths(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/cpu/x/cpu.cfs_quota_us", "50000\n");
	tree_write(&tree, "cg/cpu/x/cpu.cfs_period_us", "100000\n");
	tree_write(&tree, "cg/memory/y/memory.limit_in_bytes", "4096\n");
	tree_write(&tree, "cg/v2/z/memory.max", "8192\n");
	tree_write(&tree, "proc/7/cgroup", "4:memory:/y\n3:cpu,cpuacct:/x\n1:name=systemd:/q\n0::/z\n");
	open_v1();
	assert_int_equal(cgroup_limits_of_pid(mounts, proc, 7, 8, 0, &l), 0);
	assert_true(l.cpus.known && l.cpus.value == 0.5);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 4096);
	assert_int_equal(cgroup_limits_of_pid(mounts, proc, 8, 8, 0, &l), -ENOENT);
	tree_write(&tree, "proc/9/cgroup", "nonsense\n");
	assert_int_equal(cgroup_limits_of_pid(mounts, proc, 9, 8, 0, &l), -EINVAL);
}

static void
in_a_container_the_mount_begins_at_its_own_cgroup(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/memory.max", "8192\n");
	tree_write(&tree, "cg/v2/in/memory.max", "4096\n");
	open_v2("/docker/ab");
	l = read_it("/docker/ab/in", NULL);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 4096);
	l = read_it("/docker/ab", NULL);
	assert_true(l.memory_bytes.known && l.memory_bytes.value == 8192);
}

static void
a_path_that_leads_out_is_not_followed(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/memory.max", "4096\n");
	tree_write(&tree, "cg/v2/a..b/memory.max", "8192\n");
	open_v2("/");
	l = read_it("/..", NULL);
	assert_false(l.memory_bytes.known);
	l = read_it("/x/../..", NULL);
	assert_false(l.memory_bytes.known);
	l = read_it("relative", NULL);
	assert_false(l.memory_bytes.known);
	l = read_it("/a..b", NULL);
	assert_true(l.memory_bytes.known);
}

static void
broken_values_limit_nothing(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "cg/v2/a/cpu.max", "many\n");
	tree_write(&tree, "cg/v2/a/memory.max", "0\n");
	tree_write(&tree, "cg/v2/a/cpuset.cpus", "9-3\n");
	open_v2("/");
	l = read_it("/a", NULL);
	assert_false(l.cpus.known || l.memory_bytes.known);
}

static void
a_host_without_cgroups_is_no_error(void **state)
{
	struct cgroup_limits l;

	(void)state;
	tree_write(&tree, "proc/self/mountinfo", "23 1 254:0 / / rw - ext4 /dev/root rw\n");
	assert_int_equal(cgroup_mounts_open(proc, &mounts), 0);
	l = read_it("/a", "/b");
	assert_false(l.cpus.known || l.memory_bytes.known);
}

/* Where the whole hierarchy with a controller ("": v2) is mounted; false: not here. */
static bool
find_point(const char *controller, char point[PATH_MAX])
{
	struct proc_cgroup_mount mount;
	struct file_text t = { 0 };
	const char *text;
	size_t len;
	bool is_found = false;

	assert_int_equal(file_read(AT_FDCWD, "/proc/self/mountinfo", &t, 1 << 20), 0);
	for (text = t.text, len = t.len; !is_found && proctext_next_cgroup_mount(&text, &len, &mount) != 0;)
		is_found = (*controller == '\0' ? mount.is_v2 :
		    !mount.is_v2 && proctext_list_has(mount.controllers, controller)) &&
		    proc_word_is(mount.root, "/") && proctext_unescape(mount.point, point, PATH_MAX) > 0;
	file_text_done(&t);
	return is_found;
}

/* Our own path in it; "" at its root. */
static void
find_own(const char *controller, char path[PATH_MAX])
{
	struct proc_cgroup line;
	struct file_text t = { 0 };
	const char *text;
	size_t len;

	path[0] = '\0';
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/cgroup", &t, 1 << 20), 0);
	for (text = t.text, len = t.len; proctext_next_cgroup(&text, &len, &line) != 0;)
		if ((*controller == '\0' ? line.hierarchy == 0 : proctext_list_has(line.controllers, controller)) &&
		    line.path.len > 1)
			snprintf(path, PATH_MAX, "%.*s", (int)line.path.len, line.path.at);
	file_text_done(&t);
}

static bool
write_limit(const char *dir, const char *file, const char *value)
{
	char path[PATH_MAX];
	FILE *f;
	bool is_done;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "r+e");
	if (f == NULL)
		return false;
	is_done = fputs(value, f) >= 0;
	return fclose(f) == 0 && is_done;
}

/* In each hierarchy of this host that has the controller a group with a limit, and one below it without. */
static void
real_groups_limit_what_they_say(void **state)
{
	static const struct {
		const char *controller, *file, *value, *second_file, *second_value;
		double cpus;
		uint64_t memory;
	} cases[] = {
		{ "memory", "memory.limit_in_bytes", "67108864", NULL, NULL, 0, 67108864 },
		{ "", "memory.max", "67108864", NULL, NULL, 0, 67108864 },
		{ "cpu", "cpu.cfs_quota_us", "50000", NULL, NULL, 0.5, 0 },
		{ "", "cpu.max", "50000 100000", NULL, NULL, 0.5, 0 },
		{ "cpuset", "cpuset.cpus", "0", "cpuset.mems", "0", 1, 0 },
		{ "", "cpuset.cpus", "0", NULL, NULL, 1, 0 },
	};
	char point[PATH_MAX], own[PATH_MAX], path[PATH_MAX + 64], dir[3 * PATH_MAX];
	unsigned n = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(cgroup_mounts_open("/proc", &mounts), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_v2 = cases[i].controller[0] == '\0', is_limited;
		struct cgroup_limits l = { 0 };

		if (!find_point(cases[i].controller, point))
			continue;
		find_own(cases[i].controller, own);
		snprintf(path, sizeof(path), "%s/sluice-unit-%d/inner", own, (int)getpid());
		snprintf(dir, sizeof(dir), "%s%s", point, path);
		*strrchr(dir, '/') = '\0';
		if (mkdir(dir, 0755) < 0)
			continue;
		is_limited = write_limit(dir, cases[i].file, cases[i].value) && (cases[i].second_file == NULL ||
		    write_limit(dir, cases[i].second_file, cases[i].second_value));
		strcat(dir, "/inner");
		is_limited = is_limited && mkdir(dir, 0755) == 0;
		if (is_limited)
			cgroup_limits_read(mounts, is_v2 ? path : NULL, is_v2 ? NULL : path, 0, 0, &l);
		rmdir(dir);
		*strrchr(dir, '/') = '\0';
		rmdir(dir);
		if (!is_limited)
			continue;
		n++;
		if (cases[i].cpus > 0)
			assert_true(l.cpus.known && l.cpus.value == cases[i].cpus);
		if (cases[i].memory > 0)
			assert_true(l.memory_bytes.known && l.memory_bytes.value == cases[i].memory);
	}
	if (n == 0)
		skip();		/* no hierarchy here takes a group of ours */
}

static void
names_below_a_users_folder_are_the_users(void **state)
{
	char dir[PATH_MAX];
	bool is_root = geteuid() == 0;

	(void)state;
	tree_write(&tree, "cg/v2/a/b/c/cpu.max", "max 100000\n");
	open_v2("/");
	assert_int_equal(read_it("/a/b/c", NULL).users_names, is_root ? 0 : 3);
	if (!is_root)
		return;
	snprintf(dir, sizeof(dir), "%s/cg/v2/a/b/c", tree.root);
	assert_int_equal(chown(dir, 1000, 1000), 0);
	assert_int_equal(read_it("/a/b/c", NULL).users_names, 0);	/* root has named it */
	*strrchr(dir, '/') = '\0';
	assert_int_equal(chown(dir, 1000, 1000), 0);
	assert_int_equal(read_it("/a/b/c", NULL).users_names, 1);
	assert_int_equal(read_it("/a/b/c/gone/too", NULL).users_names, 3);
	*strrchr(dir, '/') = '\0';
	assert_int_equal(chown(dir, 1000, 1000), 0);
	assert_int_equal(read_it("/a/b/c", NULL).users_names, 2);	/* the topmost counts */
}

static void
this_machine_can_be_read(void **state)
{
	struct cgroup_limits l;

	(void)state;
	assert_int_equal(cgroup_mounts_open("/proc", &mounts), 0);
	assert_int_equal(cgroup_limits_of_pid(mounts, "/proc", (uint32_t)getpid(), 0, 0, &l), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void
use_is_that_of_the_group_alone(void **state)
{
	struct group_use use;

	(void)state;
	tree_write(&tree, "cg/v2/a/memory.peak", "99999999\n");
	tree_write(&tree, "cg/v2/a/b/memory.peak", "1234567\n");
	tree_write(&tree, "cg/v2/a/b/memory.events", "low 0\nhigh 3\nmax 4\noom 2\noom_kill 1\noom_group_kill 0\n");
	tree_write(&tree, "cg/v2/a/b/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 250\n");
	tree_write(&tree, "cg/v2/a/b/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
	tree_write(&tree, "cg/v2/a/b/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=20\n"
	    "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n");
	tree_write(&tree, "cg/v2/a/b/io.pressure", "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n");
	open_v2("/");
	assert_true(cgroup_use_read(mounts, "/a/b", NULL, &use));
	assert_true(use.memory_peak_bytes.known && use.memory_peak_bytes.value == 1234567);
	assert_true(use.oom_kills.known && use.oom_kills.value == 1);
	assert_true(use.throttled_ns.known && use.throttled_ns.value == 250000);
	assert_true(use.cpu_some_ns.known && use.cpu_some_ns.value == 7000);
	assert_true(use.memory_some_ns.value == 20000 && use.memory_full_ns.value == 10000);
	assert_false(use.io_some_ns.known || use.io_full_ns.known);	/* the file is malformed */
	assert_false(cgroup_use_read(mounts, "/a/gone", NULL, &use));
	assert_false(cgroup_use_read(mounts, "/a/../a/b", NULL, &use));
	assert_false(cgroup_use_read(mounts, NULL, "/a/b", &use));
	assert_false(use.memory_peak_bytes.known);
}

static void
use_of_v1_is_of_two_hierarchies(void **state)
{
	struct group_use use;

	(void)state;
	tree_write(&tree, "cg/memory/job/memory.max_usage_in_bytes", "4096\n");
	tree_write(&tree, "cg/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	tree_write(&tree, "cg/cpu/job/cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_time 1500\n");
	open_v1();
	assert_true(cgroup_use_read(mounts, "/", "/job", &use));
	assert_true(use.memory_peak_bytes.value == 4096 && use.oom_kills.value == 2 && use.throttled_ns.value == 1500);
	assert_false(use.memory_full_ns.known);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(v2_takes_the_tightest_ancestor),
		TEST(a_cpuset_smaller_than_the_quota_wins),
		TEST(of_the_cpuset_what_is_effective_counts),
		TEST(both_hierarchies_limit_together),
		TEST(what_the_host_has_is_no_limit),
		TEST(v1_joins_its_hierarchies),
		TEST(a_process_is_read_by_its_own_paths),
		TEST(in_a_container_the_mount_begins_at_its_own_cgroup),
		TEST(a_path_that_leads_out_is_not_followed),
		TEST(broken_values_limit_nothing),
		TEST(a_host_without_cgroups_is_no_error),
		TEST(real_groups_limit_what_they_say),
		TEST(names_below_a_users_folder_are_the_users),
		TEST(use_is_that_of_the_group_alone),
		TEST(use_of_v1_is_of_two_hierarchies),
		TEST(this_machine_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
