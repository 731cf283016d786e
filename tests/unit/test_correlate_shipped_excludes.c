/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped exclude shipped: a host's own activity is excluded, users' work never is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tool_rules.h"
#include "identify/match.h"
#include "shipped_rules.h"

#define SESSION "/user.slice/user-1000.slice/session-3.scope"

static const char *
excluded_by(const struct candidate *s)
{
	const struct follow_rule *rule = NULL;

	return follow_excludes(&shipped->follow, s, false, &rule, NULL) ? rule->location.name : NULL;
}

/* As a user runs it, and as root does in a container; without arguments, which no rule needs to leave alone. */
static void
is_followed(const char *name)
{
	const char *argv[] = { name };
	char exe[256];
	struct candidate s = { .exe = exe, .comm = name, .argv = argv, .argc = 1, .cwd = "/data/work", .cgroup = SESSION,
		.has_uid = true, .uid = 1000, .words = { "", "", "", "" } };

	snprintf(exe, sizeof(exe), "/usr/bin/%s", name);
	if (excluded_by(&s) != NULL)
		fail_msg("%s is left out by '%s'", name, excluded_by(&s));
	s.cgroup = "/system.slice/docker-3c1293c6965300653aca74c68fd5e2.scope";
	s.uid = 0;
	s.words.script = exe;	/* or as a script of that name */
	if (excluded_by(&s) != NULL)
		fail_msg("%s is left out by '%s'", name, excluded_by(&s));
}

static void
every_tool_of_science_is_followed(void **state)
{
	static const char *const files[] = { "bioinformatics.yaml", "imaging.yaml", "machine-learning.yaml",
		"runtimes.yaml" };
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < shipped->tools->n_buckets; i++) {
		for (const struct tool_key *k = shipped->tools->buckets[i]; k != NULL; k = k->next) {
			bool is_science = k->rule->role != TOOL_PLAIN;

			for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++)
				is_science = is_science || strcmp(k->rule->location.file, files[f]) == 0;
			if (k->kind != TOOL_KEY_EXE || !is_science)
				continue;
			is_followed(k->name);
			n++;
		}
	}
	assert_true(n > 300);
}

