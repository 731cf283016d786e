/*
 * SPDX-License-Identifier: Apache-2.0
 * analytics: finds and runs sluice-tune, sluice-sweep and sluice-lake.
 */
#include "cli/analytics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spell.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/persona.h"

/*
 * Relative to the folder of the running binary: an installed venv, and that of a source tree where dev/analytics
 * made it.
 */
static const char *const beside[] = { ".", "../libexec/sluice", "../libexec/sluice/bin",
	"../analytics", "../analytics/base/bin" };

/* Environment variable of the program: the command as its user typed it, for its help and its errors. */
static const char typed_variable[] = "SLUICE_COMMAND";

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Returns the folder of the running binary; "" if the kernel does not have it. */
static void
own_folder(char *ret)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	ret[n > 0 ? n : 0] = '\0';
	slash = strrchr(ret, '/');
	if (slash != NULL)
		*slash = '\0';
}

static bool
find_in_path(const char *program, char *ret)
{
	const char *path = getenv("PATH");

	for (; path != NULL && *path != '\0'; path += strspn(path, ":")) {
		size_t n = strcspn(path, ":");

		/* A relative folder depends on the user's working directory: root must not run a program from there. */
		if (*path == '/' &&
		    snprintf(ret, PATH_MAX, "%.*s/%s", (int)n, path, program) < PATH_MAX &&
		    is_program(ret))
			return true;
		path += n;
	}
	return false;
}

bool
analytics_find(const char *program, char *ret)
{
	char own[PATH_MAX];

	if (find_in_path(program, ret))
		return true;
	own_folder(own);
	for (size_t i = 0; own[0] != '\0' && i < sizeof(beside) / sizeof(beside[0]); i++) {
		if (snprintf(ret, PATH_MAX, "%s/%s/%s", own, beside[i], program) < PATH_MAX &&
		    is_program(ret))
			return true;
	}
	return false;
}

void
analytics_print_missing(const char *who, const char *program)
{
	char own[PATH_MAX];
	char *slash;

	own_folder(own);
	slash = strrchr(own, '/');
	if (slash != NULL)
		*slash = '\0';
	fprintf(stderr, "%s: %s is not installed: it is not in PATH, nor beside sluice; ", who, program);
	fputs("in the folder of sluice's source run\n", stderr);
	fprintf(stderr, "    python3 -m venv %s/libexec/sluice && ", own);
	spell_line(stderr, "%s/libexec/sluice/bin/pip install ./analytics\n", own);
}

/*
 * In the child: restores what was changed in this process because of COMMAND, and becomes the user that COMMAND
 * ran as.
 */
static _Noreturn void
become_tune(
    const struct analytics_report *o, const struct command_inherited *in, const struct persona *p)
{
	char *const argv[] = { (char *)o->tune, (char *)"--lake", (char *)o->lake,
		(char *)"--format", (char *)"html", (char *)"--output", (char *)o->file,
		(char *)"--", (char *)o->run_id, NULL };
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (command_become(in, p) == 0)
		execv(o->tune, argv);
	_exit(126);
}

/* Returns its wait status. Signals that arrive in the meantime are passed on to the process that is waited for. */
static int
wait_for(pid_t pid, const sigset_t *set)
{
	int signo, status;

	for (;;) {
		pid_t done = waitpid(pid, &status, WNOHANG);

		if (done == pid)
			return status;
		if (done < 0 && errno != EINTR)
			return -1;
		signo = sigwaitinfo(set, NULL);
		if (signo > 0 && signo != SIGCHLD)
			kill(pid, signo);
	}
}

int
analytics_write_report(const struct analytics_report *o, const struct command_inherited *inherited)
{
	struct persona persona;
	sigset_t set, before;
	int status = -1;
	pid_t pid = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, &before);
	if (persona_init(&persona, o->as_root) == 0) {
		fflush(NULL);
		pid = fork();
		if (pid == 0)
			become_tune(o, inherited, &persona);
		if (pid > 0)
			status = wait_for(pid, &set);
	}
	persona_done(&persona);
	sigprocmask(SIG_SETMASK, &before, NULL);

	if (pid < 0 || status == -1)
		spell_line(stderr, "sluice run: no report %s: cannot start %s: %s\n", o->file, o->tune,
		    strerror(errno));
	else if (WIFSIGNALED(status))
		spell_line(stderr, "sluice run: no report %s: signal %d ended %s\n", o->file,
		    WTERMSIG(status), o->tune);
	else if (WEXITSTATUS(status) != 0)
		fprintf(stderr,
		    "sluice run: no report %s: %s ended with exit status %d; the lake %s has the "
		    "run\n",
		    o->file, o->tune, WEXITSTATUS(status), o->lake);
	return status == 0 ? 0 : -1;
}

static int
run_program(const char *program, int argc, char **argv)
{
	char path[PATH_MAX], who[32];
	int r;

	(void)argc;
	snprintf(who, sizeof(who), "sluice %s", argv[0]);
	if (!analytics_find(program, path)) {
		analytics_print_missing(who, program);
		return EXIT_USAGE;
	}
	argv[0] = path; /* a script never sees it */
	setenv(typed_variable, who, 1);
	execv(path, argv);
	r = errno;
	/* execve(2): a script whose interpreter is missing gives the same error as a missing file. */
	if (r == ENOENT && access(path, F_OK) == 0)
		spell_line(stderr, "%s: cannot run %s: the interpreter that its first line names does not exist; install "
		    "the Python package of sluice again\n", who, path);
	else
		spell_line(stderr, "%s: cannot run %s: %s\n", who, path, strerror(r));
	return command_exec_status(r);
}

int
cli_tune(int argc, char **argv)
{
	return run_program("sluice-tune", argc, argv);
}

int
cli_sweep(int argc, char **argv)
{
	return run_program("sluice-sweep", argc, argv);
}

int
cli_lake(int argc, char **argv)
{
	return run_program("sluice-lake", argc, argv);
}
