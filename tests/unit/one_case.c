/*
 * SPDX-License-Identifier: Apache-2.0
 * one_case: linked into every unit test; $SLUICE_TEST_CASE names one case, or a pattern of cases, to run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void
choose_case(void)
{
	const char *name = getenv("SLUICE_TEST_CASE");

	if (name != NULL && name[0] != '\0')
		cmocka_set_test_filter(name);
}
