/*
 * SPDX-License-Identifier: Apache-2.0
 * files: finds the Avro files below given paths, in the order in which to read them.
 */
#ifndef SLUICE_LAKE_FILES_H
#define SLUICE_LAKE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct lake_file {
	char *path;		/* owned */
	char *name;		/* owned; path with the final name, the same while open and closed */
	enum topic topic;	/* from its folder; TOPIC_COUNT: unknown */
	char date[16];		/* "2026-11-21", from its folder; "": unknown */
	uint64_t seq;		/* seq of its first record, from its name */
	bool is_named;		/* the user named this file, not a folder */
};

struct lake_files {
	struct lake_file *files;	/* owned */
	size_t n;
	size_t cap;
};

/* Reports a path that could not be read; error is a positive errno. */
typedef void (*lake_files_error_cb)(const char *path, int error, void *arg);

/* Adds path if it is a file, or else the Avro files below it, including open ones. 0 or -ENOMEM. */
int lake_files_add(struct lake_files *l, const char *path, lake_files_error_cb on_error, void *arg);
/* Sorts by topic, date, agent and first seq; a file that was found under both of its names is kept once. */
void lake_files_sort(struct lake_files *l);
/* Frees the list and leaves it empty. */
void lake_files_done(struct lake_files *l);

/* Finds a topic by "program" or "sluice.program"; TOPIC_COUNT: none. */
enum topic lake_topic_find(const char *name);

#endif
