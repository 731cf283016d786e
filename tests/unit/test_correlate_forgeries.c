/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's programs with the very arguments, folders and control groups of a victim's: for every rule of every
 * engine and scheduler that is shipped, none of them joins a run of the victim, and none takes the victim's tasks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "events.h"
#include "base/pattern.h"
#include "correlate/wal.h"
#include "identify/engine.h"
#include "identify/placement.h"
#include "identify/tool.h"
#include "model/engine_rules.h"
#include "model/placement_rules.h"

enum {
	VICTIM = 64002,
	ATTACKER = 64001,
	DEPTH_MAX = 4,
	ARGS_MAX = 64,
	CASES_MAX = 400,
	ATTACKERS_PID = 100000,		/* from here on: the victim's ids do not depend on the attacker's programs */
};

static struct ruleset *shipped;
static json_t *fixture, *cases;

static int
setup(void **state)
{
	(void)state;
	shipped = rules_shipped();
	fixture = json_load_file(SOURCE_TREE "/tests/fixtures/engines.json", 0, NULL);
	cases = json_object_get(fixture, "cases");
	return shipped != NULL && json_array_size(cases) > 0 && json_array_size(cases) <= CASES_MAX ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	json_decref(fixture);
	ruleset_unref(shipped);
	return 0;
}

static struct correlator_options
host_options(void)
{
	struct correlator_options options = world_options();

	options.run_id = NULL;		/* the whole host */
	return options;
}

static void
host_open(struct world *w)
{
	const struct correlator_options options = host_options();

	world_open(w, &options);
}

/* What one exec is made of. */
struct program {
	const char *exe, *cwd;
	const char *argv[ARGS_MAX];
	size_t argc;
};

static struct program
program_of(const json_t *from)
{
	const json_t *argv = json_object_get(from, "argv");
	struct program p = { .exe = json_string_value(json_object_get(from, "exe")),
		.cwd = json_string_value(json_object_get(from, "cwd")), .argc = json_array_size(argv) };

	assert_true(p.argc < ARGS_MAX);
	for (size_t i = 0; i < p.argc; i++)
		p.argv[i] = json_string_value(json_array_get(argv, i));
	return p;
}

/* Forks a process of a user and has it run a program. parent NULL: sluice is the parent. */
static struct being
runs(struct world *w, const struct being *parent, uint32_t uid, uint64_t cgroup, const struct program *p)
{
	struct being b;
	struct exec_event s;
	size_t len[ARGS_MAX];

	w->now += MS;
	b = forks(w, parent);
	b.context = (struct program_context){ uid, uid, 11, 12, 13, cgroup, 0, false };
	b.execed = true;
	s = (struct exec_event){ .time_ns = w->now, .self = b.key, .parent = b.parent, .anchor = b.anchor,
		.ppid = b.parent.pid, .context = b.context, .exe = p->exe, .cwd = p->cwd, .argc = p->argc,
		.argv_len = len, .argv = p->argc > 0 ? p->argv : NULL };
	for (size_t i = 0; i < p->argc; i++)
		len[i] = strlen(p->argv[i]);
	snprintf(s.comm, sizeof(s.comm), "%.15s", p->exe != NULL ? p->exe + strlen(p->exe) / 2 : "x");
	correlator_exec(w->c, &s);
	return b;
}

/* Runs a program of the fixtures, below its ancestors. */
static struct being
runs_case(struct world *w, uint32_t uid, const json_t *c)
{
	const json_t *chain[DEPTH_MAX] = { c };
	size_t n = 1;
	struct being b;

	for (const json_t *up; n < DEPTH_MAX && (up = json_object_get(chain[n - 1], "parent")) != NULL; n++)
		chain[n] = up;
	for (size_t i = n; i-- > 0;) {
		struct program p = program_of(chain[i]);

		b = runs(w, i + 1 < n ? &b : NULL, uid, 0, &p);
	}
	return b;
}

struct attribution {
	char run_id[64], task_id[256];	/* "": none */
	double confidence;
};

