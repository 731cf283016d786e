/* SPDX-License-Identifier: Apache-2.0 */
/* containers: queried once, named for all programs in one, and removed with the last of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "correlate/containers.h"
#include "correlate/location.h"
#include "correlate/state.h"
#include "events.h"

#define A "a3b1f2c4d5e6f708192a3b4c5d6e7f80a1b2c3d4e5f60718293a4b5c6d7e8f90"
#define POD "6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e"
#define POD_PATH "/kubepods/burstable/pod" POD
#define B "b3b1f2c4d5e6f708192a3b4c5d6e7f80a1b2c3d4e5f60718293a4b5c6d7e8f90"

enum {
	GROUP_A = 7000,
	GROUP_A_BELOW,		/* of the same container */
	GROUP_B,
	GROUP_NONE,
	GROUP_POD,		/* of no container */
	GROUP_IN_POD,		/* a container of that pod */
	GROUP_PAUSE,		/* another, which the kubelet does not list */
	GONE_FOR_S = 4,		/* for less long what has ended is kept for its children */
};

struct reported {
	uint32_t pid;
	enum record_phase phase;
	char name[64], image[64];	/* "" null */
	char pod[64];			/* "NAMESPACE/POD/CONTAINER" of Kubernetes, each "" null */
};

static struct world w;
static struct ruleset *rules;
static struct reported reported[4096];
static size_t n_reported;
static char asked[1024][96];
static size_t n_asked;
static bool is_known;		/* the resolver answers at once */
static struct bytes entries;	/* a length, an entry ... */

static void
on_program(const struct program_record *r, void *arg)
{
	struct reported *t = &reported[n_reported++];

	(void)arg;
	assert_true(n_reported < sizeof(reported) / sizeof(reported[0]));
	*t = (struct reported){ .pid = r->id.pid, .phase = r->phase };
	snprintf(t->pod, sizeof(t->pod), "%s/%s/%s", r->k8s_namespace != NULL ? r->k8s_namespace : "",
	    r->k8s_pod_name != NULL ? r->k8s_pod_name : "", r->k8s_container_name != NULL ? r->k8s_container_name : "");
	if (r->container_name != NULL)
		snprintf(t->name, sizeof(t->name), "%s", r->container_name);
	if (r->container_image != NULL)
		snprintf(t->image, sizeof(t->image), "%s", r->container_image);
}

