/*
 * SPDX-License-Identifier: Apache-2.0
 * sink: where encoded records go. One implementation now: files (file_sink.h).
 */
#ifndef SLUICE_STREAM_SINK_H
#define SLUICE_STREAM_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct sink;

struct sink_ops {
	/*
	 * Takes a copy of one encoded record (Avro binary, no framing). key is
	 * "<host_id>:<run_id>"; seq is the record's own. 0, or a negative errno: the record is lost
	 * and the caller counts it.
	 */
	int (*put)(struct sink *s, enum topic topic, int64_t time_us, uint64_t seq, const char *key,
	    const void *data, size_t len);
	/* Called about once a second: closes what is old or large. now_us: wall clock. */
	void (*tick)(struct sink *s, int64_t now_us);
	/* Records that rest where a crash of this process cannot lose them. */
	uint64_t (*delivered)(const struct sink *s);
	/* Delivers what is pending and frees s. 0, or the first negative errno. NULL s is fine. */
	int (*close)(struct sink *s);
};

struct sink {
	const struct sink_ops *ops;
};

#endif
