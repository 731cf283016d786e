/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice run: loads the probes, or subscribes to the events of the agent of this host; runs COMMAND as if it were
 * alone; prints what ran.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "agent/run.h"
#include "attach/variables.h"
#include "base/aside.h"
#include "base/format.h"
#include "base/spell.h"
#include "cli/analytics.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/delay_accounting.h"
#include "cli/host_agent.h"
#include "cli/persona.h"
#include "cli/run_confine.h"
#include "cli/summary.h"
#include "control/control.h"
#include "reader/nursery.h"
#include "rules/rules.h"

static const char help[] =
    "Usage: sluice run [OPTION…] [--] COMMAND [ARG…]\n"
    "Runs COMMAND, records every program that descends from it, and prints a table at the\n"
    "end (on stderr). COMMAND has the same input, output, terminal, signals and environment\n"
    "as without sluice, and sluice ends with its exit status. Where an agent of this host runs,\n"
    "any user may do so: its probes are used. Else it needs root: `sudo sluice run …` runs\n"
    "COMMAND as the user who called sudo.\n\n"
    "  --pipeline P     name of the pipeline in the records\n"
    "  --run ID         run id (default: a new UUID); without root .uUID is added, of the user\n"
    "  --task T         make all of COMMAND one task of this name\n"
    "  --sample S       sample of the programs whose step does not name one\n"
    "  --lake DIR       write records to this folder (default: ./sluice-lake)\n"
    "  --json FILE      also write the summary as one JSON object; - is standard output\n"
    "  --report FILE    at the end, write the run as an HTML page, with sluice-tune\n"
    "  --rules DIR      rules in addition to the built-in ones\n"
    "                   (default: " RULES_DIR ")\n"
    "  --control PATH   socket of the agent of this host; an agent that listens there records\n"
    "                   these programs with the same run, and passes their events on (default:\n"
    "                   " CONTROL_PATH ", or " CONTROL_RUN_PATH ")\n"
    "  --own-probes     load probes even if the agent of this host would pass events on; so do\n"
    "                   --rules and --trace-env, since the agent has its own of both\n"
    "  --no-headers     read no file in which Nextflow or Snakemake names its tasks and samples\n"
    "  --interval TIME  time between usage and host records: 500ms, 10s, 1m (default: 10s)\n"
    "  --trace-env NAME put this environment variable of each program into its records, such\n"
    "                   as TRACEPARENT; up to 8 times. No other variable is ever read\n"
    "  --delay-accounting\n"
    "                   count what programs wait for storage, swap and memory: as root, switch\n"
    "                   kernel.task_delayacct on for the whole host, until the end of the run\n"
    "  --wait           wait for programs that outlive COMMAND\n"
    "  --as-root        under sudo: run COMMAND as root nevertheless\n"
    "  --quiet          print neither the live line nor the table\n"
    "  -h, --help       print this help\n\n"
    "Exit status: that of COMMAND; 128+n if signal n ended it; 125 sluice itself failed;\n"
    "126 COMMAND cannot be executed; 127 COMMAND was not found; 2 wrong usage.\n";

struct run {
	struct event_base *base;
	struct nursery *nursery;
	struct agent *agent;
	struct command *command;
	struct event *on_second;
	FILE *json;			/* NULL: no JSON */
	struct analytics_report report;
	struct aside delay_accounting;
	char *run_id;			/* owned; of the report, which is written after the agent is freed */
	const struct run_options *options;
	int host_agent;			/* connection to an agent of this host; -1: none */
	bool is_unrecorded;		/* no events are passed on, which was reported */
	bool is_live_line_shown;
	int wait_status;
	char error[PATH_MAX + 256];	/* why this process cannot be confined; "": it can */
};

#define VARIABLES_MAX 8
#define START_AFTER_MS 1000		/* the default of records.start_after in sluice.yaml */

/* The defaults of findings in sluice.yaml. */
static const struct finding_limits finding_limits = { .stuck_ms = 300000, .stuck_in_io_ms = 60000, .idle_ms = 600000,
	.throttled_ms = 60000, .memory_pressure_ms = 60000, .disk_full_ms = 10000 };

