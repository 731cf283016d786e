/*
 * SPDX-License-Identifier: Apache-2.0
 * file_output: the file lake as an output, for a daemon without Kafka.
 *
 * A record counts as delivered once it is on the disk, which all records of about a second wait for together. The disk
 * is only waited for by the writer's thread. A failed write (full disk, folder removed) is tried again about once a
 * second; meanwhile, and while the disk hangs, other records wait in the spool.
 */
#ifndef SLUICE_DELIVER_FILE_OUTPUT_H
#define SLUICE_DELIVER_FILE_OUTPUT_H

#include "deliver/output.h"
#include "lake/writer.h"

struct event_base;

struct file_output_options {
	struct lake_writer_options writer;	/* of its callbacks only on_repaired, with arg, is the caller's */
	const char *hint;	/* what to do if the lake cannot be opened, shown with the error; copied; may be NULL */
	/*
	 * Returns a schema's text by its fingerprint, valid as long as the output. NULL and errno ENOENT: it is
	 * lost, and its records are refused for good; another errno: it cannot be read now. For records of an
	 * older version in the spool. May be NULL.
	 */
	const char *(*schema)(void *arg, uint64_t fingerprint);
	void *schema_arg;
};

/*
 * Opens the output. Waits for the lake's disk for a second; after that, the output is down until it answers. 0, or a
 * negative errno with *ret untouched.
 */
int file_output_open(struct event_base *base, const struct file_output_options *o,
    const struct output_events *events, struct output **ret);

#endif
