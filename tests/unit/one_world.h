/*
 * SPDX-License-Identifier: Apache-2.0
 * one_world: a correlator of events.h for each test.
 */
#ifndef SLUICE_TESTS_UNIT_ONE_WORLD_H
#define SLUICE_TESTS_UNIT_ONE_WORLD_H

#include "events.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static struct world w;

static int
setup(void **state)
{
	struct correlator_options options = world_options();

	(void)state;
	world_open(&w, &options);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_close(&w);	/* ASan reports any leak */
	return 0;
}

#endif
