/* SPDX-License-Identifier: Apache-2.0 */
/* room: a new folder for a fuzzer's files, in memory where the system has a file system that is. */
#ifndef SLUICE_TESTS_FUZZ_ROOM_H
#define SLUICE_TESTS_FUZZ_ROOM_H

#include <stdlib.h>
#include <string.h>

#define ROOM_SIZE 32

static inline void
room_new(char path[ROOM_SIZE])
{
	strcpy(path, "/dev/shm/sluice-fuzz-XXXXXX");
	if (mkdtemp(path) != NULL)
		return;
	strcpy(path, "/tmp/sluice-fuzz-XXXXXX");
	if (mkdtemp(path) == NULL)
		abort();
}

#endif
