/*
 * SPDX-License-Identifier: Apache-2.0
 * job_share: the users' shares of what is read of jobs: of the time for it, and of the folders that are remembered. A
 * user may have a thousand folders with jobs; others' are read nevertheless.
 *
 * Pure functions; jobs.c reads.
 */
#ifndef SLUICE_AGENT_JOB_SHARE_H
#define SLUICE_AGENT_JOB_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JOB_SHARE_USERS = 16,	/* the one that used least gives way */
	JOB_SHARE_LOW = 75,	/* percent of the reader's patience below which time is scarce */
	JOB_SHARE_LEAST = 50,	/* and below which nothing is read of jobs */
};

/* Must be zeroed at first. */
struct job_shares {
	struct job_share {
		uint32_t uid;
		uint64_t asked_ns;	/* when it was to be read for it last; 0: free */
		uint64_t used_ns;	/* time that reading took, halved each second */
		uint64_t halved_ns;
	} user[JOB_SHARE_USERS];
};

/*
 * Returns whether files of a user are read at now_ns (CLOCK_MONOTONIC). While time is scarce, those who used more of it
 * than the average of all that asked in the last ten seconds are not. patience: reader_patience().
 */
bool job_shares_may(struct job_shares *s, uint32_t uid, unsigned patience, uint64_t now_ns);
/* Counts what reading for a user took, until now_ns. */
void job_shares_use(struct job_shares *s, uint32_t uid, uint64_t ns, uint64_t now_ns);

/* A folder that is remembered. */
struct job_place {
	uint32_t uid;
	uint64_t used_ns;	/* when it was used last; 0: free */
};

/*
 * Returns the index of the place that gives way to a new folder of uid: a free one, or the one that was used longest
 * ago of the user who has most, which is uid where several have as many. n > 0.
 */
size_t job_place_for(const struct job_place *places, size_t n, uint32_t uid);

#endif
