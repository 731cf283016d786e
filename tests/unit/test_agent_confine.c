/*
 * SPDX-License-Identifier: Apache-2.0
 * confine: what a child that is confined as an agent can still do, and what is said where it cannot be. No root.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_kit.h"
#include "agent/confine.h"

static char room[] = "/tmp/sluice-test-confine-XXXXXX";
static char lake[128], other[128];

static int
can_write(const char *folder)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/new", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	return fd < 0 ? -errno : unlink(path) < 0 ? -errno : close(fd);
}

static int
confined(bool makes_sockets)
{
	const bool has_files = sandbox_files_begin(false) >= 0;
	struct confinement c;

	if (confine_begin(&c) < 0 || (c.lacks == NULL) != has_files || confine_allow(&c, lake, SANDBOX_WRITE) < 0 ||
	    confine_enforce(&c, makes_sockets) < 0)
		return 1;
	if (can_write(lake) < 0 || can_write(other) != (has_files ? -EACCES : 0))
		return 2;
	if (open("/proc/self/stat", O_RDONLY) < 0 || open("/dev/null", O_RDWR) < 0)
		return 3;
	if ((socket(AF_UNIX, SOCK_STREAM, 0) >= 0) != makes_sockets ||
	    (socket(AF_INET, SOCK_STREAM, 0) >= 0) != makes_sockets)
		return 4;
	execl("/bin/true", "true", NULL);
	return errno == EPERM ? 0 : 5;
}

static int
as_a_run(void)
{
	return confined(false);
}

static int
as_a_host(void)
{
	return confined(true);
}

static void
it_writes_in_its_lake_alone(void **state)
{
	(void)state;
	assert_int_equal(in_child(as_a_run), 0);
	assert_int_equal(in_child(as_a_host), 0);
}

static int
without_files(void)
{
	struct confinement c;

	confine_begin_without_files(&c, "the disk hangs");
	if (confine_allow_around(&c, "/nonexistent/lake", SANDBOX_WRITE) < 0 || confine_enforce(&c, true) < 0)
		return 1;
	if (strcmp(c.lacks, "the disk hangs") != 0 || can_write(other) < 0)
		return 2;
	execl("/bin/true", "true", NULL);
	return errno == EPERM ? 0 : 3;
}

static void
its_system_calls_are_confined_without_its_files(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_files), 0);
}

static void
the_path_is_named_that_cannot_be_allowed(void **state)
{
	struct confinement c;

	(void)state;
	assert_int_equal(confine_begin(&c), 0);
	if (c.lacks != NULL)
		skip();
	assert_int_equal(confine_allow(&c, "/nonexistent/lake", SANDBOX_WRITE), -ENOENT);
	assert_string_equal(c.error, "/nonexistent/lake: No such file or directory");
	assert_int_equal(confine_allow_around(&c, "/nonexistent/lake", SANDBOX_WRITE), -ENOENT);
	assert_string_equal(c.error, "/nonexistent: No such file or directory");
	confine_abandon(&c);
	assert_int_equal(c.files, -1);
}

static int
make_room(void **state)
{
	(void)state;
	if (mkdtemp(room) == NULL)
		return -1;
	snprintf(lake, sizeof(lake), "%s/lake", room);
	snprintf(other, sizeof(other), "%s/other", room);
	return mkdir(lake, 0700) < 0 || mkdir(other, 0700) < 0 ? -1 : 0;
}

static int
remove_room(void **state)
{
	(void)state;
	return rmdir(lake) < 0 || rmdir(other) < 0 || rmdir(room) < 0 ? -1 : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_writes_in_its_lake_alone),
		cmocka_unit_test(its_system_calls_are_confined_without_its_files),
		cmocka_unit_test(the_path_is_named_that_cannot_be_allowed),
	};

	return cmocka_run_group_tests(tests, make_room, remove_room);
}