static void
take(const struct program_record *r, void *arg)
{
	struct attribution *a = arg;

	snprintf(a->run_id, sizeof(a->run_id), "%s", r->head.run_id != NULL ? r->head.run_id : "");
	snprintf(a->task_id, sizeof(a->task_id), "%s", r->head.task_id != NULL ? r->head.task_id : "");
	a->confidence = r->confidence.value;
}

static struct attribution
attribution_of(const struct world *w, const struct being *b)
{
	struct attribution a = { 0 };

	assert_true(correlator_show(w->c, b->key.pid, take, &a));
	return a;
}

static const char *
name_of(const json_t *c)
{
	return json_string_value(json_object_get(c, "name"));
}

static bool
is_role(const json_t *c, const char *role)
{
	return strcmp(json_string_value(json_object_get(c, "role")), role) == 0;
}

/*
 * The victim runs every program of the fixtures, then the attacker does if is_attacked, then the victim runs all but
 * the drivers again. Writes whose work they were.
 */
static void
play(bool is_attacked, struct attribution first[CASES_MAX], struct attribution attack[CASES_MAX],
    struct attribution again[CASES_MAX])
{
	size_t n = json_array_size(cases);
	struct being b;
	uint32_t pid;
	struct world w;

	host_open(&w);
	for (size_t i = 0; i < n; i++) {
		b = runs_case(&w, VICTIM, json_array_get(cases, i));
		first[i] = attribution_of(&w, &b);
	}
	pid = w.next_pid;
	w.next_pid = ATTACKERS_PID;
	for (size_t i = 0; i < n && is_attacked; i++) {
		uint64_t now = w.now;

		b = runs_case(&w, ATTACKER, json_array_get(cases, i));
		attack[i] = attribution_of(&w, &b);
		w.now = now;
	}
	w.next_pid = pid;
	for (size_t i = 0; i < n; i++) {
		if (is_role(json_array_get(cases, i), "driver"))
			continue;
		b = runs_case(&w, VICTIM, json_array_get(cases, i));
		again[i] = attribution_of(&w, &b);
	}
	world_close(&w);
}

static void
no_program_of_an_engine_joins_a_run_of_another_user(void **state)
{
	static struct attribution first[CASES_MAX], attack[CASES_MAX], again[CASES_MAX], alone[CASES_MAX],
	    alone_again[CASES_MAX];
	size_t n = json_array_size(cases), n_runs = 0, n_kept = 0;

	(void)state;
	play(true, first, attack, again);
	play(false, alone, attack, alone_again);
	for (size_t i = 0; i < n; i++) {
		const char *name = name_of(json_array_get(cases, i));

		assert_string_equal(first[i].run_id, alone[i].run_id);
		for (size_t k = 0; k < n && attack[i].run_id[0] != '\0'; k++) {
			if (strcmp(attack[i].run_id, first[k].run_id) == 0 ||
			    strcmp(attack[i].run_id, again[k].run_id) == 0)
				fail_msg("%s: the attacker's is in the run of %s", name,
				    name_of(json_array_get(cases, k)));
		}
		if (strcmp(again[i].run_id, alone_again[i].run_id) != 0 ||
		    strcmp(again[i].task_id, alone_again[i].task_id) != 0)
			fail_msg("%s: the attack moves the victim's from %s, %s to %s, %s", name, alone_again[i].run_id,
			    alone_again[i].task_id, again[i].run_id, again[i].task_id);
		n_runs += attack[i].run_id[0] != '\0';
		n_kept += again[i].run_id[0] != '\0';
	}
	assert_true(n_runs > 60);	/* they are runs of the attacker's own */
	assert_true(n_kept > 30);
}

