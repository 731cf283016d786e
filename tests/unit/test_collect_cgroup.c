/*
 * SPDX-License-Identifier: Apache-2.0
 * Made-up hierarchies of v1, v2 and both.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/cgroup.h"
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
	l = read_it("/a/b/gone/further", NULL);
	assert_true(l.cpus.known && l.cpus.value == 2);
	l = read_it("/ab", NULL);
	assert_false(l.cpus.known || l.memory_bytes.known);
	assert_string_equal(cgroup_mounts_v2(mounts), tree_path(&tree, "cg/v2"));
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
	assert_null(cgroup_mounts_v2(mounts));
	l = read_it("/a", "/b");
	assert_false(l.cpus.known || l.memory_bytes.known);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(v2_takes_the_tightest_ancestor),
		TEST(a_cpuset_smaller_than_the_quota_wins),
		TEST(what_the_host_has_is_no_limit),
		TEST(v1_joins_its_hierarchies),
		TEST(a_process_is_read_by_its_own_paths),
		TEST(in_a_container_the_mount_begins_at_its_own_cgroup),
		TEST(a_path_that_leads_out_is_not_followed),
		TEST(broken_values_limit_nothing),
		TEST(a_host_without_cgroups_is_no_error),
		TEST(this_machine_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
