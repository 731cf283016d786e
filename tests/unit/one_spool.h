/*
 * SPDX-License-Identifier: Apache-2.0
 * one_spool: a spool of spool_kit.h for each test, on a disk that may fail.
 */
#ifndef SLUICE_TESTS_UNIT_ONE_SPOOL_H
#define SLUICE_TESTS_UNIT_ONE_SPOOL_H

#include "faults.h"
#include "spool_kit.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	kit_done(&k);
	return 0;
}

#endif
