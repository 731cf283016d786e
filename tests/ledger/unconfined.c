/*
 * SPDX-License-Identifier: Apache-2.0
 * unconfined: loaded before the libraries of a program that valgrind runs: its list of system calls holds for valgrind,
 * too, which needs memory that is both written and executed.
 */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
prctl(int option, ...)
{
	unsigned long args[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(ap, unsigned long);
	va_end(ap);
	return option == PR_SET_SECCOMP ? 0 : (int)syscall(SYS_prctl, option, args[0], args[1], args[2], args[3]);
}
