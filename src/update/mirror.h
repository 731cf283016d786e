/*
 * SPDX-License-Identifier: Apache-2.0
 * mirror: reads the files of the newest release from a mirror, which is an http:// or https:// URL or a folder.
 */
#ifndef SLUICE_UPDATE_MIRROR_H
#define SLUICE_UPDATE_MIRROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum {
	MIRROR_SMALL_MAX = 256 << 10,	/* of a list of checksums or a signature */
	MIRROR_PROGRAM_MAX = 64 << 20,
	MIRROR_WHERE_MAX = 1024,
};

struct mirror;

/* Called some times a second while a file is received, with the bytes so far. False ends that, with -EINTR. */
typedef bool (*mirror_cb)(size_t received, void *arg);

/*
 * Opens a mirror by its URL or absolute path, which is copied. 0; or a negative errno with a sentence in error:
 * -EINVAL: it is neither.
 */
int mirror_open(const char *where, struct mirror **ret, char *error, size_t error_size);
void mirror_close(struct mirror *m);	/* NULL is fine */

/*
 * Reads MIRROR/latest/NAME, up to max bytes, and waits for that. Of a folder only files that no other than root can
 * change are read, as of the configuration. progress may be NULL. 0 with the whole file in out, which was empty; or a
 * negative errno with a sentence in error, and out empty.
 */
int mirror_read(struct mirror *m, const char *name, size_t max, struct bytes *out, mirror_cb progress, void *arg,
    char *error, size_t error_size);

/* The same for one file by its path, which need not be of a mirror. */
int mirror_read_file(const char *path, size_t max, struct bytes *out, char *error, size_t error_size);

#endif
