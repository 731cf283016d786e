/*
 * SPDX-License-Identifier: Apache-2.0
 * proctext: texts as kernels from 5.10 to 7.x write them, and damaged ones. No root, no kernel.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/proctext.h"

#define TEXT(s) (s), strlen(s)

static void
assert_word(struct proc_word word, const char *wanted)
{
	assert_int_equal(word.len, strlen(wanted));
	assert_memory_equal(word.at, wanted, word.len);
}

static void
stat_sums_up_the_cpu_line_and_counts_online_cpus(void **state)
{
	static const char text[] =
	    "cpu  2167 11 1995 192402 340 7 39 13 5 6\n"
	    "cpu0 657 0 674 97102 5 0 9 2 0 0\n"
	    "cpu2 1510 0 1320 95300 335 0 30 10 0 0\n"	/* cpu1 is offline */
	    "intr 173287 0 0 0\nctxt 362073\nbtime 1795260000\nprocesses 9067\n"
	    "procs_running 1\nprocs_blocked 0\nsoftirq 1 2 3\n";
	struct proc_stat stat;

	(void)state;
	assert_int_equal(proctext_stat(TEXT(text), &stat), 0);
	assert_int_equal(stat.user, 2167);
	assert_int_equal(stat.nice, 11);
	assert_int_equal(stat.system, 1995);
	assert_int_equal(stat.idle, 192402);
	assert_int_equal(stat.iowait, 340);
	assert_int_equal(stat.irq, 7);
	assert_int_equal(stat.softirq, 39);
	assert_int_equal(stat.steal, 13);
	assert_int_equal(stat.cpus, 2);
}