struct run_options {
	struct agent_run_options agent;
	const char *variables[VARIABLES_MAX];
	const char *json;
	const char *report;		/* file of the report; NULL: none */
	char tune[PATH_MAX];		/* path of sluice-tune, which writes the report */
	const char *control;		/* socket of an agent that may run on this host; NULL: the default ones */
	char run_suffix[HOST_AGENT_SUFFIX_SIZE];
	const char *rules;		/* a folder; NULL: RULES_DIR, if it exists */
	bool is_quiet;
	bool has_delay_accounting;	/* switched on for the run */
	bool has_own_probes;		/* even if the agent of this host would pass events on */
	bool wait_for_all;
	bool as_root;
};

static void
before_fork(void *arg)
{
	agent_adopt(((struct run *)arg)->agent, true);
}

/* COMMAND runs whatever the agent of the host answers. */
static void
subscribe(struct run *r, pid_t pid)
{
	int fd = r->host_agent;
	char error[512];

	if (host_agent_subscribe(fd, pid, agent_run_id(r->agent), &r->options->agent, error, sizeof(error))) {
		r->host_agent = -1;	/* the agent's from now on */
		if (agent_receive(r->agent, fd) == 0)
			return;
		snprintf(error, sizeof(error), "out of memory");
	}
	r->is_unrecorded = true;
	spell_line(stderr, "sluice run: COMMAND runs, and is not recorded: %s; --own-probes records it without the agent of "
	    "this host\n", error);
}

static int
after_fork(pid_t pid, void *arg)
{
	struct run *r = arg;

	agent_adopt(r->agent, false);
	agent_raise_priority();
	if (pid < 0)
		return 0;
	if (r->options->agent.is_subscriber)
		subscribe(r, pid);
	else
		r->host_agent = host_agent_announce(r->options->control, pid, agent_run_id(r->agent),
		    &r->options->agent);
	/* COMMAND's process has what it needs, and this one no thread yet: the lake's starts on the loop. */
	return run_confine(r->options->agent.lake, !r->options->agent.is_subscriber, r->error, sizeof(r->error));
}

static unsigned
terminal_width(void)
{
	struct winsize size;

	if (!isatty(STDERR_FILENO) || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

/* Returns false if COMMAND reads the terminal key by key, since it then draws on it as well. */
static bool
live_line_is_welcome(const struct run *r)
{
	struct termios mode;

	return !r->options->is_quiet && isatty(STDERR_FILENO) && command_in_foreground() &&
	    tcgetattr(STDERR_FILENO, &mode) == 0 && (mode.c_lflag & ICANON) != 0;
}

static void
live_line_clear(struct run *r)
{
	if (r->is_live_line_shown && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	r->is_live_line_shown = false;
}

/* Returns the cursor to the start of the line, so that COMMAND's next output overwrites it. */
static void
on_second(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;
	struct run_totals totals = agent_totals(r->agent);
	char wall[FORMAT_SIZE], programs[FORMAT_SIZE], memory[FORMAT_SIZE], cores[FORMAT_SIZE];
	char line[200];
	unsigned width = terminal_width();

	(void)fd;
	(void)what;
	if (!live_line_is_welcome(r))
		return;
	snprintf(line, sizeof(line), "sluice %s  %s programs, %llu running  %s of %u cpus  %s",
	    format_duration(totals.wall_ns, wall, sizeof(wall)),
	    format_count(totals.programs, programs, sizeof(programs)), (unsigned long long)totals.live,
	    format_cores(agent_cores_now(r->agent), cores, sizeof(cores)), agent_cpus(r->agent),
	    format_bytes(correlator_attributed_rss(agent_correlator(r->agent)), memory, sizeof(memory)));
	if (width > 1 && strlen(line) >= width)
		line[width - 1] = '\0';
	fprintf(stderr, "\r\033[2m%s\033[0m\033[K\r", line);
	r->is_live_line_shown = true;
}

static void
on_finished(void *arg)
{
	struct run *r = arg;

	event_base_loopbreak(r->base);
}

static void
on_command_exit(int wait_status, const struct rusage *usage, void *arg)
{
	struct run *r = arg;

	(void)usage;
	r->wait_status = wait_status;
	agent_finish(r->agent, wait_status, r->options->wait_for_all, on_finished, r);
}

/* Removes the live line before the shell writes its prompt there. */
static void
on_stop(bool is_stopping, void *arg)
{
	if (is_stopping)
		live_line_clear(arg);
}

static void
on_interrupt(int signo, void *arg)
{
	(void)signo;
	agent_finish_now(((struct run *)arg)->agent);
}

/* Parses "500ms", "10s", "1m"; a number without unit is seconds. Returns 0 if it is neither. */
static uint64_t
parse_interval_ms(const char *text)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "", 1000 }, { "m", 60000 }, { "min", 60000 }, { "h", 3600000 } };
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno != 0 || !(value > 0))
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			value *= units[i].ms;
			return value >= 100 && value <= 86400000 ? (uint64_t)value : 0;
		}
	}
	return 0;
}

