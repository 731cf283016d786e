/*
 * SPDX-License-Identifier: Apache-2.0
 * contention: how much of what a disk, and CPUs, did was for others than a task or run that waited for them.
 *
 * The disk is the one under the folder where the work began; of a task whose folder is not known, and of a row of the
 * summary, that of its run. Its bytes and busy time are those of /proc/diskstats while programs of the work were live,
 * the work's own bytes are read_bytes and write_bytes of its programs. Of a disk that was busy for CONTENTION_BUSY of
 * that time,
 *
 *   others = 1 - own / (bytes of the disk)
 *
 * That disk is taken for the one that it waits for. Of work that reads from another, or writes what the kernel has not
 * written yet, its own bytes are too many, and others too few; but if it waits for that other one while its folder's is
 * busy for others, they count. It is unknown of a network file system, tmpfs, an overlay, of work that
 * ended in the second in which it began, and of a disk that was plugged in anew meanwhile. Of work whose last program
 * ended while no agent ran, all counts that the disk has had until the next one began.
 *
 * Of the host's CPUs, others had the time for which these were busy while programs of the work were live, without its
 * own CPU time. A thread that waits for one of them does so while it is busy, so that of the time for which threads of
 * the work waited, others took no more than this. What the CPUs did is read now and then: between that and the begin or
 * end of the work all of them count as busy, so that others have too much rather than too little. On a host that is
 * booted with nohz=off the kernel only samples idle time: others who never run as it does so have too little there.
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
struct work;

#define CONTENTION_BUSY 0.5

struct contention {
	struct disk_counts since;	/* as programs last began to be live; major 0: unknown */
	uint64_t bytes, busy_ns;	/* of the times before */
	uint64_t cpus_since_ns;		/* busy time of the host's CPUs as since; 0: unknown */
	uint64_t cpus_ns;		/* of the times before; UINT64_MAX: unknown */
};

/*
 * Must be called when w has one more live program, which began before all of those that live, or is the only one: what
 * the CPUs did counts from there.
 */
void contention_reach(struct correlator *c, struct work *w, uint64_t begin_ns);
/* Must be called when w begins to have a live program, p, which works in folder; NULL: on the disk of p's run. */
void contention_begin(struct correlator *c, struct work *w, const char *folder, const struct process *p);
/* Must be called when w no longer has a live program. */
void contention_end(struct correlator *c, struct work *w);
/* Returns the others' part of what the disk has done for w, 0 to 1. usage: of w, until then. */
struct opt_double contention_of(const struct correlator *c, const struct work *w, const struct usage *usage,
    uint64_t until_ns);
/* Returns for how long others had CPUs while w had live programs, at most, added up over CPUs. */
struct opt_u64 contention_of_cpus(const struct correlator *c, const struct work *w, const struct usage *usage,
    uint64_t until_ns);
/* Adds what from has, of a work that has ended, to others that to may have had. */
void contention_merge(struct contention *to, const struct contention *from);

#endif
