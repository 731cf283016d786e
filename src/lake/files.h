/*
 * SPDX-License-Identifier: Apache-2.0
 * files: the Avro files below some paths, in the order in which to read them.
 */
#ifndef SLUICE_LAKE_FILES_H
#define SLUICE_LAKE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct lake_file {
	char *path;		/* owned */
	char *name;		/* owned; the path without what marks it as open: stays its whole life */
	enum topic topic;	/* by its folder; TOPIC_COUNT when that does not tell */
	char date[16];		/* "2026-11-21"; "" where no folder tells */
	uint64_t seq;		/* of its first record, by its name */
	bool is_named;		/* the user named this file itself */
};

struct lake_files {
	struct lake_file *files;	/* owned */
	size_t n;
	size_t cap;
};

/* Reports a path that could not be read. */
typedef void (*lake_files_error_cb)(const char *path, int error, void *arg);

/*
 * Adds path, when it is a file, or the Avro files below it, open ones as well.
 * 0, or -ENOMEM.
 */
int lake_files_add(struct lake_files *l, const char *path, lake_files_error_cb on_error, void *arg);
/* By topic, date, agent and first seq; a file seen under both of its names is kept once. */
void lake_files_sort(struct lake_files *l);
void lake_files_done(struct lake_files *l);

/* "program" or "sluice.program"; TOPIC_COUNT for none. */
enum topic lake_topic_find(const char *name);

#endif
