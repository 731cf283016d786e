/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice check: prints the errors of the configuration and the rules as the agent would, warns of an account that this
 * host lacks or that cannot read them, and prints how the rules judge a command line.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/spell.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/readable.h"
#include "config/config.h"
#include "explain/explain.h"
#include "rules/rules.h"

static const char help[] =
    "Usage: sluice check [-c FILE] [--dump]\n"
    "       sluice check [-c FILE] --explain [OPTION...] -- COMMAND [ARG...]\n"
    "Reads the agent's configuration, its drop-ins (conf.d/*.yaml beside it) and the rules, and prints\n"
    "one error a line: FILE:LINE:COLUMN: error; hint. Starts nothing and connects to nothing.\n"
    "An account in `user` that this host lacks is a warning: the agent may run on another host. So is,\n"
    "for root, each of these files that the account cannot read.\n\n"
    "  -c, --config FILE  configuration (default: " CONFIG_PATH ")\n"
    "      --dump         print the effective configuration, and where each value was set\n"
    "      --explain      print how the rules judge COMMAND, which is not run: its tool, whether it is\n"
    "                     followed, its engine, scheduler and container, each with the rule\n"
    "      --exe PATH     executable of COMMAND (default: the one in PATH, or a script's interpreter)\n"
    "      --cwd DIR      working directory of COMMAND (default: the current one)\n"
    "      --cgroup PATH  control group of COMMAND (default: that of sluice check; \"\": unknown)\n"
    "      --uid USER     user of COMMAND, by number or name (default: the caller)\n"
    "  -h, --help         print this help\n\n"
    "Exit status: 0 no error; 2 the configuration or a rule has an error, or wrong usage.\n";

struct check {
	const char *config;
	bool has_dump, has_explain;
	const char *explain_option;	/* an option that only --explain takes; NULL: none was given */
	struct explain_options explain;
};

static int
no_memory(void)
{
	fputs("sluice check: out of memory\n", stderr);
	return EXIT_USAGE;
}

/* Returns NULL after printing the errors. */
static struct config *
read_config(const char *path)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_load(path, &c, &errors);

	config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	if (r == -ENOMEM)
		no_memory();
	return r < 0 ? NULL : c;
}

static struct ruleset *
read_rules(const struct config *c)
{
	struct rules_options o = { .dir = c->rules };
	struct config_errors errors = { 0 };
	struct ruleset *rules = NULL;
	char why[512];
	gid_t gid;
	int r;

	(void)privileges_user_ids(c->user, &o.owner, &gid, why, sizeof(why));	/* warn_of_account() tells */
	r = rules_load(&o, &rules, &errors);
	config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	if (r == -ENOMEM)
		no_memory();
	return r < 0 ? NULL : rules;
}

/* The agent refuses to start without its account; here it is a warning, since the agent may run on another host. */
static void
warn_of_account(const struct config *c)
{
	char error[512], where[PATH_MAX + 64];
	uid_t uid;
	gid_t gid;

	if (privileges_user_ids(c->user, &uid, &gid, error, sizeof(error)) < 0)
		spell_line(stderr, "%s: warning: on this host %s\n", config_where(c, "user", where, sizeof(where)), error);
}

static void
print_summary(const struct check *k, const struct config *c, const struct ruleset *rules)
{
	size_t drop_ins = c->files.n - c->has_main;

	spell_line(stdout, "%s: %s, %zu drop-in%s\n", k->config != NULL ? k->config : CONFIG_PATH,
	    c->has_main ? "ok" : "not there, the defaults apply", drop_ins, drop_ins == 1 ? "" : "s");
	spell_line(stdout, "%s: %s, %zu rules:", c->rules, access(c->rules, F_OK) == 0 ? "ok" :
	    "not there, the shipped rules apply", rules->n_rules);
	for (unsigned i = 0; i < RULE_SECTIONS; i++)
		printf("%s %zu %s", i > 0 ? "," : "", rules->counts[i], rule_section_name(i));
	putchar('\n');
}

static int
check(const struct check *k)
{
	struct config *c = read_config(k->config);
	struct ruleset *rules = c != NULL ? read_rules(c) : NULL;
	int status = rules != NULL ? EXIT_DONE : EXIT_USAGE;

	if (c != NULL && !k->has_explain)
		warn_of_account(c);
	if (rules != NULL && !k->has_explain)
		readable_warn(c, k->config != NULL ? k->config : CONFIG_PATH);
	if (rules != NULL && k->has_explain) {
		if (explain_command(rules, &k->explain, stdout) < 0)
			status = no_memory();
	} else if (c != NULL && k->has_dump) {
		config_dump(c, stdout);
	} else if (rules != NULL) {
		print_summary(k, c, rules);
	}
	ruleset_unref(rules);
	config_free(c);
	return status;
}

static bool
read_uid(const char *text, struct explain_options *ret)
{
	const struct passwd *user = getpwnam(text);
	uint64_t value;

	ret->has_uid = true;
	if (user != NULL)
		ret->uid = user->pw_uid;
	else if (text_number(text, UINT32_MAX - 1, &value))
		ret->uid = (uint32_t)value;
	else
		return false;
	return true;
}

/* Returns EXIT_DONE, or the exit status after printing what is wrong. */
static int
check_usage(struct check *k, int argc, char **argv)
{
	if (k->has_explain) {
		if (argc == 0) {
			fputs("sluice check: --explain needs a command line: -- COMMAND [ARG...]\n", stderr);
			return EXIT_USAGE;
		}
		if (k->has_dump) {
			fputs("sluice check: give either --dump or --explain\n", stderr);
			return EXIT_USAGE;
		}
		k->explain.argv = (const char *const *)argv;
		k->explain.argc = (size_t)argc;
		return EXIT_DONE;
	}
	if (k->explain_option != NULL)
		spell_line(stderr, "sluice check: --%s needs --explain\n", k->explain_option);
	else if (argc > 0)
		spell_line(stderr, "sluice check: takes no '%s'; see `sluice check --help`\n", argv[0]);
	else
		return EXIT_DONE;
	return EXIT_USAGE;
}

int
cli_check(int argc, char **argv)
{
	enum { DUMP = 256, EXPLAIN, EXE, CWD, CGROUP, UID };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "dump", no_argument, NULL, DUMP },
		{ "explain", no_argument, NULL, EXPLAIN },
		{ "exe", required_argument, NULL, EXE },
		{ "cwd", required_argument, NULL, CWD },
		{ "cgroup", required_argument, NULL, CGROUP },
		{ "uid", required_argument, NULL, UID },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct check k = { 0 };
	int c, index = 0, status;

	/* +: the options of a command line that is explained belong to it. */
	while ((c = getopt_long(argc, argv, "+c:h", options, &index)) != -1) {
		switch (c) {
		case 'c':
			k.config = optarg;
			break;
		case DUMP:
			k.has_dump = true;
			break;
		case EXPLAIN:
			k.has_explain = true;
			break;
		case EXE:
			k.explain.exe = optarg;
			break;
		case CWD:
			k.explain.cwd = optarg;
			break;
		case CGROUP:
			k.explain.cgroup = optarg;
			break;
		case UID:
			if (!read_uid(optarg, &k.explain)) {
				spell_line(stderr, "sluice check: no user '%s': give a number or a name\n", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs("sluice check: see `sluice check --help`\n", stderr);
			return EXIT_USAGE;
		}
		if (c >= EXE)
			k.explain_option = options[index].name;
	}
	status = check_usage(&k, argc - optind, argv + optind);
	return status == EXIT_DONE ? check(&k) : status;
}
