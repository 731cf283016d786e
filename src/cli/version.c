/*
 * SPDX-License-Identifier: Apache-2.0
 * version: what this program is, and what it is linked with.
 */
#include <stdio.h>
#include <uthash.h>

#include "attach/probes.h"
#include "cli/cli.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#ifdef SLUICE_STATIC
#define LINKED "static"
#else
#define LINKED "dynamic"
#endif

#define STRING(x) #x
#define STRING_OF(x) STRING(x)

int
cli_version(void)
{
	char layout[LAYOUT_NAME_SIZE];

	puts("sluice " SLUICE_VERSION);	/* alone on the first line: scripts read it */
	printf("machine %s, %s, ", SLUICE_MACHINE, LINKED);
#ifdef __GLIBC__
	printf("glibc %s\n", gnu_get_libc_version());
#else
	puts("musl");
#endif
	if (probes_layout(layout) == 0)
		printf("layout %s\n", layout);
	fputs(SLUICE_LIBRARIES, stdout);
	puts("uthash " STRING_OF(UTHASH_VERSION));
	return EXIT_DONE;
}