static void
on_usage(const struct usage_record *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void
on_work(const struct work_record *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	(void)arg;
	assert_int_equal(bytes_append(&entries, &len, sizeof(len)), 0);
	assert_int_equal(bytes_append(&entries, data, len), 0);
}

static void
on_container(const char *runtime, const char *id, void *arg)
{
	(void)arg;
	assert_true(n_asked < sizeof(asked) / sizeof(asked[0]));
	snprintf(asked[n_asked++], sizeof(asked[0]), "%s %s", runtime != NULL ? runtime : "-", id);
	if (is_known)
		correlator_name_container(w.c, id, "at-once", "known:1");
}

/* In the list of those asked for they are "pod UID ID". */
static void
on_pod(const char *uid, const char *id, void *arg)
{
	(void)arg;
	assert_true(n_asked < sizeof(asked) / sizeof(asked[0]));
	snprintf(asked[n_asked++], sizeof(asked[0]), "pod %.8s %.8s", uid, id);
	if (is_known)
		correlator_name_pod(w.c, uid, id, &(struct pod_answer){ "p", "ns", "c", "known:1" });
}

static void
begins(void)
{
	static const struct correlator_ops ops = { .program = on_program, .usage = on_usage, .task = on_work,
		.run = on_work, .wal = on_wal_entry, .container = on_container, .pod = on_pod };
	struct correlator_options options = { .boot_id = BOOT_ID, .rules = rules };

	assert_int_equal(correlator_new(&options, &ops, &w, &w.c), 0);
	correlator_set_clock(w.c, CLOCK_US * 1000);
}

static void
learns(uint64_t id, const char *path)
{
	correlator_cgroup(w.c, &(struct cgroup_event){ .id = id, .is_v2 = true, .path = path });
}

static void
host_with_rules(const char *text)
{
	const struct rules_extra extra = { "test.yaml", text, strlen(text) };
	const struct rules_options o = { .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };

	memset(&w, 0, sizeof(w));
	w.now = 1000 * SECOND;
	w.next_pid = 100;
	n_reported = n_asked = 0;
	is_known = false;
	if (rules_load(&o, &rules, &errors) < 0) {
		config_errors_print(&errors, stderr);
		fail();
	}
	begins();
	correlator_run_start(w.c, w.now);
	learns(GROUP_A, "/docker/" A);
	learns(GROUP_A_BELOW, "/docker/" A "/deep");
	learns(GROUP_B, "/machine.slice/libpod-" B ".scope");
	learns(GROUP_NONE, "/user.slice");
	learns(GROUP_POD, POD_PATH);
	learns(GROUP_IN_POD, POD_PATH "/" A);
	learns(GROUP_PAUSE, POD_PATH "/" B);
}

static int
setup(void **state)
{
	(void)state;
	host_with_rules("");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	correlator_free(w.c);
	ruleset_unref(rules);
	bytes_done(&entries);
	entries = (struct bytes){ 0 };
	return 0;
}

static struct being
runs(const struct being *parent, uint64_t cgroup, const char *command)
{
	struct being b = forks(&w, parent);

	w.now += MS;
	b.context.cgroup_v2 = cgroup;
	execs(&w, &b, command);
	return b;
}

/* Checks the value in the last record of this kind; "": null. */
static void
says(const struct being *b, enum record_phase phase, const char *name, const char *image)
{
	for (size_t i = n_reported; i > 0; i--) {
		const struct reported *t = &reported[i - 1];

		if (t->pid != b->key.pid || t->phase != phase)
			continue;
		assert_string_equal(t->name, name);
		assert_string_equal(t->image, image);
		return;
	}
	fail_msg("no record of the pid %u", b->key.pid);
}

static size_t
records_of(const struct being *b)
{
	size_t n = 0;

	for (size_t i = 0; i < n_reported; i++)
		n += reported[i].pid == b->key.pid;
	return n;
}

static void
all_that_run_in_it_learn_it(void **state)
{
	struct being first = runs(NULL, GROUP_A, "sh"), below, other, none, late;

	(void)state;
	below = runs(&first, GROUP_A_BELOW, "sort");
	other = runs(NULL, GROUP_B, "sh");
	none = runs(NULL, GROUP_NONE, "sh");
	assert_int_equal(n_asked, 2);
	assert_string_equal(asked[0], "docker " A);
	assert_string_equal(asked[1], "podman " B);
	says(&first, PHASE_START, "", "");
	correlator_name_container(w.c, A, "mapper", "tools:1");
	late = runs(&first, GROUP_A, "cat");
	says(&late, PHASE_START, "mapper", "tools:1");
	exits(&w, &late, 0);
	exits(&w, &below, 0);
	exits(&w, &first, 0);
	exits(&w, &other, 0);
	exits(&w, &none, 0);
	says(&late, PHASE_END, "mapper", "tools:1");
	says(&below, PHASE_END, "mapper", "tools:1");
	says(&first, PHASE_END, "mapper", "tools:1");
	says(&other, PHASE_END, "", "");
	says(&none, PHASE_END, "", "");
	assert_int_equal(n_asked, 2);
}

static void
an_answer_that_is_there_is_in_the_first_record(void **state)
{
	struct being b;

	(void)state;
	is_known = true;
	b = runs(NULL, GROUP_A, "sh");
	says(&b, PHASE_START, "at-once", "known:1");
}

static void
half_an_answer_is_taken_and_a_later_one_goes_before_it(void **state)
{
	struct being b = runs(NULL, GROUP_A, "sh");

	(void)state;
	correlator_name_container(w.c, A, NULL, "sha256:1");
	execs(&w, &b, "bash");
	says(&b, PHASE_START, "", "sha256:1");
	correlator_name_container(w.c, A, "renamed", NULL);
	correlator_name_container(w.c, "unheard-of", "x", "y");
	execs(&w, &b, "dash");
	says(&b, PHASE_START, "renamed", "sha256:1");
}

static void
the_runtime_goes_before_arguments(void **state)
{
	struct being conmon = runs(NULL, GROUP_NONE, "conmon -c " B " -n by-argument"), inside;

	(void)state;
	says(&conmon, PHASE_START, "", "");	/* it is in none */
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0], "podman " B);	/* before anything runs there */
	inside = runs(&conmon, GROUP_B, "sh");
	says(&inside, PHASE_START, "by-argument", "");
	correlator_name_container(w.c, B, "by-socket", "tools:2");
	exits(&w, &inside, 0);
	says(&inside, PHASE_END, "by-socket", "tools:2");
	exits(&w, &conmon, 0);
	says(&conmon, PHASE_END, "", "");
	assert_int_equal(n_asked, 1);
}

