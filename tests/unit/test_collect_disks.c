/* SPDX-License-Identifier: Apache-2.0 */
/* disks: which file systems are asked for their room, and that others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collect/disks.h"

static char path[] = "/tmp/sluice-mountinfo-XXXXXX";

/* Returns the number of the mount at a folder. */
static uint64_t
mount_at(const char *folder)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, folder, 0, STATX_MNT_ID, &st), 0);
	assert_true(st.stx_mask & STATX_MNT_ID);
	return st.stx_mnt_id;
}

/* Returns the mounts of a file with this text, in which @ is the number of the mount at /. */
static struct disks *
mounts(const char *text)
{
	struct disks *d = NULL;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (; *text != '\0'; text++) {
		if (*text == '@')
			assert_true(fprintf(f, "%" PRIu64, mount_at("/")) > 0);
		else
			assert_int_equal(fputc(*text, f), *text);
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(disks_read(path, &d), 0);
	assert_true(disks_bytes(d) > 0);
	return d;
}

static bool
is_known_there(const char *own_text, const char *text, const char *folder)
{
	struct disk_space space;
	struct disks *own = mounts(own_text), *d = mounts(text);
	bool is_known = disks_space(own, d, folder, false, &space);

	disks_free(own);
	disks_free(d);
	return is_known;
}

static bool
is_known(const char *text, const char *folder)
{
	return is_known_there(text, text, folder);
}

static void
a_local_file_system_is_asked(void **state)
{
	struct disks *d = mounts("@ 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n");
	struct disk_space space;
	struct statvfs st;

	(void)state;
	assert_true(disks_space(d, d, "/home/u/work", false, &space));
	assert_int_equal(statvfs("/", &st), 0);
	assert_true(space.total_bytes == (uint64_t)st.f_blocks * st.f_frsize && space.total_files == st.f_files);
	assert_true(space.free_bytes <= space.total_bytes);
	disks_free(d);
}

/* An answer is kept, but for one that is wanted anew, and then for all once it was asked for so often. */
static void
it_is_asked_anew_so_often(void **state)
{
	struct disks *d = mounts("@ 0 8:1 / /var/tmp rw shared:1 - ext4 /dev/sda rw\n");
	char block[65536], file[] = "/var/tmp/sluice-fill-XXXXXX";
	struct disk_space first, space;
	unsigned changes = 0;
	int fd = mkstemp(file);

	(void)state;
	memset(block, 1, sizeof(block));
	assert_true(fd >= 0);
	assert_int_equal(unlink(file), 0);
	assert_true(disks_space(d, d, "/var/tmp/x", false, &first));
	for (unsigned i = 0; i < 2 * DISKS_ASKED_MAX; i++) {
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
		assert_true(disks_space(d, d, "/var/tmp/x", false, &space));
		assert_true(space.free_bytes == first.free_bytes);
		assert_true(disks_space(d, d, "/var/tmp/x", true, &space));
		changes += space.free_bytes != first.free_bytes;
		first = space;
	}
	close(fd);
	disks_free(d);
	assert_in_range(changes, 1, DISKS_ASKED_MAX - 1);
}

static void
those_that_may_wait_are_not(void **state)
{
	(void)state;
	assert_false(is_known("@ 0 8:1 / / rw - nfs4 server:/x rw\n", "/home"));
	assert_false(is_known("@ 0 8:1 / / rw - fuse.sshfs x rw\n", "/home"));
	assert_false(is_known("@ 0 8:1 / / rw - overlay overlay rw\n", "/home"));
	assert_false(is_known("@ 0 8:1 / / rw master:3 propagate_from:2 - ext4x /dev/sda rw\n", "/home"));
	assert_true(is_known("@ 0 8:1 / / rw master:3 propagate_from:2 - ext4 /dev/sda rw\n", "/home"));
}

static void
the_innermost_and_last_mount_counts(void **state)
{
	static const char text[] = "@ 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /tmp rw - nfs server:/t rw\n"
	    "3 1 0:7 / /a\\040b rw - nfs server:/t rw\n";

	(void)state;
	assert_false(is_known(text, "/tmp"));
	assert_false(is_known(text, "/tmp/x"));
	assert_false(is_known(text, "/a b/c"));
	assert_true(is_known(text, "/tmpx"));
	assert_false(is_known("@ 0 8:1 / / rw - ext4 /dev/sda rw\n3 1 8:1 / /tmp rw - ext4 t rw\n"
	    "2 1 0:9 / /tmp rw - nfs server:/t rw\n", "/tmp/x"));
}

/* A bind mount of a container; of the same file system this process has another mount. */
static void
another_namespace_is_asked_by_its_device(void **state)
{
	static const char own[] = "2 0 8:2 / /sys rw - ext4 /dev/sdb rw\n@ 0 8:1 / / rw - ext4 /dev/sda rw\n";

	(void)state;
	assert_true(is_known_there(own, "77 0 0:4 / / rw - overlay o rw\n78 77 8:1 /data /work rw - ext4 s rw\n", "/work/x"));
	assert_false(is_known_there(own, "77 0 0:4 / / rw - overlay o rw\n78 77 8:1 /data /work rw - ext4 s rw\n", "/x"));
	assert_false(is_known_there(own, "77 0 8:3 / / rw - ext4 /dev/sdc rw\n", "/work"));
	assert_false(is_known_there(own, "77 0 8:1 / / rw - nfs server:/t rw\n", "/work"));
}

/* Its point is covered by what was mounted later. */
static void
another_mount_at_the_same_point_is_not(void **state)
{
	(void)state;
	assert_false(is_known("1 0 8:1 / / rw - ext4 /dev/sda rw\n", "/home"));
}

static void
what_is_no_folder_or_a_link_is_not(void **state)
{
	char link[] = "/tmp/sluice-link-XXXXXX", text[128];

	(void)state;
	assert_non_null(mkdtemp(link));
	assert_int_equal(rmdir(link), 0);
	assert_int_equal(symlink("/", link), 0);
	snprintf(text, sizeof(text), "@ 0 8:1 / %s rw - ext4 /dev/sda rw\n", link);
	assert_false(is_known(text, link));
	assert_int_equal(unlink(link), 0);
	assert_false(is_known(text, link));
	assert_false(is_known(text, "/elsewhere"));
}

static void
a_device_is_that_of_the_folder(void **state)
{
	static const char text[] = "   8       1 sda1 3 0 8 9 4 0 24 1 0 5000 9\n   8       2 sda2 1 2 3 4 5 6 7 8 9 10 11\n";
	struct disks *d = mounts("@ 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /tmp rw - tmpfs t rw\n"
	    "3 1 8:2 / /n rw - nfs server:/t rw\n");
	struct disk_counts c = { 0 };

	(void)state;
	assert_true(disks_device(d, "/home/u", &c));
	assert_true(c.major == 8 && c.minor == 1);
	assert_true(disks_counts(text, strlen(text), &c));
	assert_true(c.bytes == 32 * 512 && c.busy_ns == UINT64_C(5000000000));
	assert_false(disks_device(d, "/tmp/x", &c));
	assert_false(disks_device(d, "/n", &c));
	c = (struct disk_counts){ .major = 8, .minor = 3 };
	assert_false(disks_counts(text, strlen(text), &c));
	disks_free(d);
}

static void
malformed_mounts_hide_no_others(void **state)
{
	struct disks *d;

	(void)state;
	assert_true(is_known("\n1\n1 2 3 4 \\9 rw - ext4\n@ 0 8:1 / / rw - ext4 /dev/sda rw\n1 0 8:1 / /x rw", "/home"));
	assert_int_equal(disks_read("/nonexistent", &d), -ENOENT);
	disks_free(NULL);
}

static int
make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int
remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_local_file_system_is_asked),
		cmocka_unit_test(it_is_asked_anew_so_often),
		cmocka_unit_test(those_that_may_wait_are_not),
		cmocka_unit_test(the_innermost_and_last_mount_counts),
		cmocka_unit_test(another_namespace_is_asked_by_its_device),
		cmocka_unit_test(another_mount_at_the_same_point_is_not),
		cmocka_unit_test(what_is_no_folder_or_a_link_is_not),
		cmocka_unit_test(a_device_is_that_of_the_folder),
		cmocka_unit_test(malformed_mounts_hide_no_others),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