static void
stat_refuses_missing_and_broken_numbers(void **state)
{
	struct proc_stat stat = { .user = 77 };

	(void)state;
	assert_int_equal(proctext_stat("", 0, &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu  1 2 3 4 5 6 7\ncpu0 1\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu  1 2 3 4 5 6 7 8\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu0 1 2 3 4 5 6 7 8\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu  1 2 x 4 5 6 7 8\ncpu0 1\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu  -1 2 3 4 5 6 7 8\ncpu0 1\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(TEXT("cpu  1 2 3 4 5 6 7 8\ncpux 1\n"), &stat), -EINVAL);
	assert_int_equal(proctext_stat(
	    TEXT("cpu  18446744073709551616 2 3 4 5 6 7 8\ncpu0 1\n"), &stat), -ERANGE);
	assert_int_equal(stat.user, 77);
	assert_int_equal(proctext_stat(
	    TEXT("cpu  18446744073709551615 2 3 4 5 6 7 8\ncpu0 1"), &stat), 0);
	assert_true(stat.user == UINT64_MAX);
}

static void
meminfo_is_in_bytes(void **state)
{
	static const char text[] =
	    "MemTotal:       24684092 kB\nMemFree:        24445124 kB\nMemAvailable:   24385968 kB\n"
	    "Buffers:            1660 kB\nSwapCached:            0 kB\nSwapTotal:       1048572 kB\n"
	    "SwapFree:         524286 kB\nHugePages_Total:       0\nDirectMap4k:       69632 kB\n";
	struct proc_meminfo mem;

	(void)state;
	assert_int_equal(proctext_meminfo(TEXT(text), &mem), 0);
	assert_true(mem.total == UINT64_C(24684092) * 1024);
	assert_true(mem.available == UINT64_C(24385968) * 1024);
	assert_true(mem.swap_total == UINT64_C(1048572) * 1024);
	assert_true(mem.swap_free == UINT64_C(524286) * 1024);
}

static void
meminfo_needs_total_and_available_but_no_swap(void **state)
{
	struct proc_meminfo mem;

	(void)state;
	assert_int_equal(proctext_meminfo(TEXT("MemTotal: 5 kB\nMemAvailable: 4 kB\n"), &mem), 0);
	assert_int_equal(mem.swap_total, 0);
	assert_int_equal(proctext_meminfo(TEXT("MemTotal: 5 kB\n"), &mem), -EINVAL);
	assert_int_equal(proctext_meminfo(TEXT("MemTotal: 5\nMemAvailable: 4 kB\n"), &mem), -EINVAL);
	assert_int_equal(proctext_meminfo(TEXT("MemTotal: 5 kB\nMemAvailable: kB\n"), &mem), -EINVAL);
	assert_int_equal(proctext_meminfo(
	    TEXT("MemTotal: 18014398509481984 kB\nMemAvailable: 4 kB\n"), &mem), -ERANGE);
}

static void
pressure_full_is_unknown_where_the_line_is_not(void **state)
{
	struct proc_pressure pressure;

	(void)state;
	/* 5.10's cpu */
	assert_int_equal(proctext_pressure(
	    TEXT("some avg10=1.02 avg60=0.85 avg300=0.33 total=4848503\n"), &pressure), 0);
	assert_int_equal(pressure.some_us, 4848503);
	assert_false(pressure.full_us.known);
	assert_int_equal(proctext_pressure(
	    TEXT("some avg10=0.36 avg60=0.09 avg300=0.14 total=3302527\n"
		 "full avg10=0.36 avg60=0.09 avg300=0.14 avg900=1.0 total=3159808 more=1\n"), &pressure), 0);
	assert_int_equal(pressure.some_us, 3302527);
	assert_true(pressure.full_us.known);
	assert_int_equal(pressure.full_us.value, 3159808);
}

static void
pressure_refuses_what_has_no_total(void **state)
{
	struct proc_pressure pressure;

	(void)state;
	assert_int_equal(proctext_pressure("", 0, &pressure), -EINVAL);
	assert_int_equal(proctext_pressure(TEXT("full avg10=0.00 total=3\n"), &pressure), -EINVAL);
	assert_int_equal(proctext_pressure(TEXT("some avg10=0.00\n"), &pressure), -EINVAL);
	assert_int_equal(proctext_pressure(TEXT("some total=\n"), &pressure), -EINVAL);
	assert_int_equal(proctext_pressure(TEXT("some total=1 \nfull total=9x\n"), &pressure), -EINVAL);
	assert_int_equal(proctext_pressure(TEXT("some total=99999999999999999999\n"), &pressure), -ERANGE);
}

static void
load_is_the_first_number(void **state)
{
	double load = -1;

	(void)state;
	assert_int_equal(proctext_load1(TEXT("12.07 0.85 0.33 2/345 9067\n"), &load), 0);
	assert_true(load > 12.0699 && load < 12.0701);
	assert_int_equal(proctext_load1("", 0, &load), -EINVAL);
	assert_int_equal(proctext_load1(TEXT("12 0.85\n"), &load), -EINVAL);
	assert_int_equal(proctext_load1(TEXT(".5 0.85\n"), &load), -EINVAL);
	assert_int_equal(proctext_load1(TEXT("1. 0.85\n"), &load), -EINVAL);
	assert_int_equal(proctext_load1(TEXT("nan\n"), &load), -EINVAL);
	assert_int_equal(proctext_load1(TEXT("1.0000000000\n"), &load), -EINVAL);
}

static void
disks_of_every_column_count_are_read(void **state)
{
	static const char text[] =
	    " 254       0 vda 50837 8763 2521466 7180 16232 6755 1188920 3413 0 5240 10994 5521 59 324224 322 2064 76\n"
	    "\n"
	    "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11\n"		/* 4.17 and before */
	    " 104       0 cciss/c0d0 1 2 5 4 5 6 9 8 9 10 11 12 13 14 15";
	struct proc_disk disk;
	const char *at = text;
	size_t len = strlen(text);

	(void)state;
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 1);
	assert_word(disk.name, "vda");
	assert_int_equal(disk.read_bytes, 2521466 * 512);
	assert_int_equal(disk.write_bytes, 1188920 * 512);
	assert_true(disk.busy_ms > 0);
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 1);
	assert_word(disk.name, "sda1");
	assert_int_equal(disk.read_bytes, 3 * 512);
	assert_int_equal(disk.write_bytes, 7 * 512);
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 1);
	assert_word(disk.name, "cciss/c0d0");
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 0);
}

static void
a_broken_disk_line_is_passed_over(void **state)
{
	static const char text[] = "8 0 sda 1 2\n8 16 sdb 1 2 36028797018963968 4 5 6 7\n8 32 sdc 1 2 3 4 5 6 7\n";
	struct proc_disk disk;
	const char *at = text;
	size_t len = strlen(text);

	(void)state;
	assert_int_equal(proctext_next_disk(&at, &len, &disk), -EINVAL);
	assert_int_equal(proctext_next_disk(&at, &len, &disk), -ERANGE);
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 1);
	assert_word(disk.name, "sdc");
	assert_int_equal(proctext_next_disk(&at, &len, &disk), 0);
}

