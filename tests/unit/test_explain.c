/* SPDX-License-Identifier: Apache-2.0 */
/* explain: the program that the kernel would run, and the rules that apply to it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "explain/explain.h"
#include "hostile.h"
#include "rules/rules.h"
#include "tree.h"

static const char rules_text[] =
    "exclude:\n"
    "  - {name: noise, exe: poller}\n"
    "include:\n"
    "  - {cwd: /science/}\n"
    "tools:\n"
    "  - {exe: bwa, subcommands: [mem]}\n"
    "  - {exe: sh, role: shell, runs: true}\n";

static struct ruleset *
rules_of(const char *text)
{
	const struct rules_extra extra = { "r.yaml", text, strlen(text) };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *rules = NULL;

	if (rules_load(&o, &rules, &errors) < 0) {
		config_errors_print(&errors, stderr);
		fail();
	}
	return rules;
}

static struct explain_options
options_of(const char *const *argv)
{
	struct explain_options o = { .cwd = "/w", .cgroup = "", .has_uid = true, .uid = 7, .argv = argv };

	while (argv[o.argc] != NULL)
		o.argc++;
	return o;
}

/* The caller frees it. */
static char *
explained(const char *rules_yaml, const struct explain_options *o)
{
	struct ruleset *rules = rules_of(rules_yaml);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(explain_command(rules, o, f), 0);
	fclose(f);
	ruleset_unref(rules);
	return text;
}

static void
has_line(const char *text, const char *want)
{
	const char *at = strstr(text, want);
	size_t len = strlen(want);

	if (at == NULL || (at > text && at[-1] != '\n') || at[len] != '\n')
		fail_msg("no line '%s' in\n%s", want, text);
}

#define ARGV(...) (const char *[]){ __VA_ARGS__, NULL }

static void
every_part_has_its_line(void **state)
{
	struct explain_options o = options_of(ARGV("bwa", "mem", "my ref.fa"));
	char *text;

	(void)state;
	o.exe = "/opt/bwa";
	text = explained(rules_text, &o);
	assert_string_equal(text,
	    "exe          /opt/bwa\n"
	    "argv         bwa mem 'my ref.fa'\n"
	    "cwd          /w\n"
	    "cgroup       unknown\n"
	    "uid          7\n"
	    "tool         bwa mem, by r.yaml:6\n"
	    "  subcommand mem\n"
	    "followed     no: there are include rules, and none of them holds\n"
	    "engine       none: no rule holds\n"
	    "scheduler    none: no rule holds\n"
	    "container    none: no rule holds\n");
	free(text);
}

static void
the_rule_that_decides_is_named(void **state)
{
	struct explain_options o = options_of(ARGV("poller"));
	char *text;

	(void)state;
	o.exe = "/opt/poller";
	text = explained(rules_text, &o);
	has_line(text, "followed     no: exclude, by r.yaml:2 (noise); its children are judged separately");
	has_line(text, "tool         poller, no rule names it: from its exe");
	free(text);
	o.exe = "/opt/other";
	o.cwd = "/science/a";
	text = explained(rules_text, &o);
	has_line(text, "followed     yes: include, by r.yaml:4; so are its children");
	free(text);
	text = explained("exclude: [{exe: x}]\n", &o);
	has_line(text, "followed     yes: no exclude rule holds");
	free(text);
}

/* Of a name that any user can take. */
static void
a_rule_that_does_not_trust_the_program_is_named(void **state)
{
	struct explain_options o = options_of(ARGV("sshd"));
	char *text;

	(void)state;
	o.exe = "/nowhere/sshd";
	o.has_uid = true;
	o.uid = 1000;
	text = explained("exclude: [{exe: sshd}]\n", &o);
	has_line(text, "followed     yes: no exclude rule holds that trusts it");
	has_line(text, "  distrusted by r.yaml:1: its user is none of the system, and root does not own the executable");
	free(text);
	text = explained("exclude: [{exe: sshd, trust: any}]\n", &o);
	has_line(text, "followed     no: exclude, by r.yaml:1; its children are judged separately");
	free(text);
	o.uid = 999;
	text = explained("exclude: [{exe: sshd}]\n", &o);
	has_line(text, "followed     no: exclude, by r.yaml:1; its children are judged separately");
	free(text);
}

static void
an_sluid_tells_when_its_job_was_submitted(void **state)
{
	struct explain_options o = options_of(ARGV("bwa"));
	struct ruleset *rules = rules_shipped();
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	o.exe = "/opt/bwa";
	o.cgroup = "/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch/user/task_0";
	assert_int_equal(explain_command(rules, &o, f), 0);
	fclose(f);
	ruleset_unref(rules);
	has_line(text, "  job        s8FXKTA79XAR00");
	has_line(text, "  submitted  2026-06-04T21:05:53.496Z, in cluster number 2175, from its SLUID");
	free(text);
}

static void
secrets_and_control_characters_are_not_shown(void **state)
{
	struct explain_options o = options_of(ARGV("bwa", "--password=secret", "a\x1b[2Jb\nc", "\xff"));
	char *text;

	(void)state;
	o.exe = "/opt/bwa";
	text = explained("", &o);
	has_line(text, "argv         bwa --password=*** 'a\\x1b[2Jb\\nc' \\xff");
	free(text);
}

