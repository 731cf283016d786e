/*
 * SPDX-License-Identifier: Apache-2.0
 * self_test: whether this program, on this kernel, records a known tree of programs exactly.
 *
 * It is executed again as `sluice run` with own probes, then as `sluice cat`: what is compared has gone the way of
 * every record, from the kernel to a file and back. Rules of the host and a running agent have no part in it.
 */
#include "cli/self_test.h"

#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/namespaces.h"
#include "base/spell.h"
#include "cli/print_json.h"

enum {
	TIME_LIMIT_MS = 60000,		/* it takes half a second; an emulated machine is a hundred times slower */
	OUTPUT_MAX = 4 << 20,
	LINES_MAX = 64,
	NAME_SIZE = 16,
	CPU_ERROR_NS = 5000000,		/* between the kernel's figure at the end and that which the parent got */
};

/* What its parent reported about one program of the tree. */
struct told {
	char name[NAME_SIZE];
	int exit_code, exit_signal;
	int pid;
	long long cpu_ns;
};

struct test {
	char room[PATH_MAX];
	struct told told[LINES_MAX];
	size_t n_told;
	json_t *ends[LINES_MAX];	/* owned: the END records, by the tree's rows; NULL: missing */
	size_t n_ends;			/* all, also those of no row */
	bool has_hosts_pids;
	uint64_t lost;
	unsigned n_faults;
	char fault[256];		/* the first */
};

static volatile sig_atomic_t stop;

static void
on_signal(int signo)
{
	stop = signo;
}

static void __attribute__((format(printf, 2, 3)))
wrong(struct test *t, const char *format, ...)
{
	va_list args;

	if (t->n_faults++ > 0)
		return;
	va_start(args, format);
	vsnprintf(t->fault, sizeof(t->fault), format, args);
	va_end(args);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* Makes a folder that only root can enter, in memory where the system has one there. */
static int
make_room(struct test *t)
{
	static const char *const places[] = { "/run", "/tmp", "/var/tmp" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(t->room, sizeof(t->room), "%s/sluice-self-test-XXXXXX", places[i]);
		if (mkdtemp(t->room) != NULL)
			return 0;
	}
	t->room[0] = '\0';
	return -errno;
}

/* Runs this program with these arguments. Returns its exit status, or -1 with a fault. */
static int
run_self(struct test *t, char *const *argv, struct bytes *out)
{
	const struct child_options o = { .path = "/proc/self/exe", .argv = argv, .timeout_ms = TIME_LIMIT_MS,
		.output_max = OUTPUT_MAX, .ends_with_us = true, .stop = &stop };
	int status, r = child_run(&o, out, &status);

	if (r == -ETIMEDOUT)
		wrong(t, "`sluice %s` had not ended after %d s", argv[1], TIME_LIMIT_MS / 1000);
	else if (r < 0)
		wrong(t, "`sluice %s` cannot be run: %s", argv[1], strerror(-r));
	else if (WIFSIGNALED(status))
		wrong(t, "`sluice %s` was ended by signal %d", argv[1], WTERMSIG(status));
	else
		return WEXITSTATUS(status);
	return -1;
}

static void
read_told(struct test *t, const char *text)
{
	char *copy = strdup(text), *rest = NULL;

	for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		struct told *told = &t->told[t->n_told];

		if (t->n_told == LINES_MAX || sscanf(line, "%15s %d %d %d %lld", told->name, &told->exit_code,
		    &told->exit_signal, &told->pid, &told->cpu_ns) != 5) {
			wrong(t, "the tree printed what it does not print");
			break;
		}
		t->n_told++;
	}
	free(copy);
}

/* Returns what its parent reported about a program; of one that exec replaced, about what it became. NULL: nothing. */
static const struct told *
told_of(const struct test *t, const struct self_test_program *p)
{
	if (p->is_replaced)
		p++;
	for (size_t i = 0; i < t->n_told; i++) {
		const struct told *told = &t->told[i];

		if (strcmp(told->name, p->name) == 0 && told->exit_code == p->exit_code &&
		    told->exit_signal == p->exit_signal)
			return told;
	}
	return NULL;
}