static void
interfaces_are_read_without_the_headings(void **state)
{
	static const char text[] =
	    "Inter-|   Receive                                                |  Transmit\n"
	    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	    "    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n"
	    "  eth0:80860362    1969    0    0    0     0          0         0    89307     968    0    0    0     0       0          0\n"
	    "eth0:1: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n"
	    "  ethx 5 0 0 0 0 0 0 0 6\n"
	    "  ethy: 5 0 0 0 0 0 0\n";
	struct proc_interface interface;
	const char *at = text;
	size_t len = strlen(text);

	(void)state;
	assert_int_equal(proctext_next_interface(&at, &len, &interface), 1);
	assert_word(interface.name, "lo");
	assert_int_equal(proctext_next_interface(&at, &len, &interface), 1);
	assert_word(interface.name, "eth0");
	assert_int_equal(interface.rx_bytes, 80860362);
	assert_int_equal(interface.tx_bytes, 89307);
	assert_int_equal(proctext_next_interface(&at, &len, &interface), 1);
	assert_word(interface.name, "eth0:1");
	assert_int_equal(proctext_next_interface(&at, &len, &interface), -EINVAL);
	assert_int_equal(proctext_next_interface(&at, &len, &interface), -EINVAL);
	assert_int_equal(proctext_next_interface(&at, &len, &interface), 0);
}

static void
cgroup_lines_of_a_hybrid_host(void **state)
{
	static const char text[] =
	    "9:name=systemd:/\n4:memory:/slurm/uid_1000/job_42/step_batch/task_0\n"
	    "2:cpu,cpuacct:/odd:name with spaces\n0::/system.slice/x.scope (deleted)\n";
	struct proc_cgroup line;
	const char *at = text;
	size_t len = strlen(text);

	(void)state;
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), 1);
	assert_int_equal(line.hierarchy, 9);
	assert_word(line.controllers, "name=systemd");
	assert_word(line.path, "/");
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), 1);
	assert_word(line.path, "/slurm/uid_1000/job_42/step_batch/task_0");
	assert_false(line.is_deleted);
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), 1);
	assert_true(proctext_list_has(line.controllers, "cpu"));
	assert_true(proctext_list_has(line.controllers, "cpuacct"));
	assert_false(proctext_list_has(line.controllers, "cpuset"));
	assert_word(line.path, "/odd:name with spaces");
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), 1);
	assert_int_equal(line.hierarchy, 0);
	assert_word(line.controllers, "");
	assert_word(line.path, "/system.slice/x.scope");
	assert_true(line.is_deleted);
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), 0);
}

static void
cgroup_lines_that_are_none_are_refused(void **state)
{
	static const char *const broken[] = { "0:/", "x::/", "0::", "0::a", ":::/", "-1::/a", "0", ":" };
	struct proc_cgroup line;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		const char *at = broken[i];
		size_t len = strlen(at);

		assert_int_equal(proctext_next_cgroup(&at, &len, &line), -EINVAL);
		assert_int_equal(len, 0);
	}
	const char *at = "4294967296::/";
	size_t len = strlen(at);
	assert_int_equal(proctext_next_cgroup(&at, &len, &line), -ERANGE);
}

static void
only_cgroup_mounts_are_found_in_mountinfo(void **state)
{
	static const char text[] =
	    "23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
	    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid master:3 propagate_from:1 - cgroup cgroup rw,cpu,cpuacct\n"
	    "35 31 0:32 /docker/ab /a\\040b rw,relatime - cgroup cgroup rw,memory\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	    "42 31 0:38 / /x rw\n";
	struct proc_cgroup_mount mount;
	const char *at = text;
	size_t len = strlen(text);
	char buf[64];

	(void)state;
	assert_int_equal(proctext_next_cgroup_mount(&at, &len, &mount), 1);
	assert_false(mount.is_v2);
	assert_true(proctext_list_has(mount.controllers, "cpu"));
	assert_word(mount.point, "/sys/fs/cgroup/cpu,cpuacct");
	assert_int_equal(proctext_next_cgroup_mount(&at, &len, &mount), 1);
	assert_word(mount.root, "/docker/ab");
	assert_int_equal(proctext_unescape(mount.point, buf, sizeof(buf)), 4);
	assert_string_equal(buf, "/a b");
	assert_int_equal(proctext_next_cgroup_mount(&at, &len, &mount), 1);
	assert_true(mount.is_v2);
	assert_word(mount.point, "/sys/fs/cgroup/unified");
	assert_int_equal(proctext_next_cgroup_mount(&at, &len, &mount), -EINVAL);
	assert_int_equal(proctext_next_cgroup_mount(&at, &len, &mount), 0);
}

static void
escapes_that_are_none_are_refused(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("a\\134b") }, buf, sizeof(buf)), 3);
	assert_string_equal(buf, "a\\b");
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("a\\04") }, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("a\\048") }, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("a\\000") }, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("a\\777") }, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("1234567") }, buf, sizeof(buf)), 7);
	assert_int_equal(proctext_unescape((struct proc_word){ TEXT("12345678") }, buf, sizeof(buf)), -ENAMETOOLONG);
}

