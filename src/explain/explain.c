/*
 * SPDX-License-Identifier: Apache-2.0
 * explain: prints how the rules classify one program.
 */
#include "explain/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/spell.h"
#include "base/steps.h"
#include "base/text.h"
#include "explain/live_process.h"
#include "identify/engine.h"
#include "identify/match.h"
#include "identify/placement.h"
#include "identify/redact.h"
#include "identify/tool.h"

enum {
	ARENA_BYTES = 32 << 20,		/* enough for any command line */
	COMM_LEN_MAX = 15,
	SCRIPT_LINE_MAX = 256,		/* bytes of a script's first line that the kernel reads */
	SCRIPTS_MAX = 5,		/* scripts that the kernel follows as interpreters of each other */
	LOCATION_SIZE = 512,
};

/* Prints a line, spelt out: a program's name cannot control the terminal. */
static void __attribute__((format(printf, 3, 4)))
line(FILE *f, const char *label, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	spell_line(f, "%-13s%s\n", label, len >= 0 ? text : "no memory");
	if (len >= 0)
		free(text);
}

/* Prints an indented line, unless the value is unknown. */
static void
line_if(FILE *f, const char *label, const char *value)
{
	char name[32];

	snprintf(name, sizeof(name), "  %s", label);
	if (value != NULL && value[0] != '\0')
		line(f, name, "%s", value);
}

/* Prints the arguments on one line, and quotes those that contain blanks or quotes. */
static void
explain_arguments(const char *const *argv, size_t argc, FILE *f)
{
	struct bytes all = { 0 };
	bool is_whole = true;

	for (size_t i = 0; i < argc; i++) {
		const char *quote = argv[i][0] == '\0' || strpbrk(argv[i], " \t\n'\"") != NULL ? "'" : "";

		is_whole = is_whole && (i == 0 || bytes_append(&all, " ", 1) == 0) &&
		    bytes_append(&all, quote, strlen(quote)) == 0 &&
		    bytes_append(&all, argv[i], strlen(argv[i])) == 0 &&
		    bytes_append(&all, quote, strlen(quote)) == 0;
	}
	line(f, "argv", "%.*s", is_whole ? (int)all.len : 0, all.data != NULL ? (const char *)all.data : "");
	bytes_done(&all);
}

static void
explain_program(const struct candidate *s, const struct explain_around *around, FILE *f)
{
	if (s->exe != NULL)
		line(f, "exe", "%s", s->exe);
	else
		line(f, "exe", "unknown: %s", around->no_exe);
	if (around->argv != NULL)
		explain_arguments(around->argv, around->argc, f);
	else
		explain_arguments(s->argv, s->argc, f);
	line(f, "cwd", "%s", s->cwd != NULL ? s->cwd : "unknown");
	line(f, "cgroup", "%s", s->cgroup != NULL ? s->cgroup : "unknown");
	line_if(f, "v1", s->cgroup_v1);
	if (s->has_uid)
		line(f, "uid", "%u", (unsigned)s->uid);
}

/* Returns a rule's source location and name: "exclude.yaml:34 (login)". p NULL: "no rule". */
static const char *
location_text(const struct rule_location *p, char *buf, size_t size)
{
	int len = p != NULL ? snprintf(buf, size, "%s:%u", p->file, p->line) : snprintf(buf, size, "no rule");

	if (p != NULL && strcmp(buf, p->name) != 0 && (size_t)len < size)
		snprintf(buf + len, size - (size_t)len, " (%s)", p->name);
	return buf;
}

static void
explain_tool(const struct ruleset *rules, struct candidate *s, bool has_words, char tool[TOOL_NAME_SIZE], FILE *f)
{
	struct tool_reason reason = { 0 };
	char by[LOCATION_SIZE];

	tool_explain(rules, s, tool, TOOL_NAME_SIZE, &reason);
	if (tool[0] == '\0')
		line(f, "tool", "unknown");
	else if (reason.location != NULL)
		line(f, "tool", "%s, by %s%s", tool, location_text(reason.location, by, sizeof(by)),
		    s->is_tool ? "" : ": part of the tool that runs it");
	else
		line(f, "tool", "%s, no rule names it: from its %s", tool, reason.rule);
	if (!has_words)
		return;
	line_if(f, "subcommand", s->words.subcommand);
	line_if(f, "script", s->words.script);
	line_if(f, "jar", s->words.jar);
	line_if(f, "class", s->words.class);
}

