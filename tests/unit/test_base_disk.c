/* SPDX-License-Identifier: Apache-2.0 */
/* disk: calls that hang are given up, have no effect once they return, and let the next ones through then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk.h"

#define PATIENCE_MS 200		/* more than a call takes that does not hang, on a host that others keep busy, too */

ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
int __real_openat(int dir, const char *name, int flags, mode_t mode);
int __wrap_openat(int dir, const char *name, int flags, mode_t mode);

static int gate[2];	/* a pipe: a call takes a byte first, while the disk hangs */
static int hangs;	/* atomic */
static unsigned slow_ms;	/* atomic: what each call takes, while the disk is slow */
static size_t longest;	/* bytes of one write; atomic */
static char dir[64];
static int dir_fd;

static void
pass_gate(void)
{
	char byte;

	usleep(__atomic_load_n(&slow_ms, __ATOMIC_ACQUIRE) * 1000);
	if (__atomic_load_n(&hangs, __ATOMIC_ACQUIRE))
		assert_int_equal(read(gate[0], &byte, 1), 1);
}

ssize_t
__wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (len > __atomic_load_n(&longest, __ATOMIC_ACQUIRE))
		__atomic_store_n(&longest, len, __ATOMIC_RELEASE);
	pass_gate();
	return __real_pwritev(fd, iov, n, offset);
}

int
__wrap_openat(int at, const char *name, int flags, mode_t mode)
{
	pass_gate();
	return __real_openat(at, name, flags, mode);
}

static int
setup(void **state)
{
	(void)state;
	/* In memory, where there is such a folder: a real disk hangs when others write to it. */
	snprintf(dir, sizeof(dir), "%s/sluice-disk-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	return 0;
}

static int
teardown(void **state)
{
	static const char *const names[] = { "a", "b" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir_fd, names[i], 0);
	close(dir_fd);
	close(gate[0]);
	close(gate[1]);
	return rmdir(dir);
}

static void
set_hanging(bool is_hanging)
{
	__atomic_store_n(&hangs, is_hanging, __ATOMIC_RELEASE);
}

/* Lets the one call through that hangs, and waits until the disk answers again. */
static void
go_on(struct disk *d)
{
	char byte;

	set_hanging(false);
	assert_int_equal(write(gate[1], "", 1), 1);
	while (disk_hangs(d))
		usleep(1000);
	/* A call that had not yet come to the gate found it open. */
	if (poll(&(struct pollfd){ .fd = gate[0], .events = POLLIN }, 1, 0) == 1)
		assert_int_equal(read(gate[0], &byte, 1), 1);
	disk_settle(d, 0);	/* the hang took all of the patience, and the next call may have to wait for a CPU */
}

static bool
is_there(const char *name)
{
	return faccessat(dir_fd, name, F_OK, 0) == 0;
}

static int
append(struct disk *d, int fd, const char *text, uint64_t end)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)text, 1 }, { (void *)(uintptr_t)(text + 1), strlen(text) - 1 } };

	return disk_append(d, fd, iov, 2, end);
}

static uint64_t
size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

/* Makes each call; d: NULL or a thread makes them. */
static void
use(struct disk *d)
{
	char text[16] = "";
	int fd = disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
	assert_int_equal(append(d, fd, "one ", 0), 0);
	assert_int_equal(append(d, fd, "two ", 4), 0);
	assert_int_equal(disk_write(d, fd, "ONE", 3, 0), 0);
	assert_int_equal(disk_read(d, fd, text, sizeof(text), 0), 8);
	assert_string_equal(text, "ONE two ");
	assert_int_equal(disk_truncate(d, fd, 3), 0);
	assert_int_equal(size_of(fd), 3);
	assert_int_equal(disk_allocate(d, fd, 4096), 0);
	assert_int_equal(size_of(fd), 4096);
	assert_int_equal(disk_links(d, fd), 1);
	assert_int_equal(disk_unlink(d, dir_fd, "a"), 0);
	assert_int_equal(disk_unlink(d, dir_fd, "a"), -ENOENT);
	assert_int_equal(disk_links(d, fd), 0);
	disk_close(d, fd);
	assert_int_equal(disk_truncate(d, fd, 0), -EBADF);
	assert_int_equal(disk_is_at(d, dir_fd, dir), 1);
	assert_int_equal(disk_is_at(d, dir_fd, "/tmp"), 0);
}

