/* SPDX-License-Identifier: Apache-2.0 */
/* placement: paths of every scheduler and runtime, similar paths, and evidence of programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "identify/placement.h"
#include "model/placement_rules.h"
#include "shipped_rules.h"

#define ID "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define ID2 "00ab34cd56ef78901234567890abcdef0fedcba0987654321fedcba098765432"
#define ARGS(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

static struct placement
placement_at(const char *cgroup, const char *cgroup_v1)
{
	struct placement p;

	placement_of_cgroup(shipped, cgroup, cgroup_v1, &p);
	return p;
}

/* The shipped rules with text before them. */
static struct ruleset *
with_rules(const char *text)
{
	struct rules_extra extra = { "own.yaml", text, strlen(text) };
	struct rules_options o = { .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	if (rules_load(&o, &set, &errors) != 0) {
		config_errors_print(&errors, stderr);
		fail_msg("%s", text);
	}
	config_errors_done(&errors);
	return set;
}

/* What is wrong with a file. The caller frees it. */
static char *
wrong_with(const char *text)
{
	struct rules_extra extra = { "own.yaml", text, strlen(text) };
	struct rules_options o = { .extra = &extra, .n_extra = 1, .is_without_shipped = true };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	size_t size;
	char *ret = NULL;
	FILE *f = open_memstream(&ret, &size);

	rules_load(&o, &set, &errors);
	config_errors_print(&errors, f);
	fclose(f);
	config_errors_done(&errors);
	ruleset_unref(set);
	return ret;
}

static void
wrong_says(const char *text, const char *want)
{
	char *got = wrong_with(text);

	if (strstr(got, want) == NULL)
		fail_msg("%s\nsays: %s\nnot: %s", text, got, want);
	free(got);
}

/* The daemon that starts the jobs of Slurm. */
static const struct candidate slurmstepd = { .exe = "/usr/sbin/slurmstepd", .has_uid = true, .uid = 0 };

/* Evidence of a user's program on an ordinary path; parent may be NULL. */
static struct placement
told_below(const struct candidate *parent, const char *exe, const char *cwd, const char *script,
    const char *const *argv, size_t argc)
{
	struct candidate s = { .exe = exe, .comm = exe, .argv = argv, .argc = argc, .cwd = cwd,
		.has_uid = true, .uid = 1000, .words = { .script = script }, .parent = parent };
	struct placement p;

	memset(&p, 0, sizeof(p));
	placement_of_program(shipped, &s, &p);
	return p;
}

static struct placement
told_by(const char *exe, const char *cwd, const char *script, const char *const *argv, size_t argc)
{
	return told_below(NULL, exe, cwd, script, argv, argc);
}

static unsigned
differs(const char *path, const char *what, const char *got, const char *want)
{
	if (strcmp(want, "-") == 0)
		want = "";
	if (strcmp(got != NULL ? got : "", want) == 0)
		return 0;
	print_error("%s\n  %s is '%s', not '%s'\n", path, what, got != NULL ? got : "", want);
	return 1;
}

static void
paths_tell_job_and_container(void **state)
{
	static const char *const names[] = { "scheduler", "job", "step", "task", "user", "node", "batch", "runtime",
		"container", "pod" };
	unsigned n = 0, wrong = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	FILE *f = fopen(SOURCE_TREE "/tests/fixtures/cgroup_paths.tsv", "re");

	(void)state;
	assert_non_null(f);
	while ((len = getline(&line, &size, f)) > 0) {
		char *at = line, *path;
		const char *want[10];
		struct placement p;
		bool is_found, is_expected = false;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		path = strsep(&at, "\t");
		for (size_t i = 0; i < 10; i++) {
			want[i] = strsep(&at, "\t");
			assert_non_null(want[i]);
			is_expected = is_expected || strcmp(want[i], "-") != 0;
		}
		assert_null(at);
		for (int is_v1 = 0; is_v1 < 2; is_v1++) {
			is_found = placement_of_cgroup(shipped, is_v1 ? "/" : path, is_v1 ? path : NULL, &p);
			const char *got[] = { p.scheduler, p.job, p.step, p.task, p.user, p.node,
				p.is_batch ? "batch" : "", p.runtime, p.container, p.pod };

			for (size_t i = 0; i < 10; i++)
				wrong += differs(path, names[i], got[i], want[i]);
			assert_int_equal(is_found, is_expected || p.is_outside);
			assert_int_equal(p.has_container, strcmp(want[7], "-") != 0 || strcmp(want[8], "-") != 0);
			assert_true(p.scheduler == NULL || strcmp(p.scheduler_source, "cgroup") == 0);
			assert_true(!p.has_container || strcmp(p.container_source, "cgroup") == 0);
			assert_true(p.scheduler == NULL || (p.scheduler_confidence > 0 && p.scheduler_confidence <= 1));
			assert_true(!p.has_container || (p.container_confidence > 0 && p.container_confidence <= 1));
		}
		n++;
	}
	free(line);
	fclose(f);
	assert_int_equal(wrong, 0);
	assert_true(n >= 120);
}

static void
both_hierarchies_count(void **state)
{
	struct placement p = placement_at("/system.slice/slurmd.service", "/slurm/uid_7/job_9/step_0/task_1");

	(void)state;
	assert_string_equal(p.scheduler, "slurm");	/* a job before a unit, wherever */
	assert_string_equal(p.job, "9");
	assert_string_equal(p.task, "1");
	p = placement_at("/docker/" ID, "/docker/" ID);
	assert_string_equal(p.container, ID);
	p = placement_at("/docker/" ID, "/slurm/uid_7/job_9/step_0/task_1");
	assert_string_equal(p.scheduler, "slurm");
	assert_string_equal(p.container, ID);
	p = placement_at("/docker/" ID, "/lxc/other");
	assert_string_equal(p.runtime, "docker");	/* v2 first */
	p = placement_at("/kubepods/pod0f3a91c6-5d7e-4b28-9c40-a1e2d3f4b5c6",
	    "/kubepods/podb7d0c9e8-1a2b-4c3d-8e4f-5061728394a5/" ID);
	assert_string_equal(p.pod, "0f3a91c6-5d7e-4b28-9c40-a1e2d3f4b5c6");
	assert_string_equal(p.container, ID);
}

/* systemd hands the groups below a user's service manager over to that user, who may name them at will. */
static void
a_path_is_a_users_word_where_the_user_names_it(void **state)
{
	static const char home[] = "/user.slice/user-1000.slice/user@1000.service";
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/libpod-" ID ".scope", home);
	assert_string_equal(placement_at(path, NULL).container, ID);
	assert_true(placement_at(path, NULL).container_confidence <= 0.5);
	assert_true(placement_at("/machine.slice/libpod-" ID ".scope", NULL).container_confidence > 0.9);
	for (const struct placement_rule *rule = shipped->placements->schedulers; rule != NULL; rule = rule->next)
		assert_true(rule->programs == NULL || rule->daemons != NULL);
}

/* Wherever a folder is another's than root's, as that of a container with users of its own. */
static void
a_path_is_a_users_word_below_a_users_folder(void **state)
{
	struct placement_group groups[2] = { { "/lxc.payload.x/system.slice/slurmstepd.scope/job_1/step_0", 4 } };
	struct placement p;

	(void)state;
	placement_of_groups(shipped, groups, &p);
	assert_string_equal(p.scheduler, "systemd");
	assert_string_equal(p.container, "x");
	assert_true(p.container_confidence > 0.9);	/* root has named the container */
	groups[0].users_names = 1;			/* root has named the job */
	placement_of_groups(shipped, groups, &p);
	assert_string_equal(p.job, "1");
	groups[0] = (struct placement_group){ "/docker/" ID, 1 };
	placement_of_groups(shipped, groups, &p);
	assert_true(p.container_confidence <= 0.5);
	groups[0].users_names = 100;
	placement_of_groups(shipped, groups, &p);
	assert_string_equal(p.container, ID);
}

/* Also one of a rule that begins anywhere. */
static void
no_job_of_a_batch_scheduler_is_a_users_word(void **state)
{
	static const char home[] = "/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope/lsf/job.7";
	struct ruleset *set = with_rules("schedulers: [{scheduler: lsf, batch: true, cgroup: '/lsf/job[.](?<job>[0-9]+)'}]");
	struct placement p;

	(void)state;
	assert_true(placement_of_cgroup(set, home, NULL, &p));
	assert_string_equal(p.scheduler, "systemd");
	assert_true(placement_of_cgroup(set, "/lsf/job.7", NULL, &p));
	assert_string_equal(p.scheduler, "lsf");
	assert_true(placement_of_cgroup(set, home, "/lsf/job.7", &p));	/* where both hierarchies are in use */
	assert_string_equal(p.scheduler, "lsf");
	/* Names that only resemble the unit's hand nothing over. */
	assert_true(placement_of_cgroup(set, "/user.slice/user-1000.slice/session-1.scope/user@x/lsf/job.7", NULL, &p));
	assert_string_equal(p.scheduler, "lsf");
	ruleset_unref(set);
}

/* The same arguments are worth more from one program than from another. */
static void
arguments_are_the_word_of_their_user(void **state)
{
	static const char script[] = "/var/spool/slurmd/job00042/slurm_script";
	struct candidate impostor = { .exe = "/home/u/slurmstepd", .has_uid = true, .uid = 1000 };
	struct candidate shell = { .exe = "/bin/bash", .has_uid = true, .uid = 1000, .parent = &slurmstepd };
	struct candidate own = { .exe = "/usr/sbin/slurmstepd", .argv = (const char *const[]){ "slurmstepd: [42.0]" },
		.argc = 1, .has_uid = true, .uid = 0 };
	struct placement p = told_below(NULL, "/bin/bash", "/", script, ARGS("bash"));

	(void)state;
	assert_int_equal(p.scheduler_witness, WITNESS_ARGV);
	assert_int_equal(p.claimed_by, 1000);
	assert_true(p.scheduler_confidence <= 0.5);
	p = told_below(&impostor, "/bin/bash", "/", script, ARGS("bash"));
	assert_int_equal(p.scheduler_witness, WITNESS_ARGV);
	p = told_below(&slurmstepd, "/bin/bash", "/", script, ARGS("bash"));
	assert_int_equal(p.scheduler_witness, WITNESS_DAEMON);
	assert_int_equal(p.claimed_by, 1000);
	assert_true(p.scheduler_confidence == 0.9);
	p = told_below(&shell, "/bin/bash", "/", script, ARGS("bash"));	/* PBS starts a login shell */
	assert_int_equal(p.scheduler_witness, WITNESS_DAEMON);
	memset(&p, 0, sizeof(p));
	assert_true(placement_of_program(shipped, &own, &p));
	assert_int_equal(p.scheduler_witness, WITNESS_SYSTEM);
	own.uid = 1000;		/* any user may run it with such arguments */
	memset(&p, 0, sizeof(p));
	assert_true(placement_of_program(shipped, &own, &p));
	assert_int_equal(p.scheduler_witness, WITNESS_ARGV);
	/* In a user's namespace no id is of the system, and each is that user's. */
	own.uid = 0;
	own.user_uid = 1000;
	memset(&p, 0, sizeof(p));
	assert_true(placement_of_program(shipped, &own, &p));
	assert_int_equal(p.scheduler_witness, WITNESS_ARGV);
	assert_int_equal(p.claimed_by, 1000);
	/* A container's, too. */
	p = told_by("/usr/bin/conmon", "/", NULL, ARGS("conmon", "-c", ID));
	assert_string_equal(p.container, ID);
	assert_true(p.container_confidence <= 0.5);
}

static void
no_path_is_no_placement(void **state)
{
	struct placement p;

	(void)state;
	memset(&p, 'x', sizeof(p));
	assert_false(placement_of_cgroup(shipped, NULL, NULL, &p));
	assert_true(p.scheduler == NULL && !p.has_container && p.job[0] == '\0' && p.container[0] == '\0');
	memset(&p, 'x', sizeof(p));
	assert_false(placement_of_cgroup(shipped, "", "/", &p));
	assert_true(p.scheduler == NULL && p.runtime == NULL);
}

static void
values_that_are_no_names_stay_unknown(void **state)
{
	char path[8192];
	struct placement p;

	(void)state;
	p = placement_at("/lxc/two\nlines", NULL);
	assert_string_equal(p.runtime, "lxc");
	assert_string_equal(p.container, "");
	p = placement_at("/user.slice/user-1.slice/a\x1b[31m.service", NULL);
	assert_string_equal(p.scheduler, "systemd");
	assert_string_equal(p.job, "");
	assert_string_equal(p.user, "1");
	/* An escaped newline is one, too. */
	p = placement_at("/system.slice/a\\x5cx0ab.service", NULL);
	assert_string_equal(p.job, "");
	/* Too long to be held whole. */
	snprintf(path, sizeof(path), "/lxc/%0*d", PLACEMENT_NAME_SIZE, 1);
	assert_string_equal(placement_at(path, NULL).container, "");
	snprintf(path, sizeof(path), "/lxc/%0*d", PLACEMENT_NAME_SIZE - 1, 1);
	assert_int_equal(strlen(placement_at(path, NULL).container), PLACEMENT_NAME_SIZE - 1);
	snprintf(path, sizeof(path), "/slurm/uid_1/job_%0*d", 4000, 1);
	p = placement_at(path, NULL);
	assert_string_equal(p.scheduler, "slurm");
	assert_string_equal(p.job, "");
	p = placement_at("/lxc/caf\xc3\xa9", NULL);
	assert_string_equal(p.container, "caf\xc3\xa9");
}

static void
long_paths_are_searched_in_bounded_time(void **state)
{
	char *path = malloc(65536);
	size_t len = 0;

	(void)state;
	while (len < 60000)
		len += (size_t)sprintf(path + len, "/lxc/%zu", len);
	assert_string_equal(placement_at(path, NULL).runtime, "lxc");
	memset(path, 'a', 65535);
	path[0] = '/';
	path[65535] = '\0';
	assert_null(placement_at(path, NULL).scheduler);
	for (size_t i = 0; i < 65535; i++)
		path[i] = i % 2 ? '_' : '/';
	strcpy(path + 60000, "_slurmstepd.scope/job_x");
	assert_null(placement_at(path, NULL).runtime);
	free(path);
}

static void
sluids_tell_cluster_and_submit_time(void **state)
{
	uint32_t cluster;
	int64_t ms;

	(void)state;
	assert_true(slurm_sluid_decode("s8FXKTA79XAR00", &cluster, &ms));
	assert_int_equal(cluster, 2175);
	assert_true(ms == INT64_C(1780607153496));
	assert_true(slurm_sluid_decode("s0000000000000", &cluster, &ms));
	assert_true(cluster == 0 && ms == 0);
	assert_true(slurm_sluid_decode("sFZZZZZZZZZZZZ", &cluster, &ms));
	assert_true(cluster == 4095 && ms == (INT64_C(1) << 42) - 1);
	assert_true(slurm_sluid_decode("s00000000000ZZ", &cluster, &ms));
	assert_true(cluster == 0 && ms == 0);		/* the last ten bits count jobs within a millisecond */
	assert_false(slurm_sluid_decode("sG000000000000", &cluster, &ms));	/* 65 bits */
	assert_false(slurm_sluid_decode("s8FXKTA79XARI0", &cluster, &ms));
	assert_false(slurm_sluid_decode("s8fxkta79xar00", &cluster, &ms));
	assert_false(slurm_sluid_decode("s8FXKTA79XAR0", &cluster, &ms));
	assert_false(slurm_sluid_decode("s8FXKTA79XAR000", &cluster, &ms));
	assert_false(slurm_sluid_decode("x8FXKTA79XAR00", &cluster, &ms));
	assert_false(slurm_sluid_decode("", &cluster, &ms));
}

static void
arguments_tell_the_job(void **state)
{
	struct placement p = told_by("/bin/bash", "/home/u", "/var/spool/slurmd/job00042/slurm_script",
	    ARGS("/bin/bash", "/var/spool/slurmd/job00042/slurm_script"));

	(void)state;
	assert_string_equal(p.scheduler, "slurm");
	assert_string_equal(p.job, "42");
	assert_string_equal(p.step, "batch");
	assert_true(p.is_batch);
	assert_string_equal(p.scheduler_source, "argv slurm_script");
	p = told_by("/usr/sbin/slurmstepd", "/", NULL, ARGS("slurmstepd: [42.extern]"));
	assert_string_equal(p.job, "42");
	assert_string_equal(p.step, "extern");
	p = told_by("/usr/sbin/slurmstepd", "/", NULL, ARGS("slurmstepd: [42+1.0]"));
	assert_string_equal(p.job, "42");
	assert_string_equal(p.step, "0");
	assert_null(told_by("/bin/echo", "/", NULL, ARGS("slurmstepd: [42.extern]")).scheduler);
	p = told_by("/bin/sh", "/", "/var/spool/pbs/mom_priv/jobs/8123.head.SC", ARGS("sh"));
	assert_string_equal(p.scheduler, "pbs");
	assert_string_equal(p.job, "8123.head");
	p = told_by("/opt/sge/bin/sge_shepherd", "/var/spool/n1/active_jobs/55.3", NULL, ARGS("sge_shepherd-55", "-bg"));
	assert_string_equal(p.scheduler, "sge");
	assert_string_equal(p.job, "55");
	assert_string_equal(p.task, "3");
	p = told_by("/opt/sge/bin/sge_shepherd", "/", NULL, ARGS("sge_shepherd-55", "-bg"));
	assert_string_equal(p.job, "55");
	p = told_by("/bin/bash", "/", "/var/spool/n1/job_scripts/55", ARGS("bash"));
	assert_string_equal(p.job, "55");
	assert_null(told_by("/bin/bash", "/", "/home/u/slurm_script", ARGS("bash")).scheduler);
	assert_null(told_by("/bin/bash", NULL, NULL, NULL, 0).scheduler);
}

static void
arguments_tell_what_a_path_does_not(void **state)
{
	struct candidate s = { .exe = "/bin/bash", .words = { .script = "/s/job00042/slurm_script" },
		.has_uid = true, .uid = 1000 };
	struct placement p = placement_at("/system.slice/slurmd.service", NULL);

	(void)state;
	assert_false(placement_of_program(shipped, &s, &p));	/* a user's word against a control group */
	assert_string_equal(p.scheduler, "systemd");
	s.parent = &slurmstepd;
	assert_true(placement_of_program(shipped, &s, &p));
	assert_string_equal(p.scheduler, "slurm");	/* in place of the unit */
	assert_string_equal(p.job, "42");
	assert_string_equal(p.user, "");
	p = placement_at("/slurm/uid_3/job_42", NULL);
	assert_true(placement_of_program(shipped, &s, &p));
	assert_string_equal(p.step, "batch");		/* of the same job */
	assert_string_equal(p.user, "3");
	assert_string_equal(p.scheduler_source, "cgroup");
	p = placement_at("/slurm/uid_3/job_43", NULL);
	assert_false(placement_of_program(shipped, &s, &p));
	assert_string_equal(p.job, "43");
	assert_string_equal(p.step, "");
	p = placement_at("/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch/user/task_0", NULL);
	assert_false(placement_of_program(shipped, &s, &p));
	assert_string_equal(p.job, "s8FXKTA79XAR00");
}

static void
what_starts_a_container_is_not_inside(void **state)
{
	struct placement shim = told_by("/usr/bin/containerd-shim-runc-v2", "/", NULL, ARGS("/usr/bin/containerd-shim-runc-v2",
	    "-namespace", "moby", "-id", ID, "-address", "/run/containerd/containerd.sock"));
	struct placement p;

	(void)state;
	assert_true(shim.has_container && shim.is_outside);
	assert_string_equal(shim.runtime, "docker");
	assert_string_equal(shim.container, ID);
	memset(&p, 0, sizeof(p));
	placement_inherit(&shim, &p, false);
	assert_true(p.has_container && !p.is_outside);
	assert_string_equal(p.container, ID);
	p = told_by("/usr/bin/containerd-shim-runc-v2", "/", NULL, ARGS("containerd-shim-runc-v2", "-namespace",
	    "default", "-id", "align-1", "-address", "/x"));
	assert_string_equal(p.runtime, "containerd");
	assert_string_equal(p.container, "align-1");
	p = told_by("/usr/bin/containerd-shim-runc-v2", "/", NULL, ARGS("containerd-shim-runc-v2", "-namespace",
	    "k8s.io", "-id", ID, "-address", "/x"));
	assert_string_equal(p.runtime, "containerd");
	assert_string_equal(p.container, "");		/* one shim a pod: its id is the sandbox's */
	p = told_by("/usr/bin/conmon", "/", NULL, ARGS("conmon", "--api-version", "1", "-c", ID, "-u", ID, "-n", "eager_euler",
	    "--exit-command", "/usr/bin/podman"));
	assert_string_equal(p.runtime, "podman");
	assert_string_equal(p.container, ID);
	assert_string_equal(p.name, "eager_euler");
	assert_true(p.is_outside);
	p = told_by("/usr/bin/conmon", "/", NULL, ARGS("conmon", "-c", ID2, "-l", "/x", "--exit-dir", "/var/run/crio/exits"));
	assert_string_equal(p.runtime, "cri-o");
	assert_string_equal(p.container, ID2);
	p = told_by("/usr/libexec/apptainer/bin/starter", "/", NULL, ARGS("Apptainer runtime parent: /img/qc.sif"));
	assert_string_equal(p.runtime, "apptainer");
	assert_string_equal(p.image, "/img/qc.sif");
	assert_string_equal(p.container, "");
	assert_true(p.has_container && p.is_outside);
	p = told_by("/usr/libexec/apptainer/bin/starter", "/", NULL, ARGS("Apptainer runtime parent"));
	assert_string_equal(p.runtime, "apptainer");
	assert_string_equal(p.image, "");
	p = told_by("/usr/bin/bwrap", "/", NULL, ARGS("bwrap", "--bind", "/", "/", "true"));
	assert_string_equal(p.runtime, "bubblewrap");
	assert_true(p.is_outside);
	p = told_by("/usr/sbin/runc", "/", NULL, ARGS("runc", "init"));
	assert_false(p.has_container || p.is_outside);
}

static void
what_arguments_contained_is_inherited(void **state)
{
	struct placement shim = told_by("/usr/bin/containerd-shim-runc-v2", "/", NULL, ARGS("containerd-shim-runc-v2", "-namespace",
	    "moby", "-id", ID, "-address", "/x"));
	struct placement job = told_below(&slurmstepd, "/bin/bash", "/", "/s/job00042/slurm_script", ARGS("bash"));
	struct placement p = placement_at("/site/" ID, NULL), runc;
	struct candidate s = { .exe = "/usr/sbin/runc" };

	(void)state;
	assert_null(p.runtime);
	placement_inherit(&shim, &p, false);
	assert_string_equal(p.runtime, "docker");	/* of the same container */
	assert_string_equal(p.container_source, "cgroup");
	p = placement_at("/site/" ID2, NULL);
	placement_inherit(&shim, &p, false);
	assert_null(p.runtime);				/* of another */
	assert_string_equal(p.container, ID2);
	/* What sets it up, in the shim's own control group, is outside still; what follows is inside. */
	memset(&runc, 0, sizeof(runc));
	assert_true(placement_inherit(&shim, &runc, true));
	assert_true(runc.is_outside);
	assert_string_equal(runc.container, ID);
	assert_false(placement_of_program(shipped, &s, &runc));
	memset(&p, 0, sizeof(p));
	assert_true(placement_inherit(&runc, &p, false));
	assert_true(p.has_container && !p.is_outside);
	/* Nor is what was moved to where such things are kept. */
	p = placement_at("/libpod_parent/conmon", NULL);
	assert_true(p.is_outside && !p.has_container);
	assert_false(placement_inherit(&shim, &p, false));
	assert_false(p.has_container);
	p = placement_at("/docker/" ID "/libpod_parent/conmon", NULL);
	assert_true(p.has_container && !p.is_outside);
	assert_false(placement_at("/lxc.monitor.web-2", NULL).has_container);
	assert_true(placement_at("/lxc.monitor.web-2", NULL).is_outside);
	assert_true(placement_at("/machine.slice/libpod-conmon-" ID ".scope", NULL).is_outside);
	/* One without a control group: inside at once. */
	shim = told_by("/usr/bin/bwrap", "/", NULL, ARGS("bwrap", "true"));
	memset(&p, 0, sizeof(p));
	assert_true(placement_inherit(&shim, &p, true));
	assert_true(p.has_container && !p.is_outside);
	/* A job from arguments applies to every descendant of the script, instead of a unit. */
	p = placement_at("/system.slice/slurmd.service", NULL);
	placement_inherit(&job, &p, false);
	assert_string_equal(p.job, "42");
	assert_string_equal(p.step, "batch");
	assert_string_equal(p.scheduler_source, "argv slurm_script");
	p = placement_at("/slurm/uid_3/job_43/step_0", NULL);
	placement_inherit(&job, &p, false);
	assert_string_equal(p.job, "43");
	/* A container found by another's cgroup applies to that cgroup only; the job does not. */
	memset(&p, 0, sizeof(p));
	job = placement_at("/slurm/uid_3/job_43/step_0/task_0/docker/" ID, NULL);
	assert_true(placement_inherit(&job, &p, false));
	assert_string_equal(p.job, "43");
	assert_false(p.has_container);
	/* Nor is a unit, which makes no run. */
	memset(&p, 0, sizeof(p));
	job = placement_at("/system.slice/slurmd.service", NULL);
	assert_false(placement_inherit(&job, &p, false));
	assert_null(p.scheduler);
}

static void
a_container_within_the_known_one_is_not_derived_from_arguments(void **state)
{
	struct candidate s = { .exe = "/usr/bin/bwrap" };
	struct placement p = placement_at("/docker/" ID, NULL);

	(void)state;
	placement_of_program(shipped, &s, &p);
	assert_string_equal(p.runtime, "docker");
	assert_false(p.is_outside);
}

static void
users_rules_come_first(void **state)
{
	struct ruleset *set = with_rules("schedulers:\n"
	    "  - scheduler: lsf\n"
	    "    batch: true\n"
	    "    cgroup: '/lsf/(?<cluster>[^/]+)/job\\.(?<number>\\d+)(?:\\[(?<index>\\d+)\\])?\\.'\n"
	    "    values: {job: '{number}', step: 'x{index}', node: n1}\n"
	    "    confidence: 0.6\n"
	    "  - {scheduler: kubernetes, batch: true, cgroup: '/pod(?<job>[0-9a-f-]{36})'}\n"
	    "containers:\n"
	    "  - {runtime: enroot, cgroup: '/enroot_(?<id>\\d+)'}\n");
	struct placement p;

	(void)state;
	assert_true(placement_of_cgroup(set, "/lsf/big/job.77[3].1.2/enroot_5", NULL, &p));
	assert_string_equal(p.scheduler, "lsf");
	assert_string_equal(p.cluster, "big");
	assert_string_equal(p.job, "77");
	assert_string_equal(p.step, "x3");
	assert_string_equal(p.node, "n1");
	assert_true(p.is_batch && p.scheduler_confidence == 0.6);
	assert_string_equal(p.runtime, "enroot");
	assert_string_equal(p.container, "5");
	placement_of_cgroup(set, "/lsf/big/job.77.1.2", NULL, &p);
	assert_string_equal(p.job, "77");
	assert_string_equal(p.step, "");	/* a template of which a part is unknown */
	placement_of_cgroup(set, "/kubepods/pod0f3a91c6-5d7e-4b28-9c40-a1e2d3f4b5c6", NULL, &p);
	assert_true(p.is_batch);
	ruleset_unref(set);
}

static void
programs_of_rules_are_searched_where_they_say(void **state)
{
	struct ruleset *set = with_rules("schedulers:\n"
	    "  - scheduler: flux\n"
	    "    batch: true\n"
	    "    programs:\n"
	    "      - {when: {exe: flux-shell}, argv_matches: '^--id=(?<job>\\S+)$'}\n"
	    "      - {exe_matches: '/flux/(?<job>\\d+)/'}\n"
	    "      - {when: {exe: fluxd}, values: {job: none}, source: guess, confidence: 0.3}\n");
	struct candidate s = { .exe = "/usr/libexec/flux-shell", .argv = (const char *const[]){ "flux-shell", "--x", "--id=f7" },
		.argc = 3 };
	struct placement p = { 0 };

	(void)state;
	assert_true(placement_of_program(set, &s, &p));
	assert_string_equal(p.job, "f7");
	assert_string_equal(p.scheduler_source, "argv");
	memset(&p, 0, sizeof(p));
	s.exe = "/var/flux/99/a.out";
	assert_true(placement_of_program(set, &s, &p));
	assert_string_equal(p.job, "99");
	assert_string_equal(p.scheduler_source, "exe");
	memset(&p, 0, sizeof(p));
	s.exe = "/bin/fluxd";
	assert_true(placement_of_program(set, &s, &p));
	assert_string_equal(p.job, "none");
	assert_string_equal(p.scheduler_source, "guess");
	assert_true(p.scheduler_confidence == 0.3);
	ruleset_unref(set);
}

static void
errors_name_the_location_and_the_hint(void **state)
{
	(void)state;
	wrong_says("schedulers: {scheduler: x}\n", "own.yaml:1");
	wrong_says("schedulers: {scheduler: x}\n", "list of mappings");
	wrong_says("schedulers:\n  - {cgroup: '/x'}\n", "own.yaml:2");
	wrong_says("schedulers:\n  - {cgroup: '/x'}\n", "scheduler: NAME");
	wrong_says("schedulers:\n  - {scheduler: x}\n", "`cgroup` or `programs`");
	wrong_says("schedulers:\n  - {scheduler: x, cgruop: '/x'}\n", "cgroup");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/x('}\n", "own.yaml:2");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: []}\n", "empty");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/(?<id>x)'}\n", "the group id is not used");
	wrong_says("containers:\n  - {runtime: x, cgroup: '/(?<job>x)'}\n", "the group job is not used");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/(?<job>x)', values: {job: '{jbo}'}}\n", "{jbo} is no named group");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/(?<job>x)', change: {job: upper}}\n", "dashes, unescape");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/(?<job>x)', values: {jbo: '{job}'}}\n", "job");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/x', confidence: 2}\n", "own.yaml:2");
	wrong_says("schedulers:\n  - {scheduler: x, cgroup: '/x', batch: perhaps}\n", "own.yaml:2");
	wrong_says("schedulers:\n  - scheduler: x\n    programs:\n      - {command_matches: 'x'}\n", "needs `when`");
	wrong_says("schedulers:\n  - scheduler: x\n    programs:\n      - {source: x}\n", "every program");
	wrong_says("schedulers:\n  - scheduler: x\n    programs: {when: {exe: a}}\n", "list of mappings");
	wrong_says("schedulers:\n  - scheduler: x\n    programs:\n      - {cwd_matches: 'x', exe_matches: 'y'}\n", "one of them");
	wrong_says("schedulers:\n  - scheduler: x\n    programs:\n      - {cwd_matches: 'x', outside: true}\n", "outside");
	wrong_says("schedulers:\n  - scheduler: x\n    programs:\n      - {when: {exxe: a}}\n", "exe");
	wrong_says("containers:\n  - runtime: x\n    programs:\n      - {when: {exe: a}, own_group: true}\n", "requires outside");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_tell_job_and_container),
		cmocka_unit_test(both_hierarchies_count),
		cmocka_unit_test(a_path_is_a_users_word_where_the_user_names_it),
		cmocka_unit_test(a_path_is_a_users_word_below_a_users_folder),
		cmocka_unit_test(no_job_of_a_batch_scheduler_is_a_users_word),
		cmocka_unit_test(arguments_are_the_word_of_their_user),
		cmocka_unit_test(no_path_is_no_placement),
		cmocka_unit_test(values_that_are_no_names_stay_unknown),
		cmocka_unit_test(long_paths_are_searched_in_bounded_time),
		cmocka_unit_test(sluids_tell_cluster_and_submit_time),
		cmocka_unit_test(arguments_tell_the_job),
		cmocka_unit_test(arguments_tell_what_a_path_does_not),
		cmocka_unit_test(what_starts_a_container_is_not_inside),
		cmocka_unit_test(what_arguments_contained_is_inherited),
		cmocka_unit_test(a_container_within_the_known_one_is_not_derived_from_arguments),
		cmocka_unit_test(users_rules_come_first),
		cmocka_unit_test(programs_of_rules_are_searched_where_they_say),
		cmocka_unit_test(errors_name_the_location_and_the_hint),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
