/* SPDX-License-Identifier: Apache-2.0 */
/* arena: bounded and aligned, and reset at once. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void
pieces_do_not_overlap(void **state)
{
	struct arena a;
	char *text, *word;
	uint64_t *number;

	(void)state;
	assert_int_equal(arena_init(&a, 64), 0);
	text = arena_copy(&a, "abcdef", 3);
	number = arena_alloc(&a, sizeof(*number));
	*number = UINT64_MAX;
	word = arena_bytes(&a, 1);
	*word = 'z';
	assert_string_equal(text, "abc");
	assert_true(*number == UINT64_MAX);
	assert_int_equal((uintptr_t)number % _Alignof(max_align_t), 0);
	arena_done(&a);
	arena_done(&a);		/* twice is fine */
}

static void
a_full_arena_says_so(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, 32), 0);
	assert_null(arena_bytes(&a, 33));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_bytes(&a, SIZE_MAX));
	assert_null(arena_copy(&a, "", SIZE_MAX));
	assert_null(arena_copy(&a, "0123456789012345678901234567890123", 32));	/* no room for the NUL */
	assert_non_null(arena_copy(&a, "0123456789012345678901234567890123", 31));
	assert_int_equal(a.used, 32);
	assert_null(arena_alloc(&a, 1));
	assert_null(arena_copy(&a, "", 0));
	arena_reset(&a);
	assert_non_null(arena_bytes(&a, 32));
	arena_done(&a);
}

static void
a_wiped_arena_holds_nothing(void **state)
{
	struct arena a;
	const char *text;

	(void)state;
	assert_int_equal(arena_init(&a, 64), 0);
	text = arena_copy(&a, "canary", 6);
	arena_wipe(&a);
	assert_int_equal(a.used, 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(text[i], 0);	/* the arena's memory is still there */
	arena_done(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_overlap),
		cmocka_unit_test(a_full_arena_says_so),
		cmocka_unit_test(a_wiped_arena_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
