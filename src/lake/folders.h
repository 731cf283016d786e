/*
 * SPDX-License-Identifier: Apache-2.0
 * folders: the folders and names of the file lake; private to lake/, but for lake_is_open().
 */
#ifndef SLUICE_LAKE_FOLDERS_H
#define SLUICE_LAKE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LAKE_PART_SUFFIX ".avro.part"

struct lake_owner {
	bool is_set;
	uid_t uid;
	gid_t gid;
};

/* Makes path and its parents. 0, or a negative errno. */
int lake_make(const char *path, const struct lake_owner *owner);
/* Opens <lake>/<topic>/date=<day>/host=<host_id>, made as needed. An fd, or a negative errno. */
int lake_open_folder(const char *lake, const char *topic, int64_t day, const char *host_id,
    const struct lake_owner *owner);
/* Days since 1970, UTC, in which a time lies; also before 1970. */
int64_t lake_day(int64_t time_us);

/* Write lock of the open file description. 0, or -EAGAIN when another has it. */
int lake_lock(int fd);
/* Does a writer have the file behind fd open? Takes no lock itself. */
bool lake_is_open(int fd);

/*
 * The name of an open file whose first record has that seq: ".<agent_id>-<seq>.avro.part". Where the name that it
 * will have is taken, as by an agent that delivers again what a killed one had written, ".<agent_id>-<seq>.2.avro.part"
 * and so on: a reader takes an open name beside its settled one for the same file. 0, or a negative errno.
 */
int lake_part_name(int dir_fd, const char *agent_id, uint64_t seq, char *ret, size_t size);

/*
 * ".x.avro.part" becomes "x.avro", or where that exists "x.2.avro" and so on: nothing is ever
 * overwritten. 0, or a negative errno.
 */
int lake_publish(int dir_fd, const char *part);

#endif
