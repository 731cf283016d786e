/*
 * SPDX-License-Identifier: Apache-2.0
 * shipped_rules: the rules that sluice comes with, for all tests of a group.
 */
#ifndef SLUICE_TESTS_UNIT_SHIPPED_RULES_H
#define SLUICE_TESTS_UNIT_SHIPPED_RULES_H

#include "model/ruleset.h"
#include "rules/rules.h"

static struct ruleset *shipped;

static int
shipped_load(void **state)
{
	(void)state;
	shipped = rules_shipped();
	return shipped != NULL ? 0 : -1;
}

static int
shipped_unload(void **state)
{
	(void)state;
	ruleset_unref(shipped);
	return 0;
}

#endif
