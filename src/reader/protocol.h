/*
 * SPDX-License-Identifier: Apache-2.0
 * protocol: what the agent and a reader send each other: one request, one answer, each a message of a socket that keeps
 * their boundaries (SOCK_SEQPACKET). A reader answers in the order of the requests. It handles what any user's process
 * may have written, so the agent trusts no answer: it is decoded as what a hostile peer sent.
 */
#ifndef SLUICE_READER_PROTOCOL_H
#define SLUICE_READER_PROTOCOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/proc_reader.h"
#include "event.h"

enum reader_kind {
	READER_PROCESS = 1,	/* all that is read of a process that is discovered */
	READER_TITLE,		/* the title of a process */
	READER_FILE,		/* bytes of a file */
	READER_FOLDER,		/* names of what is in a folder */
};

struct reader_request {
	uint32_t id;		/* the answer has it, too */
	uint32_t kind;
	uint32_t pid;		/* of PROCESS and TITLE */
	uint32_t limit;		/* bytes of TITLE, FILE and FOLDER */
	uint64_t offset;	/* of FILE: where they begin */
	uint32_t owner;		/* of FILE: whose it must be */
	uint32_t is_resolved;	/* of FILE and FOLDER: 1: no link is followed; 0: but the last, those on the way are */
	char path[PATH_MAX];	/* of FILE and FOLDER, NUL-terminated; the message ends behind it */
};

/* The texts of an answer. A title, bytes of a file, and names of a folder with a NUL after each are READER_BYTES. */
enum reader_text {
	READER_BYTES,		/* of PROCESS: its arguments, a NUL after each */
	READER_EXE,
	READER_CWD,
	READER_CGROUP_V1,
	READER_CGROUP_V2,
	READER_TEXTS,
};

/* What an answer has of the file that was read. */
struct reader_file_facts {
	uint64_t size;
	int64_t changed_s;		/* when it was written last, seconds since 1970 */
};

/* The head of an answer; behind it are the texts, each with a NUL that its length does not count. */
struct reader_head {
	uint32_t id;
	int32_t error;			/* 0, or a negative errno: then there are no texts */
	uint64_t start_ticks;		/* of the process, read last */
	uint64_t size;			/* struct reader_file_facts; all 0 unless is_file */
	int64_t changed_s;
	uint32_t pad;			/* 0 */
	uint32_t is_file;		/* 1: of a FILE that was read; else 0 */
	uint32_t known;			/* bits of enum reader_text; the others have no bytes, not even a NUL */
	uint32_t len[READER_TEXTS];
};

enum {
	READER_FILE_MAX = 4096,
	READER_PATH_MAX = PATH_MAX,
	READER_REQUEST_HEAD = offsetof(struct reader_request, path),
	READER_ANSWER_MAX = sizeof(struct reader_head) + EVENT_ARGV_MAX + 1 + (READER_TEXTS - 1) * (PATH_MAX + 2),
};

struct reader_answer {
	uint32_t id;
	int error;
	uint64_t start_ticks;
	bool is_file;
	struct reader_file_facts file;	/* if is_file */
	struct {
		const char *at;		/* NULL: unknown; NUL-terminated behind len bytes */
		size_t len;
	} text[READER_TEXTS];
};

/* Encodes an answer into READER_ANSWER_MAX bytes and returns its length; texts that are too long are left out. */
size_t reader_answer_encode(const struct reader_answer *answer, void *to);
/*
 * Decodes an answer; *ret points into data. Returns 0, or -EBADMSG with *ret untouched: lengths, NULs, bits or the
 * errno are not what reader_answer_encode() writes. Texts but READER_BYTES have no NUL in them and begin with a slash.
 */
int reader_answer_decode(const void *data, size_t len, struct reader_answer *ret);

/* Returns what a PROCESS answer has of its process. */
struct proc_texts reader_answer_texts(const struct reader_answer *answer);

/* Encodes a request, and returns the message's length; 0: the path is too long. */
size_t reader_request_len(const struct reader_request *request);
/* Checks a request of len bytes. 0 or -EBADMSG. */
int reader_request_check(const struct reader_request *request, size_t len);

#endif