static bool
add_variable(struct run_options *o, const char *name)
{
	if (!variable_is_name(name)) {
		fputs("sluice run: --trace-env takes the exact name of an environment variable, such as "
		    "TRACEPARENT, of up to 63 characters\n", stderr);
		return false;
	}
	if (o->agent.agent.n_variables == VARIABLES_MAX) {
		fprintf(stderr, "sluice run: --trace-env may be given at most %d times\n", VARIABLES_MAX);
		return false;
	}
	o->variables[o->agent.agent.n_variables++] = name;
	o->agent.agent.variables = o->variables;
	return true;
}

/* Returns 0 to continue, -1 after --help, or the exit status to end with. */
static int
parse(int argc, char **argv, struct run_options *o)
{
	enum { OPT_PIPELINE = 256, OPT_RUN, OPT_TASK, OPT_SAMPLE, OPT_LAKE, OPT_JSON, OPT_REPORT, OPT_RULES,
		OPT_CONTROL, OPT_OWN_PROBES, OPT_NO_HEADERS, OPT_INTERVAL, OPT_TRACE_ENV, OPT_DELAY_ACCOUNTING,
		OPT_WAIT, OPT_AS_ROOT, OPT_QUIET };
	static const struct option options[] = {
		{ "pipeline", required_argument, NULL, OPT_PIPELINE },
		{ "run", required_argument, NULL, OPT_RUN },
		{ "task", required_argument, NULL, OPT_TASK },
		{ "sample", required_argument, NULL, OPT_SAMPLE },
		{ "lake", required_argument, NULL, OPT_LAKE },
		{ "json", required_argument, NULL, OPT_JSON },
		{ "report", required_argument, NULL, OPT_REPORT },
		{ "rules", required_argument, NULL, OPT_RULES },
		{ "control", required_argument, NULL, OPT_CONTROL },
		{ "own-probes", no_argument, NULL, OPT_OWN_PROBES },
		{ "no-headers", no_argument, NULL, OPT_NO_HEADERS },
		{ "interval", required_argument, NULL, OPT_INTERVAL },
		{ "trace-env", required_argument, NULL, OPT_TRACE_ENV },
		{ "delay-accounting", no_argument, NULL, OPT_DELAY_ACCOUNTING },
		{ "wait", no_argument, NULL, OPT_WAIT },
		{ "as-root", no_argument, NULL, OPT_AS_ROOT },
		{ "quiet", no_argument, NULL, OPT_QUIET },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	o->agent.agent.start_after_ms = START_AFTER_MS;
	o->agent.agent.finding_limits = finding_limits;
	o->agent.agent.reads_headers = true;
	o->agent.lake = "sluice-lake";
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case OPT_PIPELINE:
			o->agent.pipeline = optarg;
			break;
		case OPT_RUN:
			if (optarg[0] == '\0' || strlen(optarg) > 100) {
				fputs("sluice run: --run takes 1 to 100 characters\n", stderr);
				return EXIT_USAGE;
			}
			o->agent.run_id = optarg;
			break;
		case OPT_TASK:
			o->agent.task = optarg;
			break;
		case OPT_SAMPLE:
			o->agent.sample = optarg;
			break;
		case OPT_LAKE:
			o->agent.lake = optarg;
			break;
		case OPT_JSON:
			o->json = optarg;
			break;
		case OPT_REPORT:
			o->report = optarg;
			break;
		case OPT_RULES:
			o->rules = optarg;
			break;
		case OPT_CONTROL:
			o->control = optarg;
			break;
		case OPT_OWN_PROBES:
			o->has_own_probes = true;
			break;
		case OPT_NO_HEADERS:
			o->agent.agent.reads_headers = false;
			break;
		case OPT_INTERVAL:
			o->agent.agent.interval_ms = parse_interval_ms(optarg);
			if (o->agent.agent.interval_ms == 0) {
				spell_line(stderr, "sluice run: --interval %s is not a time from 100ms to 24h, such as "
				    "500ms, 10s or 1m\n", optarg);
				return EXIT_USAGE;
			}
			break;
		case OPT_TRACE_ENV:
			if (!add_variable(o, optarg))
				return EXIT_USAGE;
			break;
		case OPT_DELAY_ACCOUNTING:
			o->has_delay_accounting = true;
			break;
		case OPT_WAIT:
			o->wait_for_all = true;
			break;
		case OPT_AS_ROOT:
			o->as_root = true;
			break;
		case OPT_QUIET:
			o->is_quiet = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			fputs("sluice run: see `sluice run --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind >= argc) {
		fputs("sluice run: no COMMAND; `sluice run -- COMMAND [ARG…]`\n", stderr);
		return EXIT_USAGE;
	}
	o->agent.command = (const char *const *)argv + optind;
	return 0;
}

/* Returns true if the names from the command line, which become fields of records, are UTF-8. */
static bool
names_are_text(const struct run_options *o)
{
	const struct {
		const char *option;
		const char *value;
	} names[] = { { "--pipeline", o->agent.pipeline }, { "--run", o->agent.run_id },
		{ "--task", o->agent.task }, { "--sample", o->agent.sample } };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].value != NULL && !summary_is_name(names[i].value)) {
			spell_line(stderr, "sluice run: %s is not a name: it holds control characters or is not "
			    "valid UTF-8\n", names[i].option);
			return false;
		}
	}
	return true;
}

