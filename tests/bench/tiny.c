/*
 * SPDX-License-Identifier: Apache-2.0
 * tiny [wait]: the smallest program, which the storm runs; with an argument it waits for a signal.
 */
#include <unistd.h>

int
main(int argc, char **argv)
{
	(void)argv;
	while (argc > 1)
		pause();
	return 0;
}
