/* SPDX-License-Identifier: Apache-2.0 */
/* table: the text of the summary, for a pipe and for a terminal. No root, no kernel. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/table.h"
#include "hostile.h"

#define MS UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

static char *output;	/* of the last print; freed by the next */

static const char *
print(const struct table_row *rows, size_t n, unsigned width)
{
	size_t size;
	FILE *f;

	free(output);
	f = open_memstream(&output, &size);
	assert_non_null(f);
	assert_int_equal(table_print(f, rows, n, width), 0);
	fclose(f);
	return output;
}

static const char *
footer(const struct table_summary *s)
{
	size_t size;
	FILE *f;

	free(output);
	f = open_memstream(&output, &size);
	assert_non_null(f);
	table_footer(f, s);
	fclose(f);
	return output;
}

static int
free_output(void **state)
{
	(void)state;
	free(output);
	output = NULL;
	setlocale(LC_ALL, "C");
	return 0;
}

static struct usage
some_usage(void)
{
	struct usage u = { .known = 0 };

	usage_set(&u, USAGE_PEAK_RSS_BYTES, 310 * MIB);
	usage_set(&u, USAGE_READ_BYTES, 1536 * MIB);
	usage_set(&u, USAGE_WRITE_BYTES, 0);
	usage_set(&u, USAGE_NET_RX_BYTES, 3 * MIB);
	usage_set(&u, USAGE_NET_TX_BYTES, MIB);
	return u;
}

static void
a_pipe_gets_aligned_columns(void **state)
{
	struct usage u = some_usage();
	struct table_row rows[] = {
		{ .task = "align S1", .tool = "bwa mem", .n = 1, .wall_ns = 12100 * MS,
		    .cpu_cores = { 1, true }, .peak_memory_bytes = { 310 * MIB, true }, .usage = &u,
		    .verdict = { .demand = DEMAND_NETWORK_FS, .denied = DENIED_RUN_QUEUE,
		    .denied_share = { 0.4, true } } },
		{ .task = "count", .tool = "count.py", .n = 1204, .failed = 2, .wall_ns = 480 * MS },
		{ .task = "sync", .tool = "flock", .n = 1, .wall_ns = 480 * MS,
		    .verdict = { .demand = DEMAND_WAITING_FOR, .waiting_for = "LOCK", .denied = DENIED_NOTHING } },
	};

	(void)state;
	assert_string_equal(print(rows, 3, 0),
	    "task       tool                      n    wall    cpu   peak mem      read   write       net   demand        denied\n"
	    "align S1   bwa mem                   1   12.1s   1.0c    310 MiB   1.5 GiB       0   4.0 MiB   network fs    run queue 40%\n"
	    "count      count.py   1,204 (2 failed)   480ms      -          -         -       -         -   -             -\n"
	    "sync       flock                     1   480ms      -          -         -       -         -   waits: lock   -\n");
}

static void
hostile_names_never_reach_the_terminal_raw(void **state)
{
	struct table_row row = { .task = "a\nb\x1b[31m\x07", .tool = "\xff\xc2\x9b" "31m\xe2\x80\xae" };
	const char *locales[] = { "C", "C.UTF-8" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_non_null(setlocale(LC_ALL, locales[i]));
		print(&row, 1, 0);
		assert_non_null(strstr(output, "a\\nb\\x1b[31m\\x07   \\xff\\xc2\\x9b31m\\xe2\\x80\\xae "));
		for (const char *p = output; *p != '\0'; p++)
			assert_true(*p == '\n' || ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f));
	}
}

static void
other_languages_are_shown_where_the_terminal_can(void **state)
{
	struct table_row row = { .task = "gr\xc3\xb6\xc3\x9f" "er", .tool = "x" };

	(void)state;
	assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
	assert_non_null(strstr(print(&row, 1, 0), "\ngr\xc3\xb6\xc3\x9f" "er   x "));
	setlocale(LC_ALL, "C");
	assert_non_null(strstr(print(&row, 1, 0), "\ngr\\xc3\\xb6\\xc3\\x9f" "er   x "));
}