static void
explain_follow(const struct ruleset *rules, const struct candidate *s, bool is_inside, FILE *f)
{
	const struct follow_rule *rule = NULL;
	bool is_inside_after = false;
	bool is_excluded = follow_excludes(&rules->follow, s, is_inside, &rule, &is_inside_after);
	const struct follow_rule *distrusts = is_excluded ? NULL : follow_distrusts(&rules->follow, s);
	char by[LOCATION_SIZE];

	if (steps_are_spent())
		line(f, "followed", "yes: the rules gave up, after too many steps over its arguments");
	else if (is_excluded && rule != NULL)
		line(f, "followed", "no: exclude, by %s; its children are judged separately",
		    location_text(&rule->location, by, sizeof(by)));
	else if (is_excluded)
		line(f, "followed", "no: there are include rules, and none of them holds");
	else if (rule != NULL)
		line(f, "followed", "yes: include, by %s; so are its children",
		    location_text(&rule->location, by, sizeof(by)));
	else if (rules->follow.n_include > 0)
		line(f, "followed", "yes: it descends from a program for which an include rule holds");
	else
		line(f, "followed", "yes: no exclude rule holds%s", distrusts != NULL ? " that trusts it" : "");
	if (distrusts != NULL)
		line(f, "  distrusted", "by %s: %s", location_text(&distrusts->location, by, sizeof(by)),
		    distrusts->trust == TRUST_USER ? "its user is none of the system" :
		    "its user is none of the system, and root does not own the executable");
}

static void
explain_engine(const struct ruleset *rules, const struct candidate *s, const char *engine, FILE *f)
{
	static const char *const roles[] = {
		[ENGINE_DRIVER] = "a driver: it begins a run",
		[ENGINE_TASK] = "a task, with its descendants",
		[ENGINE_JOINS] = "a task, if it or its run is known",
		[ENGINE_NAMES] = "it names a task that runs elsewhere",
	};
	struct engine_verdict v;
	char by[LOCATION_SIZE];

	engine_judge(rules, s, engine, &v);
	if (steps_are_spent()) {
		line(f, "engine", "unknown: the rules gave up, after too many steps over its arguments");
		return;
	}
	if (v.role == ENGINE_NONE && !v.is_overhead) {
		line(f, "engine", "none: no rule holds");
		return;
	}
	line(f, "engine", "%s: %s%s, by %s", v.engine != NULL ? v.engine : "unknown",
	    v.role == ENGINE_NONE ? "the engine's own work, not a task's" : roles[v.role],
	    v.role != ENGINE_NONE && v.is_overhead ? "; the engine's own work, not a task's" : "",
	    location_text(v.rule, by, sizeof(by)));
	line_if(f, "pipeline", v.pipeline);
	line_if(f, "run name", v.run_name);
	line_if(f, "run key", v.run_key);
	line_if(f, "root", v.root);
	line_if(f, "task", v.task);
	line_if(f, "task id", v.task_id);
	line_if(f, "sample", v.sample);
	line_if(f, "work dir", v.work_dir);
	line_if(f, "header", v.header);
	if (v.attempt.known)
		line(f, "  attempt", "%d", (int)v.attempt.value);
	if (v.source != NULL)
		line(f, "  evidence", "%s, confidence %g", v.source, v.confidence);
}

/* Prints the time of submission and the cluster that a Slurm job's SLUID contains. */
static void
explain_sluid(const char *job, FILE *f)
{
	uint32_t cluster;
	int64_t ms;
	time_t seconds;
	struct tm tm;
	char text[64];

	if (!slurm_sluid_decode(job, &cluster, &ms))
		return;
	seconds = (time_t)(ms / 1000);
	if (gmtime_r(&seconds, &tm) != NULL && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) > 0)
		line(f, "  submitted", "%s.%03dZ, in cluster number %u, from its SLUID", text, (int)(ms % 1000),
		    (unsigned)cluster);
}