static void
rules_ask_for_the_image(void **state)
{
	struct being first, second, child, grandchild, other;

	(void)state;
	teardown(state);
	host_with_rules("exclude:\n"
	    "  - {name: noise, trust: any, exe: grep, image: 'noise:*'}\n"
	    "  - {name: below noise, trust: any, exe: cut, parent: {image: 'noise:*'}}\n"
	    "  - {name: elsewhere, trust: any, exe: tr, not: {image: 'noise:*'}}\n");
	first = runs(NULL, GROUP_A, "grep x");
	assert_int_equal(records_of(&first), 1);	/* no answer yet */
	correlator_name_container(w.c, A, "n", "noise:7");
	second = runs(NULL, GROUP_A, "grep x");
	assert_int_equal(records_of(&second), 0);
	child = runs(&first, GROUP_A, "tr a b");
	assert_int_equal(records_of(&child), 1);
	grandchild = runs(&child, GROUP_A, "cut -f1");
	assert_int_equal(records_of(&grandchild), 0);
	execs(&w, &child, "cut -f1");		/* what it replaces was there too */
	assert_int_equal(records_of(&child), 2);	/* an END and no START */
	other = runs(NULL, GROUP_B, "grep x");
	assert_int_equal(records_of(&other), 1);
	correlator_name_container(w.c, B, "o", "work:1");
	other = runs(NULL, GROUP_B, "tr a b");
	assert_int_equal(records_of(&other), 0);
}

/* Of a starter nothing but argv tells; what replaces a program is there too. */
static void
images_by_arguments_are_asked_for_too(void **state)
{
	const char *argv[] = { "Apptainer runtime parent: /images/a.sif" };
	size_t argv_len[] = { strlen(argv[0]) };
	struct exec_event s = { .exe = "/usr/libexec/apptainer/bin/starter", .comm = "starter", .cwd = "/w",
		.argv = argv, .argv_len = argv_len, .argc = 1 };
	struct being starter, inside;

	(void)state;
	teardown(state);
	host_with_rules("exclude:\n"
	    "  - {name: mine, trust: any, exe: grep, image: /images/*.sif}\n"
	    "  - {name: replaced, trust: any, exe: cut, parent: {image: /images/*.sif}}\n");
	starter = forks(&w, NULL);
	starter.context.cgroup_v2 = GROUP_NONE;
	starter.execed = true;
	s.time_ns = w.now;
	s.self = starter.key;
	s.context = starter.context;
	correlator_exec(w.c, &s);
	says(&starter, PHASE_START, "", "");
	inside = runs(&starter, GROUP_NONE, "sh");
	says(&inside, PHASE_START, "", "/images/a.sif");
	assert_int_equal(records_of(&inside), 1);
	execs(&w, &inside, "cut -f1");
	assert_int_equal(records_of(&inside), 2);	/* the shell's END */
	execs(&w, &inside, "grep x");
	assert_int_equal(records_of(&inside), 2);
	execs(&w, &inside, "sort");
	says(&inside, PHASE_START, "", "/images/a.sif");
	assert_int_equal(n_asked, 0);
}

