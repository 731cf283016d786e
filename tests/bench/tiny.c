/*
 * SPDX-License-Identifier: Apache-2.0
 * tiny [wait]: the smallest program that the storm runs; with an argument it lives until a signal.
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