static void
explain_placement(const struct placement *p, FILE *f)
{
	if (p->scheduler == NULL) {
		line(f, "scheduler", "none: no rule holds");
	} else {
		line(f, "scheduler", "%s%s", p->scheduler, p->is_batch ? ": its job is a run" : "");
		line_if(f, "job", p->job);
		explain_sluid(p->job, f);
		line_if(f, "step", p->step);
		line_if(f, "task", p->task);
		line_if(f, "user", p->user);
		line_if(f, "cluster", p->cluster);
		line_if(f, "node", p->node);
		line(f, "  evidence", "%s, confidence %g", p->scheduler_source, p->scheduler_confidence);
		if (p->scheduler_witness != WITNESS_SYSTEM && p->claimed_by != UINT32_MAX)
			line(f, "  said by", "user %u%s", (unsigned)p->claimed_by,
			    p->scheduler_witness == WITNESS_DAEMON ? ", below the scheduler's daemon" : " alone");
	}
	if (!p->has_container) {
		line(f, "container", "none: no rule holds");
		line_if(f, "pod", p->pod);
		return;
	}
	line(f, "container", "%s%s", p->runtime != NULL ? p->runtime : "of an unknown runtime",
	    p->is_outside ? ": not this program, only its children" : "");
	line_if(f, "id", p->container);
	line_if(f, "name", p->name);
	line_if(f, "image", p->image);
	line_if(f, "pod", p->pod);
	line(f, "  evidence", "%s, confidence %g", p->container_source, p->container_confidence);
}

void
explain_candidate(const struct ruleset *rules, struct candidate *s, const struct explain_around *around, FILE *f)
{
	char tool[TOOL_NAME_SIZE];
	struct placement placement = { 0 };
	struct steps steps;

	explain_program(s, around, f);
	explain_tool(rules, s, around->argv == NULL, tool, f);
	placement_of_cgroup(rules, s->cgroup, s->cgroup_v1, &placement);
	steps_begin(&steps, RULES_STEPS);
	placement_of_program(rules, s, &placement);
	if (s->image == NULL && placement.image[0] != '\0' && !placement.is_outside)
		s->image = placement.image;
	explain_follow(rules, s, around->is_inside, f);
	explain_engine(rules, s, around->engine, f);
	steps_end(&steps);
	explain_placement(&placement, f);
}

/* A command line that is resolved to the program that the kernel runs. All memory is the arena's. */
struct program {
	struct arena *arena;
	const char **argv;
	size_t argc;
	const char *path;	/* path of the program; NULL: not found */
};

static const char *
copy(struct arena *a, const char *text)
{
	return arena_copy(a, text, strlen(text));
}

static bool
is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Searches PATH like execvp(3). NULL: not found. */
static const char *
find_in_path(struct arena *a, const char *name)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/') != NULL)
		return is_executable(name) ? name : NULL;
	for (const char *dir = dirs != NULL ? dirs : "/bin:/usr/bin", *end; name[0] != '\0'; dir = end + 1) {
		end = strchrnul(dir, ':');
		if ((size_t)snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dir), dir, end > dir ? "/" : "",
		    name) < sizeof(path) && is_executable(path))
			return copy(a, path);
		if (*end == '\0')
			break;
	}
	return NULL;
}