static void
a_container_is_forgotten_with_its_last_programs(void **state)
{
	struct being b = runs(NULL, GROUP_A, "sh");
	char path[96];

	(void)state;
	correlator_name_container(w.c, A, "mapper", "tools:1");
	exits(&w, &b, 0);
	for (uint64_t i = 0; i < 900; i++) {
		snprintf(path, sizeof(path), "/docker/%064llx", (unsigned long long)i);
		learns(10000 + i, path);
		b = runs(NULL, 10000 + i, "sh");
		exits(&w, &b, 0);
		w.now += SECOND;
		snapshot(&w, false, NULL, 0);
		assert_true(HASH_COUNT(w.c->containers) <= LOCATIONS_KEPT_MAX + GONE_FOR_S);
	}
	assert_int_equal(n_asked, 901);
	b = runs(NULL, GROUP_A, "sh");		/* who is asked may know it still */
	assert_int_equal(n_asked, 902);
	says(&b, PHASE_START, "", "");
}

static void
new_rules_ask_nobody_again(void **state)
{
	struct being b = runs(NULL, GROUP_A, "sh");

	(void)state;
	correlator_name_container(w.c, A, "mapper", "tools:1");
	rules->generation++;
	execs(&w, &b, "bash");
	says(&b, PHASE_START, "mapper", "tools:1");
	assert_int_equal(n_asked, 1);
}

static void
after_a_replay_those_without_a_name_are_asked_for(void **state)
{
	struct being a = runs(NULL, GROUP_A, "sh"), b = runs(NULL, GROUP_B, "sh");
	size_t len;

	(void)state;
	correlator_name_container(w.c, A, "mapper", "tools:1");
	correlator_free(w.c);
	n_asked = 0;
	begins();
	for (size_t at = 0; at < entries.len; at += len) {
		memcpy(&len, entries.data + at, sizeof(len));
		at += sizeof(len);
		assert_int_equal(correlator_replay(w.c, entries.data + at, len), 0);
	}
	correlator_replay_done(w.c, NULL);
	assert_int_equal(n_asked, 0);
	correlator_name_container(w.c, B, "other", "tools:2");
	correlator_ask_containers(w.c);
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0], "docker " A);
	is_known = true;
	correlator_ask_containers(w.c);
	correlator_ask_containers(w.c);
	assert_int_equal(n_asked, 2);
	exits(&w, &a, 0);
	exits(&w, &b, 0);
	says(&a, PHASE_END, "at-once", "known:1");
	says(&b, PHASE_END, "other", "tools:2");
}

static void
says_pod(const struct being *b, enum record_phase phase, const char *pod)
{
	for (size_t i = n_reported; i-- > 0;) {
		if (reported[i].pid == b->key.pid && reported[i].phase == phase) {
			assert_string_equal(reported[i].pod, pod);
			return;
		}
	}
	fail();
}

