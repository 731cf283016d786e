/*
 * SPDX-License-Identifier: Apache-2.0
 * inject_call PID: makes system calls in another process, as code that an attacker got into it would, and prints what
 * they return. Each line of standard input is a call: its number and up to six arguments, numbers or @TEXT, of which
 * the address is passed. The process continues afterwards as if nothing had happened. Root; x86-64.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
	ARGUMENTS = 6,
	RED_ZONE = 128,
	TRIES = 10000,
	INSTRUCTION = 2,	/* bytes of `syscall` */
	RESTARTS = 512, RESTARTS_END = 516,	/* errnos by which the kernel makes an interrupted call again */
};

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static int signal_of_its_own;	/* that came meanwhile; delivered at the end */

/* Waits until the process has stopped. Returns whether that is because it made a step. */
static bool
wait_stopped(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) {
		fputs("it did not stop\n", stderr);
		exit(1);
	}
	if (WSTOPSIG(status) != SIGTRAP)
		signal_of_its_own = WSTOPSIG(status);
	return status >> 8 == SIGTRAP;
}

/* Stops the process in a system call, or behind one, and reads its registers. */
static void
stop_in_call(pid_t pid, struct user_regs_struct *ret)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; i < TRIES; i++) {
		long code;

		if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
			fail("ptrace");
		wait_stopped(pid);
		if (ptrace(PTRACE_GETREGS, pid, NULL, ret) < 0)
			fail("ptrace");
		errno = 0;
		code = ptrace(PTRACE_PEEKTEXT, pid, ret->rip - INSTRUCTION, NULL);
		if (errno == 0 && (code & 0xffff) == 0x050f)
			return;
		if (ptrace(PTRACE_CONT, pid, NULL, signal_of_its_own) < 0)
			fail("ptrace");
		signal_of_its_own = 0;
		nanosleep(&moment, NULL);
	}
	fputs("it was never in a system call\n", stderr);
	exit(1);
}

static void
write_text(pid_t pid, unsigned long long at, const char *text)
{
	struct iovec from = { (void *)(uintptr_t)text, strlen(text) + 1 }, to = { (void *)(uintptr_t)at, from.iov_len };

	if (process_vm_writev(pid, &from, 1, &to, 1, 0) != (ssize_t)to.iov_len)
		fail("process_vm_writev");
}

/* Makes the call of a line in the process, which is stopped behind a system call, at before. */
static long long
make(pid_t pid, const struct user_regs_struct *before, char *line)
{
	struct user_regs_struct regs = *before;	/* the C libraries disagree on the type of its members */
	__typeof__(regs.rdi) *arguments[ARGUMENTS] = { &regs.rdi, &regs.rsi, &regs.rdx, &regs.r10, &regs.r8, &regs.r9 };
	unsigned long long at = before->rsp - RED_ZONE;
	char *word = strtok(line, " \n");

	regs.rip -= INSTRUCTION;
	regs.orig_rax = ~0ull;
	regs.rax = strtoull(word != NULL ? word : "0", NULL, 0);
	for (int i = 0; i < ARGUMENTS; i++) {
		word = strtok(NULL, " \n");
		*arguments[i] = word == NULL ? 0 : strtoull(word, NULL, 0);
		if (word == NULL || word[0] != '@')
			continue;
		at = (at - strlen(word)) & ~15ull;
		write_text(pid, at, word + 1);
		*arguments[i] = at;
	}
	if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0)
		fail("ptrace");
	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			fail("ptrace");
	} while (!wait_stopped(pid));
	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		fail("ptrace");
	return (long long)regs.rax;
}

int
main(int argc, char **argv)
{
	const pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	struct user_regs_struct regs;
	char line[4096];

	if (pid <= 0 || ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		fail("ptrace");
	stop_in_call(pid, &regs);
	while (fgets(line, sizeof(line), stdin) != NULL)
		printf("%lld\n", make(pid, &regs, line));
	/* What was interrupted is called again. */
	if ((long long)regs.rax <= -RESTARTS && (long long)regs.rax >= -RESTARTS_END) {
		regs.rax = regs.orig_rax;
		regs.rip -= INSTRUCTION;
	}
	regs.orig_rax = ~0ull;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0 || ptrace(PTRACE_DETACH, pid, NULL, signal_of_its_own) < 0)
		fail("ptrace");
	return 0;
}