/* Returns a connection to an agent of this host that would pass on the events of COMMAND, or -1 with why not. */
static int
find_host_agent(struct run_options *o, char *why, size_t why_size)
{
	int fd;

	if (o->has_own_probes || o->rules != NULL || o->agent.agent.n_variables > 0) {
		snprintf(why, why_size, "%s, which no agent has", o->has_own_probes ? "--own-probes asks for probes of its own" :
		    o->rules != NULL ? "--rules needs probes of its own" : "--trace-env needs probes of its own");
		return -1;
	}
	fd = host_agent_find(o->control, o->run_suffix, why, why_size);
	o->agent.run_suffix = o->run_suffix;
	return fd;
}

/* Prints what takes root, and the command that works. why: no agent passes events on; NULL: --delay-accounting. */
static int
refuse_without_root(int argc, char **argv, const char *why)
{
	if (why != NULL)
		spell_line(stderr, "sluice run: without root it takes an agent of this host, which any user may use: %s; with "
		    "root it needs none, and COMMAND still runs as you:\n", why);
	else
		fputs("sluice run: --delay-accounting takes root, since it is switched for the whole host; COMMAND still runs as "
		    "you:\n", stderr);
	fputs("    sudo sluice", stderr);
	for (int i = 0; i < argc; i++)
		summary_print_quoted(stderr, argv[i]);
	fputc('\n', stderr);
	return EXIT_OWN_FAILURE;
}

