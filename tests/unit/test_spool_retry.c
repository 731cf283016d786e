/* SPDX-License-Identifier: Apache-2.0 */
/* disk: what is wanted of the owner once a disk that could not be written can be written again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

static void
fail_writes(void)
{
	fault = (struct fault){ .calls = FAULT_WRITE | FAULT_CREATE, .times = 1000000, .error = ENOSPC };
}

/* Nothing of the log is missing then. */
static void
after_a_failure_that_memory_bridged_no_checkpoint_is_wanted(void **state)
{
	(void)state;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100000);
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	fail_writes();
	kit_put_entry(&k, 10);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	fault.calls = 0;
	kit_tick(&k);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_false(spool_wants_checkpoint(k.spool));
}

/* Nothing else was written since that would ask for one. */
static void
a_checkpoint_for_which_memory_had_no_room_is_wanted_once_the_disk_is_back(void **state)
{
	(void)state;
	k.options.memory_bytes = 1;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_commit(&k);
	fail_writes();
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_false(spool_wants_checkpoint(k.spool));
	fault.calls = 0;
	kit_tick(&k);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_true(spool_wants_checkpoint(k.spool));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(after_a_failure_that_memory_bridged_no_checkpoint_is_wanted),
		T(a_checkpoint_for_which_memory_had_no_room_is_wanted_once_the_disk_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
