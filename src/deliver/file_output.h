/*
 * SPDX-License-Identifier: Apache-2.0
 * file_output: the file lake as an output, for a daemon without Kafka.
 *
 * A record counts as delivered once its block has been written. A failed write (full disk, folder removed) is
 * tried again about once a second; meanwhile other records wait in the spool.
 */
#ifndef SLUICE_DELIVER_FILE_OUTPUT_H
#define SLUICE_DELIVER_FILE_OUTPUT_H

#include "deliver/output.h"
#include "lake/writer.h"

struct event_base;

struct file_output_options {
	struct lake_writer_options writer;	/* on_block is set by file_output_open() */
	/*
	 * Returns a schema's text by its fingerprint, valid as long as the output; NULL: unknown, its records
	 * are refused for good. For records of an older version in the spool. May be NULL.
	 */
	const char *(*schema)(void *arg, uint64_t fingerprint);
	void *schema_arg;
};

/* Opens the output. repair: as in lake_writer_open(). 0, or a negative errno with *ret untouched. */
int file_output_open(struct event_base *base, const struct file_output_options *o,
    const struct output_events *events, struct output **ret, struct lake_repair *repair);

#endif
