/*
 * SPDX-License-Identifier: Apache-2.0
 * command: starts COMMAND of `sluice run` as if the caller had started it, and ends as it ends.
 *
 * How signals are passed on. Ours are blocked and read from a signalfd, because only this gives the sender. A
 * signal from the terminal (si_code above 0) has reached COMMAND already, since it is in our group. A signal
 * from kill(2), and the SIGHUP that a hang-up sends to the session's leader, may have been sent to us alone:
 * then COMMAND must get it from us. If it was sent to the group, the cgroup or every process (kill -- -PGID,
 * timeout(1), Slurm, systemd), COMMAND must not get it twice, because many programs take a second SIGINT or
 * SIGTERM as "now, at once". A siginfo does not distinguish these cases, so a witness does: a process that
 * sleeps in our group and reports what it receives. 40 ms after a signal it is asked whether it has received that
 * too; a signal that it has not reported when it answers was for us alone. It is asked, since on a busy host it may
 * have had no CPU in the 40 ms. One that does not answer within two seconds (stopped, or starved), or cannot be asked
 * (RLIMIT_SIGPENDING), knows of what it has reported.
 */
#include "cli/command.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/persona.h"
#include "cli/witness.h"

#define WITNESS_MS 40		/* how long after a signal the witness is asked: kill(2) has reached all by then */
#define ANSWER_MS 2000		/* how long its answer is waited for */
#define WITNESS_NS (WITNESS_MS * UINT64_C(1000000))
#define SIGNALS 65		/* 1 to 64 */

/* One kind of signal that is being passed on. Times are CLOCK_MONOTONIC, 0: not seen. */
struct passage {
	uint64_t seen_ns;	/* when this process received the first that it has not passed on */
	uint64_t witness_ns;	/* when the witness received it, or the kernel sent it to the group */
	unsigned count;		/* above 1 only for real-time signals */
	bool has_value;		/* sent by sigqueue(3) */
	union sigval value;
};

struct command {
	pid_t pid;
	bool running;
	bool interrupted;	/* SIGINT reached this process while COMMAND ran */
	struct witness witness;	/* without one, each signal from kill(2) is passed on at once */
	uint64_t asked_ns;	/* when it was asked what it received, and has not answered; 0: it has */
	int signal_fd;
	struct event *on_signals;	/* owned, as are the next two */
	struct event *on_witness;
	struct event *on_due;
	struct passage passages[SIGNALS];
	sigset_t before;	/* signal mask at the call */
	struct command_options options;
};

/* Calls fn for each open fd above 2. */
static void
each_fd(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (dir == NULL) {	/* no /proc, or not readable since we act for a user */
		for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				fn(fd, arg);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name);	/* "." and ".." are 0 */

		if (fd > STDERR_FILENO && fd != dirfd(dir))
			fn(fd, arg);
	}
	closedir(dir);
}

static void
note_inherited(int fd, void *arg)
{
	struct command_inherited *in = arg;

	if (in->n_fds < COMMAND_FDS_MAX)
		in->fds[in->n_fds++] = fd;
	else
		in->has_more_fds = true;
}

/* Sets O_CLOEXEC on an fd of ours that a library left inheritable: COMMAND must not see it. */
static void
hide_own(int fd, void *arg)
{
	const struct command_inherited *in = arg;

	for (size_t i = 0; i < in->n_fds; i++)
		if (in->fds[i] == fd)
			return;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void
command_save_inherited(struct command_inherited *ret)
{
	static const int lifted[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA };
	struct sigaction sa;

	memset(ret, 0, sizeof(*ret));
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC);	/* gets the lowest free number: fd */
	each_fd(note_inherited, ret);

	sigprocmask(SIG_SETMASK, NULL, &ret->mask);
	sigemptyset(&ret->ignored);
	for (int signo = 1; signo < SIGNALS; signo++)
		if (sigaction(signo, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			sigaddset(&ret->ignored, signo);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);

	for (int i = 0; i < (int)RLIM_NLIMITS; i++)
		ret->has_limit[i] = getrlimit(i, &ret->limits[i]) == 0;
	for (size_t i = 0; i < sizeof(lifted) / sizeof(lifted[0]); i++) {
		rlim_t most = ret->limits[lifted[i]].rlim_max;	/* the most that is possible without CAP_SYS_RESOURCE */

		if (setrlimit(lifted[i], &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }) < 0 &&
		    ret->has_limit[lifted[i]])
			setrlimit(lifted[i], &(struct rlimit){ most, most });
	}
}