/* Reads the first line of a script after its #!, without surrounding blanks. False: not a script. */
static bool
read_script_line(const char *path, char buf[SCRIPT_LINE_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? pread(fd, buf, SCRIPT_LINE_MAX - 1, 0) : -1;
	size_t blanks;

	if (fd >= 0)
		close(fd);
	if (n < 3 || buf[0] != '#' || buf[1] != '!')
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	blanks = 2 + strspn(buf + 2, " \t");
	memmove(buf, buf + blanks, strlen(buf + blanks) + 1);
	for (size_t len = strlen(buf); len > 0 && strchr(" \t", buf[len - 1]) != NULL; len--)
		buf[len - 1] = '\0';
	return buf[0] != '\0';
}

/* Prepends the interpreter and its option, and replaces argv[0] by the script's path. 0 or -ENOMEM. */
static int
put_interpreter(struct program *p, const char *script_line)
{
	size_t len = strcspn(script_line, " \t"), n = 1;
	const char *interpreter = arena_copy(p->arena, script_line, len);
	const char *option = script_line + len + strspn(script_line + len, " \t");
	const char **argv;

	n += option[0] != '\0';		/* the rest of the line is one argument */
	argv = arena_alloc(p->arena, (p->argc + n + 1) * sizeof(*argv));
	option = copy(p->arena, option);
	if (interpreter == NULL || argv == NULL || option == NULL)
		return -ENOMEM;
	argv[0] = interpreter;
	argv[1] = option;
	argv[n] = p->path;
	memcpy(argv + n + 1, p->argv + 1, (p->argc - 1) * sizeof(*argv));
	p->argv = argv;
	p->argc += n;
	p->path = is_executable(interpreter) ? interpreter : NULL;
	return 0;
}

/* Replaces `env` in a script's first line by the program that it runs. */
static bool
pass_env(struct program *p)
{
	const char *slash = p->path != NULL ? strrchr(p->path, '/') : NULL;

	if (slash == NULL || strcmp(slash, "/env") != 0 || p->argc < 3 || p->argv[1][0] == '-' ||
	    strchr(p->argv[1], '=') != NULL || strpbrk(p->argv[1], " \t") != NULL)
		return false;
	p->argv++;
	p->argc--;
	p->path = find_in_path(p->arena, p->argv[0]);
	return true;
}

/* Resolves scripts to interpreters like execve(2). *ret_comm: path of the kernel's comm. 0 or -ENOMEM. */
static int
follow_scripts(struct program *p, const char **ret_comm)
{
	char buf[SCRIPT_LINE_MAX];

	for (int i = 0; i < SCRIPTS_MAX && p->path != NULL && read_script_line(p->path, buf); i++) {
		int r = put_interpreter(p, buf);

		if (r < 0)
			return r;
		if (pass_env(p) && p->path != NULL)
			*ret_comm = p->path;
	}
	return 0;
}

static const char *
comm_of(struct arena *a, const char *path)
{
	const char *name = text_base_name(path);

	return arena_copy(a, name, strnlen(name, COMM_LEN_MAX));
}

/* Returns bytes escaped as text, as in the records; NULL without memory. */
static const char *
as_text(struct arena *a, const char *bytes)
{
	size_t len = strlen(bytes);
	char *text;

	if (text_is_plain(bytes, len))
		return bytes;
	text = arena_bytes(a, TEXT_ESCAPE_MAX(len));
	if (text != NULL)
		text_escape(bytes, len, text, TEXT_ESCAPE_MAX(len), NULL);
	return text;
}

/* Reads this process' v2 path, and that of the first v1 hierarchy in which it is not at the root. */
static void
read_own_cgroup(struct arena *a, struct candidate *s)
{
	struct file_text t = { 0 };
	char *save = NULL;

	if (file_read(AT_FDCWD, "/proc/self/cgroup", &t, 64 << 10) < 0)
		return;
	for (char *l = strtok_r(t.text, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
		char *path = strchr(l, '/');

		if (strncmp(l, "0::", 3) == 0 && path != NULL)
			s->cgroup = copy(a, path);
		else if (path != NULL && path[1] != '\0' && s->cgroup_v1 == NULL)
			s->cgroup_v1 = copy(a, path);
	}
	file_text_done(&t);
}

static int
make_candidate(const struct ruleset *rules, const struct explain_options *o, struct arena *a, struct candidate *s)
{
	struct program p = { .arena = a };
	char path[PATH_MAX];
	const char *comm;

	p.argv = arena_alloc(a, (o->argc + 1) * sizeof(*p.argv));
	if (p.argv == NULL)
		return -ENOMEM;
	p.argc = o->argc;
	memcpy(p.argv, o->argv, o->argc * sizeof(*p.argv));
	p.path = o->exe != NULL ? o->exe : find_in_path(a, p.argv[0]);
	comm = p.path != NULL ? p.path : p.argv[0];
	if (o->exe == NULL && follow_scripts(&p, &comm) < 0)
		return -ENOMEM;
	if (p.path != NULL && o->exe == NULL && realpath(p.path, path) != NULL)
		p.path = copy(a, path);
	for (size_t i = 0; i < p.argc; i++) {
		p.argv[i] = as_text(a, p.argv[i]);
		if (p.argv[i] == NULL)
			return -ENOMEM;
	}
	redact_argv(rules, p.argv, p.argc, a);
	s->exe = p.path;
	s->comm = comm_of(a, comm);
	s->argv = p.argv;
	s->argc = p.argc;
	s->cwd = o->cwd != NULL ? o->cwd : getcwd(path, sizeof(path)) != NULL ? copy(a, path) : NULL;
	s->has_uid = true;
	s->uid = o->has_uid ? o->uid : (uint32_t)getuid();
	s->is_exe_of_root = p.path != NULL && executable_is_of_root(p.path);
	if (o->cgroup == NULL)
		read_own_cgroup(a, s);
	else if (o->cgroup[0] != '\0')
		s->cgroup = o->cgroup;
	return 0;
}

int
explain_command(const struct ruleset *rules, const struct explain_options *o, FILE *f)
{
	struct candidate s = { 0 };
	struct arena a;
	int r = arena_init(&a, ARENA_BYTES);

	if (r == 0)
		r = make_candidate(rules, o, &a, &s);
	if (r == 0)
		explain_candidate(rules, &s, &(struct explain_around){ .no_exe = "not found in PATH" }, f);
	arena_done(&a);
	return r;
}