static int
open_json(struct run *r, const char *path)
{
	int fd;

	if (path == NULL)
		return 0;
	fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) :
	    open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || (r->json = fdopen(fd, "w")) == NULL) {
		spell_line(stderr, "sluice run: cannot write %s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

/*
 * Checks before COMMAND runs that the report can be written, as the user that files are made for. An existing
 * file stays until the new one is complete.
 */
static int
check_report_file(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	int fd = -1;

	if (path == NULL)
		return 0;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		errno = EISDIR;
	else if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
		errno = ENAMETOOLONG;
	else
		fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		spell_line(stderr, "sluice run: cannot write %s: %s\n", path, strerror(errno));
		return -1;
	}
	close(fd);
	unlink(part);
	return 0;
}

static bool
find_tune(struct run_options *o)
{
	if (o->report == NULL || analytics_find("sluice-tune", o->tune))
		return true;
	analytics_print_missing("sluice run --report", "sluice-tune");
	return false;
}

/* Returns 0, or an exit status after printing what is wrong. */
static int
load_rules(struct run_options *o)
{
	struct rules_options options = { .dir = o->rules != NULL ? o->rules : RULES_DIR };
	struct config_errors errors = { 0 };
	gid_t gid;
	int r;

	/* Rules of the user who called sudo can only concern this run. */
	if (geteuid() == 0 && !persona_caller(&options.owner, &gid))
		options.owner = 0;
	if (o->rules != NULL && access(o->rules, R_OK | X_OK) < 0) {
		spell_line(stderr, "sluice run: --rules %s: %s: name a folder of rules that you may read, or leave --rules "
		    "out for " RULES_DIR "\n", o->rules, strerror(errno));
		return EXIT_USAGE;
	}
	r = rules_load(&options, &o->agent.agent.rules, &errors);
	config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	if (r == -ENOMEM)
		fputs("sluice run: out of memory\n", stderr);
	return r == 0 ? 0 : r == -ENOMEM ? EXIT_OWN_FAILURE : EXIT_USAGE;
}

/* Runs COMMAND to its end. Returns the exit status, or -1: end as COMMAND did. */
static int
run_command(struct run *r, const struct run_options *o, const struct command_inherited *inherited)
{
	const struct timeval second = { 1, 0 };
	struct command_options options = {
		.argv = (char *const *)o->agent.command,
		.as_root = o->as_root,
		.before_fork = before_fork,
		.after_fork = after_fork,
		.on_exit = on_command_exit,
		.on_stop = on_stop,
		.on_interrupt = on_interrupt,
		.arg = r,
	};
	bool is_exec;
	int error;

	error = command_start(r->base, inherited, &options, &r->command, &is_exec);
	if (error < 0 && r->error[0] != '\0') {
		spell_line(stderr, "sluice run: %s; %s was not started\n", r->error, o->agent.command[0]);
		return EXIT_OWN_FAILURE;
	}
	if (error < 0) {
		spell_line(stderr, is_exec ? "sluice: %s: %s\n" : "sluice run: cannot start %s: %s\n",
		    o->agent.command[0], strerror(-error));
		return is_exec ? command_exec_status(error) : EXIT_OWN_FAILURE;
	}
	r->on_second = event_new(r->base, -1, EV_PERSIST, on_second, r);
	if (r->on_second != NULL)
		event_add(r->on_second, &second);
	if (event_base_dispatch(r->base) < 0) {
		fputs("sluice run: the event loop failed\n", stderr);
		return EXIT_OWN_FAILURE;
	}
	return -1;
}

/* Starts the process that will write the report. 0 or a negative errno, printed. */
static int
begin_report(struct run *r, const struct run_options *o, const struct command_inherited *inherited)
{
	int error = 0;

	r->report = (struct analytics_report){ .tune = o->tune, .lake = o->agent.lake, .file = o->report,
		.as_root = o->as_root };
	if (o->report != NULL)
		error = analytics_report_begin(&r->report, inherited);
	if (error < 0)
		fprintf(stderr, "sluice run: cannot start a process that writes the report: %s\n", strerror(-error));
	return error;
}

/* Writes the report after the lake is closed. The exit status is COMMAND's even if this fails. */
static void
write_report(struct run *r, const struct run_options *o)
{
	if (analytics_report_write(&r->report, r->run_id) == 0 && !o->is_quiet)
		spell_line(stderr, "report %s\n", o->report);
}

/* Prints why records are missing, if COMMAND or what ran after some time was not seen. */
static void
print_unseen(const struct run *r)
{
	if (!agent_received_all(r->agent))
		fputs("sluice run: the agent of this host stopped first: what ran after that is in its records only\n", stderr);
	else if (!agent_saw_command(r->agent) && !r->is_unrecorded && agent_withheld(r->agent) == 0)
		spell_line(stderr, "sluice run: COMMAND was not seen, and what it ran may be missing: %s\n",
		    r->options->agent.is_subscriber ?
		    "the agent of this host passed no event of it on; `sluice ctl status` prints whether that agent sees" :
		    "the probes report no events here; `sluice doctor` prints what they need");
}

/*
 * Starts the nursery of readers, which run as the user whose files they read, and can read no others. 0 or a negative
 * errno, printed.
 */
static int
start_nursery(const struct run_options *o, struct nursery **ret)
{
	const struct agent_options *a = &o->agent.agent;
	const struct passwd *pw = a->has_file_owner ? getpwuid(a->file_uid) : NULL;
	int r = nursery_start(ret);

	if (r == 0)
		r = nursery_become(*ret, pw != NULL ? pw->pw_name : NULL, a->has_file_owner ? a->file_uid : 0,
		    a->has_file_owner ? a->file_gid : 0, false);
	if (r == 0)
		r = nursery_confine(*ret);
	if (r < 0)
		fprintf(stderr, "sluice run: cannot start a process that reads /proc: %s\n", strerror(-r));
	return r;
}

int
cli_run(int argc, char **argv)
{
	struct command_inherited inherited;
	struct run_options o = { 0 };
	struct run r = { .options = &o, .host_agent = -1 };
	struct summary_options summary = { 0 };
	const char *lake_error;
	char error[768];
	int status;

	command_save_inherited(&inherited);
	status = parse(argc, argv, &o);
	if (status != 0)
		return status < 0 ? EXIT_DONE : status;
	if (!names_are_text(&o) || !find_tune(&o))
		return EXIT_USAGE;
	r.host_agent = find_host_agent(&o, error, sizeof(error));
	o.agent.is_subscriber = r.host_agent >= 0;
	if (geteuid() != 0 && (o.has_delay_accounting || !o.agent.is_subscriber)) {
		status = refuse_without_root(argc, argv, o.has_delay_accounting ? NULL : error);
		goto close;
	}
	status = load_rules(&o);
	if (status != 0)
		goto close;
	if (!o.as_root && geteuid() == 0)
		o.agent.agent.has_file_owner = persona_caller(&o.agent.agent.file_uid, &o.agent.agent.file_gid);

	r.base = event_base_new();
	if (r.base == NULL) {
		fputs("sluice run: cannot make an event loop\n", stderr);
		status = EXIT_OWN_FAILURE;
		goto close;
	}
	status = EXIT_OWN_FAILURE;
	if (start_nursery(&o, &r.nursery) < 0 || begin_report(&r, &o, &inherited) < 0)
		goto out;
	o.agent.agent.nursery = r.nursery;
	if ((o.has_delay_accounting && delay_accounting_begin(&r.delay_accounting, error, sizeof(error)) < 0) ||
	    agent_open_run(r.base, &o.agent, &r.agent, error, sizeof(error)) < 0) {
		spell_line(stderr, "sluice run: %s\n", error);
		goto out;
	}
	/* Runs as the user that files are made for. */
	if (open_json(&r, o.json) < 0 || check_report_file(o.report) < 0)
		goto out;
	status = run_command(&r, &o, &inherited);
	live_line_clear(&r);
	lake_error = agent_close_lake(r.agent);
	if (status < 0) {
		summary = (struct summary_options){ .agent = r.agent, .pipeline = o.agent.pipeline,
			.lake = o.agent.lake, .wait_status = r.wait_status, .width = terminal_width() };
		if (!o.is_quiet)
			summary_print(stderr, &summary);
		if (r.json != NULL && summary_print_json(r.json, &summary) < 0)
			spell_line(stderr, "sluice run: cannot write %s\n", o.json);
		print_unseen(&r);
	}
	if (*lake_error != '\0')
		spell_line(stderr, "sluice run: %s\n", lake_error);
out:
	if (delay_accounting_end(&r.delay_accounting, error, sizeof(error)) < 0)
		spell_line(stderr, "sluice run: %s\n", error);
	if (r.json != NULL)
		fclose(r.json);
	if (r.on_second != NULL)
		event_free(r.on_second);
	if (status < 0 && o.report != NULL)
		r.run_id = strdup(agent_run_id(r.agent));
	ruleset_unref(o.agent.agent.rules);
	if (agent_close(r.agent) < 0)
		spell_line(stderr, "sluice run: the lake %s is not complete\n", o.agent.lake);
	nursery_stop(r.nursery);
	if (r.run_id != NULL)
		write_report(&r, &o);
	analytics_report_abandon(&r.report);
	if (status < 0)
		command_exit(r.command, r.wait_status);
	free(r.run_id);
	command_free(r.command);
	event_base_free(r.base);
close:
	if (r.host_agent >= 0)
		close(r.host_agent);
	return status;
}