int
command_become(const struct persona *p)
{
	if (!p->change)
		return 0;
	/* Direct system calls: glibc's wrappers would signal threads that do not exist in the child. */
	if (syscall(SYS_setgroups, (size_t)p->n_groups, p->groups) < 0 ||
	    syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0 ||
	    syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0)
		return -errno;
	environ = p->env;
	return 0;
}

void
command_restore(const struct command_inherited *in)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++)
		if (in->has_limit[i])
			setrlimit(i, &in->limits[i]);
	for (int signo = 1; signo < SIGNALS; signo++)
		if (signo != SIGKILL && signo != SIGSTOP)
			signal(signo, sigismember(&in->ignored, signo) ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, &in->mask, NULL);
}

/* Runs in the child from fork to exec. */
static _Noreturn void
become_command(const struct command_inherited *in, const struct command_options *options,
    const struct persona *p, const struct itimerval *timer, int error_fd)
{
	setitimer(ITIMER_REAL, timer, NULL);	/* survives exec, but not fork */
	if (command_become(p) == 0) {
		command_restore(in);
		execvp(options->argv[0], options->argv);
	}
	(void)!write(error_fd, &errno, sizeof(errno));
	_exit(127);
}

/* Calls on_due after ms, or when it is to be called already. */
static void
arm(struct command *c, int ms)
{
	struct timeval soon = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (!event_pending(c->on_due, EV_TIMEOUT, NULL))
		event_add(c->on_due, &soon);
}

static void
pass_on(struct command *c, int signo, const struct passage *p)
{
	if (!c->running) {
		if (c->options.on_interrupt != NULL && (signo == SIGINT || signo == SIGQUIT ||
		    signo == SIGTERM || signo == SIGHUP))
			c->options.on_interrupt(signo, c->options.arg);
		return;
	}
	for (unsigned i = 0; i < p->count; i++) {
		if (p->has_value)
			sigqueue(c->pid, signo, p->value);
		else
			kill(c->pid, signo);
	}
}

/* Passes on or drops each signal that was received by seen_by_ns. */
static void
settle(struct command *c, uint64_t seen_by_ns)
{
	bool is_waiting = false;

	for (int signo = 1; signo < SIGNALS; signo++) {
		struct passage *p = &c->passages[signo], was = *p;
		bool is_shared;

		if (was.seen_ns == 0)
			continue;
		if (was.seen_ns > seen_by_ns) {
			is_waiting = true;
			continue;
		}
		/* A report from long before is about another signal, one that was not sent to us. */
		is_shared = was.witness_ns != 0 && was.witness_ns + 2 * WITNESS_NS > was.seen_ns;
		*p = (struct passage){ 0 };
		if (!is_shared || !c->running)
			pass_on(c, signo, &was);
		else if (signo == SIGINT)
			c->interrupted = true;	/* kill -INT -- -PGID: handled as Ctrl-C */
	}
	if (is_waiting)
		arm(c, WITNESS_MS);
}

static void
read_witness(struct command *c)
{
	int signo;

	while ((signo = witness_read(&c->witness)) > 0)
		if (signo < SIGNALS)
			c->passages[signo].witness_ns = clock_ns(CLOCK_MONOTONIC);
	if (signo == WITNESS_NOTHING)
		return;
	if (signo == WITNESS_ENDED) {
		event_del(c->on_witness);
		witness_stop(&c->witness);
		settle(c, UINT64_MAX);
	} else if (c->asked_ns != 0) {		/* not too late */
		event_del(c->on_due);
		settle(c, c->asked_ns - WITNESS_NS);
	}
	c->asked_ns = 0;
}

/* Asks the witness about the signals that have waited long enough, or no longer waits for its answer. */
static void
on_due(evutil_socket_t fd, short what, void *arg)
{
	struct command *c = arg;
	uint64_t asked_ns = c->asked_ns != 0 ? c->asked_ns : clock_ns(CLOCK_MONOTONIC);

	(void)fd;
	(void)what;
	if (c->witness.pid == 0) {
		settle(c, UINT64_MAX);
	} else if (c->asked_ns == 0 && witness_ask(&c->witness)) {
		c->asked_ns = asked_ns;
		arm(c, ANSWER_MS);
	} else {
		read_witness(c);
		settle(c, asked_ns - WITNESS_NS);
		c->asked_ns = 0;
	}
}