/* The longest line in columns; each byte is one here. */
static size_t
longest_line(const char *text)
{
	size_t longest = 0;

	while (*text != '\0') {
		size_t n = strcspn(text, "\n");

		if (n > longest)
			longest = n;
		text += n + (text[n] == '\n');
	}
	return longest;
}

static void
a_terminal_gets_names_that_fit(void **state)
{
	char task[200], tool[100];
	struct table_row rows[] = {
		{ .task = task, .tool = tool, .n = 1 }, { .task = "short", .tool = "bwa mem", .n = 1 },
	};

	(void)state;
	memset(task, 't', sizeof(task) - 1);
	task[sizeof(task) - 1] = '\0';
	memset(tool, 'o', sizeof(tool) - 1);
	tool[sizeof(tool) - 1] = '\0';
	for (unsigned width = 110; width <= 300; width += 19) {
		assert_int_equal(longest_line(print(rows, 2, width)), width);
		assert_non_null(strstr(output, "t~ "));
		assert_non_null(strstr(output, "short "));
		assert_non_null(strstr(output, "bwa mem "));
	}
	/* Nothing is cut for a pipe, nor where it fits. */
	assert_non_null(strstr(print(rows, 2, 0), task));
	assert_non_null(strstr(print(rows, 2, 1000), tool));
	/* Too narrow for anything: names stay readable, and the terminal wraps. */
	assert_non_null(strstr(print(rows, 2, 10), "ttttttt~  ooooooo~  "));
}

static void
no_rows_are_no_error(void **state)
{
	(void)state;
	assert_int_equal(longest_line(print(NULL, 0, 80)), 0);
}

static void
the_footer_tells_of_the_whole_run(void **state)
{
	struct usage u = some_usage();
	struct table_summary s = { .pipeline = "demo", .wall_ns = 38200 * MS, .exit_code = { 0, true },
		.cpu_cores = { 1.7, true }, .cpus = 2, .peak_memory_bytes = { 310 * MIB, true },
		.usage = &u, .programs = 1204 };

	(void)state;
	assert_string_equal(footer(&s), "run  demo  38.2s  exit 0   1.7 of 2 cpus   peak 310 MiB   "
	    "read 1.5 GiB   write 0   1,204 programs   0 lost\n");
	s = (struct table_summary){ .pipeline = "a\nb", .exit_signal = { 9, true }, .cpus = 1,
		.programs = 1, .failed = 1, .lost = 1000 };
	assert_string_equal(footer(&s), "run  a\\nb  0s  killed by SIGKILL   - of 1 cpu   peak -   "
	    "read -   write -   1 program (1 failed)   1,000 lost\n");
	s.exit_signal.value = 63;
	assert_non_null(strstr(footer(&s), "killed by signal 63"));
}

static void
a_table_is_safe(const struct hostile_name *h, void *arg)
{
	struct table_row row = { .task = h->name, .tool = h->name, .n = 1 };
	unsigned width = *(unsigned *)arg;
	size_t lines = 0;

	print(&row, 1, width);
	hostile_is_safe(h, output, true);
	for (const char *p = output; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 2);
	footer(&(struct table_summary){ .pipeline = h->name });
	hostile_is_safe(h, output, true);
	assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
}

static void
no_hostile_name_acts_on_the_terminal(void **state)
{
	static const char *const locales[] = { "C", "C.UTF-8" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_non_null(setlocale(LC_ALL, locales[i]));
		for (unsigned width = 0; width <= 160; width += 80)
			hostile_each(a_table_is_safe, &width);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_pipe_gets_aligned_columns, free_output),
		cmocka_unit_test_teardown(hostile_names_never_reach_the_terminal_raw, free_output),
		cmocka_unit_test_teardown(other_languages_are_shown_where_the_terminal_can, free_output),
		cmocka_unit_test_teardown(a_terminal_gets_names_that_fit, free_output),
		cmocka_unit_test_teardown(no_rows_are_no_error, free_output),
		cmocka_unit_test_teardown(the_footer_tells_of_the_whole_run, free_output),
		cmocka_unit_test_teardown(no_hostile_name_acts_on_the_terminal, free_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
