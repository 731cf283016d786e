/*
 * SPDX-License-Identifier: Apache-2.0
 * run_index: notes beside an Avro file of the lake which blocks have records of which runs.
 *
 *	<agent_id>-<first seq>.avro	.<agent_id>-<first seq>.runs
 *
 * The index is text, so that a question about a run reads only the blocks of that run. Its first line is
 *
 *	sluice-runs 1 <sync marker of the Avro file in hex> <size of its header> <checksum>
 *
 * and each other line describes the next block of the Avro file:
 *
 *	<offset at which the block ends> <records> [<run> ...] <checksum>
 *
 * A run is the CRC-32 (as in zlib) of its run_id, and "*" stands for any. The checksum is the CRC-32 of all of the
 * index before it. Hashes and checksums have eight digits in lower-case hex.
 *
 * The index is optional. Readers compare the sync marker, the checksum of the last whole line and the blocks
 * that they read, and search those blocks of the Avro file that the index does not describe: an index that is missing,
 * cut, damaged or of another file costs time and changes no answer. It is therefore not synced, and errors end it.
 */
#ifndef SLUICE_LAKE_RUN_INDEX_H
#define SLUICE_LAKE_RUN_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/ocf.h"
#include "lake/folders.h"

enum {
	RUN_INDEX_FROM = 32 * 1024,	/* a smaller Avro file is read as fast without an index */
	RUN_INDEX_RUNS_MAX = 64,	/* a block with more runs has "*" */
	RUN_INDEX_KEY_MAX = 128,
};

/* The index of one topic's open file. A zeroed one is valid and has no file. */
struct run_index {
	bool		 is_on;		/* the open Avro file has an index so far */
	int		 fd;		/* of the index, while is_written */
	bool		 is_written;	/* the index has a file */
	uint64_t	 size;		/* of that file */
	uint32_t	 checksum;	/* of all lines */
	struct bytes	 lines;		/* not written yet */
	unsigned	 n_runs;	/* of the current block; above RUN_INDEX_RUNS_MAX: too many */
	uint32_t	 runs[RUN_INDEX_RUNS_MAX];
	char		 last_key[RUN_INDEX_KEY_MAX];	/* of the block's last record; empty: none yet, or too long */
};

/* Begins the index of a new Avro file, in memory. */
void run_index_begin(struct run_index *x, const uint8_t sync[OCF_SYNC_SIZE], uint64_t header_size);
/* Forgets the runs of the current block. */
void run_index_clear_block(struct run_index *x);
/* Adds a record to the current block. key: "<host_id>:<run_id>". */
void run_index_add_record(struct run_index *x, const char *key);
/*
 * The current block was written to the Avro file, which is named part below dir_fd and now has end bytes. Writes the
 * index once the file is large enough.
 */
void run_index_add_block(struct run_index *x, int dir_fd, const char *part, const struct lake_owner *owner,
    uint64_t end, uint64_t records);
/* Ends the index of the Avro file. The runs of the current block stay. */
void run_index_end(struct run_index *x);
/* Ends the index and frees what it holds. */
void run_index_done(struct run_index *x);

#endif
