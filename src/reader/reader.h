/*
 * SPDX-License-Identifier: Apache-2.0
 * reader: reads what may hang, in other processes, so that the agent neither waits for it nor cannot be killed.
 *
 * The arguments of a process are in its memory, whose lock or pages its user may hold for ever; a file may be on any
 * file system. The agent asks a reader, and continues. A reader that does not answer within a second is killed and
 * replaced. One that waits in the kernel may not die of it: it is left, and counted, until the kernel lets it go.
 *
 * So that no user makes others' items unknown, a user's items are not read while a reader hangs in one of them, and for
 * a time after that, which doubles with each that hangs, from a second to a minute.
 */
#ifndef SLUICE_READER_READER_H
#define SLUICE_READER_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/record.h"
#include "reader/nursery.h"
#include "reader/protocol.h"

struct event_base;
struct reader;

enum {
	READER_STUCK_MAX = 8,	/* readers that cannot be killed; then nothing is read until one of them ends */
	READER_QUEUE = 512,	/* items asked for and not answered */
};

/* Items that were not read. */
struct reader_counts {
	uint64_t hung;		/* the reader did not answer, and did not only wait for a CPU */
	uint64_t skipped;	/* the user's last one had hung, or as many readers hang as may */
	uint64_t failed;	/* there was no reader, or it ended */
	uint64_t refused;	/* files and folders: a link, no regular file, or one of another user */
	unsigned stuck;		/* readers that hang now */
};

/*
 * Opens; readers are forked when they are needed, that of files at once if there are to be files. nursery is the
 * caller's, outlives r, and has become the account already. 0 or -ENOMEM.
 */
int reader_open(struct event_base *base, struct nursery *nursery, bool reads_files, struct reader **ret);
/* Kills the readers; items that were not answered are dropped. r may be NULL. */
void reader_close(struct reader *r);

/* Receives an answer, which is valid during the call; NULL: it was not read, which is counted. */
typedef void reader_done(const struct reader_answer *answer, void *arg);

/*
 * Asks for the title or all of a process (enum reader_kind). user: the one behind it (model/user.h). done is called
 * later, from the event loop or from reader_finish(), in the order in which was asked. Returns false if the queue is
 * full.
 */
bool reader_ask(struct reader *r, enum reader_kind kind, uint32_t pid, uint32_t user, reader_done *done,
    void *arg);
/* Returns how many items may be asked for. */
size_t reader_room(const struct reader *r);
/*
 * Waits until at most n items are without an answer. It waits for the first that hangs for a second, for each further
 * one half as long: for all of them hardly more than two seconds, unless the reader waits for a CPU.
 */
void reader_finish(struct reader *r, size_t n);

/* The path of a file or folder, as the program has it that it is read for: any text of a user. */
struct reader_path {
	const char *text;
	uint32_t owner;		/* the program's user: a file must be that one's, a folder need not be */
	bool is_resolved;	/* it begins with a folder that the kernel named, so that any link in it is a trap */
};

/*
 * Reads bytes of a file from an offset on into buf and returns their number, or a negative errno: -ETIMEDOUT if it
 * hangs; -ELOOP or -EPERM if it is refused, which is counted: its last part is a link, or any if it is resolved; it is
 * no regular file, or not the owner's. facts: of the file, once bytes of it were read; NULL is fine. It waits for
 * hardly more than 100 ms in any second, and once for a second more where the reader gets no CPU.
 */
ssize_t reader_file(struct reader *r, const struct reader_path *path, uint64_t offset, char *buf, size_t size,
    struct reader_file_facts *facts);
/*
 * Reads the names in a folder likewise, a NUL after each: of the 64 that are the last ones in the order of their bytes
 * those for which there is room, the last one first. A folder of more than 20,000 is not read: -E2BIG.
 */
ssize_t reader_folder(struct reader *r, const struct reader_path *path, char *buf, size_t size);

/*
 * Returns how many percent of that time are left: what can as well be read later should not use up the rest, and with
 * it the reader, which is ended as one that hangs once there is none.
 */
unsigned reader_patience(const struct reader *r);

/* From now on readers have no capability to read links of other users' processes: after the agent has begun. */
void reader_confine(struct reader *r);
/* Reaps readers that ended, and has one of files ready; to be called once a second. */
void reader_look(struct reader *r);
/* What the readers use that were not reaped. */
struct reader_usage {
	uint64_t cpu_ns;	/* since they began */
	uint64_t rss_bytes;	/* without files */
};
struct reader_usage reader_usage(const struct reader *r);	/* all 0 for NULL */
/* Returns the counts; all 0 for NULL. */
struct reader_counts reader_counts(const struct reader *r);
/* Adds the processes among them to a list of n, as what was cut of their users. r may be NULL. */
size_t reader_user_losses(const struct reader *r, struct user_loss list[USER_LOSSES], size_t n);

#endif
