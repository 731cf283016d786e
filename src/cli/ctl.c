/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice ctl: sends one command to the running agent and prints its answer.
 *
 * The agent has the list of commands. ctl itself knows only status, to choose between text and JSON, explain,
 * because it may read more of a process than the agent may, and settle, whose answer may take longer than
 * others.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spell.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/control_client.h"
#include "cli/print_json.h"
#include "config/config.h"
#include "config/units.h"
#include "explain/live_process.h"

#define DEFAULT_TIMEOUT_MS 60000
#define SETTLE_TIMEOUT_MS 30000
#define SETTLE_GRACE_MS 30000		/* time for the agent to answer that the time is up, on a busy host */

static const char help[] =
    "Usage: sluice ctl [OPTION…] COMMAND [WORD…] [NAME=VALUE…]\n"
    "Sends a command to the running agent and prints its answer. `sluice ctl help` lists the\n"
    "agent's commands; among them:\n\n"
    "  status       print the state of the agent, problems first\n"
    "  reload       read the configuration again; an invalid one is reported and changes nothing\n"
    "  rules        list | add NAME RULES | remove NAME; added rules last until the agent ends\n"
    "  attach NAME  switch an optional signal (see sluice doctor) on: its fields are filled from now on\n"
    "  detach NAME  switch an optional signal off: its fields are null from now on\n"
    "  explain PID  print the run and task of a process, with the evidence, or the rule that leaves it out\n"
    "  tag          --pid PID --run RUN [--pipeline P] [--task T] [--sample S]: attribute the process\n"
    "               and everything that it starts from now on to this run\n"
    "  settle       wait until everything that happened before is recorded and safe in the spool\n"
    "                 --delivered     also until it is delivered, to Kafka or the lake\n"
    "                 --tasks         also until tasks and runs without a program left have their END\n"
    "                 --timeout TIME  give up after this time (default: 30s, at most 10m)\n\n"
    "      --socket PATH      the agent's control socket (default: the one that key `control` of the\n"
    "                         configuration names, otherwise /run/sluice/control.sock)\n"
    "  -c, --config FILE      that configuration (default: /etc/sluice/sluice.yaml)\n"
    "      --json             print the answer as one JSON object\n"
    "      --timeout TIME     time to wait for an answer: 90, 90s, 2m (default: 60s)\n"
    "  -h, --help             print this help\n\n"
    "Exit status: 0 done; 1 the agent refused, did not settle in time, or does not run;\n"
    "2 wrong usage or configuration.\n";

struct ctl {
	const char *socket;
	const char *config;
	uint64_t timeout_ms;		/* 0: no option */
	bool as_json;
};

/* Finds the agent's socket. Returns 0 with path filled, or an exit status. */
static int
find_socket(const struct ctl *ctl, char *path, size_t size)
{
	struct config_errors errors = { 0 };
	struct config *config = NULL;
	int status = 0;

	if (ctl->socket == NULL && config_load(ctl->config, &config, &errors) < 0 && ctl->config != NULL) {
		config_errors_print(&errors, stderr);
		status = EXIT_USAGE;
	}
	/*
	 * Otherwise, without a configuration, the file of the running agent is invalid, or not readable for us: the
	 * agent listens all the same.
	 */
	control_client_path(ctl->socket, config, path, size);
	config_free(config);
	config_errors_done(&errors);
	return status;
}

static bool
wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
}

/* Returns true for the name of an argument, as opposed to text that happens to contain "=". */
static bool
is_name(const char *word, size_t len)
{
	return len > 0 && strspn(word, "abcdefghijklmnopqrstuvwxyz_-") >= len;
}

/* Adds what we can read of a process that the agent does not record, as the input of its rules. */
static void
add_process(json_t *args)
{
	const char *text = json_string_value(json_object_get(args, "pid"));
	json_t *process;
	uint64_t pid;

	if (text == NULL)
		text = json_string_value(json_array_get(json_object_get(args, "words"), 0));
	if (text == NULL || !text_number(text, INT32_MAX, &pid) || pid == 0)
		return;		/* the agent's answer contains the usage */
	process = live_process_read("/proc", (uint32_t)pid);
	if (process != NULL)
		json_object_set_new(args, "process", process);
}

/* Returns true for options of a command that take no value; the value of all others is the next word. */
static bool
is_flag(const char *command, const char *name)
{
	return strcmp(command, "settle") == 0 && (strcmp(name, "delivered") == 0 || strcmp(name, "tasks") == 0);
}

/*
 * Builds the request: NAME=VALUE, --NAME=VALUE and --NAME VALUE by name, all other words in "words". NULL: out
 * of memory.
 */
static json_t *
make_request(const struct ctl *ctl, char **words)
{
	json_t *args = json_object(), *list = NULL;
	const char *command = *words++;

	if (strcmp(command, "status") == 0) {
		json_object_set_new(args, "format", json_string(ctl->as_json ? "json" : "text"));
		json_object_set_new(args, "colour", json_boolean(wants_colour()));
	}
	if (strcmp(command, "settle") == 0 && ctl->timeout_ms > 0)
		json_object_set_new(args, "timeout", json_real((double)ctl->timeout_ms / 1000));
	for (; *words != NULL; words++) {
		bool is_option = strncmp(*words, "--", 2) == 0 && (*words)[2] != '\0';
		char *name = *words + (is_option ? 2 : 0), *equals = strchr(name, '=');

		if (equals != NULL && is_name(name, (size_t)(equals - name))) {
			*equals = '\0';
			json_object_set_new(args, name, json_string(equals + 1));
			continue;
		}
		if (is_option && is_flag(command, name)) {
			json_object_set_new(args, name, json_true());
			continue;
		}
		if (is_option && equals == NULL && words[1] != NULL) {
			json_object_set_new(args, name, json_string(*++words));
			continue;
		}
		if (list == NULL)
			json_object_set_new(args, "words", list = json_array());
		json_array_append_new(list, json_string(*words));
	}
	if (strcmp(command, "explain") == 0)
		add_process(args);
	return json_pack("{ss so}", "command", command, "args", args);
}

