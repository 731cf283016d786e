/* SPDX-License-Identifier: Apache-2.0 */
/* secret: secrets from files and commands: file modes, line ends, failures, limits of time and size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "tree.h"

static struct tree tree;

static int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static const char *
file_of(const char *name, const void *data, size_t len, mode_t mode)
{
	const char *path = tree_path(&tree, name);
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static int
read_file(const char *path, char **ret, char *error, size_t error_size)
{
	struct config_secret s = { .file = (char *)path };

	return config_secret_read(&s, 0, ret, error, error_size);
}

/* By a shell that is named, as a configuration would have to. */
static int
read_shell(const char *script, char **ret, char *error, size_t error_size)
{
	char sh[] = "/bin/sh", c[] = "-c";
	char *argv[] = { sh, c, (char *)script };
	struct config_secret s = { .command = { argv, 3 } };

	return config_secret_read(&s, 0, ret, error, error_size);
}

static void
file_gives(const void *data, size_t len, const char *want)
{
	char error[512] = "", *secret = NULL;

	if (read_file(file_of("secret", data, len, 0600), &secret, error, sizeof(error)) != 0)
		fail_msg("%s", error);
	assert_string_equal(secret, want);
	config_secret_free(secret);
}

static void
a_files_last_newline_is_left_out(void **state)
{
	(void)state;
	file_gives("pass word", 9, "pass word");
	file_gives("pass\n", 5, "pass");
	file_gives("pass\r\n", 6, "pass");
	file_gives(" pass \n\n", 8, " pass \n");
}

static void
a_file_open_to_others_is_refused(void **state)
{
	static const mode_t open_modes[] = { 0644, 0604, 0602, 0777 };
	char error[512], want[512], *secret = NULL;
	const char *path;

	(void)state;
	for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		path = file_of("open", "hunter2", 7, open_modes[i]);
		assert_int_equal(read_file(path, &secret, error, sizeof(error)), -EACCES);
		snprintf(want, sizeof(want), "secret file %s is open to everybody (mode %03o): run `chmod o= %s`",
		    path, open_modes[i], path);
		assert_string_equal(error, want);
	}
	path = file_of("group", "hunter2", 7, 0640);
	assert_int_equal(read_file(path, &secret, error, sizeof(error)), 0);
	config_secret_free(secret);
}

static void
what_is_no_secret_is_refused(void **state)
{
	static char big[CONFIG_SECRET_BYTES_MAX + 1];
	char error[512], *secret = NULL;

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_int_equal(read_file("/no/such/file", &secret, error, sizeof(error)), -ENOENT);
	assert_string_equal(error, "secret file /no/such/file cannot be read: No such file or directory");
	assert_int_equal(read_file(tree.root, &secret, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "is not a regular file"));
	assert_int_equal(read_file(file_of("a", "", 0, 0600), &secret, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "gave nothing"));
	assert_int_equal(read_file(file_of("a", "\n", 1, 0600), &secret, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "gave nothing"));
	assert_int_equal(read_file(file_of("a", "x\0y", 3, 0600), &secret, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "NUL byte"));
	assert_int_equal(read_file(file_of("a", big, sizeof(big), 0600), &secret, error, sizeof(error)),
	    -EFBIG);
	assert_non_null(strstr(error, "longer than 64 KiB"));
	assert_null(secret);
	file_gives(big, sizeof(big) - 1, strndupa(big, sizeof(big) - 1));
}

static void
shell_gives(const char *script, const char *want)
{
	char error[512] = "", *secret = NULL;

	if (read_shell(script, &secret, error, sizeof(error)) != 0)
		fail_msg("%s", error);
	assert_string_equal(secret, want);
	config_secret_free(secret);
}

static void
a_commands_output_is_the_secret(void **state)
{
	(void)state;
	shell_gives("echo pass", "pass");
	shell_gives("printf 'two words'", "two words");
	shell_gives("printf a; sleep 0.1; printf b", "ab");
	/* Nothing to read, and nothing of ours open. */
	shell_gives("cat; echo end", "end");
	/* What it leaves running holds the pipe open, and does not count. */
	shell_gives("sleep 5 2>/dev/null & echo done", "done");
}