static bool
has_case(const struct engine_rule *rule)
{
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *at = json_array_get(cases, i);
		struct program p[DEPTH_MAX];
		struct candidate s[DEPTH_MAX] = { 0 };
		char tool[DEPTH_MAX][TOOL_NAME_SIZE];
		struct engine_verdict v;

		for (size_t k = 0; k < DEPTH_MAX && at != NULL; k++, at = json_object_get(at, "parent")) {
			p[k] = program_of(at);
			s[k].exe = p[k].exe;
			s[k].cwd = p[k].cwd;
			s[k].argv = p[k].argc > 0 ? p[k].argv : NULL;
			s[k].argc = p[k].argc;
			tool_name(shipped, &s[k], tool[k], sizeof(tool[k]), NULL);
			if (k > 0)
				s[k - 1].parent = &s[k];
		}
		engine_judge(shipped, &s[0], json_string_value(json_object_get(json_array_get(cases, i), "inside")), &v);
		if (v.rule == &rule->location)
			return true;
	}
	return false;
}

/* Returns how many of the rules nothing is forged for. */
static unsigned
without_case(const struct engine *e, const struct engine_rule *rules)
{
	unsigned n = 0;

	for (const struct engine_rule *rule = rules; rule != NULL; rule = rule->next) {
		if (has_case(rule))
			continue;
		print_error("nothing in fixtures/engines.json is forged for '%s' of %s\n", rule->location.name, e->name);
		n++;
	}
	return n;
}

static void
every_rule_of_an_engine_has_a_forgery(void **state)
{
	unsigned n = 0;

	(void)state;
	for (const struct engine *e = shipped->engines->first; e != NULL; e = e->next)
		n += without_case(e, e->drivers) + without_case(e, e->tasks);
	assert_int_equal(n, 0);
}

/* Evidence of each scheduler: a control group, or a program. */
static const struct {
	const char *scheduler, *cgroup;
	struct program program;
	const char *daemon;		/* that starts the program; NULL: it is the daemon */
} jobs[] = {
	{ "slurm", "/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0", { 0 }, NULL },
	{ "slurm", "/slurm/uid_64002/job_4711/step_batch/task_0", { 0 }, NULL },
	{ "slurm", "/site/uid_64002/job_4711/step_batch/task_0", { 0 }, NULL },
	{ "slurm", NULL, { "/usr/sbin/slurmstepd", "/", { "slurmstepd: [4711.batch]" }, 1 }, NULL },
	{ "slurm", NULL, { "/bin/bash", "/", { "bash", "/var/spool/slurmd/job04711/slurm_script" }, 2 },
	    "/usr/sbin/slurmstepd" },
	{ "pbs", "/pbs_jobs.service/jobid/8123.head", { 0 }, NULL },
	{ "pbs", NULL, { "/bin/sh", "/", { "sh", "/var/spool/pbs/mom_priv/jobs/8123.head.SC" }, 2 }, "/usr/sbin/pbs_mom" },
	{ "htcondor", "/htcondor/condor_var_execute_slot1_3@host", { 0 }, NULL },
	{ "sge", NULL, { "/opt/sge/sge_shepherd", "/var/spool/n1/active_jobs/55.1", { "sge_shepherd-55" }, 1 }, NULL },
	{ "sge", NULL, { "/opt/sge/sge_shepherd", "/", { "sge_shepherd-55", "-bg" }, 2 }, NULL },
	{ "sge", NULL, { "/bin/bash", "/", { "bash", "/var/spool/n1/job_scripts/55" }, 2 }, "/opt/sge/sge_shepherd" },
	{ "ecs", "/ecstasks.slice/ecstasks-5f0e1d2c3b4a59687786950a4b3c2d1e.slice", { 0 }, NULL },
	{ "ecs", "/ecs/5f0e1d2c3b4a59687786950a4b3c2d1e", { 0 }, NULL },
};
#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static uint64_t
make_cgroup(struct world *w, const char *path)
{
	static uint64_t last;

	correlator_cgroup(w->c, &(struct cgroup_event){ .id = ++last, .is_v2 = true, .path = path });
	return last;
}

