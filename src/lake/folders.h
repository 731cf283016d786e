/*
 * SPDX-License-Identifier: Apache-2.0
 * folders: folders and file names of the file lake; private to lake/ except for lake_make(), lake_day() and
 * lake_is_open().
 */
#ifndef SLUICE_LAKE_FOLDERS_H
#define SLUICE_LAKE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LAKE_PART_SUFFIX ".avro.part"
#define LAKE_LEVELS 4			/* folders that lead to a file: of the host, the day, the topic, the lake */
#define RUN_INDEX_SUFFIX ".runs"

struct lake_owner {
	bool is_set;
	uid_t uid;
	gid_t gid;
};

/* Creates path and its parents, if missing. 0 or a negative errno. */
int lake_make(const char *path, const struct lake_owner *owner);
/* Opens <lake>/<topic>/date=<day>/host=<host_id>, created if missing. A file descriptor, or a negative errno. */
int lake_open_folder(const char *lake, const char *topic, int64_t day, const char *host_id,
    const struct lake_owner *owner);
/* Syncs the names in n folders: dir_fd and its parents. 0 or a negative errno. */
int lake_sync_folders(int dir_fd, unsigned n);
/* Returns the UTC day of a time, as days since 1970; also before 1970. */
int64_t lake_day(int64_t time_us);

/* Takes a write lock of the open file description. 0, or -EAGAIN: another one has it. */
int lake_lock(int fd);
/* Returns whether a writer has the file behind fd open. Takes no lock itself. */
bool lake_is_open(int fd);

/* Returns whether the base name is that of an open file, ".x.avro.part". */
bool lake_is_part(const char *name);

/*
 * Returns whether the base name is that of a complete file, "<agent_id>-<first seq>.avro" or "….over.avro", and each also
 * as "….2.avro" and so on.
 */
bool lake_is_complete(const char *name);
/* Returns whether the complete file with that name is one of records beyond their users' shares: "….over.avro". */
bool lake_is_over(const char *name);
/* Writes the name of the index beside a complete file, ".x.runs" for "x.avro". False: it is too long. */
bool lake_index_name(const char *name, char *ret, size_t size);

/*
 * Builds the name of an open file whose first record has that seq: ".<agent_id>-<seq>.avro.part", or with is_over
 * ".<agent_id>-<seq>.over.avro.part". If its final
 * name exists, as after a killed agent whose records are delivered again, ".<agent_id>-<seq>.2.avro.part" and
 * so on, because readers take files with the same final name for the same file. 0 or a negative errno.
 */
int lake_part_name(int dir_fd, const char *agent_id, uint64_t seq, bool is_over, char *ret, size_t size);

/*
 * Renames ".x.avro.part" to "x.avro", or if that exists to "x.2.avro" and so on: nothing is ever overwritten. The
 * caller syncs the folder. 0 or a negative errno.
 */
int lake_publish(int dir_fd, const char *part);

#endif