static void
what_work_is_made_of_is_followed(void **state)
{
	static const char *const names[] = {
		"sh", "bash", "dash", "zsh", "fish", "python3", "python3.11", "perl", "R", "Rscript", "java", "julia", "node",
		"ruby", "awk", "gawk", "sed", "grep", "sort", "cat", "cp", "mv", "gzip", "pigz", "tar", "rsync", "curl", "wget",
		"ssh", "scp", "sftp", "sudo", "su", "env", "nohup", "time", "xargs", "parallel", "make", "ninja", "gcc", "git",
		"conda", "mamba", "pip", "nextflow", "snakemake", "cwltool", "toil", "miniwdl", "cromwell", "luigi", "dask",
		"airflow", "sbatch", "srun", "slurmstepd", "qsub", "bsub", "condor_starter", "docker", "dockerd", "podman", "runc",
		"crun", "containerd", "containerd-shim-runc-v2", "conmon", "apptainer", "singularity", "lxc-start", "kubelet",
		"diamond", "vector", "master", "monitor", "run-parts", "apt-get", "dpkg", "dnf", "rpm", "udocker", "agent",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_followed(names[i]);
}

static void
what_the_host_does_by_itself_is_left_out(void **state)
{
	static const struct {
		const char *exe, *argv[4], *cgroup, *script;
		uint32_t uid;
	} noise[] = {
		{ "/usr/sbin/sshd", { "sshd: user [priv]" }, "/system.slice/ssh.service", "", 0 },
		{ "/sbin/agetty", { "agetty", "tty1" }, "/system.slice/system-getty.slice", "", 0 },
		{ "/usr/sbin/cron", { "/usr/sbin/CRON", "-f" }, "/system.slice/cron.service", "", 0 },
		{ "/usr/lib/systemd/systemd-udevd", { "systemd-udevd" }, "/", "", 0 },
		{ "/usr/bin/kmod", { "modprobe", "-q", "x" }, "/", "", 0 },
		{ "/usr/lib/systemd/system-generators/systemd-fstab-generator", { "x" }, "/init.scope", "", 0 },
		{ "/usr/bin/dash", { "sh", "/etc/update-motd.d/10-uname" }, SESSION, "", 0 },
		{ "/usr/bin/run-parts", { "run-parts", "--report", "/etc/cron.hourly" }, "/system.slice/cron.service", "", 0 },
		{ "/usr/bin/python3.11", { "python3", "/usr/bin/unattended-upgrade" }, "/", "/usr/bin/unattended-upgrade", 0 },
		{ "/usr/bin/dpkg", { "dpkg" }, "/system.slice/apt-daily-upgrade.service", "", 0 },
		{ "/usr/bin/node_exporter", { "node_exporter" }, SESSION, "", 999 },
		{ "/usr/lib/nagios/plugins/check_disk", { "check_disk" }, "/x", "", 999 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		struct candidate s = { .exe = noise[i].exe, .argv = noise[i].argv, .cwd = "/", .cgroup = noise[i].cgroup,
			.has_uid = true, .uid = noise[i].uid, .words = { "", noise[i].script, "", "" } };

		while (s.argc < 4 && s.argv[s.argc] != NULL)
			s.argc++;
		if (excluded_by(&s) == NULL)
			fail_msg("%s is followed", noise[i].exe);
	}
}

/* Everything that conditions ask for, all of which a user can arrange. */
struct forgery {
	const char *exe, *comm, *script, *argv[3], *cwd;
	char path[512];
	bool is_of_kernel;		/* the rule names a control group, which no user can arrange */
};

static void
forge(const struct condition *c, struct forgery *f)
{
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		if (c->kind != CONDITION_NOT)
			forge(child, f);
	}
	switch (c->kind) {
	case CONDITION_EXE:
		f->exe = c->text;
		break;
	case CONDITION_PATH:
		snprintf(f->path, sizeof(f->path), "%s", c->text);
		break;
	case CONDITION_SCRIPT:
		f->script = c->text;
		break;
	case CONDITION_ARGV:
	case CONDITION_ARGV_CONTAINS:
		f->argv[1] = c->text;
		break;
	case CONDITION_ALL:
	case CONDITION_ANY:
	case CONDITION_NOT:
	case CONDITION_UID:
		break;
	case CONDITION_CGROUP:
		f->is_of_kernel = true;
		break;
	default:
		fail_msg("a shipped rule excludes by %s: forge it here", condition_kind_name(c->kind));
	}
}

/* A program that burns CPU takes the names of every shipped rule in turn. Only a name of root's is believed. */
static void
no_user_hides_behind_a_name(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < shipped->follow.n_exclude; i++) {
		const struct follow_rule *rule = &shipped->follow.exclude[i];
		const struct follow_rules alone = { .exclude = rule, .n_exclude = 1 };
		struct forgery f = { .argv = { "x" } };
		char exe[512];

		forge(rule->when, &f);
		if (f.is_of_kernel)
			continue;
		if (f.path[0] != '\0' && f.path[strlen(f.path) - 1] == '/')
			snprintf(exe, sizeof(exe), "%s%s", f.path, f.exe != NULL ? f.exe : "burner");
		else
			snprintf(exe, sizeof(exe), f.exe != NULL ? "/tmp/%s" : "%s", f.exe != NULL ? f.exe : f.path);
		struct candidate s = { .exe = exe, .comm = "x", .argv = f.argv, .argc = f.argv[1] != NULL ? 2 : 1, .cwd = "/",
			.cgroup = SESSION, .has_uid = true, .uid = 1000, .words = { "", f.script, "", "" } };
		if (follow_excludes(&alone, &s, false, NULL, NULL))
			fail_msg("a user hides as %s of '%s'", exe, rule->location.name);
		s.uid = 65534;
		if (follow_excludes(&alone, &s, false, NULL, NULL))
			fail_msg("nobody hides as %s of '%s'", exe, rule->location.name);
		s.uid = 1000;
		s.is_exe_of_root = true;	/* such as /bin/bash, of which users write the arguments */
		if ((f.script != NULL || f.argv[1] != NULL) && follow_excludes(&alone, &s, false, NULL, NULL))
			fail_msg("a user hides by the arguments of '%s'", rule->location.name);
		s.uid = 0;
		if (!follow_excludes(&alone, &s, false, NULL, NULL))
			fail_msg("'%s' was not forged: it would not hold for root either", rule->location.name);
		n++;
	}
	assert_true(n > 15);
}

/* What a user gave a machine to run at its start, or cron at a time, is work. */
static void
jobs_that_the_host_starts_are_followed(void **state)
{
	static const char *const cgroups[] = {
		"/system.slice/cloud-final.service", "/system.slice/google-startup-scripts.service",
		"/system.slice/amazon-ssm-agent.service", "/system.slice/walinuxagent.service", "/system.slice/cron.service",
		"/system.slice/ssh.service", "/system.slice/slurmstepd.scope/job_1/step_0", "/system.slice/run-u12.service",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/my.service", "/system.slice/docker.service", "/",
	};
	const char *argv[] = { "bash", "/home/u/run.sh" };

	(void)state;
	for (size_t i = 0; i < sizeof(cgroups) / sizeof(cgroups[0]); i++) {
		struct candidate s = { .exe = "/usr/bin/bash", .comm = "run.sh", .argv = argv, .argc = 2, .cwd = "/",
			.cgroup = cgroups[i], .has_uid = true, .words = { "", "/home/u/run.sh", "", "" } };

		if (excluded_by(&s) != NULL)
			fail_msg("%s is left out by '%s'", cgroups[i], excluded_by(&s));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tool_of_science_is_followed),
		cmocka_unit_test(what_work_is_made_of_is_followed),
		cmocka_unit_test(what_the_host_does_by_itself_is_left_out),
		cmocka_unit_test(jobs_that_the_host_starts_are_followed),
		cmocka_unit_test(no_user_hides_behind_a_name),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