/* Runs the genuine program of a job: by its daemon, or in its control group. */
static struct being
runs_job(struct world *w, size_t i)
{
	const struct program work = { "/usr/bin/bwa", "/data", { "bwa", "mem" }, 2 };
	struct program daemon = { jobs[i].daemon, "/", { "daemon" }, 1 };
	struct being b;

	if (jobs[i].cgroup != NULL)
		return runs(w, NULL, VICTIM, make_cgroup(w, jobs[i].cgroup), &work);
	if (jobs[i].daemon == NULL)
		return runs(w, NULL, 0, 0, &jobs[i].program);
	b = runs(w, NULL, 0, 0, &daemon);
	return runs(w, &b, VICTIM, 0, &jobs[i].program);
}

/*
 * The same by another user: arguments as they are, below an own daemon, and a control group of the same name, below one
 * that the user names: its service manager's, or as root of a container.
 */
static struct being
forges_job(struct world *w, size_t i, bool has_daemon)
{
	static const char manager[] = "/user.slice/user-64001.slice/user@64001.service", container[] =
	    "/docker/5f0e1d2c3b4a59687786950a4b3c2d1e5f0e1d2c3b4a59687786950a4b3c2d1e";
	const struct program work = { "/usr/bin/xmrig", "/tmp", { "xmrig" }, 1 };
	struct program daemon = { jobs[i].daemon, "/", { "daemon" }, 1 };
	char path[512];
	struct being b;

	if (jobs[i].cgroup != NULL) {
		snprintf(path, sizeof(path), "%s%s", has_daemon ? container : manager, jobs[i].cgroup);
		return runs(w, NULL, ATTACKER, make_cgroup(w, path), &work);
	}
	if (jobs[i].daemon == NULL || !has_daemon)
		return runs(w, NULL, ATTACKER, 0, &jobs[i].program);
	b = runs(w, NULL, ATTACKER, 0, &daemon);
	return runs(w, &b, ATTACKER, 0, &jobs[i].program);
}

static void
no_program_joins_a_job_of_another_user(void **state)
{
	(void)state;
	for (size_t i = 0; i < JOBS; i++) {
		for (size_t k = 0; k < JOBS; k++) {
			struct attribution job, forged, again;
			struct being b;
			struct world w;

			if (strcmp(jobs[i].scheduler, jobs[k].scheduler) != 0)
				continue;
			/* who is first, and whether the forger has a daemon */
			for (int order = 0; order < 4; order++) {
				host_open(&w);
				if (order & 1) {
					b = forges_job(&w, k, order & 2);
					forged = attribution_of(&w, &b);
				}
				b = runs_job(&w, i);
				job = attribution_of(&w, &b);
				if (!(order & 1)) {
					b = forges_job(&w, k, order & 2);
					forged = attribution_of(&w, &b);
				}
				b = runs_job(&w, i);
				again = attribution_of(&w, &b);
				if ((job.run_id[0] == '\0') != (strcmp(jobs[i].scheduler, "htcondor") == 0))
					fail_msg("%s, %zu: its run is '%s'", jobs[i].scheduler, i, job.run_id);
				assert_string_equal(again.run_id, job.run_id);
				if (forged.run_id[0] != '\0' && strcmp(forged.run_id, job.run_id) == 0)
					fail_msg("%s: %zu, which is forged, is in the job of %zu", jobs[i].scheduler, k, i);
				if (forged.run_id[0] != '\0')
					assert_true(forged.confidence <= 0.5);
				world_close(&w);
			}
		}
	}
}

/* What is root in a container writes any arguments, and calls itself any daemon. */
static void
no_root_of_a_container_joins_a_job(void **state)
{
	static const char container[] = "/docker/5f0e1d2c3b4a59687786950a4b3c2d1e5f0e1d2c3b4a59687786950a4b3c2d1e";

	(void)state;
	for (size_t i = 0; i < JOBS; i++) {
		struct program daemon = { jobs[i].daemon, "/", { "daemon" }, 1 };
		struct attribution job, forged;
		struct being b;
		struct world w;
		uint64_t group;

		if (jobs[i].cgroup != NULL)
			continue;
		host_open(&w);
		b = runs_job(&w, i);
		job = attribution_of(&w, &b);
		assert_string_not_equal(job.run_id, "");
		group = make_cgroup(&w, container);
		if (jobs[i].daemon != NULL) {
			b = runs(&w, NULL, 0, group, &daemon);
			b = runs(&w, &b, ATTACKER, group, &jobs[i].program);
			forged = attribution_of(&w, &b);
			assert_string_not_equal(forged.run_id, job.run_id);
			assert_true(forged.confidence <= 0.5);
		}
		b = runs(&w, NULL, 0, group, &jobs[i].program);
		forged = attribution_of(&w, &b);
		assert_string_not_equal(forged.run_id, job.run_id);
		assert_true(forged.run_id[0] == '\0' || forged.confidence <= 0.5);
		world_close(&w);
	}
}

