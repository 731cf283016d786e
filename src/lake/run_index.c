/*
 * SPDX-License-Identifier: Apache-2.0
 * run_index: notes beside an Avro file of the lake which blocks have records of which runs.
 */
#include "lake/run_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libdeflate.h>

#include "base/file.h"

enum {
	FIELD_MAX = 24,		/* the longest number or hash, with the blank or the NUL behind it */
};

/* Adds the checksum to the line that begins at start, and ends it. 0 or -ENOMEM. */
static int
end_line(struct run_index *x, size_t start)
{
	char field[FIELD_MAX];
	int n;

	x->checksum = libdeflate_crc32(x->checksum, x->lines.data + start, x->lines.len - start);
	n = snprintf(field, sizeof(field), "%08" PRIx32 "\n", x->checksum);
	x->checksum = libdeflate_crc32(x->checksum, field, (size_t)n);
	return bytes_append(&x->lines, field, (size_t)n);
}

void
run_index_begin(struct run_index *x, const uint8_t sync[OCF_SYNC_SIZE], uint64_t header_size)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "sluice-runs 1 ");

	run_index_end(x);
	for (size_t i = 0; i < OCF_SYNC_SIZE; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%02x", sync[i]);
	n += snprintf(line + n, sizeof(line) - (size_t)n, " %" PRIu64 " ", header_size);
	x->is_on = bytes_append(&x->lines, line, (size_t)n) == 0 && end_line(x, 0) == 0;
}

void
run_index_clear_block(struct run_index *x)
{
	x->n_runs = 0;
	x->last_key[0] = '\0';
}

void
run_index_add_record(struct run_index *x, const char *key)
{
	const char *colon;
	size_t len;
	uint32_t run;

	if (strcmp(key, x->last_key) == 0)	/* as a rule, a run's records come one after the other */
		return;
	len = strlen(key);
	if (len < sizeof(x->last_key))
		memcpy(x->last_key, key, len + 1);
	else
		x->last_key[0] = '\0';
	colon = strchr(key, ':');
	if (colon == NULL || colon[1] == '\0' || x->n_runs > RUN_INDEX_RUNS_MAX)
		return;
	run = libdeflate_crc32(0, colon + 1, len - (size_t)(colon + 1 - key));
	for (unsigned i = 0; i < x->n_runs; i++) {
		if (x->runs[i] == run)
			return;
	}
	if (x->n_runs < RUN_INDEX_RUNS_MAX)
		x->runs[x->n_runs] = run;
	x->n_runs++;
}

/* Adds the line of a block. 0 or -ENOMEM. */
static int
add_line(struct run_index *x, uint64_t end, uint64_t records)
{
	size_t start = x->lines.len;
	char field[2 * FIELD_MAX];
	int n, r;

	n = snprintf(field, sizeof(field), "%" PRIu64 " %" PRIu64 " ", end, records);
	r = bytes_append(&x->lines, field, (size_t)n);
	if (r == 0 && x->n_runs > RUN_INDEX_RUNS_MAX)
		r = bytes_append(&x->lines, "* ", 2);
	for (unsigned i = 0; r == 0 && x->n_runs <= RUN_INDEX_RUNS_MAX && i < x->n_runs; i++) {
		n = snprintf(field, sizeof(field), "%08" PRIx32 " ", x->runs[i]);
		r = bytes_append(&x->lines, field, (size_t)n);
	}
	return r < 0 ? r : end_line(x, start);
}

/* Creates the file of the index. What an earlier Avro file of that name left is removed. 0 or a negative errno. */
static int
create(struct run_index *x, int dir_fd, const char *part, const struct lake_owner *owner)
{
	char name[NAME_MAX + 1];
	int stem = (int)(strlen(part) - strlen(LAKE_PART_SUFFIX));

	/* Shorter than the name of the Avro file: it fits. */
	snprintf(name, sizeof(name), "%.*s" RUN_INDEX_SUFFIX, stem, part);
	unlinkat(dir_fd, name, 0);
	x->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (x->fd < 0)
		return -errno;
	x->is_written = true;
	return owner->is_set && fchown(x->fd, owner->uid, owner->gid) < 0 ? -errno : 0;
}

void
run_index_add_block(struct run_index *x, int dir_fd, const char *part, const struct lake_owner *owner,
    uint64_t end, uint64_t records)
{
	int r;

	if (!x->is_on)
		return;
	r = add_line(x, end, records);
	if (r == 0 && end < RUN_INDEX_FROM)
		return;
	if (r == 0 && !x->is_written)
		r = create(x, dir_fd, part, owner);
	if (r == 0)
		r = file_write(x->fd, x->lines.data, x->lines.len, x->size);
	if (r < 0) {
		run_index_end(x);	/* the rest of the Avro file has no index */
		return;
	}
	x->size += x->lines.len;
	x->lines.len = 0;
}

void
run_index_end(struct run_index *x)
{
	if (x->is_written)
		close(x->fd);
	x->is_on = x->is_written = false;
	x->size = 0;
	x->checksum = 0;
	x->lines.len = 0;
}

void
run_index_done(struct run_index *x)
{
	run_index_end(x);
	bytes_done(&x->lines);
}