static void
calls_do_what_they_do(void **state)
{
	struct disk *d;

	(void)state;
	use(NULL);
	assert_int_equal(disk_start(60000, &d), 0);
	use(d);
	assert_false(disk_hangs(d));
	disk_stop(d);
	disk_stop(NULL);
	assert_false(disk_hangs(NULL));
}

static void
what_is_appended_too_late_is_cut_off(void **state)
{
	struct disk *d;
	uint64_t begin;
	int fd;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	fd = disk_open(NULL, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(append(NULL, fd, "before", 0), 0);
	set_hanging(true);
	begin = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(append(d, fd, "late", 6), -ETIMEDOUT);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= PATIENCE_MS * 1000000);
	assert_true(disk_hangs(d));
	/* Others fail at once, and of files that are closed meanwhile, nothing is mixed up. */
	assert_int_equal(disk_truncate(d, fd, 0), -ETIMEDOUT);
	assert_int_equal(disk_read(d, fd, dir, 1, 0), -ETIMEDOUT);
	go_on(d);
	assert_int_equal(size_of(fd), 6);
	assert_int_equal(append(d, fd, "after", 6), 0);
	assert_int_equal(size_of(fd), 11);
	disk_close(d, fd);
	disk_stop(d);
}

enum { LONG = (5 << 20) + 17 };

/* The thread has no copy of all that is long; and all of it is cut off if its last piece was too late. */
static void
what_is_long_is_appended_in_pieces(void **state)
{
	uint8_t *data = malloc(LONG), *back = malloc(LONG);
	struct iovec iov[2] = { { (void *)(uintptr_t)"head", 4 }, { data, LONG } };
	struct disk *d;
	int fd;

	(void)state;
	for (size_t i = 0; i < LONG; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 11);
	assert_int_equal(disk_start(PATIENCE_MS * 200, &d), 0);
	fd = disk_open(NULL, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	longest = 0;
	assert_int_equal(disk_append(d, fd, iov, 2, 0), 0);
	assert_in_range(__atomic_load_n(&longest, __ATOMIC_ACQUIRE), 1, 1 << 20);
	assert_int_equal(size_of(fd), LONG + 4);
	assert_int_equal(disk_read(NULL, fd, back, 4, 0), 4);
	assert_memory_equal(back, "head", 4);
	assert_int_equal(disk_read(NULL, fd, back, LONG, 4), LONG);
	assert_memory_equal(back, data, LONG);
	disk_stop(d);

	/* Each piece takes a part of the patience, which the third or so has no more of. */
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	slow_ms = PATIENCE_MS * 2 / 5;
	iov[0] = (struct iovec){ data, LONG };
	assert_int_equal(disk_append(d, fd, iov, 1, LONG + 4), -ETIMEDOUT);
	while (disk_hangs(d))
		usleep(1000);
	slow_ms = 0;
	assert_int_equal(size_of(fd), LONG + 4);
	disk_close(d, fd);
	disk_stop(d);
	free(data);
	free(back);
}

static void
a_file_that_is_made_too_late_is_removed(void **state)
{
	struct disk *d;
	int fd;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	set_hanging(true);
	assert_int_equal(disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600), -ETIMEDOUT);
	go_on(d);
	assert_false(is_there("a"));
	fd = disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	disk_close(d, fd);
	disk_stop(d);
}

static void
what_is_closed_or_removed_meanwhile_is_so_later(void **state)
{
	struct disk *d;
	int fd;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	fd = disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	set_hanging(true);
	assert_int_equal(append(d, fd, "late", 0), -ETIMEDOUT);
	assert_int_equal(disk_unlink(d, dir_fd, "a"), 0);
	disk_close(d, fd);
	assert_true(is_there("a"));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	go_on(d);
	assert_false(is_there("a"));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	disk_stop(d);
}

/*
 * Each call takes less than the patience. In ten times the patience, the caller waits for hardly more than twice of
 * it: what was left at the beginning, and what the time gave back. It is more than ten times where the machine
 * gave the disk's thread so little time that no call was made in it.
 */