static void
every_rule_of_a_scheduler_has_a_forgery(void **state)
{
	(void)state;
	for (const struct placement_rule *rule = shipped->placements->schedulers; rule != NULL; rule = rule->next) {
		for (const struct placement_finder *f = rule->cgroup; rule->is_batch && f != NULL; f = f->next) {
			size_t i = 0;

			while (i < JOBS && (jobs[i].cgroup == NULL ||
			    !pattern_find(f->pattern, jobs[i].cgroup, strlen(jobs[i].cgroup), NULL, 0)))
				i++;
			if (i == JOBS)
				fail_msg("no control group of %s is forged by a pattern of line %u", rule->system,
				    rule->location.line);
		}
		for (const struct placement_program *p = rule->programs; p != NULL; p = p->next) {
			size_t i = 0;

			for (; i < JOBS; i++) {
				const struct program *x = &jobs[i].program;
				struct candidate s = { .exe = x->exe, .cwd = x->cwd, .argv = x->argv, .argc = x->argc };
				struct placement found = { 0 };
				char tool[TOOL_NAME_SIZE];

				if (x->exe == NULL)
					continue;
				tool_name(shipped, &s, tool, sizeof(tool), NULL);
				placement_of_program(shipped, &s, &found);
				if (found.scheduler_source != NULL &&
				    strcmp(found.scheduler_source, p->find.source) == 0)
					break;
			}
			if (i == JOBS)
				fail_msg("no program of %s is forged for '%s'", rule->system, p->find.source);
		}
	}
}

enum {
	ALICE = VICTIM,
	BOB = 64003,
	MALLORY = ATTACKER,
};

/* Runs the driver of a user whose tasks work in one folder. */
static struct being
launches(struct world *w, uint32_t uid)
{
	const struct program launcher = { "/usr/bin/java", "/data", { "java", "nextflow.cli.Launcher", "run", "main.nf", "-w",
	    "/data/work" }, 6 };

	return runs(w, NULL, uid, 0, &launcher);
}

/* Runs a task as it is in docker, whose root is the host's, and checks whose it is: run_id "": of no run. */
static void
task_is_of(struct world *w, uint32_t uid, const char *run_id)
{
	static const char work[] = "/data/work/ab/0123456789abcdef0123456789abcd";
	const struct program task = { "/bin/bash", work, { "bash", "-ue", ".command.sh" }, 3 };
	struct being b = runs(w, NULL, uid, 0, &task);

	assert_string_equal(attribution_of(w, &b).run_id, run_id);
	exits(w, &b, 0);
}

/* Begins the log anew, and checks that a restart from it would begin the same one. */
static void
log_stays_as_it_is(struct world *w)
{
	const struct correlator_options options = host_options();
	struct kept_entries was;

	forget_kept(w);
	correlator_checkpoint(w->c);
	world_dies(w, &options);
	was = w->kept;
	w->kept = (struct kept_entries){ 0 };
	correlator_checkpoint(w->c);
	assert_int_equal(w->kept.len, was.len);
	assert_memory_equal(w->kept.data, was.data, was.len);
	free(was.data);
}

/* The same as root, and after each restart of the agent if there are any. */
static void
roots_is_of(struct world *w, bool has_restarts, const char *run_id)
{
	const struct correlator_options options = host_options();

	task_is_of(w, 0, run_id);
	for (int i = 0; has_restarts && i < 2; i++) {
		world_dies(w, &options);
		task_is_of(w, 0, run_id);
		log_stays_as_it_is(w);
	}
}