/* Returns true if our parent is a shell with job control that waits for us to stop. */
static bool
is_job(void)
{
	pid_t parent = getppid();

	return getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

/*
 * Stops this process because COMMAND has stopped, by the same signal, which is what the shell then shows. This
 * is always done for terminal stops (sudo waits for them as well); for SIGSTOP only if a shell watches, because
 * a process that stopped COMMAND alone will continue it alone. In an orphaned group the kernel ignores the
 * terminal's stops, for COMMAND and for us.
 */
static void
stop_likewise(const struct command *c, int signo)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, before = dfl;
	sigset_t set, mask;

	if (signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU &&
	    (signo != SIGSTOP || !is_job()))
		return;
	if (c->options.on_stop != NULL)
		c->options.on_stop(true, c->options.arg);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigaction(signo, &dfl, &before);	/* SIGSTOP stops whatever the disposition and the mask are */
	raise(signo);
	sigprocmask(SIG_UNBLOCK, &set, &mask);	/* the process stops in this call */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(signo, &before, NULL);
	if (c->options.on_stop != NULL)
		c->options.on_stop(false, c->options.arg);
}

/* Handles a change of COMMAND's state. The callback may free c. */
static void
reap(struct command *c)
{
	struct rusage usage;
	int status, stopped = 0;
	pid_t pid;

	if (!c->running)
		return;
	while ((pid = wait4(c->pid, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage)) == c->pid) {
		if (WIFSTOPPED(status)) {
			stopped = WSTOPSIG(status);
		} else if (WIFCONTINUED(status)) {
			stopped = 0;
		} else {
			c->running = false;
			own_reaped_others(&usage);
			c->options.on_exit(status, &usage, c->options.arg);
			return;
		}
	}
	if (stopped != 0)
		stop_likewise(c, stopped);
}

static void
take(struct command *c, const struct signalfd_siginfo *info)
{
	struct passage *p = &c->passages[info->ssi_signo];

	if (info->ssi_code > 0 && info->ssi_signo != SIGHUP && info->ssi_signo != SIGCONT) {
		p->witness_ns = clock_ns(CLOCK_MONOTONIC);	/* sudo repeats SIGWINCH to us: COMMAND has it */
		if (info->ssi_signo == SIGINT)
			c->interrupted |= c->running;
		if (!c->running)
			pass_on(c, (int)info->ssi_signo, p);
		return;
	}
	if ((pid_t)info->ssi_pid == c->pid)
		return;			/* sent for its parent, not for itself */
	if (p->seen_ns == 0)	/* else it waits already: one that is repeated must not wait for ever */
		p->seen_ns = clock_ns(CLOCK_MONOTONIC);
	p->count++;
	if ((int)info->ssi_signo < SIGRTMIN)
		p->count = 1;
	p->has_value = info->ssi_code == SI_QUEUE;
	p->value.sival_ptr = (void *)(uintptr_t)info->ssi_ptr;	/* NOLINT: an opaque word */
	if (c->witness.pid > 0)
		arm(c, WITNESS_MS);
	else
		settle(c, UINT64_MAX);
}

static void
on_signals(evutil_socket_t fd, short what, void *arg)
{
	struct command *c = arg;
	struct signalfd_siginfo info;
	bool has_child = false;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD && info.ssi_code > 0)
			has_child = true;
		else if (info.ssi_signo > 0 && info.ssi_signo < SIGNALS)
			take(c, &info);
	}
	if (has_child)
		reap(c);	/* last, because it may free c */
}

/*
 * Takes our own signals as well: a signal to the group reaches the witness first, and its report is to be compared
 * with the time at which we got ours, not with the end of whatever the loop does next.
 */
static void
on_witness(evutil_socket_t fd, short what, void *arg)
{
	struct command *c = arg;

	(void)fd;
	read_witness(c);
	on_signals(c->signal_fd, what, c);	/* last, because it may free c */
}

/* Sets ret to the signals to catch: all but those that only our own errors raise, and those that cannot be caught. */
static void
caught(sigset_t *ret)
{
	static const int left[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
		SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ, SIGPROF };

	sigfillset(ret);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		sigdelset(ret, left[i]);
}

/* Closes our copies of COMMAND's files, so that a pipe closes when COMMAND closes it. */
static void
close_inherited(const struct command_inherited *in)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup3(null, STDIN_FILENO, O_CLOEXEC);
		dup3(null, STDOUT_FILENO, O_CLOEXEC);
		if (null > STDERR_FILENO)
			close(null);
	}
	for (size_t i = 0; i < in->n_fds; i++)
		close(in->fds[i]);
}

/* In the child: waits until the parent has announced it, or is dead. */
static void
wait_at_gate(const int gate[2])
{
	char byte;

	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		continue;
}

