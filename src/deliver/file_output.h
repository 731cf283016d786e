/*
 * SPDX-License-Identifier: Apache-2.0
 * file_output: the file lake as an output, for a daemon without Kafka.
 *
 * A record counts as delivered once the block that it is in has been written. What cannot be written
 * (full disk, folder gone) is tried again about once a second; meanwhile the rest waits in the spool.
 */
#ifndef SLUICE_DELIVER_FILE_OUTPUT_H
#define SLUICE_DELIVER_FILE_OUTPUT_H

#include "deliver/output.h"
#include "lake/writer.h"

struct event_base;

struct file_output_options {
	struct lake_writer_options writer;	/* its on_block is ours to set */
	/*
	 * The text of a schema by its fingerprint, good as long as the output; NULL unknown: its
	 * records are refused for good. For records that an older version left in the spool.
	 */
	const char *(*schema)(void *arg, uint64_t fingerprint);
	void *schema_arg;
};

/* 0, or a negative errno with *ret untouched. repair: as of lake_writer_open(). */
int file_output_open(struct event_base *base, const struct file_output_options *o,
    const struct output_events *events, struct output **ret, struct lake_repair *repair);

#endif