static void
a_command_gets_none_of_our_files(void **state)
{
	int fd = open("/dev/null", O_RDONLY);	/* not close-on-exec, on purpose */
	char script[96];

	(void)state;
	assert_true(fd > 2);
	snprintf(script, sizeof(script), "[ -e /proc/self/fd/%d ] && echo open || echo closed", fd);
	shell_gives(script, "closed");
	close(fd);
}

static void
a_command_that_fails_is_reported(void **state)
{
	char missing[] = "/no/such/program", *argv[] = { missing };
	struct config_secret s = { .command = { argv, 1 } };
	char error[512], *secret = NULL;

	(void)state;
	assert_int_equal(read_shell("echo hunter2; exit 3", &secret, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "secret command /bin/sh exited with status 3: its own error is above, on "
	    "standard error");
	assert_int_equal(read_shell("kill -TERM $$", &secret, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "secret command /bin/sh was ended by signal 15");
	assert_int_equal(read_shell("true", &secret, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "secret command /bin/sh gave nothing");
	assert_int_equal(config_secret_read(&s, 0, &secret, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "cannot be executed"));
	assert_null(secret);
}

static void
a_command_that_writes_too_much_is_ended(void **state)
{
	char error[512], *secret = NULL;

	(void)state;
	assert_int_equal(read_shell("exec cat /dev/zero", &secret, error, sizeof(error)), -EFBIG);
	assert_string_equal(error, "secret command /bin/sh wrote more than 64 KiB: that is no secret");
	assert_int_equal(read_shell("head -c 65537 /dev/zero | tr '\\0' x", &secret, error, sizeof(error)),
	    -EFBIG);
	assert_null(secret);
}

static void
a_command_that_hangs_is_killed_with_its_children(void **state)
{
	char error[512], pid_text[32] = "", script[256], *secret = NULL;
	struct timespec from, to;
	const char *path = tree_path(&tree, "pid");
	pid_t pid;
	int fd;

	(void)state;
	snprintf(script, sizeof(script), "sleep 300 2>/dev/null & echo $! > %s; wait", path);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(read_shell(script, &secret, error, sizeof(error)), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_string_equal(error, "secret command /bin/sh had not ended after 10 s and was killed");
	assert_in_range(to.tv_sec - from.tv_sec, 9, 20);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, pid_text, sizeof(pid_text) - 1) > 0);
	close(fd);
	pid = atoi(pid_text);
	assert_true(pid > 1);
	/* Ended, though init may not have reaped it yet. */
	for (int i = 0; i < 100 && kill(pid, 0) == 0; i++) {
		char stat[64], line[128] = "";
		FILE *f;

		snprintf(stat, sizeof(stat), "/proc/%d/stat", (int)pid);
		f = fopen(stat, "re");
		if (f == NULL || fgets(line, sizeof(line), f) == NULL || strstr(line, ") Z ") != NULL) {
			if (f != NULL)
				fclose(f);
			return;
		}
		fclose(f);
		usleep(20000);
	}
	assert_int_not_equal(kill(pid, 0), 0);
}

static void
none_is_an_error(void **state)
{
	struct config_secret s = { 0 };
	char error[512], *secret = NULL;

	(void)state;
	assert_false(config_secret_is_set(&s));
	assert_int_equal(config_secret_read(&s, 0, &secret, error, sizeof(error)), -EINVAL);
	config_secret_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_files_last_newline_is_left_out),
		cmocka_unit_test(a_file_open_to_others_is_refused),
		cmocka_unit_test(what_is_no_secret_is_refused),
		cmocka_unit_test(a_commands_output_is_the_secret),
		cmocka_unit_test(a_command_gets_none_of_our_files),
		cmocka_unit_test(a_command_that_fails_is_reported),
		cmocka_unit_test(a_command_that_writes_too_much_is_ended),
		cmocka_unit_test(a_command_that_hangs_is_killed_with_its_children),
		cmocka_unit_test(none_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
