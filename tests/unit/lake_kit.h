/*
 * SPDX-License-Identifier: Apache-2.0
 * lake_kit: a lake in a folder of its own, on a disk whose size the test sets (full_disk.h).
 */
#ifndef SLUICE_TESTS_UNIT_LAKE_KIT_H
#define SLUICE_TESTS_UNIT_LAKE_KIT_H

#include "full_disk.h"
#include "samples.h"
#include "lake/appender.h"

#define MIB (UINT64_C(1) << 20)

static char lake[64];

static inline int
lake_setup(void **state)
{
	(void)state;
	if (sample_folder(lake) == NULL)
		return -1;
	full_disk.folder = lake;
	full_disk.total = UINT64_C(1) << 40;
	full_disk.others = 0;
	return 0;
}

static inline int
lake_teardown(void **state)
{
	(void)state;
	sample_remove(lake);
	return 0;
}

static inline struct lake_appender *
lake_open(struct lake_limits limits)
{
	struct lake_appender_options o = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT,
		.limits = limits, .retry_us = 1 };
	struct lake_appender *a = NULL;

	assert_int_equal(lake_appender_new(&o, &a), 0);
	assert_int_equal(lake_appender_open(a), 0);
	return a;
}

#endif
