/* SPDX-License-Identifier: Apache-2.0 */
/* self_test: records that are as the tree was pass, and one that differs in anything that is compared does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/self_test.h"

enum {
	FIRST_PID = 1000,
	PROGRAMS_MAX = 32,
	RECORD_SIZE = 600,
};

/* What the tree prints, and the records of it, one of which a test may change. */
struct world {
	char told[PROGRAMS_MAX * 64];
	char records[PROGRAMS_MAX][RECORD_SIZE];
	char all[PROGRAMS_MAX * RECORD_SIZE];
	size_t ends;
	char fault[256];
};

/* The one that exec replaced has the pid of the next. */
static int
pid_of(unsigned i)
{
	return FIRST_PID + (int)i + self_test_programs[i].is_replaced;
}

static unsigned
index_of(const char *name)
{
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		if (strcmp(self_test_programs[i].name, name) == 0)
			return i;
	}
	fail();
	return 0;
}

/* A number, or null. */
static const char *
or_null(char *buf, bool is_known, long long value)
{
	if (!is_known)
		return "null";
	snprintf(buf, 24, "%lld", value);
	return buf;
}

static void
world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	assert_true(self_test_n_programs <= PROGRAMS_MAX);
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		const struct self_test_program *p = &self_test_programs[i];
		char code[24], signo[24], parent[32] = "null";
		long long cpu_ns = p->is_busy ? SELF_TEST_BUSY_NS + 1000000 : 500000;

		if (!p->is_replaced)
			snprintf(w->told + strlen(w->told), sizeof(w->told) - strlen(w->told), "%s %d %d %d %lld\n", p->name,
			    p->exit_code, p->exit_signal, pid_of(i), cpu_ns);
		if (p->parent != NULL)
			snprintf(parent, sizeof(parent), "\"id-%u\"", index_of(p->parent));
		snprintf(w->records[i], RECORD_SIZE, "{\"phase\":\"END\",\"pid\":%d,\"program_id\":\"id-%u\",\"parent_program_id\":%s,"
		    "\"forked\":%s,\"exe\":\"/sluice\",\"argv\":[\"sluice\",\"doctor\",\"--self-test-part\",\"%s\"],\"end_reason\":\"%s\","
		    "\"exit_code\":%s,\"exit_signal\":%s,\"usage\":{\"wchar\":%lld,\"rchar\":%lld,\"cpu_user_ns\":%lld,"
		    "\"cpu_system_ns\":0}}\n", pid_of(i), i, parent, p->is_forked ? "true" : "false", p->name,
		    p->is_replaced ? "EXEC" : "EXIT", or_null(code, !p->is_replaced && p->exit_signal == 0, p->exit_code),
		    or_null(signo, p->exit_signal != 0, p->exit_signal), p->wrote >= 0 ? p->wrote : 77,
		    p->read >= 0 ? p->read + 832 : 832, cpu_ns);
	}
}

static unsigned
judge(struct world *w, bool has_hosts_pids)
{
	w->all[0] = '\0';
	for (unsigned i = 0; i < self_test_n_programs; i++)
		strcat(w->all, w->records[i]);
	return self_test_judge(w->told, w->all, has_hosts_pids, &w->ends, w->fault, sizeof(w->fault));
}

/* Replaces the first occurrence of a text in the record of a program. */
static void
change(struct world *w, unsigned i, const char *from, const char *to)
{
	char *at = strstr(w->records[i], from), rest[RECORD_SIZE];

	assert_non_null(at);
	strcpy(rest, at + strlen(from));
	strcpy(at, to);
	strcat(w->records[i], rest);
}

static void
a_true_record_of_each_passes(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	if (judge(&w, true) != 0)
		fail_msg("%s", w.fault);
	assert_int_equal(w.ends, self_test_n_programs);
	/* STARTs say nothing. */
	strcat(w.records[0], "{\"phase\":\"START\",\"pid\":1}\n");
	assert_int_equal(judge(&w, true), 0);
	assert_int_equal(w.ends, self_test_n_programs);
}

static void
each_record_is_needed_once(void **state)
{
	struct world w;

	(void)state;
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		world_init(&w);
		w.records[i][0] = '\0';
		assert_true(judge(&w, true) > 0);
		world_init(&w);
		strcat(w.records[(i + 1) % self_test_n_programs], w.records[i]);
		if (judge(&w, true) == 0 || strstr(w.fault, "twice") == NULL)
			fail_msg("%s twice: %s", self_test_programs[i].name, w.fault);
	}
}

