/*
 * SPDX-License-Identifier: Apache-2.0
 * wait_places: names of functions, and lines of on_wait_places with the stacks of real waits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/wait_places.h"

#define ENTRY " do_syscall_64+0xa4/0x2f0 entry_SYSCALL_64_after_hwframe+0x76/0x7e"
#define END " 0x0 0x0\n"

static enum wait_class
class_of_name(const char *name)
{
	return wait_places_of_name(name, strlen(name));
}

/* Reads a copy of exactly len bytes, so that ASan sees each byte too far. */
static int
read_copy(const char *line, size_t len, uint64_t *ret_hash, enum wait_class *ret_class)
{
	char *copy = malloc(len > 0 ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, line, len);
	r = wait_places_of_line(copy, len, ret_hash, ret_class);
	free(copy);
	return r;
}

static enum wait_class
class_of_line(const char *line)
{
	enum wait_class class = WAIT_CLASSES;
	uint64_t hash = 0;

	assert_int_equal(read_copy(line, strlen(line), &hash, &class), 0);
	assert_int_equal(hash, 0xd1);
	return class;
}

static void
a_name_has_the_class_of_the_longest_row_that_fits(void **state)
{
	(void)state;
	assert_int_equal(class_of_name("do_nanosleep"), WAIT_TIMER);
	assert_int_equal(class_of_name("do_nanosleep_too"), WAIT_OTHER);
	assert_int_equal(class_of_name("do_nanoslee"), WAIT_OTHER);
	assert_int_equal(class_of_name("tcp_recvmsg_locked"), WAIT_NETWORK);
	assert_int_equal(class_of_name("tcp_"), WAIT_NETWORK);
	assert_int_equal(class_of_name("tcp"), WAIT_OTHER);
	assert_int_equal(class_of_name("fuse_file_read_iter"), WAIT_NETWORK_FS);
	assert_int_equal(class_of_name("fuse_dev_do_read"), WAIT_POLL);	/* "fuse_dev_*" is longer than "fuse_*" */
	assert_int_equal(class_of_name("ll_file_read"), WAIT_NETWORK_FS);
	assert_int_equal(class_of_name("ll_rw_block"), WAIT_BLOCK);
	assert_int_equal(class_of_name("inet_recvmsg"), WAIT_NETWORK);
	assert_int_equal(class_of_name("inet_csk_accept"), WAIT_POLL);
	assert_int_equal(class_of_name("schedule"), WAIT_OTHER);
	assert_int_equal(class_of_name(""), WAIT_OTHER);
}

static void
what_a_compiler_appends_is_not_compared(void **state)
{
	(void)state;
	assert_int_equal(class_of_name("request_wait_answer.isra.0"), WAIT_NETWORK_FS);
	assert_int_equal(class_of_name("do_wait.part.0"), WAIT_CHILD);
	assert_int_equal(class_of_name("pipe_read.llvm.1234567890"), WAIT_PIPE);
	assert_int_equal(class_of_name(".cold"), WAIT_OTHER);
	assert_int_equal(wait_places_of_name("do_wait_intr", 7), WAIT_CHILD);
}

/* As Linux 5.10, 6.1 and 6.18 print them. */
static void
real_stacks_have_the_class_of_their_wait(void **state)
{
	(void)state;
	assert_int_equal(class_of_line("d1 do_nanosleep+0x67/0x190 hrtimer_nanosleep+0xbe/0x1a0 "
	    "common_nsleep+0x40/0x50 __x64_sys_clock_nanosleep+0xbc/0x130" ENTRY END), WAIT_TIMER);
	assert_int_equal(class_of_line("d1 do_wait+0x60/0x100 kernel_wait4+0xa9/0x150 __do_sys_wait4+0x83/0x90"
	    ENTRY END), WAIT_CHILD);
	assert_int_equal(class_of_line("d1 anon_pipe_read+0x1d1/0x410 vfs_read+0x2a6/0x390 ksys_read+0xbc/0xe0"
	    ENTRY END), WAIT_PIPE);
	assert_int_equal(class_of_line("d1 pipe_read+0x39c/0x440 new_sync_read+0x1a2/0x1b0 vfs_read+0x196/0x1b0"
	    ENTRY END), WAIT_PIPE);
	assert_int_equal(class_of_line("d1 futex_do_wait+0x38/0x70 __futex_wait+0x91/0x100 futex_wait+0x68/0x110 "
	    "do_futex+0xc5/0x190 __x64_sys_futex+0x12a/0x220" ENTRY END), WAIT_LOCK);
	assert_int_equal(class_of_line("d1 futex_wait_queue_me+0xbf/0x140 futex_wait+0xf5/0x240 do_futex+0x171/0x5d0"
	    ENTRY END), WAIT_LOCK);
	assert_int_equal(class_of_line("d1 do_select+0x62f/0x770 core_sys_select+0x389/0x570 kern_select+0xa2/0x110"
	    ENTRY END), WAIT_POLL);
	assert_int_equal(class_of_line("d1 unix_stream_data_wait+0x9e/0x170 unix_stream_read_generic+0x25f/0x8b0 "
	    "unix_stream_recvmsg+0x8b/0x90 sock_recvmsg+0xd3/0x100" ENTRY END), WAIT_PIPE);
	assert_int_equal(class_of_line("d1 io_schedule+0x46/0x80 blk_io_schedule+0x17/0x30 __blkdev_direct_IO_simple+0x1e1"
	    "/0x2f0 blkdev_read_iter+0x125/0x180 vfs_read+0x2a6/0x390" ENTRY END), WAIT_BLOCK);
	assert_int_equal(class_of_line("d1 do_signal_stop+0x1d0/0x260 get_signal+0x6a5/0x840" ENTRY END), WAIT_STOPPED);
	assert_int_equal(class_of_line("d1 do_notify_resume+0x1/0x2 exit_to_user_mode_loop+0x1/0x2" ENTRY END), WAIT_OTHER);
}