static void
await(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/* Forks COMMAND and waits until it has exec'd. Returns 0 or a negative errno. */
static int
launch(struct command *c, const struct command_inherited *in, const struct persona *p,
    bool *ret_is_exec)
{
	struct itimerval timer, none = { 0 };
	int fds[2], gate[2], error = 0, saved, r = 0;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(gate, O_CLOEXEC) < 0) {
		saved = errno;
		close(fds[0]);
		close(fds[1]);
		return -saved;
	}
	getitimer(ITIMER_REAL, &timer);
	if (c->options.before_fork != NULL)
		c->options.before_fork(c->options.arg);
	c->pid = fork();
	saved = errno;
	if (c->pid == 0) {
		wait_at_gate(gate);
		become_command(in, &c->options, p, &timer, fds[1]);
	}
	close(gate[0]);
	if (c->options.after_fork != NULL)
		r = c->options.after_fork(c->pid, c->options.arg);
	if (c->pid > 0 && r < 0)
		kill(c->pid, SIGKILL);		/* before the gate opens */
	close(gate[1]);
	close(fds[1]);
	if (c->pid < 0 || r < 0) {
		close(fds[0]);
		if (c->pid < 0)
			return -saved;
		await(c->pid);
		return r;
	}
	while ((n = read(fds[0], &error, sizeof(error))) < 0 && errno == EINTR)
		;
	close(fds[0]);
	if (n == (ssize_t)sizeof(error)) {
		await(c->pid);
		*ret_is_exec = true;
		return -error;
	}
	setitimer(ITIMER_REAL, &none, NULL);	/* the timer of an alarm(2) before our exec belongs to COMMAND now */
	c->running = true;
	return 0;
}

int
command_start(struct event_base *base, const struct command_inherited *inherited,
    const struct command_options *options, struct command **ret, bool *ret_is_exec)
{
	struct persona persona = { 0 };
	struct command *c;
	sigset_t set;
	int r;

	*ret_is_exec = false;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->options = *options;
	c->signal_fd = c->witness.fd = -1;
	caught(&set);
	sigprocmask(SIG_BLOCK, &set, &c->before);
	/* If SIGCHLD is inherited as ignored, the kernel would reap COMMAND before us. */
	signal(SIGCHLD, SIG_DFL);

	r = persona_init(&persona, options->as_root);
	if (r < 0)
		goto out;
	r = -ENOMEM;
	c->on_due = event_new(base, -1, 0, on_due, c);
	if (c->on_due == NULL)
		goto out;
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0) {
		r = -errno;
		goto out;
	}
	c->on_signals = event_new(base, c->signal_fd, EV_READ | EV_PERSIST, on_signals, c);
	if (c->on_signals == NULL || event_add(c->on_signals, NULL) < 0)
		goto out;
	witness_start(&c->witness);	/* before COMMAND, which may signal the group at once */
	if (c->witness.pid > 0) {
		c->on_witness = event_new(base, c->witness.fd, EV_READ | EV_PERSIST, on_witness, c);
		if (c->on_witness == NULL || event_add(c->on_witness, NULL) < 0)
			goto out;
	}
	if (!inherited->has_more_fds)
		each_fd(hide_own, (void *)inherited);	/* only read */

	r = launch(c, inherited, &persona, ret_is_exec);
	if (r < 0)
		goto out;
	close_inherited(inherited);
	*ret = c;
	c = NULL;
	r = 0;
out:
	persona_done(&persona);
	if (c != NULL) {
		sigprocmask(SIG_SETMASK, &c->before, NULL);
		command_free(c);
	}
	return r;
}

void
command_free(struct command *c)
{
	if (c == NULL)
		return;
	if (c->on_signals != NULL)
		event_free(c->on_signals);
	if (c->on_witness != NULL)
		event_free(c->on_witness);
	if (c->on_due != NULL)
		event_free(c->on_due);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	witness_stop(&c->witness);	/* after the event that watches its fd is freed */
	free(c);
}

int
command_exec_status(int error)
{
	return error == ENOENT || error == -ENOENT ? 127 : 126;
}

int
command_exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

_Noreturn void
command_exit(struct command *c, int wait_status)
{
	sigset_t set;

	witness_stop(&c->witness);	/* reap it here instead of leaving it to init */
	if (c->interrupted && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGINT) {
		fflush(NULL);
		signal(SIGINT, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		raise(SIGINT);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	exit(command_exit_status(wait_status));
}

bool
command_in_foreground(void)
{
	pid_t pgrp = tcgetpgrp(STDERR_FILENO);

	return pgrp < 0 || pgrp == getpgrp();	/* not our terminal: no job control either */
}