static void
write_executable(const struct tree *t, const char *path, const char *text)
{
	tree_write(t, path, text);
	assert_int_equal(chmod(tree_path(t, path), 0755), 0);
}

static void
a_program_is_found_as_a_shell_would(void **state)
{
	struct explain_options o = options_of(ARGV("tool", "x"));
	char want[256], dirs[512], *text, *before = strdup(getenv("PATH"));
	struct tree t;

	(void)state;
	tree_init(&t);
	tree_write(&t, "one/tool", "");			/* may not be run */
	write_executable(&t, "three/tool-1.2", "\177ELF");
	tree_mkdir(&t, "two");
	assert_int_equal(symlink("../three/tool-1.2", tree_path(&t, "two/tool")), 0);
	snprintf(dirs, sizeof(dirs), "/not/there:%s:%s", tree_path(&t, "one"), tree_path(&t, "two"));
	setenv("PATH", dirs, 1);
	text = explained("", &o);
	snprintf(want, sizeof(want), "exe          %s", tree_path(&t, "three/tool-1.2"));	/* behind the link */
	has_line(text, want);
	free(text);
	o.argv = ARGV("no-such-tool");
	o.argc = 1;
	text = explained("", &o);
	has_line(text, "exe          unknown: not found in PATH");
	free(text);
	setenv("PATH", before, 1);
	free(before);
	tree_done(&t);
}

static void
a_script_is_its_interpreter(void **state)
{
	char want[512], line[512], script[256], *text;
	struct explain_options o = options_of(ARGV(script, "x"));
	struct tree t;

	(void)state;
	tree_init(&t);
	write_executable(&t, "bin/sh", "\177ELF");
	snprintf(line, sizeof(line), "#! %s -e  -u \nexit\n", tree_path(&t, "bin/sh"));
	write_executable(&t, "step.sh", line);
	snprintf(script, sizeof(script), "%s", tree_path(&t, "step.sh"));
	text = explained(rules_text, &o);
	snprintf(want, sizeof(want), "exe          %s", tree_path(&t, "bin/sh"));
	has_line(text, want);
	/* All behind the interpreter is one argument, as execve(2) has it. */
	snprintf(want, sizeof(want), "argv         %s '-e  -u' %s x", tree_path(&t, "bin/sh"), script);
	has_line(text, want);
	free(text);
	/* Its own name is still the kernel's. */
	text = explained("exclude: [{name: by comm, comm: step.sh}]\n", &o);
	has_line(text, "followed     no: exclude, by r.yaml:1 (by comm); its children are judged separately");
	free(text);
	/* Unless the executable is given. */
	o.exe = script;
	text = explained(rules_text, &o);
	snprintf(want, sizeof(want), "exe          %s", script);
	has_line(text, want);
	free(text);
	tree_done(&t);
}

static void
scripts_of_scripts_end(void **state)
{
	char line[512], script[256], *text;
	struct explain_options o = options_of(ARGV(script));
	struct tree t;

	(void)state;
	tree_init(&t);
	snprintf(script, sizeof(script), "%s", tree_path(&t, "self"));
	snprintf(line, sizeof(line), "#!%s\n", script);
	write_executable(&t, "self", line);
	text = explained("", &o);
	assert_non_null(strstr(text, script));
	free(text);
	tree_done(&t);
}

static void
env_of_a_script_gives_way_to_what_it_runs(void **state)
{
	char want[512], script[256], dirs[512], *text, *before = strdup(getenv("PATH"));
	struct explain_options o = options_of(ARGV(script, "x"));
	struct tree t;

	(void)state;
	tree_init(&t);
	write_executable(&t, "bin/sh", "\177ELF");
	write_executable(&t, "step", "#!/usr/bin/env sh\n");
	snprintf(script, sizeof(script), "%s", tree_path(&t, "step"));
	snprintf(dirs, sizeof(dirs), "%s", tree_path(&t, "bin"));
	setenv("PATH", dirs, 1);
	text = explained(rules_text, &o);
	snprintf(want, sizeof(want), "exe          %s", tree_path(&t, "bin/sh"));
	has_line(text, want);
	snprintf(want, sizeof(want), "argv         sh %s x", script);
	has_line(text, want);
	free(text);
	setenv("PATH", before, 1);
	free(before);
	tree_done(&t);
}

static void
an_explanation_is_safe(const struct hostile_name *h, void *arg)
{
	struct explain_options o = options_of(ARGV("bwa", h->name));
	char *text;

	(void)arg;
	o.exe = o.cwd = o.cgroup = h->name;
	text = explained(rules_text, &o);
	hostile_is_safe(h, text, true);
	free(text);
}

static void
no_hostile_name_acts_on_the_terminal(void **state)
{
	(void)state;
	hostile_each(an_explanation_is_safe, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_has_its_line),
		cmocka_unit_test(the_rule_that_decides_is_named),
		cmocka_unit_test(a_rule_that_does_not_trust_the_program_is_named),
		cmocka_unit_test(an_sluid_tells_when_its_job_was_submitted),
		cmocka_unit_test(secrets_and_control_characters_are_not_shown),
		cmocka_unit_test(a_program_is_found_as_a_shell_would),
		cmocka_unit_test(a_script_is_its_interpreter),
		cmocka_unit_test(scripts_of_scripts_end),
		cmocka_unit_test(env_of_a_script_gives_way_to_what_it_runs),
		cmocka_unit_test(no_hostile_name_acts_on_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