static void
who_asks_a_fuse_file_waits_and_its_server_polls(void **state)
{
	(void)state;
	assert_int_equal(class_of_line("d1 request_wait_answer+0x10b/0x1f0 [fuse] fuse_simple_request+0x16f/0x2c0 [fuse] "
	    "fuse_lookup_name+0xe5/0x240 [fuse] path_lookupat+0xa9/0x180" ENTRY END), WAIT_NETWORK_FS);
	assert_int_equal(class_of_line("d1 fuse_dev_do_read+0x9d9/0xb20 [fuse] fuse_dev_read+0x60/0x90 [fuse] "
	    "vfs_read+0x2a6/0x390" ENTRY END), WAIT_POLL);
}

/* The most specific class wins, at whatever place of the stack. */
static void
a_file_on_nfs_is_neither_a_page_nor_a_socket(void **state)
{
	(void)state;
	assert_int_equal(class_of_line("d1 io_schedule+0x46/0x80 folio_wait_bit_common+0x137/0x330 filemap_read+0x3b5/0x4d0 "
	    "nfs_file_read+0x6e/0x90 [nfs] vfs_read+0x2a6/0x390" ENTRY END), WAIT_NETWORK_FS);
	assert_int_equal(class_of_line("d1 rpc_wait_bit_killable+0x11/0x70 [sunrpc] __wait_on_bit+0x34/0xb0 "
	    "__rpc_execute+0xe7/0x360 [sunrpc] tcp_sendmsg+0x1/0x2" ENTRY END), WAIT_NETWORK_FS);
	assert_int_equal(class_of_line("d1 io_schedule+0x46/0x80 folio_wait_bit_common+0x137/0x330 filemap_fault+0x13a/0xa50 "
	    "__do_fault+0x34/0x1c0 do_swap_page+0x1/0x2" END), WAIT_SWAP);
}

static void
a_read_of_a_socket_waits_and_an_idle_listener_polls(void **state)
{
	(void)state;
	assert_int_equal(class_of_line("d1 wait_woken+0x59/0x70 sk_wait_data+0x13e/0x170 tcp_recvmsg_locked+0x321/0x9d0 "
	    "tcp_recvmsg+0x84/0x1e0 inet_recvmsg+0x5c/0x140 sock_recvmsg+0xd3/0x100" ENTRY END), WAIT_NETWORK);
	assert_int_equal(class_of_line("d1 inet_csk_accept+0x239/0x360 do_accept+0x103/0x190 __sys_accept4+0x9f/0x110"
	    ENTRY END), WAIT_POLL);
}

static void
only_what_has_an_offset_is_a_function(void **state)
{
	(void)state;
	assert_int_equal(class_of_line("d1 0xffffffffc0a81234 [do_wait] tcp_recvmsg" END), WAIT_OTHER);
	assert_int_equal(class_of_line("d1 +0x1/0x2 ++ +" END), WAIT_OTHER);
	assert_int_equal(class_of_line("d1  do_wait+0x60/0x100  "), WAIT_CHILD);	/* empty words */
	assert_int_equal(class_of_line("d1 do_wait+"), WAIT_CHILD);
	assert_int_equal(class_of_line("d1\n"), WAIT_OTHER);
	assert_int_equal(class_of_line("d1"), WAIT_OTHER);
	assert_int_equal(class_of_line("d1 "), WAIT_OTHER);
}

static void
assert_refused(const char *line, size_t len)
{
	enum wait_class class = WAIT_CLASSES;
	uint64_t hash = 77;

	assert_int_equal(read_copy(line, len, &hash, &class), -EBADMSG);
	assert_int_equal(hash, 77);
	assert_int_equal(class, WAIT_CLASSES);
}

static void
a_hash_has_1_to_16_digits(void **state)
{
	static const char *const others[] = { "", "\n", " ", " do_wait+0x1/0x2", "fedcba98765432100 do_wait+0x1/0x2",
		"0x12 do_wait+0x1/0x2", "D1 do_wait+0x1/0x2", "-1 do_wait+0x1/0x2", "g do_wait+0x1/0x2", "1\tdo_wait+0x1/0x2" };
	const char *longest = "fedcba9876543210 do_wait+0x60/0x100 0x0\n";
	enum wait_class class;
	uint64_t hash;

	(void)state;
	assert_int_equal(read_copy(longest, strlen(longest), &hash, &class), 0);
	assert_int_equal(hash, UINT64_C(0xfedcba9876543210));
	assert_int_equal(class, WAIT_CHILD);
	assert_int_equal(read_copy("0 0x0\n", 6, &hash, &class), 0);
	assert_int_equal(hash, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_refused(others[i], strlen(others[i]));
	assert_refused("1\0 do_wait+0x1/0x2", 18);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_the_class_of_the_longest_row_that_fits),
		cmocka_unit_test(what_a_compiler_appends_is_not_compared),
		cmocka_unit_test(real_stacks_have_the_class_of_their_wait),
		cmocka_unit_test(who_asks_a_fuse_file_waits_and_its_server_polls),
		cmocka_unit_test(a_file_on_nfs_is_neither_a_page_nor_a_socket),
		cmocka_unit_test(a_read_of_a_socket_waits_and_an_idle_listener_polls),
		cmocka_unit_test(only_what_has_an_offset_is_a_function),
		cmocka_unit_test(a_hash_has_1_to_16_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
