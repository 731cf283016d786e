/*
 * SPDX-License-Identifier: Apache-2.0
 * recover_kit: the batches from which a spool recovers.
 */
#ifndef SLUICE_TESTS_UNIT_RECOVER_KIT_H
#define SLUICE_TESTS_UNIT_RECOVER_KIT_H

#include "spool_kit.h"

#define BATCHES 4
#define EACH 3		/* records of a batch */

/* A few batches with a place each, none of them handed out. */
static inline void
put_batches(struct kit *at)
{
	for (int i = 1; i <= BATCHES; i++) {
		for (int j = 0; j < EACH; j++)
			kit_put_len(at, TOPIC_PROGRAM, 20);
		if (kit_commit_at(at, (uint64_t)i) != 0)
			_exit(1);
	}
}

#endif
