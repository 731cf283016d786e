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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/descriptors.h"
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

enum {
	REPORTER_FD = 3,		/* where the reporter's socket is moved */
	RUN_ID_SIZE = 128,
};

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
	fputs("with the wheel of the same release (in the folder of sluice's source: ./analytics) run\n", stderr);
	fprintf(stderr, "    python3 -m venv %s/libexec/sluice && ", own);
	spell_line(stderr, "%s/libexec/sluice/bin/pip install sluice_analytics-" SLUICE_VERSION "-py3-none-any.whl\n", own);
}

/* Closes all files but stderr and fd, and ignores all signals: what comes before the run is over is not for it. */
static int
wait_aside(int fd)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_NAME, "run-report");
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	if (fd != REPORTER_FD && dup3(fd, REPORTER_FD, O_CLOEXEC) < 0)
		return -1;
	return descriptors_close_from(REPORTER_FD + 1);
}

/*
 * Becomes the user that COMMAND runs as, and gives up what writing a page does not take, also for the program that is
 * executed later. Root keeps what lets it read and write the files of other users, and replace them where only their
 * owner may. 0 or a negative errno.
 */
static int
give_up(const struct persona *p)
{
	const bool stays_root = geteuid() == 0 && (!p->change || p->uid == 0);
	const uint64_t change = p->change ? PRIVILEGE(CAP_SETUID) | PRIVILEGE(CAP_SETGID) : 0;
	struct privileges_options o = { .no_new_privs = true };
	uint64_t held;
	char error[256];
	int r = privileges_held(CAP_PERMITTED, &held);

	/* Only root can reduce the bounding set: that comes first. */
	o.bound = stays_root ? held & (PRIVILEGE(CAP_DAC_OVERRIDE) | PRIVILEGE(CAP_FOWNER)) : 0;
	o.keep = o.bound | (held & change);
	if (r == 0)
		r = privileges_drop(&o, error, sizeof(error));
	if (r == 0)
		r = command_become(p);
	o.keep = o.bound;
	if (r == 0)
		r = privileges_drop(&o, error, sizeof(error));
	return r;
}

/*
 * In the child: gives up what it does not need, reports that, and waits for the id of a run that is over. Then it
 * restores what was changed in this process because of COMMAND. Without an id there is no report.
 */
static _Noreturn void
be_reporter(const struct analytics_report *o, const struct command_inherited *in, const struct persona *p, int fd)
{
	char run_id[RUN_ID_SIZE] = "";
	char *const argv[] = { (char *)o->tune, (char *)"--lake", (char *)o->lake,
		(char *)"--format", (char *)"html", (char *)"--output", (char *)o->file,
		(char *)"--", run_id, NULL };
	int r = wait_aside(fd) < 0 ? -errno : give_up(p);

	if (write(REPORTER_FD, &r, sizeof(r)) < 0 || r < 0)
		_exit(126);
	if (read(REPORTER_FD, run_id, sizeof(run_id) - 1) <= 0)
		_exit(0);
	command_restore(in);
	execv(o->tune, argv);
	_exit(126);
}

/* Waits until the reporter has given up what it does not need. 0 or a negative errno. */
static int
await_reporter(const struct analytics_report *o)
{
	ssize_t n;
	int r;

	while ((n = read(o->fd, &r, sizeof(r))) < 0 && errno == EINTR)
		continue;
	return n == (ssize_t)sizeof(r) ? r : n < 0 ? -errno : -ECHILD;
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
analytics_report_begin(struct analytics_report *o, const struct command_inherited *inherited)
{
	struct persona persona = { 0 };
	sigset_t all, before;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	r = persona_init(&persona, o->as_root);
	if (r == 0) {
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &before);	/* until it ignores them */
		o->pid = fork();
		if (o->pid == 0)
			be_reporter(o, inherited, &persona, fds[0]);
		r = o->pid < 0 ? -errno : 0;
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	persona_done(&persona);
	close(fds[0]);
	o->fd = fds[1];
	if (r < 0) {
		close(fds[1]);
		o->pid = 0;
		return r;
	}
	r = await_reporter(o);
	if (r < 0)
		analytics_report_abandon(o);
	return r;
}

/* The reporter has what it gets. It may have been stopped with all processes of a terminal, and not been continued. */
static void
let_go(const struct analytics_report *o)
{
	close(o->fd);
	kill(o->pid, SIGCONT);
}

int
analytics_report_write(struct analytics_report *o, const char *run_id)
{
	sigset_t set, before;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, &before);
	/* It is read whole. Of a reporter that is dead, the status is the error. */
	(void)!write(o->fd, run_id, strlen(run_id));
	let_go(o);
	status = wait_for(o->pid, &set);
	o->pid = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);

	if (status == -1)
		spell_line(stderr, "sluice run: no report %s: cannot wait for %s: %s\n", o->file, o->tune,
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

void
analytics_report_abandon(struct analytics_report *o)
{
	if (o->pid == 0)
		return;
	let_go(o);
	while (waitpid(o->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	o->pid = 0;
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