/* A while after the driver's end its run has its END. */
static void
ends(struct world *w, const struct being *driver)
{
	exits(w, driver, 0);
	for (int i = 0; i < 10; i++) {
		w->now += SECOND;
		correlator_tick(w->c, w->now, false);
	}
}

/* They come and go, and their claims with them. */
static void
claim_in_turn(bool has_restarts)
{
	const struct correlator_options options = host_options();
	struct being alice, bob, mallory, again;
	struct attribution alices, bobs, mallorys;
	struct world w;

	world_open_as(&w, &options, true);
	alice = launches(&w, ALICE);
	alices = attribution_of(&w, &alice);
	roots_is_of(&w, has_restarts, alices.run_id);
	mallory = launches(&w, MALLORY);
	roots_is_of(&w, has_restarts, "");		/* whose it is cannot be known */
	task_is_of(&w, ALICE, alices.run_id);
	bob = launches(&w, BOB);
	roots_is_of(&w, has_restarts, "");
	ends(&w, &mallory);
	roots_is_of(&w, has_restarts, "");		/* bob's claim stays */
	ends(&w, &bob);
	roots_is_of(&w, has_restarts, alices.run_id);
	mallory = launches(&w, MALLORY);
	again = launches(&w, MALLORY);
	ends(&w, &again);
	roots_is_of(&w, has_restarts, "");		/* one run of mallory's lives */
	ends(&w, &mallory);
	roots_is_of(&w, has_restarts, alices.run_id);
	mallory = launches(&w, MALLORY);
	mallorys = attribution_of(&w, &mallory);
	roots_is_of(&w, has_restarts, "");
	ends(&w, &alice);
	roots_is_of(&w, has_restarts, mallorys.run_id);	/* no other lives */
	bob = launches(&w, BOB);
	bobs = attribution_of(&w, &bob);
	roots_is_of(&w, has_restarts, "");
	ends(&w, &mallory);
	roots_is_of(&w, has_restarts, bobs.run_id);
	ends(&w, &bob);
	roots_is_of(&w, has_restarts, bobs.run_id);	/* late */
	world_close(&w);
}

static void
root_in_a_container_belongs_to_the_one_user_who_claims_the_folder(void **state)
{
	(void)state;
	claim_in_turn(false);
}

static void
claims_outlive_the_agent(void **state)
{
	(void)state;
	claim_in_turn(true);
}

/* A task whose arguments name its run begins one if whose it is cannot be known, and that keeps no later ones. */
static void
what_began_while_several_claimed_it_takes_no_later_task(void **state)
{
#define SCRIPT "/wf/11111111-2222-3333-4444-555555555555/call-align/execution/script"
	const struct program submit = { "/bin/bash", "/work", { "bash", "/work" SCRIPT ".submit" }, 2 };
	const struct program inside = { "/bin/bash", "/work", { "bash", "/inside" SCRIPT ".submit" }, 2 };
	const struct program task = { "/bin/bash", "/", { "bash", "/inside" SCRIPT }, 2 };
	const struct program launcher = { "/usr/bin/java", "/work", { "java", "-jar", "cromwell.jar", "run", "wf.wdl" }, 5 };
	struct attribution alices, before;
	struct being alice, mallory, forged[2], b;
	struct world w;

	(void)state;
	host_open(&w);
	alice = runs(&w, NULL, ALICE, 0, &launcher);
	alices = attribution_of(&w, &alice);
	runs(&w, &alice, ALICE, 0, &submit);
	mallory = runs(&w, NULL, MALLORY, 0, &launcher);
	forged[0] = runs(&w, &mallory, MALLORY, 0, &submit);
	forged[1] = runs(&w, &mallory, MALLORY, 0, &inside);	/* alice does not show that one */
	b = runs(&w, NULL, 0, 0, &task);
	before = attribution_of(&w, &b);
	assert_string_not_equal(before.run_id, alices.run_id);
	assert_string_not_equal(before.run_id, attribution_of(&w, &mallory).run_id);
	b = runs(&w, NULL, 0, 0, &task);
	assert_string_equal(attribution_of(&w, &b).run_id, before.run_id);
	exits(&w, &forged[0], 0);
	exits(&w, &forged[1], 0);
	ends(&w, &mallory);
	b = runs(&w, NULL, 0, 0, &task);
	assert_string_equal(attribution_of(&w, &b).run_id, alices.run_id);
	world_close(&w);
#undef SCRIPT
}

