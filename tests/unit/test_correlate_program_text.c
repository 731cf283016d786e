/* SPDX-License-Identifier: Apache-2.0 */
/* program_text: any bytes in, redacted UTF-8 out, and bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "correlate/text_budget.h"
#include "one_world.h"

#define MANY 2500
#define HOSTILE 16384

static const struct kept_record *
run(const char *exe, const char *cwd, const char *const *argv, size_t argc, bool is_cut)
{
	struct being b = forks(&w, NULL);
	size_t lengths[16];
	struct exec_event s = { .time_ns = w.now, .self = b.key, .exe = exe, .cwd = cwd, .argv = argv,
		.argv_len = lengths, .argc = argc, .argv_truncated = is_cut, .comm = "c\xffmm" };

	for (size_t i = 0; i < argc; i++)
		lengths[i] = strlen(argv[i]);
	correlator_exec(w.c, &s);
	return record_of(&w, &b, 0, PHASE_START);
}

static void
bytes_of_any_kind_are_escaped_reversibly(void **state)
{
	static const char *const argv[] = { "pr\xc3\xb6g", "a\xffz", "new\nline", "\\xff", "\"q'", "" };
	const struct kept_record *n = run("/opt/\xfe/x", "/w\xff", argv, 6, false);
	char back[64];

	(void)state;
	assert_string_equal(n->exe, "/opt/\\xfe/x");
	assert_string_equal(n->cwd, "/w\\xff");
	assert_string_equal(n->comm, "c\\xffmm");
	assert_int_equal(n->program.argc, 6);
	assert_string_equal(n->argv[0], "pr\xc3\xb6g");
	assert_string_equal(n->argv[1], "a\\xffz");
	assert_string_equal(n->argv[2], "new\nline");
	assert_string_equal(n->argv[4], "\"q'");
	assert_string_equal(n->argv[5], "");
	for (size_t i = 0; i < 6; i++) {
		size_t len = text_unescape(n->argv[i], strlen(n->argv[i]), back);

		assert_int_equal(len, strlen(argv[i]));
		assert_memory_equal(back, argv[i], len);
	}
	assert_false(n->program.argv_truncated);
}

static void
secrets_leave_neither_as_arguments_nor_as_names(void **state)
{
	static const char *const argv[] = { "bash", "-c", "mysql --password=hunter2 -e x | samtools sort" };
	static const char *const plain[] = { "curl", "-u", "user:hunter2", "https://user:hunter2@host/" };
	const struct kept_record *n = run("/bin/bash", "/", argv, 3, false);

	(void)state;
	assert_null(strstr(n->argv[2], "hunter2"));
	assert_non_null(strstr(n->argv[2], "samtools sort"));
	n = run("/usr/bin/curl", "/", plain, 4, false);
	for (int i = 0; i < 4; i++)
		assert_null(strstr(n->argv[i], "hunter2"));
	for (size_t i = 0; i < w.n; i++)
		assert_true(w.records[i].task == NULL || strstr(w.records[i].task, "hunter2") == NULL);
}

static void
what_is_unknown_is_null(void **state)
{
	const struct kept_record *n = run(NULL, NULL, NULL, 0, false);
	static const char *const none[] = { NULL };

	(void)state;
	assert_null(n->exe);
	assert_null(n->cwd);
	assert_null(n->argv);
	n = run("/memfd:x (deleted)", "/", none, 0, false);
	assert_non_null(n->argv);	/* argc 0 is known */
	assert_int_equal(n->program.argc, 0);
	assert_string_equal(n->tool, "x");
	n = run("/bin/x", "/", (const char *const[]){ "x", "cu" }, 2, true);
	assert_true(n->program.argv_truncated);
}