/* Prints the answer, and returns the exit status that follows from it. */
static int
print_answer(const struct ctl *ctl, const json_t *answer, bool is_status)
{
	bool is_ok = json_is_true(json_object_get(answer, "ok"));
	const char *error = json_string_value(json_object_get(answer, "error"));
	const char *text = json_string_value(json_object_get(answer, "text"));
	const char *message = json_string_value(json_object_get(answer, "message"));

	if (!is_ok && !ctl->as_json) {
		spell_line(stderr, "sluice ctl: %s\n", error != NULL ? error : "the agent refused without a reason");
	} else if (!ctl->as_json && (text != NULL || message != NULL)) {
		/* In the text of status is colour; the agent has spelt out the rest of it. */
		if (is_status)
			fputs(text != NULL ? text : "", stdout);
		else
			spell_lines_to(stdout, text != NULL ? text : message);
		if (text == NULL)
			putchar('\n');
	} else if (!ctl->as_json && json_object_size(answer) == 1) {
		puts("done");
	} else {
		print_json(stdout, answer);
	}
	if (fflush(stdout) != 0) {
		spell_line(stderr, "sluice ctl: cannot write: %s\n", strerror(errno));
		return EXIT_NO;
	}
	return is_ok ? EXIT_DONE : EXIT_NO;
}

static int
ask(const struct ctl *ctl, const char *path, char **words)
{
	json_t *request = make_request(ctl, words), *answer = NULL;
	bool is_settle = strcmp(words[0], "settle") == 0;
	uint64_t usual_ms = is_settle ? SETTLE_TIMEOUT_MS : DEFAULT_TIMEOUT_MS;
	uint64_t timeout_ms = ctl->timeout_ms > 0 ? ctl->timeout_ms : usual_ms;
	int fd, status = EXIT_NO;

	if (request == NULL) {
		fputs("sluice ctl: a word is not UTF-8, or there is no memory\n", stderr);
		return EXIT_USAGE;
	}
	fd = control_client_connect("sluice ctl", path);
	if (fd >= 0) {
		answer = control_client_ask("sluice ctl", fd, path, request, timeout_ms + (is_settle ? SETTLE_GRACE_MS : 0));
		close(fd);
	}
	if (answer != NULL)
		status = print_answer(ctl, answer, strcmp(words[0], "status") == 0);
	json_decref(request);
	json_decref(answer);
	return status;
}

/*
 * Moves ctl's own options before the command, wherever they are: all others belong to the command, as does
 * everything after "--".
 */
static void
own_options_first(int argc, char **argv)
{
	static const char *const with_value[] = { "-c", "--config", "--socket", "--timeout" };
	int to = 1;

	for (int i = 1, n; i < argc && strcmp(argv[i], "--") != 0; i += n) {
		bool is_own = strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0;

		n = 1;
		for (size_t w = 0; w < sizeof(with_value) / sizeof(with_value[0]); w++) {
			size_t len = strlen(with_value[w]);

			if (strcmp(argv[i], with_value[w]) == 0)
				is_own = true, n = i + 1 < argc ? 2 : 1;
			else if (strncmp(argv[i], with_value[w], len) == 0 && argv[i][len] == '=')
				is_own = true;
		}
		for (int k = 0; is_own && k < n; k++) {
			char *moved = argv[i + k];

			memmove(&argv[to + 1], &argv[to], (size_t)(i + k - to) * sizeof(*argv));
			argv[to++] = moved;
		}
	}
}

/* Parses a duration: "90" is seconds; units as in the configuration. */
static bool
parse_timeout(const char *text, uint64_t *ret_ms)
{
	char why[256];
	uint64_t seconds;

	if (text_number(text, UINT64_MAX, &seconds))
		*ret_ms = seconds <= 3600 ? seconds * 1000 : 0;
	else if (!duration_parse(text, ret_ms, why, sizeof(why)))
		return false;
	return *ret_ms > 0 && *ret_ms <= 3600000;
}

int
cli_ctl(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "config", required_argument, NULL, 'c' },
		{ "timeout", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct ctl ctl = { 0 };
	char path[4096];
	int c, r;

	own_options_first(argc, argv);
	while ((c = getopt_long(argc, argv, "+c:h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			ctl.socket = optarg;
			break;
		case 'c':
			ctl.config = optarg;
			break;
		case 'j':
			ctl.as_json = true;
			break;
		case 't':
			if (parse_timeout(optarg, &ctl.timeout_ms))
				break;
			fputs("sluice ctl: --timeout takes a time of up to an hour, as 90, 90s or 2m\n", stderr);
			return EXIT_USAGE;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs("sluice ctl: see `sluice ctl --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		fputs("sluice ctl: a command is missing: status, reload, help …; see `sluice ctl --help`\n", stderr);
		return EXIT_USAGE;
	}
	r = find_socket(&ctl, path, sizeof(path));
	return r != 0 ? r : ask(&ctl, path, argv + optind);
}
