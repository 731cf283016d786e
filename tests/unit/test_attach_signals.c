/* SPDX-License-Identifier: Apache-2.0 */
/* signals: the table agrees with the BPF programs that are built, and with the manual. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attach/probes_state.h"
#include "model/optional_signals.h"

/* Programs that serve no signal: measured with, or loaded by a rule of their own in probes.c. */
static const char *const others[] = { "calibrate_clock", "calibrate_cpus", "calibrate_pid", "on_exec_until_5_16",
	"on_stale", "on_stale_until_5_13", "on_signal", "on_wait_places" };

static struct sluice_bpf *skel;

static int
setup(void **state)
{
	(void)state;
	skel = sluice_bpf__open();	/* reads the object alone: neither root nor a kernel */
	return skel != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	sluice_bpf__destroy(skel);
	return 0;
}

static void
each_signal_has_what_the_outputs_need(void **state)
{
	(void)state;
	for (int i = 0; i < SIGNALS; i++) {
		const struct signal *s = &signals[i];
		bool may_be_missing = true;

		assert_non_null(s->name);
		assert_non_null(s->fields);
		assert_non_null(s->hooks[0].name);
		assert_int_equal(s->hooks[0].state, SIGNAL_OK);
		for (int h = 0; h < SIGNAL_HOOKS && s->hooks[h].name != NULL; h++) {
			const struct signal_hook *hook = &s->hooks[h];

			assert_true(hook->state != SIGNAL_FALLBACK || hook->detail != NULL);
			may_be_missing &= hook->tests[0].kind != KERNEL_ANY;
		}
		assert_int_equal(may_be_missing, s->missing != NULL);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(s->name, signals[j].name);
	}
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		assert_string_equal(signals[optional_ids[i]].name, optional_signals[i]);
}

static void
optional_signals_and_no_others_have_a_lease(void **state)
{
	(void)state;
	for (int i = 0; i < SIGNALS; i++) {
		assert_int_equal(signals[i].lease != 0, optional_signal_of(signals[i].name) >= 0);
		assert_int_equal(signals[i].since_ns != 0, optional_signal_of(signals[i].name) >= 0);
	}
}

/* "on_exec" of its copy "on_exec_7_again". */
static bool
is_of(const char *name, const char *program)
{
	size_t len = strlen(name);

	return strncmp(program, name, len) == 0 && (program[len] == '\0' || strncmp(program + len, "_7", 2) == 0);
}

static unsigned
count_in_table(const char *program)
{
	unsigned n = 0;

	for (int i = 0; i < SIGNALS; i++) {
		for (int h = 0; h < SIGNAL_HOOKS; h++) {
			const char *const *name = signals[i].hooks[h].programs;

			for (; name != NULL && *name != NULL; name++)
				n += is_of(*name, program);
		}
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		n += strcmp(others[i], program) == 0;
	return n;
}

static void
each_program_serves_one_signal(void **state)
{
	struct bpf_program *program;

	(void)state;
	bpf_object__for_each_program(program, skel->obj) {
		if (count_in_table(bpf_program__name(program)) != 1)
			fail_msg("%s is in the table %u times", bpf_program__name(program),
			    count_in_table(bpf_program__name(program)));
	}
	for (int i = 0; i < SIGNALS; i++) {
		for (int h = 0; h < SIGNAL_HOOKS; h++) {
			const char *const *name = signals[i].hooks[h].programs;

			for (; name != NULL && *name != NULL; name++) {
				if (bpf_object__find_program_by_name(skel->obj, *name) == NULL)
					fail_msg("%s: bpf/ has no program %s", signals[i].name, *name);
			}
		}
	}
}

static void
the_manual_has_each_signal(void **state)
{
	static char manual[256 * 1024];
	FILE *f = fopen(SOURCE_TREE "/docs/sluice.1", "re");
	const char *at;

	(void)state;
	assert_non_null(f);
	assert_true(fread(manual, 1, sizeof(manual) - 1, f) > 0);
	fclose(f);
	at = strstr(manual, "\n.SH SLUICE DOCTOR\n");
	assert_non_null(at);
	for (int i = 0; i < SIGNALS; i++) {
		char row[512];

		snprintf(row, sizeof(row), "\n.TP\n.B %s\n%s\n", signals[i].name, signals[i].fields);
		at = strstr(at, row);	/* in the order of the table */
		if (at == NULL)
			fail_msg("docs/sluice.1, SLUICE DOCTOR lacks:%s", row);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_signal_has_what_the_outputs_need),
		cmocka_unit_test(optional_signals_and_no_others_have_a_lease),
		cmocka_unit_test(each_program_serves_one_signal),
		cmocka_unit_test(the_manual_has_each_signal),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