static size_t
in_use(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* MANY programs live at once, each with 32 KiB of arguments: 80 MiB that cannot all be kept. */
static void
memory_is_bounded_and_records_still_come(void **state)
{
	static char big[32000];
	static struct being some[MANY];
	size_t cut = 0, whole = 0, before;

	(void)state;
	memset(big, 'n', sizeof(big) - 1);
	before = in_use();
	for (size_t i = 0; i < MANY; i++) {
		const char *argv[] = { "bwa", "mem", big };
		size_t lengths[] = { 3, 3, sizeof(big) - 1 };
		struct exec_event s = { .time_ns = w.now, .exe = "/usr/bin/bwa", .cwd = "/w",
			.argv = argv, .argv_len = lengths, .argc = 3, .comm = "bwa" };
		const struct kept_record *n;

		some[i] = forks(&w, i > 0 ? &some[0] : NULL);
		some[i].execed = true;
		s.self = some[i].key;
		s.parent = some[i].parent;
		s.anchor = some[i].anchor;
		correlator_exec(w.c, &s);
		n = record_of(&w, &some[i], 0, PHASE_START);
		assert_non_null(n);
		assert_string_equal(n->exe, "/usr/bin/bwa");
		assert_string_equal(n->tool, "bwa mem");	/* it is named all the same */
		if (n->argv == NULL) {
			assert_true(n->program.argv_truncated);
			cut++;
		} else {
			assert_false(n->program.argv_truncated);
			assert_int_equal(strlen(n->argv[2]), sizeof(big) - 1);
			whole++;
		}
		records_forget(&w);
	}
	assert_in_range(whole, 375, 400);	/* 12 MiB: one user gets half of 24 */
	assert_int_equal(cut, MANY - whole);
	assert_int_equal(totals(&w).texts_cut, cut);
	if (before > 0)		/* 0: a sanitizer's allocator, which does not report it */
		assert_in_range(in_use() - before, 0, UINT64_C(24) << 20);
	/* and what ends gives its room back */
	for (size_t i = 0; i < MANY; i++)
		exits(&w, &some[i], 0);
	snapshot(&w, false, NULL, 0);
	w.now += 10 * SECOND;
	snapshot(&w, false, NULL, 0);
	assert_non_null(run("/bin/x", "/", (const char *const[]){ "x", big }, 2, false)->argv);
	assert_int_equal(totals(&w).programs, MANY + 1);
	assert_int_equal(totals(&w).live, 1);
}

/*
 * As many programs as are followed at once, each a task in a folder of its own whose name, and that of what it runs, is
 * as long as a path can be and no UTF-8. Each takes 48 KiB of text, 768 MiB in all.
 */
static void
names_that_grow_are_within_the_budget(void **state)
{
	static char path[4096];
	static struct being some[HOSTILE];
	struct being after;
	size_t cut = 0, before;
	const char *argv[] = { "x" };
	size_t lengths[] = { 1 };
	struct exec_event s = { .time_ns = w.now, .exe = path, .cwd = path, .argv = argv, .argv_len = lengths,
		.argc = 1, .comm = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" };

	(void)state;
	memset(path, '\xff', sizeof(path) - 1);
	path[0] = '/';
	before = in_use();
	for (size_t i = 0; i < HOSTILE; i++) {
		const struct kept_record *n;

		snprintf(path + 1, 8, "%06zu", i);
		path[7] = '/';
		some[i] = forks(&w, i > 0 ? &some[0] : NULL);
		some[i].execed = true;
		s.self = some[i].key;
		s.parent = some[i].parent;
		s.anchor = some[i].anchor;
		correlator_exec(w.c, &s);
		n = record_of(&w, &some[i], 0, PHASE_START);
		assert_non_null(n);
		assert_int_equal(strlen(n->comm), 15 * strlen("\\xff"));
		if (n->exe != NULL && n->cwd != NULL)
			assert_int_equal(strlen(n->cwd), 4 * (sizeof(path) - 1 - 8) + 8);
		cut += n->exe == NULL || n->cwd == NULL || n->argv == NULL;
		records_forget(&w);
	}
	assert_in_range(HOSTILE - cut, 250, 350);	/* 12 to 16 MiB: one user gets half */
	assert_in_range(totals(&w).texts_cut, cut, 2 * cut);	/* its task's, too */
	/* What is not text, and texts of bounded length, take less than 4 KiB a program that is a task of its own. */
	if (before > 0)
		assert_in_range(in_use() - before, 0, TEXT_BUDGET_BYTES + HOSTILE * UINT64_C(4096));
	/* Another user's program is not refused. */
	after = forks(&w, NULL);
	s = (struct exec_event){ .time_ns = w.now, .self = after.key, .exe = "/bin/x", .cwd = "/w", .comm = "x" };
	correlator_exec(w.c, &s);
	assert_non_null(record_of(&w, &after, 0, PHASE_START)->comm);
}

static void
children_share_their_parents_text(void **state)
{
	struct being sh = forks(&w, NULL);
	static struct being some[MANY];
	const struct kept_record *n;

	(void)state;
	execs(&w, &sh, "bash -c x");
	for (size_t i = 0; i < MANY; i++)
		some[i] = forks(&w, &sh);
	w.now += 2 * SECOND;
	for (size_t i = 0; i < MANY; i++)
		tells(&w, &some[i], STATE_LIVE, 0);
	exits(&w, &sh, 0);
	w.now += 10 * SECOND;
	for (int pass = 0; pass < 2; pass++) {
		correlator_snapshot_begin(w.c, false);
		for (size_t i = 0; i < MANY; i++)
			tells(&w, &some[i], STATE_LIVE, 0);
		correlator_snapshot_end(w.c, w.now);
	}
	records_forget(&w);
	for (size_t i = 0; i < MANY; i++)	/* the parent is long gone, its words are not */
		exits(&w, &some[i], 0);
	n = record_at(&w, TOPIC_PROGRAM, PHASE_END, MANY - 1);
	assert_non_null(n);
	assert_string_equal(n->argv[1], "-c");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(bytes_of_any_kind_are_escaped_reversibly),
		T(secrets_leave_neither_as_arguments_nor_as_names),
		T(what_is_unknown_is_null),
		T(memory_is_bounded_and_records_still_come),
		T(names_that_grow_are_within_the_budget),
		T(children_share_their_parents_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
