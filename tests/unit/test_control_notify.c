/* SPDX-License-Identifier: Apache-2.0 */
/* notify: the datagrams that a service manager reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/notify.h"
#include "tree.h"

static struct tree tree;
static struct notify *n;
static int manager = -1;
static char error[256], got[1024];

static int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	notify_close(n);
	n = NULL;
	if (manager >= 0)
		close(manager);
	manager = -1;
	tree_done(&tree);
	return 0;
}

/* name: a path, or @abstract. */
static void
listen_at(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	strcpy(a.sun_path, name);
	if (name[0] == '@')
		a.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&a,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (name[0] != '@'))), 0);
	setenv("NOTIFY_SOCKET", name, 1);
}

static const char *
heard(void)
{
	ssize_t len = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT);

	got[len > 0 ? len : 0] = '\0';
	return got;
}

static void
each_state_is_one_datagram(void **state)
{
	unsigned long long us;

	(void)state;
	listen_at(tree_path(&tree, "notify"));
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_ready(n), 0);
	assert_string_equal(heard(), "READY=1");
	assert_int_equal(notify_stopping(n), 0);
	assert_string_equal(heard(), "STOPPING=1");
	assert_int_equal(notify_watchdog(n), 0);
	assert_string_equal(heard(), "WATCHDOG=1");
	assert_int_equal(notify_reloading(n), 0);
	assert_int_equal(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
	assert_true(us > 0);
}

static void
a_status_is_sent_when_it_changes(void **state)
{
	char longer[1000] = "";

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	listen_at(tree_path(&tree, "notify"));
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_true(notify_has_manager(n));
	assert_int_equal(notify_status(n, "well"), 0);
	assert_string_equal(heard(), "STATUS=well");
	assert_int_equal(notify_status(n, "well"), 0);
	assert_string_equal(heard(), "");
	/* A second line would be another variable. */
	assert_int_equal(notify_status(n, "ill\nREADY=1"), 0);
	assert_string_equal(heard(), "STATUS=ill");
	assert_int_equal(notify_status(n, longer), 0);
	assert_memory_equal(heard(), "STATUS=xxx", 10);
	assert_in_range(strlen(got), 200, 900);
	assert_int_equal(notify_status(n, longer), 0);
	assert_string_equal(heard(), "");
}

static void
an_abstract_address_works(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "@sluice-test-%d", (int)getpid());
	listen_at(name);
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_ready(n), 0);
	assert_string_equal(heard(), "READY=1");
}

static void
without_a_manager_nothing_happens(void **state)
{
	(void)state;
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_ready(n), 0);
	assert_int_equal(notify_watchdog_us(n), 0);
	assert_false(notify_has_manager(n));
	assert_int_equal(notify_status(n, "well"), 0);
	assert_int_equal(notify_ready(NULL), 0);
	assert_int_equal(notify_status(NULL, "well"), 0);
	assert_int_equal(notify_watchdog_us(NULL), 0);
	notify_close(NULL);
}

static void
the_watchdog_is_ours_or_nobodys(void **state)
{
	char pid[32];

	(void)state;
	listen_at(tree_path(&tree, "notify"));
	setenv("WATCHDOG_USEC", "30000000", 1);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_watchdog_us(n), 30000000);
	assert_null(getenv("NOTIFY_SOCKET"));	/* no child speaks for us */
	assert_null(getenv("WATCHDOG_USEC"));
	notify_close(n);

	setenv("NOTIFY_SOCKET", tree_path(&tree, "notify"), 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_watchdog_us(n), 0);
	notify_close(n);

	setenv("NOTIFY_SOCKET", tree_path(&tree, "notify"), 1);
	setenv("WATCHDOG_USEC", "-1", 1);
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_watchdog_us(n), 0);
}

static void
bad_addresses_are_reported_and_harm_nothing(void **state)
{
	static const char *const bad[] = { "", "/", "relative", "vsock:2:1234", "@" };
	char path[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("NOTIFY_SOCKET", bad[i], 1);
		assert_int_equal(notify_open(&n, error, sizeof(error)), -EAFNOSUPPORT);
		assert_non_null(strstr(error, "NOTIFY_SOCKET="));
		assert_int_equal(notify_ready(n), 0);
		notify_close(n);
	}
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_open(&n, error, sizeof(error)), -ENAMETOOLONG);
	notify_close(n);

	/* The manager is gone: an error, at once. */
	setenv("NOTIFY_SOCKET", tree_path(&tree, "nobody"), 1);
	assert_int_equal(notify_open(&n, error, sizeof(error)), 0);
	assert_int_equal(notify_ready(n), -ENOENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_state_is_one_datagram, setup, teardown),
		cmocka_unit_test_setup_teardown(a_status_is_sent_when_it_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(an_abstract_address_works, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_manager_nothing_happens, setup, teardown),
		cmocka_unit_test_setup_teardown(the_watchdog_is_ours_or_nobodys, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_addresses_are_reported_and_harm_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
