/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a pod's sandbox: it keeps the namespaces, reaps what is left to it, and ends when it is asked to. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void
on_end(int signo)
{
	(void)signo;
	_exit(0);
}

static void
on_child(int signo)
{
	(void)signo;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int
main(void)
{
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	signal(SIGCHLD, on_child);
	for (;;)
		pause();
}