static void
what_was_not_run_is_not_to_be_recorded(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	strcat(w.records[3], "{\"phase\":\"END\",\"pid\":7,\"exe\":\"/bin/ls\",\"argv\":[\"ls\"],\"forked\":false}\n");
	assert_int_equal(judge(&w, true), 1);
	assert_string_equal(w.fault, "a program was recorded that was not run: pid 7, /bin/ls");
	world_init(&w);
	strcat(w.records[3], "no JSON\n");
	assert_int_equal(judge(&w, true), 1);
}

static void
pids_are_compared_where_they_are_the_hosts(void **state)
{
	struct world w;
	char from[32];

	(void)state;
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		world_init(&w);
		snprintf(from, sizeof(from), "\"pid\":%d", pid_of(i));
		change(&w, i, from, "\"pid\":99999");
		assert_int_equal(judge(&w, true), 1);
		assert_non_null(strstr(w.fault, "recorded is 99999"));
		assert_int_equal(judge(&w, false), 0);
	}
}

static void
ends_parents_and_bytes_are_compared(void **state)
{
	static const struct {
		const char *name, *from, *to;
	} changes[] = {
		{ "plain", "\"exit_code\":0", "\"exit_code\":1" }, { "seven", "\"exit_code\":7", "\"exit_code\":0" },
		{ "seven", "\"exit_code\":7", "\"exit_code\":null" }, { "killed", "\"exit_signal\":9", "\"exit_signal\":15" },
		{ "killed", "\"exit_signal\":9", "\"exit_signal\":null" }, { "killed", "\"exit_code\":null", "\"exit_code\":137" },
		{ "first", "\"EXEC\"", "\"EXIT\"" }, { "first", "\"exit_code\":null", "\"exit_code\":0" },
		{ "plain", "\"parent_program_id\":\"id-0\"", "\"parent_program_id\":null" },
		{ "plain", "\"parent_program_id\":\"id-0\"", "\"parent_program_id\":\"id-1\"" },
		{ "root", "\"parent_program_id\":null", "\"parent_program_id\":\"id-1\"" },
		{ "root", "\"program_id\":\"id-0\"", "\"program_id\":\"id-99\"" },
		{ "writer", "\"wchar\":1048576", "\"wchar\":1048575" }, { "writer", "\"wchar\":1048576", "\"wchar\":1048577" },
		{ "writer", "\"wchar\":1048576", "\"wchar\":null" }, { "reader", "\"rchar\":1049408", "\"rchar\":1048575" },
		{ "plain", "\"wchar\":0", "\"wchar\":1" }, { "busy", "\"cpu_user_ns\":31000000", "\"cpu_user_ns\":29999999" },
		{ "busy", "\"cpu_user_ns\":31000000", "\"cpu_user_ns\":36000001" }, { "forks", "\"forked\":false", "\"forked\":true" },
	};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		world_init(&w);
		change(&w, index_of(changes[i].name), changes[i].from, changes[i].to);
		if (judge(&w, true) == 0)
			fail_msg("%s: %s passes", changes[i].name, changes[i].to);
		assert_true(w.fault[0] != '\0');
	}
}

static void
a_tree_that_did_not_run_as_it_should_fails(void **state)
{
	struct world w;
	char *at;

	(void)state;
	world_init(&w);
	w.told[0] = '\0';
	assert_int_equal(judge(&w, true), self_test_n_programs);
	world_init(&w);
	strcat(w.told, "sluice run: an error\n");
	assert_true(judge(&w, true) > 0);
	world_init(&w);
	at = strstr(w.told, "seven 7");
	assert_non_null(at);
	at[6] = '8';
	assert_int_equal(judge(&w, true), 1);
	assert_string_equal(w.fault, "seven did not run, or did not end as it should");
}

static void
a_name_that_is_none_is_no_part(void **state)
{
	(void)state;
	assert_int_equal(self_test_part("other"), 2);
	assert_int_equal(self_test_part("plain"), 0);
	assert_int_equal(self_test_part("seven"), 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_true_record_of_each_passes),
		cmocka_unit_test(each_record_is_needed_once),
		cmocka_unit_test(what_was_not_run_is_not_to_be_recorded),
		cmocka_unit_test(pids_are_compared_where_they_are_the_hosts),
		cmocka_unit_test(ends_parents_and_bytes_are_compared),
		cmocka_unit_test(a_tree_that_did_not_run_as_it_should_fails),
		cmocka_unit_test(a_name_that_is_none_is_no_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