static void
pods_have_names_from_the_kubelet(void **state)
{
	struct being inside = runs(NULL, GROUP_IN_POD, "sh"), pause = runs(NULL, GROUP_PAUSE, "pause");
	struct being around = runs(NULL, GROUP_POD, "sh"), none = runs(NULL, GROUP_NONE, "sh"), late;
	const struct pod_answer whole = { "align-0", "genomics", "bwa", "bwa:1" }, other = { "align-0", "genomics", NULL, NULL };

	(void)state;
	assert_int_equal(n_asked, 4);			/* each of the containers also from its runtime */
	assert_string_equal(asked[0], "pod 6a4ce4a0 a3b1f2c4");
	assert_string_equal(asked[2], "pod 6a4ce4a0 b3b1f2c4");
	says_pod(&inside, PHASE_START, "//");
	correlator_name_pod(w.c, POD, B, &other);
	correlator_name_pod(w.c, POD, A, &whole);
	correlator_name_pod(w.c, POD, "unheard-of", &whole);
	correlator_name_pod(w.c, "unheard-of", A, &(struct pod_answer){ "x", "x", "x", "x" });
	late = runs(NULL, GROUP_IN_POD, "cat");
	says_pod(&late, PHASE_START, "genomics/align-0/bwa");
	says(&late, PHASE_START, "", "bwa:1");
	exits(&w, &inside, 0);
	exits(&w, &pause, 0);
	exits(&w, &around, 0);
	exits(&w, &none, 0);
	says_pod(&inside, PHASE_END, "genomics/align-0/bwa");
	says_pod(&pause, PHASE_END, "genomics/align-0/");
	says_pod(&around, PHASE_END, "genomics/align-0/");
	says_pod(&none, PHASE_END, "//");
	/* Only the container that the kubelet does not list is asked for again. */
	n_asked = 0;
	correlator_ask_pods(w.c);
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0], "pod 6a4ce4a0 b3b1f2c4");
}

/* The uid of a pod alone makes no container that of the pod. */
static void
a_container_is_named_only_by_its_own_pod(void **state)
{
	struct being b = runs(NULL, GROUP_A, "sh"), pod = runs(NULL, GROUP_POD, "sh");

	(void)state;
	correlator_name_pod(w.c, POD, A, &(struct pod_answer){ "align-0", "genomics", "bwa", "bwa:1" });
	exits(&w, &b, 0);
	exits(&w, &pod, 0);
	says_pod(&b, PHASE_END, "//");
	says(&b, PHASE_END, "", "");
	says_pod(&pod, PHASE_END, "genomics/align-0/");
}

static void
the_image_of_the_runtime_goes_before_that_of_the_kubelet(void **state)
{
	struct being b = runs(NULL, GROUP_IN_POD, "sh");

	(void)state;
	correlator_name_container(w.c, A, "k8s_bwa_align-0", "bwa@runtime");
	correlator_name_pod(w.c, POD, A, &(struct pod_answer){ "align-0", "genomics", "bwa", "bwa:1" });
	exits(&w, &b, 0);
	says(&b, PHASE_END, "k8s_bwa_align-0", "bwa@runtime");
	says_pod(&b, PHASE_END, "genomics/align-0/bwa");
}

static void
names_of_a_pod_that_are_known_are_in_the_first_record(void **state)
{
	struct being b, again;

	(void)state;
	is_known = true;
	b = runs(NULL, GROUP_IN_POD, "sh");
	says_pod(&b, PHASE_START, "ns/p/c");
	n_asked = 0;
	rules->generation++;		/* judged anew, in the same pod */
	again = runs(NULL, GROUP_IN_POD, "sh");
	says_pod(&again, PHASE_START, "ns/p/c");
	assert_int_equal(n_asked, 0);
	correlator_ask_pods(w.c);
	assert_int_equal(n_asked, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_that_run_in_it_learn_it),
		TEST(an_answer_that_is_there_is_in_the_first_record),
		TEST(half_an_answer_is_taken_and_a_later_one_goes_before_it),
		TEST(the_runtime_goes_before_arguments),
		TEST(rules_ask_for_the_image),
		TEST(images_by_arguments_are_asked_for_too),
		TEST(a_container_is_forgotten_with_its_last_programs),
		TEST(new_rules_ask_nobody_again),
		TEST(after_a_replay_those_without_a_name_are_asked_for),
		TEST(pods_have_names_from_the_kubelet),
		TEST(a_container_is_named_only_by_its_own_pod),
		TEST(the_image_of_the_runtime_goes_before_that_of_the_kubelet),
		TEST(names_of_a_pod_that_are_known_are_in_the_first_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