static void
cpu_max_is_quota_by_period(void **state)
{
	struct opt_double cpus;

	(void)state;
	assert_int_equal(proctext_cpu_max(TEXT("150000 100000\n"), &cpus), 0);
	assert_true(cpus.known && cpus.value == 1.5);
	assert_int_equal(proctext_cpu_max(TEXT("max 100000\n"), &cpus), 0);
	assert_false(cpus.known);
	assert_int_equal(proctext_cpu_max(TEXT("max\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cpu_max(TEXT("1000 0\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cpu_max(TEXT("0 1000\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cpu_max(TEXT("-1 1000\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cpu_max("", 0, &cpus), -EINVAL);
}

static void
cfs_quota_below_zero_is_no_limit(void **state)
{
	struct opt_double cpus;

	(void)state;
	assert_int_equal(proctext_cfs(TEXT("50000\n"), TEXT("100000\n"), &cpus), 0);
	assert_true(cpus.known && cpus.value == 0.5);
	assert_int_equal(proctext_cfs(TEXT("-1\n"), TEXT("100000\n"), &cpus), 0);
	assert_false(cpus.known);
	assert_int_equal(proctext_cfs(TEXT("-1\n"), TEXT("0\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cfs(TEXT("-\n"), TEXT("1\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cfs(TEXT("1 2\n"), TEXT("1\n"), &cpus), -EINVAL);
	assert_int_equal(proctext_cfs("", 0, TEXT("1\n"), &cpus), -EINVAL);
}

static void
cpu_lists_are_counted(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint32_t count;
	} cases[] = {
		{ "0-1\n", 0, 2 }, { "0-3,7,9-11\n", 0, 8 }, { "5", 0, 1 }, { "\n", 0, 0 },
		{ "0-1023\n", 0, 1024 }, { "3-1\n", -EINVAL, 0 }, { "0,0\n", -EINVAL, 0 },
		{ "0-2,1\n", -EINVAL, 0 }, { "0-\n", -EINVAL, 0 }, { "-3\n", -EINVAL, 0 },
		{ "1,\n", -EINVAL, 0 }, { ",1\n", -EINVAL, 0 }, { "1 2\n", -EINVAL, 0 },
		{ "0-4294967295\n", -ERANGE, 0 }, { "a\n", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t count = 99;

		assert_int_equal(proctext_cpu_list(TEXT(cases[i].text), &count), cases[i].result);
		assert_int_equal(count, cases[i].result == 0 ? cases[i].count : 99);
	}
}

static void
huge_memory_limits_are_none(void **state)
{
	struct opt_u64 limit;

	(void)state;
	assert_int_equal(proctext_memory_limit(TEXT("max\n"), &limit), 0);
	assert_false(limit.known);
	assert_int_equal(proctext_memory_limit(TEXT("9223372036854771712\n"), &limit), 0);
	assert_false(limit.known);
	assert_int_equal(proctext_memory_limit(TEXT("1073741824\n"), &limit), 0);
	assert_true(limit.known && limit.value == 1073741824);
	assert_int_equal(proctext_memory_limit(TEXT("-1\n"), &limit), -EINVAL);
	assert_int_equal(proctext_memory_limit(TEXT("\n"), &limit), -EINVAL);
	assert_int_equal(proctext_memory_limit(TEXT("5\n6\n"), &limit), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_sums_up_the_cpu_line_and_counts_online_cpus),
		cmocka_unit_test(stat_refuses_missing_and_broken_numbers),
		cmocka_unit_test(meminfo_is_in_bytes),
		cmocka_unit_test(meminfo_needs_total_and_available_but_no_swap),
		cmocka_unit_test(pressure_full_is_unknown_where_the_line_is_not),
		cmocka_unit_test(pressure_refuses_what_has_no_total),
		cmocka_unit_test(load_is_the_first_number),
		cmocka_unit_test(disks_of_every_column_count_are_read),
		cmocka_unit_test(a_broken_disk_line_is_passed_over),
		cmocka_unit_test(interfaces_are_read_without_the_headings),
		cmocka_unit_test(cgroup_lines_of_a_hybrid_host),
		cmocka_unit_test(cgroup_lines_that_are_none_are_refused),
		cmocka_unit_test(only_cgroup_mounts_are_found_in_mountinfo),
		cmocka_unit_test(escapes_that_are_none_are_refused),
		cmocka_unit_test(cpu_max_is_quota_by_period),
		cmocka_unit_test(cfs_quota_below_zero_is_no_limit),
		cmocka_unit_test(cpu_lists_are_counted),
		cmocka_unit_test(huge_memory_limits_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