static void
a_claim_holds_no_longer_than_its_run(void **state)
{
	struct attribution alices;
	struct being alice, mallory = { 0 };
	struct world w;

	(void)state;
	host_open(&w);
	alice = launches(&w, ALICE);
	alices = attribution_of(&w, &alice);
	for (int i = 0; i < 100; i++) {
		mallory = launches(&w, MALLORY);
		task_is_of(&w, 0, "");
		exits(&w, &mallory, 0);
	}
	ends(&w, &mallory);
	task_is_of(&w, 0, alices.run_id);
	for (int i = 0; i < 10; i++)
		ends(&w, &mallory);		/* until mallory's runs are forgotten */
	task_is_of(&w, 0, alices.run_id);
	mallory = launches(&w, MALLORY);
	task_is_of(&w, 0, "");
	ends(&w, &mallory);
	task_is_of(&w, 0, alices.run_id);
	exits(&w, &alice, 0);
	world_close(&w);
}

/*
 * Makes a log one of an earlier release, which knew one run of a folder (S: engine, root), and not whose others are.
 * An entry: kind, version, the run's id, 1 if there are others, the key's length, the key.
 */
static void
make_log_old(struct world *w)
{
	struct kept_entries now = w->kept;
	bool has_one = false;
	size_t len;

	w->kept = (struct kept_entries){ 0 };
	for (size_t at = 0; at < now.len; at += len) {
		char *entry = now.data + at + sizeof(len), *n;

		memcpy(&len, now.data + at, sizeof(len));
		at += sizeof(len);
		n = entry[0] == WAL_FACT ? entry + 2 + strlen(entry + 2) + 1 : NULL;
		if (n == NULL || n[2] != 'P') {
			keep_entry(entry, len, w);
			continue;
		}
		if (has_one)
			continue;
		has_one = true;
		n[0] = 1;
		n[1] = (char)(n[1] - (char)strlen(entry + 2) - 1);
		n[2] = 'S';
		keep_entry(entry, len - strlen(entry + 2) - 1, w);
	}
	assert_true(has_one);
	free(now.data);
}

static void
claims_outlive_an_agent_of_an_earlier_release(void **state)
{
	const struct correlator_options options = host_options();
	struct attribution alices;
	struct being alice, mallory;
	struct world w;

	(void)state;
	world_open_as(&w, &options, true);
	alice = launches(&w, ALICE);
	alices = attribution_of(&w, &alice);
	mallory = launches(&w, MALLORY);
	make_log_old(&w);
	world_dies(&w, &options);
	log_stays_as_it_is(&w);
	task_is_of(&w, 0, "");
	ends(&w, &mallory);
	task_is_of(&w, 0, alices.run_id);
	exits(&w, &alice, 0);
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_program_of_an_engine_joins_a_run_of_another_user),
		cmocka_unit_test(every_rule_of_an_engine_has_a_forgery),
		cmocka_unit_test(no_program_joins_a_job_of_another_user),
		cmocka_unit_test(every_rule_of_a_scheduler_has_a_forgery),
		cmocka_unit_test(no_root_of_a_container_joins_a_job),
		cmocka_unit_test(root_in_a_container_belongs_to_the_one_user_who_claims_the_folder),
		cmocka_unit_test(claims_outlive_the_agent),
		cmocka_unit_test(what_began_while_several_claimed_it_takes_no_later_task),
		cmocka_unit_test(a_claim_holds_no_longer_than_its_run),
		cmocka_unit_test(claims_outlive_an_agent_of_an_earlier_release),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
