/*
 * SPDX-License-Identifier: Apache-2.0
 * host: a simulated /proc and /sys, and the real ones of this machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/host.h"
#include "tree.h"

#define HEADINGS "Inter-|   Receive | Transmit\n face |bytes packets|bytes\n"

static struct tree tree;
static struct host *host;

/* A host of two CPUs, one disk with a partition and an LVM volume, and a bridge with a veth. */
static int
set_up(void **state)
{
	(void)state;
	host = NULL;
	tree_init(&tree);
	tree_write(&tree, "proc/stat", "cpu  100 10 50 9000 20 1 2 3 0 0\ncpu0 1\ncpu1 1\n");
	tree_write(&tree, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB\n");
	tree_write(&tree, "proc/loadavg", "0.50 0.40 0.30 1/100 999\n");
	tree_write(&tree, "proc/pressure/cpu", "some avg10=0.00 total=1000\nfull avg10=0.00 total=0\n");
	tree_write(&tree, "proc/pressure/memory", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n");
	tree_write(&tree, "proc/pressure/io", "some avg10=0.00 total=7\nfull avg10=0.00 total=5\n");
	tree_write(&tree, "proc/diskstats",
	    "8 0 sda 0 0 100 0 0 0 200 0\n8 1 sda1 0 0 100 0 0 0 200 0\n"
	    "253 0 dm-0 0 0 100 0 0 0 200 0\n7 0 loop0 0 0 5 0 0 0 5 0\n");
	tree_mkdir(&tree, "sys/block/sda/slaves");
	tree_mkdir(&tree, "sys/block/sda/sda1");
	tree_mkdir(&tree, "sys/block/dm-0/slaves/sda1");
	tree_mkdir(&tree, "sys/block/loop0/slaves");
	tree_write(&tree, "proc/net/dev", HEADINGS
	    "lo: 9 0 0 0 0 0 0 0 9\neth0: 1000 0 0 0 0 0 0 0 2000\n"
	    "br0: 500 0 0 0 0 0 0 0 500\nveth1: 300 0 0 0 0 0 0 0 300\n");
	tree_mkdir(&tree, "sys/class/net/eth0/device");
	tree_mkdir(&tree, "sys/class/net/br0");
	tree_mkdir(&tree, "sys/class/net/veth1/master");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	host_close(host);
	tree_done(&tree);
	return 0;
}

static void
open_it(void)
{
	char proc[128], sys[128];

	snprintf(proc, sizeof(proc), "%s/proc", tree.root);
	snprintf(sys, sizeof(sys), "%s/sys", tree.root);
	assert_int_equal(host_open(proc, sys, &host), 0);
}

static struct host_record
sample(void)
{
	struct host_record s;

	assert_int_equal(host_sample(host, &s), 0);
	return s;
}

static void
cpu_times_are_differences_in_ns(void **state)
{
	const uint64_t tick = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	struct host_record s;

	(void)state;
	open_it();
	/* busy +1+2+3+4+5; iowait falls, as it does */
	tree_write(&tree, "proc/stat", "cpu  101 12 53 9100 19 5 7 10 0 0\ncpu0 1\ncpu1 1\n");
	s = sample();
	assert_int_equal(s.cpus, 2);
	assert_true(s.cpu_busy_ns == 15 * tick);
	assert_int_equal(s.cpu_iowait_ns, 0);
	assert_true(s.cpu_steal_ns == 7 * tick);
	assert_true(s.interval_ns > 0 && s.cpu_capacity_ns == 2 * s.interval_ns);
	s = sample();
	assert_int_equal(s.cpu_busy_ns, 0);
}

static void
levels_are_of_now(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	s = sample();
	assert_int_equal(s.memory_bytes, 1000 * 1024);
	assert_int_equal(s.memory_available_bytes, 600 * 1024);
	assert_int_equal(s.swap_bytes, 8 * 1024);
	assert_int_equal(s.swap_free_bytes, 4 * 1024);
	assert_true(s.load1 == 0.5);
}

static void
pressure_is_a_share_of_the_interval(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	usleep(20000);
	tree_write(&tree, "proc/pressure/io", "some avg10=0.00 total=5007\nfull avg10=0.00 total=5\n");
	tree_write(&tree, "proc/pressure/memory", "some avg10=0.00 total=99999999\nfull avg10=0.00 total=0\n");
	s = sample();
	assert_true(s.psi_io.some.known);
	assert_true(s.psi_io.some.value == 5000e3 / (double)s.interval_ns);
	assert_true(s.psi_io.full.known && s.psi_io.full.value == 0);
	assert_true(s.psi_memory.some.known && s.psi_memory.some.value == 1);
	assert_true(s.psi_cpu.some.known);
	assert_false(s.psi_cpu.full.known);
}

static void
without_psi_pressure_is_unknown(void **state)
{
	struct host_record s;

	(void)state;
	remove(tree_path(&tree, "proc/pressure/cpu"));
	remove(tree_path(&tree, "proc/pressure/io"));
	remove(tree_path(&tree, "proc/pressure/memory"));
	open_it();
	s = sample();
	assert_false(s.psi_cpu.some.known || s.psi_io.some.known || s.psi_memory.full.known);
}

static void
only_whole_disks_count(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	tree_write(&tree, "proc/diskstats",
	    "8 0 sda 0 0 110 0 0 0 220 0\n8 1 sda1 0 0 110 0 0 0 220 0\n"
	    "253 0 dm-0 0 0 110 0 0 0 220 0\n7 0 loop0 0 0 50 0 0 0 50 0\n");
	s = sample();
	assert_true(s.disk_read_bytes.known && s.disk_read_bytes.value == 10 * 512);
	assert_true(s.disk_write_bytes.known && s.disk_write_bytes.value == 20 * 512);
}

static void
a_disk_that_comes_or_goes_takes_only_its_own(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	tree_mkdir(&tree, "sys/block/sdb/slaves");
	tree_write(&tree, "proc/diskstats", "8 0 sda 0 0 101 0 0 0 200 0\n8 16 sdb 0 0 7 0 0 0 8 0\n");
	s = sample();
	assert_true(s.disk_read_bytes.value == 8 * 512);
	assert_true(s.disk_write_bytes.value == 8 * 512);
	tree_write(&tree, "proc/diskstats", "8 16 sdb 0 0 8 0 0 0 8 0\n");
	s = sample();
	assert_true(s.disk_read_bytes.known && s.disk_read_bytes.value == 512);
	assert_true(s.disk_write_bytes.known && s.disk_write_bytes.value == 0);
}

static void
diskstats_that_make_no_sense_leave_two_intervals_unknown(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	tree_write(&tree, "proc/diskstats", "8 0 sda nonsense\n");
	s = sample();
	assert_false(s.disk_read_bytes.known);
	tree_write(&tree, "proc/diskstats", "8 0 sda 0 0 150 0 0 0 250 0\n");
	s = sample();
	assert_false(s.disk_read_bytes.known);	/* a difference needs two */
	tree_write(&tree, "proc/diskstats", "8 0 sda 0 0 151 0 0 0 250 0\n");
	s = sample();
	assert_true(s.disk_read_bytes.known && s.disk_read_bytes.value == 512);
}

static void
traffic_counts_once_where_it_leaves_the_host(void **state)
{
	struct host_record s;

	(void)state;
	open_it();
	tree_write(&tree, "proc/net/dev", HEADINGS
	    "lo: 99 0 0 0 0 0 0 0 99\neth0: 1100 0 0 0 0 0 0 0 2200\n"
	    "br0: 600 0 0 0 0 0 0 0 700\nveth1: 400 0 0 0 0 0 0 0 500\n");
	s = sample();
	assert_true(s.net_rx_bytes.known && s.net_rx_bytes.value == 100);
	assert_true(s.net_tx_bytes.known && s.net_tx_bytes.value == 200);
}

static void
without_a_device_every_interface_but_lo_counts(void **state)
{
	struct host_record s;

	(void)state;
	remove(tree_path(&tree, "sys/class/net/eth0/device"));
	open_it();
	tree_write(&tree, "proc/net/dev", HEADINGS
	    "lo: 99 0 0 0 0 0 0 0 99\neth0: 1100 0 0 0 0 0 0 0 2200\n"
	    "br0: 500 0 0 0 0 0 0 0 500\nveth1: 303 0 0 0 0 0 0 0 300\n");
	s = sample();
	assert_true(s.net_rx_bytes.known && s.net_rx_bytes.value == 103);
}

static void
the_namespace_of_pid_1_is_preferred(void **state)
{
	struct host_record s;

	(void)state;
	tree_write(&tree, "proc/1/net/dev", HEADINGS "eth0: 5 0 0 0 0 0 0 0 5\n");
	open_it();
	tree_write(&tree, "proc/1/net/dev", HEADINGS "eth0: 7 0 0 0 0 0 0 0 5\n");
	s = sample();
	assert_true(s.net_rx_bytes.known && s.net_rx_bytes.value == 2);
}

static void
without_stat_there_is_no_sample(void **state)
{
	char proc[128];

	(void)state;
	remove(tree_path(&tree, "proc/stat"));
	snprintf(proc, sizeof(proc), "%s/proc", tree.root);
	assert_int_equal(host_open(proc, "/nowhere", &host), -ENOENT);
	assert_null(host);
}

static void
its_time_is_when_it_was_taken(void **state)
{
	int64_t before_us, after_us;
	struct host_record s;

	(void)state;
	open_it();
	before_us = clock_us(CLOCK_REALTIME);
	assert_int_equal(host_sample(host, &s), 0);
	after_us = clock_us(CLOCK_REALTIME);
	assert_in_range(s.head.time_us, before_us, after_us);
}

static void
a_failed_sample_is_covered_by_the_next(void **state)
{
	const uint64_t tick = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	struct host_record s = { .cpus = 77 };

	(void)state;
	open_it();
	tree_write(&tree, "proc/meminfo", "MemTotal: what\n");
	usleep(2000);
	assert_int_equal(host_sample(host, &s), -EINVAL);
	assert_int_equal(s.cpus, 77);
	tree_write(&tree, "proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 6 kB\n");
	tree_write(&tree, "proc/stat", "cpu  105 10 50 9000 20 1 2 3 0 0\ncpu0 1\ncpu1 1\n");
	s = sample();
	assert_true(s.cpu_busy_ns == 5 * tick);
	assert_true(s.interval_ns >= 2000000);
}

static void
this_machine_makes_sense(void **state)
{
	volatile unsigned spin = 0;
	struct host_record s;

	(void)state;
	assert_int_equal(host_open("/proc", "/sys", &host), 0);
	while (clock() < CLOCKS_PER_SEC / 20)
		spin++;
	s = sample();
	assert_int_equal(s.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(s.memory_available_bytes > 0 && s.memory_available_bytes <= s.memory_bytes);
	/* /proc/stat counts in ticks, and of a CPU's idle time it may be late by some */
	assert_true(s.cpu_busy_ns <= s.cpu_capacity_ns + s.cpus * UINT64_C(50000000));
	assert_true(s.net_rx_bytes.known && s.disk_read_bytes.known);
	for (int fd = 3; fd < 64; fd++) {
		int flags = fcntl(fd, F_GETFD);
		char link[64], path[128];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = flags < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (strstr(path, "/net/dev") != NULL || strcmp(path, "/proc/stat") == 0)
			assert_true(flags & FD_CLOEXEC);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cpu_times_are_differences_in_ns),
		TEST(levels_are_of_now),
		TEST(pressure_is_a_share_of_the_interval),
		TEST(without_psi_pressure_is_unknown),
		TEST(only_whole_disks_count),
		TEST(a_disk_that_comes_or_goes_takes_only_its_own),
		TEST(diskstats_that_make_no_sense_leave_two_intervals_unknown),
		TEST(traffic_counts_once_where_it_leaves_the_host),
		TEST(without_a_device_every_interface_but_lo_counts),
		TEST(the_namespace_of_pid_1_is_preferred),
		TEST(without_stat_there_is_no_sample),
		TEST(its_time_is_when_it_was_taken),
		TEST(a_failed_sample_is_covered_by_the_next),
		TEST(this_machine_makes_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