static long long
number(const json_t *record, const char *name)
{
	const json_t *value = json_object_get(record, name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const char *
text(const json_t *record, const char *name)
{
	const char *value = json_string_value(json_object_get(record, name));

	return value != NULL ? value : "";
}

/* Returns whether an END record is of this program, as far as what it is and how it ended shows that. */
static bool
is_of(const json_t *record, const struct self_test_program *p)
{
	const char *name = json_string_value(json_array_get(json_object_get(record, "argv"), 3));

	if (name == NULL || strcmp(name, p->name) != 0 || json_is_true(json_object_get(record, "forked")) != p->is_forked)
		return false;
	if (p->is_replaced)
		return strcmp(text(record, "end_reason"), "EXEC") == 0;
	return !p->is_forked || number(record, "exit_code") == p->exit_code;
}

static void
take_record(struct test *t, json_t *record)
{
	if (strcmp(text(record, "phase"), "END") != 0) {
		json_decref(record);
		return;
	}
	t->n_ends++;
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		if (!is_of(record, &self_test_programs[i]))
			continue;
		if (t->ends[i] == NULL) {
			t->ends[i] = record;
			return;
		}
		wrong(t, "%s was recorded twice", self_test_programs[i].name);
		json_decref(record);
		return;
	}
	wrong(t, "a program was recorded that was not run: pid %lld, %s", number(record, "pid"), text(record, "exe"));
	json_decref(record);
}

static void
read_records(struct test *t, const char *at)
{
	json_error_t error;

	while (*at != '\0') {
		size_t len = strcspn(at, "\n");
		json_t *record = json_loadb(at, len, 0, &error);

		if (record != NULL)
			take_record(t, record);
		else
			wrong(t, "`sluice cat` printed what is no JSON");
		at += len + (at[len] == '\n');
	}
}

static void
compare_end(struct test *t, const struct self_test_program *p, const json_t *record)
{
	const long long exit_code = p->is_replaced || p->exit_signal != 0 ? -1 : p->exit_code;
	const long long exit_signal = p->exit_signal != 0 ? p->exit_signal : -1;

	if (number(record, "exit_code") != exit_code)
		wrong(t, "%s ended with %lld, recorded is %lld", p->name, exit_code, number(record, "exit_code"));
	if (number(record, "exit_signal") != exit_signal)
		wrong(t, "%s was ended by signal %lld, recorded is %lld", p->name, exit_signal, number(record, "exit_signal"));
}

static void
compare_parent(struct test *t, const struct self_test_program *p, const json_t *record)
{
	const char *recorded = text(record, "parent_program_id"), *want = "";

	for (unsigned i = 0; i < self_test_n_programs && p->parent != NULL; i++) {
		const struct self_test_program *q = &self_test_programs[i];

		if (!q->is_forked && strcmp(q->name, p->parent) == 0 && t->ends[i] != NULL)
			want = text(t->ends[i], "program_id");
	}
	if (strcmp(recorded, want) != 0 || (p->parent != NULL && want[0] == '\0'))
		wrong(t, "the parent of %s is %s, recorded is another", p->name, p->parent != NULL ? p->parent : "outside the tree");
}

static void
compare_usage(struct test *t, const struct self_test_program *p, const json_t *record, const struct told *told)
{
	const json_t *usage = json_object_get(record, "usage");
	long long wrote = number(usage, "wchar"), read = number(usage, "rchar");
	long long cpu_ns = number(usage, "cpu_user_ns") + number(usage, "cpu_system_ns");

	if (p->wrote >= 0 && wrote != p->wrote)
		wrong(t, "%s wrote %lld bytes, recorded are %lld", p->name, p->wrote, wrote);
	if (p->read >= 0 && read < p->read)
		wrong(t, "%s read %lld bytes or more, recorded are %lld", p->name, p->read, read);
	if (p->is_busy && (cpu_ns < SELF_TEST_BUSY_NS || llabs(cpu_ns - told->cpu_ns) > CPU_ERROR_NS))
		wrong(t, "%s used %lld us of CPU time, recorded are %lld", p->name, told->cpu_ns / 1000, cpu_ns / 1000);
}

static void
compare(struct test *t)
{
	for (unsigned i = 0; i < self_test_n_programs; i++) {
		const struct self_test_program *p = &self_test_programs[i];
		const struct told *told = told_of(t, p);
		const json_t *record = t->ends[i];

		if (told == NULL) {
			wrong(t, "%s did not run, or did not end as it should", p->name);
		} else if (record == NULL) {
			wrong(t, "%s was not recorded", p->name);
		} else {
			/* In a PID namespace of its own the tree has other numbers than the host. */
			if (t->has_hosts_pids && number(record, "pid") != told->pid)
				wrong(t, "%s had pid %d, recorded is %lld", p->name, told->pid, number(record, "pid"));
			compare_end(t, p, record);
			compare_parent(t, p, record);
			compare_usage(t, p, record, told);
		}
	}
}

/* Compares what the tree printed with its records. */
static void
judge(struct test *t, const char *told, const char *records)
{
	read_told(t, told);
	read_records(t, records);
	compare(t);
	for (unsigned i = 0; i < self_test_n_programs; i++)
		json_decref(t->ends[i]);
}

unsigned
self_test_judge(const char *told, const char *records, bool has_hosts_pids, size_t *ret_ends, char *fault,
    size_t fault_size)
{
	struct test t = { .has_hosts_pids = has_hosts_pids };

	judge(&t, told, records);
	*ret_ends = t.n_ends;
	snprintf(fault, fault_size, "%s", t.fault);
	return t.n_faults;
}

/* Reads how many events `sluice run` itself knows to be lost. */
static void
read_summary(struct test *t, const char *path)
{
	json_error_t error;
	json_t *summary = json_load_file(path, 0, &error);
	long long lost = number(summary, "lost");

	t->lost = lost > 0 ? (uint64_t)lost : 0;
	if (lost < 0)
		wrong(t, "`sluice run` wrote no summary");
	else if (lost > 0)
		wrong(t, "%lld events were lost", lost);
	json_decref(summary);
}

static void
run_tree(struct test *t)
{
	char lake[PATH_MAX + 8], rules[PATH_MAX + 8], json[PATH_MAX + 8], part[] = "--" SELF_TEST_PART, root[] = "root";
	char *run[] = { (char *)"sluice", (char *)"run", (char *)"--own-probes", (char *)"--as-root", (char *)"--quiet",
		(char *)"--rules", rules, (char *)"--lake", lake, (char *)"--json", json, (char *)"--",
		(char *)"/proc/self/exe", (char *)"doctor", part, root, NULL };
	char *cat[] = { (char *)"sluice", (char *)"cat", (char *)"--raw", (char *)"--topic", (char *)"program", lake, NULL };
	struct bytes told = { 0 }, records = { 0 };
	int status;

	snprintf(lake, sizeof(lake), "%s/lake", t->room);
	snprintf(rules, sizeof(rules), "%s/rules", t->room);
	snprintf(json, sizeof(json), "%s/json", t->room);
	if (mkdir(rules, 0700) < 0) {
		wrong(t, "no folder can be made in %s: %s", t->room, strerror(errno));
		return;
	}
	status = run_self(t, run, &told);
	if (status > 0)
		wrong(t, "`sluice run` of the tree ended with %d, and said why", status);
	if (status == 0) {
		read_summary(t, json);
		status = run_self(t, cat, &records);
		if (status > 0)
			wrong(t, "`sluice cat` could not read what was recorded, and said why");
	}
	if (status == 0)
		judge(t, (const char *)told.data, (const char *)records.data);
	bytes_done(&told);
	bytes_done(&records);
}

static int
print_verdict(const struct test *t, bool as_json, uint64_t wall_ns)
{
	char wall[32];
	json_t *root;

	snprintf(wall, sizeof(wall), "%.1f s", (double)wall_ns / 1e9);
	if (as_json) {
		root = json_pack("{ss ss sb sI sI sI sI ss}", "version", SLUICE_VERSION, "self_test",
		    t->n_faults == 0 ? "passed" : "failed", "passed", t->n_faults == 0, "programs",
		    (json_int_t)self_test_n_programs, "recorded", (json_int_t)t->n_ends, "lost", (json_int_t)t->lost,
		    "wall_ns", (json_int_t)wall_ns, "fault", t->fault);
		print_json(stdout, root);
		json_decref(root);
	} else if (t->n_faults == 0) {
		printf("self-test passed: %u of %u programs recorded exactly, 0 lost, %s\n", (unsigned)t->n_ends,
		    self_test_n_programs, wall);
	} else if (t->n_faults == 1) {
		spell_line(stdout, "self-test failed: %s (%s)\n", t->fault, wall);
	} else {
		spell_line(stdout, "self-test failed: %s, and %u more faults (%s)\n", t->fault, t->n_faults - 1, wall);
	}
	return t->n_faults == 0 ? EXIT_DONE : EXIT_NO;
}

int
self_test(bool as_json)
{
	const struct sigaction action = { .sa_handler = on_signal };
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct test t = { .has_hosts_pids = namespace_is_hosts(NAMESPACE_PID) };
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int status;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	if (make_room(&t) < 0)
		wrong(&t, "no folder can be made in /run, /tmp or /var/tmp: %s", strerror(errno));
	else
		run_tree(&t);
	if (t.room[0] != '\0' && nftw(t.room, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		wrong(&t, "%s cannot be removed: %s", t.room, strerror(errno));
	status = print_verdict(&t, as_json, clock_ns(CLOCK_MONOTONIC) - begin);
	if (stop != 0) {
		fflush(stdout);
		signal(stop, SIG_DFL);
		raise(stop);
	}
	return status;
}
