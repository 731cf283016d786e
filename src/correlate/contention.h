/*
 * SPDX-License-Identifier: Apache-2.0
 * contention: how much of the work of a disk was for others than a task or run that waited for it.
 *
 * The disk is the one under the folder where the work began; its bytes and busy time are those of /proc/diskstats since
 * then, the work's own are read_bytes and write_bytes of its programs. Of a disk that was busy for
 * CONTENTION_BUSY of the wall time,
 *
 *   others = 1 - own / (bytes of the disk)
 *
 * Where it reads from elsewhere, or writes what the kernel has not written yet, its own are too many, and others too
 * few: what is denied is rather understated. It is unknown of a network file system, tmpfs, an overlay, and of work
 * that ended in the second in which it began.
 */
#ifndef SLUICE_CORRELATE_CONTENTION_H
#define SLUICE_CORRELATE_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/disk_counts.h"
#include "model/opt.h"

struct correlator;
struct process;
struct usage;

#define CONTENTION_BUSY 0.5

/* Notes what the disk of folder, where p's program works, has done so far; folder NULL: nothing is known. */
void contention_begin(struct correlator *c, struct disk_counts *since, const char *folder, const struct process *p);
/* Returns the others' part of what the disk has done since, 0 to 1. usage: of the work, which took wall_ns. */
struct opt_double contention_of(const struct correlator *c, const struct disk_counts *since, const struct usage *usage,
    uint64_t wall_ns);

#endif