static void
a_slow_disk_takes_a_part_of_the_time(void **state)
{
	const uint64_t window_ns = 10 * PATIENCE_MS * UINT64_C(1000000), begin = clock_ns(CLOCK_MONOTONIC);
	const uint64_t longest_ns = 30 * window_ns;
	unsigned made = 0, given_up = 0;
	uint64_t waited_ns = 0, end;
	struct disk *d;
	int fd;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	fd = disk_open(d, dir_fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	__atomic_store_n(&slow_ms, PATIENCE_MS * 3 / 5, __ATOMIC_RELEASE);
	for (end = begin; end - begin < (made > 0 ? window_ns : longest_ns); end = clock_ns(CLOCK_MONOTONIC)) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		int r = append(d, fd, "slow", 4 * made);

		waited_ns += clock_ns(CLOCK_MONOTONIC) - before;
		assert_true(r == 0 || r == -ETIMEDOUT);
		made += r == 0;
		given_up += r == -ETIMEDOUT;
		usleep(1000);
	}
	assert_true(made >= 1);
	assert_true(given_up > 0);
	/* Of a machine that others keep busy, each call may cost the caller more than it costs the disk. */
	print_message("%u calls made, waited %.0f of %.0f ms\n", made, (double)waited_ns / 1e6, (double)(end - begin) / 1e6);
	assert_true(waited_ns < (end - begin) / 2);
	disk_settle(d, 60000);
	assert_false(disk_hangs(d));
	assert_int_equal(size_of(fd), 4 * made);
	__atomic_store_n(&slow_ms, 0, __ATOMIC_RELEASE);
	assert_int_equal(append(d, fd, "fast", 4 * made), 0);
	disk_close(d, fd);
	disk_stop(d);
}

static int
count_bytes(int at, const char *path, const void *data, size_t len)
{
	int fd = openat(at, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n = pwrite(fd, data, len, 0);

	close(fd);
	return (int)n;
}

static int
open_it(int at, const char *path, const void *data, size_t len)
{
	int fd = openat(at, path, O_RDONLY | O_CLOEXEC);

	(void)data;
	assert_int_equal(len, 0);
	return fd < 0 ? -errno : fd;
}

static unsigned
descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
a_function_runs_as_one_call(void **state)
{
	struct disk *disks[2] = { NULL, NULL }, *d;
	unsigned before;
	int fd;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &disks[1]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(disk_run(disks[i], dir_fd, "a", "text", 4, count_bytes), 4);
		fd = disk_open_by(disks[i], dir_fd, "a", open_it);
		assert_true(fd >= 0);
		disk_close(disks[i], fd);
		assert_int_equal(disk_open_by(disks[i], dir_fd, "none", open_it), -ENOENT);
	}
	d = disks[1];
	before = descriptors();
	set_hanging(true);
	assert_int_equal(disk_run(d, dir_fd, "b", "text", 4, count_bytes), -ETIMEDOUT);
	assert_int_equal(disk_run(d, dir_fd, "b", "text", 4, count_bytes), -ETIMEDOUT);
	go_on(d);
	assert_true(is_there("b"));
	set_hanging(true);
	assert_int_equal(disk_open_by(d, dir_fd, "a", open_it), -ETIMEDOUT);
	go_on(d);
	assert_int_equal(descriptors(), before);
	/* One for which the caller does not wait. */
	assert_int_equal(disk_begin(NULL, dir_fd, "a", "text", 4, count_bytes), 0);
	set_hanging(true);
	assert_int_equal(disk_begin(d, dir_fd, "b", "longer", 6, count_bytes), 0);
	assert_true(disk_hangs(d));
	assert_int_equal(disk_begin(d, dir_fd, "b", "longer", 6, count_bytes), -ETIMEDOUT);
	disk_settle(d, 1);
	assert_true(disk_hangs(d));
	go_on(d);
	fd = disk_open(d, dir_fd, "b", O_RDONLY | O_CLOEXEC, 0);
	assert_int_equal(size_of(fd), 6);
	disk_close(d, fd);
	disk_stop(d);
}

static void
a_stop_does_not_wait_for_a_call_that_hangs(void **state)
{
	struct disk *d;

	(void)state;
	assert_int_equal(disk_start(PATIENCE_MS, &d), 0);
	set_hanging(true);
	assert_int_equal(disk_open(d, dir_fd, "b", O_RDWR | O_CREAT | O_EXCL, 0600), -ETIMEDOUT);
	disk_stop(d);
	set_hanging(false);
	assert_false(is_there("b"));
	assert_int_equal(write(gate[1], "", 1), 1);
	usleep(PATIENCE_MS * 1000);	/* the thread frees d; LeakSanitizer would find it */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_do_what_they_do, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_appended_too_late_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_long_is_appended_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_made_too_late_is_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_closed_or_removed_meanwhile_is_so_later, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_disk_takes_a_part_of_the_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_function_runs_as_one_call, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_does_not_wait_for_a_call_that_hangs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
