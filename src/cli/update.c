/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice update: replaces this program by the newest release of a mirror, if that is signed and works here, restarts
 * the agent over its pins, and takes the old one back if the new agent does worse.
 *
 * Off by default: it does nothing without a mirror, which the configuration or --from names, and is never called by
 * sluice itself.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/spell.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/print_json.h"
#include "cli/update_agent.h"
#include "config/config.h"
#include "config/units.h"
#include "update/manifest.h"
#include "update/minisign.h"
#include "update/mirror.h"
#include "update/owner.h"
#include "update/program.h"
#include "update/stage.h"

#define SUMS "SHA256SUMS"
#define SIGNATURE SUMS ".minisig"

enum {
	WATCH_MS = 60000,
	WATCH_MIN_MS = 1000,
	WATCH_MAX_MS = 600000,
	VERSION_TIMEOUT_MS = 30000,
	CHECK_TIMEOUT_MS = 60000,
	DOCTOR_TIMEOUT_MS = 120000,
	OUTPUT_MAX = 1 << 20,
	ARGS_MAX = 6,
};

static const char help[] =
    "Usage: sluice update [--check] [OPTION…]\n"
    "Replaces this program by the newest release of a mirror, if its list of checksums is signed with\n"
    "the key that you trust, it is newer, and it works on this host. Restarts the agent, which loses\n"
    "no program; watches it for a minute, and takes the old program back if it does worse than before.\n"
    "Off by default: the configuration names a mirror and a key, as update: {mirror: URL, key: FILE}.\n"
    "What a package manager installed is updated by that one.\n\n"
    "  --check            only print whether there is a newer release\n"
    "  --from MIRROR      a URL, or the absolute path of a folder, in place of the configuration's\n"
    "  --key FILE         public key of minisign, in place of the configuration's\n"
    "  --watch TIME       how long the new agent is watched, and may take to be well: 1s to 10m\n"
    "                     (default: 1m)\n"
    "  -c, --config FILE  configuration of the agent (default: " CONFIG_PATH ")\n"
    "  --json             print the result as one JSON object\n"
    "  -h, --help         print this help\n\n"
    "Exit status: 0 the newest release is installed; 1 with --check: there is a newer one, without:\n"
    "the new one failed, and the old one is back; 2 wrong usage or configuration, or updates are off;\n"
    "125 refused or failed, and nothing was changed.\n";

struct update {
	const char *from, *key, *config_path;
	uint64_t watch_ms;
	bool only_checks, as_json, is_live;
	struct config *config;		/* owned */
	char target[PATH_MAX];		/* this program */
	struct version installed, available;
	bool has_available;
	struct stage stage;		/* not open: dir is -1 */
	struct update_agent agent;
	struct bytes program;		/* owned */
	const char *result;		/* for the JSON */
	char message[2048];
};

static volatile sig_atomic_t stop;

static void
on_signal(int signo)
{
	stop = signo;
}

/* Removes the live line. */
static void
clear_line(const struct update *u)
{
	if (u->is_live)
		fputs("\r\033[K", stderr);
}

static void __attribute__((format(printf, 2, 3)))
say(const struct update *u, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (u->as_json)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	clear_line(u);
	spell_line(stderr, "%s\n", text);
}

/* Sets the result. Returns status. */
static int __attribute__((format(printf, 4, 5)))
end(struct update *u, int status, const char *result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(u->message, sizeof(u->message), format, args);
	va_end(args);
	u->result = result;
	return status;
}

#define REFUSE(...) end(u, EXIT_OWN_FAILURE, "refused", __VA_ARGS__)

/* Returns 0 to continue, -1 after --help, or an exit status. */
static int
parse(int argc, char **argv, struct update *u)
{
	enum { OPT_CHECK = 256, OPT_FROM, OPT_KEY, OPT_WATCH, OPT_JSON };
	static const struct option options[] = {
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "key", required_argument, NULL, OPT_KEY },
		{ "watch", required_argument, NULL, OPT_WATCH },
		{ "config", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char why[256];
	int c;

	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (c) {
		case OPT_CHECK:
			u->only_checks = true;
			break;
		case OPT_FROM:
			u->from = optarg;
			break;
		case OPT_KEY:
			u->key = optarg;
			break;
		case OPT_WATCH:
			if (!duration_parse(optarg, &u->watch_ms, why, sizeof(why)) || u->watch_ms < WATCH_MIN_MS ||
			    u->watch_ms > WATCH_MAX_MS) {
				spell_line(stderr, "sluice update: --watch %s is not a time from 1s to 10m\n", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'c':
			u->config_path = optarg;
			break;
		case OPT_JSON:
			u->as_json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			fputs("sluice update: see `sluice update --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		spell_line(stderr, "sluice update: takes no '%s'; see `sluice update --help`\n", argv[optind]);
		return EXIT_USAGE;
	}
	return 0;
}

/* Reads the configuration, and takes from it what no option has set. Returns 0 or an exit status. */
static int
configure(struct update *u)
{
	struct config_errors errors = { 0 };
	int r = config_load(u->config_path, &u->config, &errors);

	config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	if (r < 0)
		return end(u, r == -ENOMEM ? EXIT_OWN_FAILURE : EXIT_USAGE, "refused", "the configuration cannot be used: %s",
		    r == -ENOMEM ? "out of memory" : "its errors are above");
	if (u->from == NULL)
		u->from = u->config->update.mirror;
	if (u->key == NULL)
		u->key = u->config->update.key;
	if (u->from == NULL)
		return end(u, EXIT_USAGE, "off", "updates are off: to switch them on, add `update: {mirror: URL, key: FILE}` to %s, "
		    "with the mirror's URL or folder and the public key that its releases are signed with",
		    u->config_path != NULL ? u->config_path : CONFIG_PATH);
	if (version_parse(SLUICE_VERSION, &u->installed) < 0)
		return REFUSE("this program has no version of a release, %s", SLUICE_VERSION);
	return 0;
}

/* Finds out which file is to be replaced, and whether that may be. Returns 0 or an exit status. */
static int
find_target(struct update *u)
{
	ssize_t n = readlink("/proc/self/exe", u->target, sizeof(u->target) - 1);
	char command[1024], error[2048];
	int r;

	if (n <= 0)
		return REFUSE("the path of this program is unknown: %s", strerror(errno));
	u->target[n] = '\0';
	if (text_ends_with(u->target, " (deleted)"))
		return REFUSE("%s: this program was replaced while it ran: call the new one", u->target);
	if (text_ends_with(u->target, ".previous"))
		return REFUSE("%s is the program before an update: call the newer one", u->target);
	if (geteuid() != 0)
		return REFUSE("only root may replace %s; run `sudo sluice update`, or --check", u->target);
	r = owner_find(u->target, OWNER_DPKG_INFO, OWNER_RPM, command, sizeof(command));
	if (r < 0)
		return REFUSE("%s", command);
	if (r > 0)
		return REFUSE("%s was installed by a package manager: update it by `%s`", u->target, command);
	r = stage_open(u->target, &u->stage, error, sizeof(error));
	return r < 0 ? REFUSE("%s", error) : 0;
}

static bool
on_received(size_t received, void *arg)
{
	const struct update *u = arg;

	if (u->is_live)
		fprintf(stderr, "\rreceived %.1f MiB\033[K", (double)received / (1 << 20));
	return stop == 0;
}

/* Reads the list of checksums, and verifies it. Returns 0, with the list in sums, or an exit status. */
static int
read_release(struct update *u, struct mirror *m, struct bytes *sums)
{
	struct minisign_signature signature;
	struct minisign_key key;
	struct bytes text = { 0 };
	char error[2 * PATH_MAX];
	int r;

	r = mirror_read_file(u->key, MINISIGN_FILE_MAX, &text, error, sizeof(error));
	if (r < 0)
		return REFUSE("the public key cannot be read: %s", error);
	r = minisign_key_parse((const char *)text.data, text.len, &key, error, sizeof(error));
	bytes_done(&text);
	if (r < 0)
		return REFUSE("the public key %s: %s", u->key, error);
	if (mirror_read(m, SUMS, MANIFEST_BYTES_MAX, sums, on_received, u, error, sizeof(error)) < 0)
		return REFUSE("%s", error);
	r = mirror_read(m, SIGNATURE, MINISIGN_FILE_MAX, &text, on_received, u, error, sizeof(error));
	if (r < 0)
		return REFUSE("the release is not signed, or its signature cannot be read: %s", error);
	r = minisign_signature_parse((const char *)text.data, text.len, &signature, error, sizeof(error));
	bytes_done(&text);
	if (r == 0)
		r = minisign_verify(&key, &signature, sums->data, sums->len, error, sizeof(error));
	/* From here on its comment is the key's owner's. */
	if (r == 0)
		r = manifest_version(signature.comment, &u->available, error, sizeof(error));
	if (r < 0)
		return REFUSE("the signature of %s/latest/" SUMS " is refused: %s", u->from, error);
	u->has_available = true;
	return 0;
}

/* Reads the program, and compares it with the list. Returns 0 or an exit status. */
static int
read_program(struct update *u, struct mirror *m, const struct bytes *sums)
{
	uint8_t sha256[MANIFEST_SHA256_SIZE];
	char name[MANIFEST_NAME_MAX], error[2 * PATH_MAX];

	snprintf(name, sizeof(name), "sluice-%s-linux-%s", u->available.text, program_architecture());
	if (manifest_find((const char *)sums->data, sums->len, name, sha256, error, sizeof(error)) < 0)
		return REFUSE(SUMS " of version %s: %s", u->available.text, error);
	say(u, "fetching %s from %s", name, u->from);
	if (mirror_read(m, name, MIRROR_PROGRAM_MAX, &u->program, on_received, u, error, sizeof(error)) < 0)
		return REFUSE("%s", error);
	if (!program_has_sha256(u->program.data, u->program.len, sha256))
		return REFUSE("%s has not the checksum that is signed: it was not received whole, or was changed", name);
	if (!program_is_ours(u->program.data, u->program.len))
		return REFUSE("%s is no program for this architecture", name);
	return 0;
}

/* Reads the release, and its program if that is newer. Returns 0 or an exit status. *ret_done: no more is to do. */
static int
fetch(struct update *u, bool *ret_done)
{
	struct bytes sums = { 0 };
	struct mirror *m = NULL;
	char error[1024];
	int r, order;

	if (mirror_open(u->from, &m, error, sizeof(error)) < 0)
		return end(u, EXIT_USAGE, "refused", "%s", error);
	r = read_release(u, m, &sums);
	if (r != 0)
		goto out;
	order = version_compare(&u->available, &u->installed);
	*ret_done = order == 0 || u->only_checks;
	if (order < 0)
		r = REFUSE("%s offers version %s, which is older than this one, %s", u->from, u->available.text,
		    u->installed.text);
	else if (order == 0)
		r = end(u, EXIT_DONE, "up_to_date", "version %s is up to date", u->installed.text);
	else if (u->only_checks)
		r = end(u, EXIT_NO, "available", "version %s is available, this is %s", u->available.text, u->installed.text);
	else
		r = read_program(u, m, &sums);
out:
	bytes_done(&sums);
	mirror_close(m);
	return r;
}

/* Runs a program with these arguments. Returns its exit status, or -1 if it has none, with a clause in error. */
static int
run(const char *path, const char *const *args, uint64_t timeout_ms, struct bytes *out, char *error, size_t error_size)
{
	char name[] = "sluice";
	char *argv[ARGS_MAX + 2] = { name };
	struct child_options o = { .path = path, .argv = argv, .timeout_ms = timeout_ms, .output_max = OUTPUT_MAX,
		.ends_with_us = true, .stop = &stop };
	int status = 0, r;

	for (size_t i = 0; i < ARGS_MAX && args[i] != NULL; i++)
		argv[i + 1] = (char *)args[i];
	r = child_run(&o, out, &status);
	if (r < 0)
		snprintf(error, error_size, "%s", r == -ETIMEDOUT ? "it does not end" : r == -EINTR ? "interrupted" : strerror(-r));
	else if (WIFSIGNALED(status))
		snprintf(error, error_size, "it was ended by signal %d", WTERMSIG(status));
	else
		return WEXITSTATUS(status);
	return -1;
}

/* Runs the new program in all the ways that must work before it is the installed one. Returns 0 or an exit status. */
static int
try_program(struct update *u)
{
	const char *const version[] = { "--version", NULL }, *const doctor[] = { "doctor", NULL };
	const char *const test[] = { "doctor", "--self-test", NULL };
	const char *const check[] = { "check", u->config_path != NULL ? "-c" : NULL, u->config_path, NULL };
	const char *path = u->stage.path;
	char want[64], error[256] = "it does not print that";
	struct bytes out = { 0 };
	int status, before, r;

	snprintf(want, sizeof(want), "sluice %s", u->available.text);
	status = run(path, version, VERSION_TIMEOUT_MS, &out, error, sizeof(error));
	if (status != 0 || strncmp((const char *)out.data, want, strlen(want)) != 0 || out.data[strlen(want)] != '\n') {
		r = REFUSE("the new program is not version %s by its --version: %s", u->available.text, error);
		goto out;
	}
	say(u, "testing it on this host");
	status = run(path, check, CHECK_TIMEOUT_MS, NULL, error, sizeof(error));
	if (status != 0) {
		r = REFUSE("the new program refuses the configuration or the rules: %s", status < 0 ? error :
		    "`sluice check` of it has printed why");
		goto out;
	}
	/* A signal that is missing here is missing for the old one, too. */
	status = run(path, doctor, DOCTOR_TIMEOUT_MS, NULL, error, sizeof(error));
	before = status == EXIT_NO ? run("/proc/self/exe", doctor, DOCTOR_TIMEOUT_MS, NULL, error, sizeof(error)) : EXIT_DONE;
	if (status < 0 || (status != EXIT_DONE && status != before)) {
		r = REFUSE("the new program does not work here: its `sluice doctor` %s", status < 0 ? error :
		    status == EXIT_NO ? "misses a signal, that of this one does not" : "has printed why");
		goto out;
	}
	out.len = 0;
	status = run(path, test, DOCTOR_TIMEOUT_MS, &out, error, sizeof(error));
	r = 0;
	if (status != 0)
		r = REFUSE("the new program does not record truly here: %.*s", status < 0 ? (int)sizeof(error) :
		    (int)strcspn((const char *)out.data, "\n"), status < 0 ? error : (const char *)out.data);
out:
	bytes_done(&out);
	return r;
}

static void
on_second(unsigned left_s, void *arg)
{
	const struct update *u = arg;

	if (u->is_live && left_s > 0)
		fprintf(stderr, "\rwatching the agent, %u s\033[K", left_s);
	else if (u->is_live)
		fputs("\rwaiting for the agent\033[K", stderr);
}

/* Takes the old program back, of that version if it is known. Returns the exit status. */
static int
roll_back(struct update *u, const char *failed, const char *why, const char *version)
{
	char error[1024];
	int r;

	say(u, "version %s fails: %s; taking the program before it back", failed, why);
	r = stage_back(&u->stage);
	if (r < 0)
		return end(u, EXIT_OWN_FAILURE, "broken", "version %s fails, %s, and %s/%s cannot be renamed back to %s: %s", failed,
		    why, u->stage.folder, u->stage.old, u->stage.name, strerror(-r));
	r = update_agent_restart(&u->agent, error, sizeof(error));
	if (r == 0)
		r = update_agent_watch(&u->agent, version, u->watch_ms, 0, on_second, u, error, sizeof(error));
	return end(u, EXIT_NO, "rolled_back", "version %s failed: %s; the program before it is back%s%s", failed, why,
	    r == 0 ? ", and its agent is as well as before" : ", but ", r == 0 ? "" : error);
}

/*
 * Restarts the agent with a program that was put in place, and gives the verdict on it. former: the version before;
 * NULL: it is not known. Returns the exit status.
 */
static int
settle(struct update *u, const char *version, const char *former)
{
	char error[1024];
	int r;

	if (u->agent.restart == UPDATE_RESTART_BY_COMMAND) {
		say(u, "restarting the agent with version %s", version);
		r = update_agent_restart(&u->agent, error, sizeof(error));
		if (r == 0)
			r = update_agent_watch(&u->agent, version, u->watch_ms, u->watch_ms, on_second, u, error,
			    sizeof(error));
		clear_line(u);
		if (r < 0)
			return roll_back(u, version, error, former);
	}
	r = stage_keep(&u->stage);
	if (r < 0)
		return end(u, EXIT_OWN_FAILURE, "broken", "version %s is installed, but %s/%s cannot be renamed to %s: %s", version,
		    u->stage.folder, u->stage.old, u->stage.previous, strerror(-r));
	return end(u, EXIT_DONE, "updated", "version %s is installed%s; the program before it is %s/%s", version,
	    u->agent.restart == UPDATE_RESTART_BY_COMMAND ? ", and its agent is as well as the one before" :
	    u->agent.restart == UPDATE_RESTART_BY_HAND ? "; the agent was started by hand and runs an older one: restart it, or "
	    "set update.restart" : "", u->stage.folder, u->stage.previous);
}

/* Gives the verdict that a killed update has left. Returns 0 or an exit status. */
static int
finish_former(struct update *u)
{
	char error[1024];
	int r;

	say(u, "an update to version %s was interrupted before its verdict: finishing it", u->installed.text);
	if (update_agent_recall(&u->agent, u->config, u->stage.note, error, sizeof(error)) < 0)
		return REFUSE("%s", error);
	r = settle(u, u->installed.text, NULL);
	update_agent_done(&u->agent);
	return r;
}

/* Returns the exit status. */
static int
install(struct update *u)
{
	char note[STAGE_NOTE_SIZE], error[1024];
	int r = stage_write(&u->stage, u->program.data, u->program.len);

	bytes_done(&u->program);
	if (r < 0)
		return REFUSE("%s cannot be written: %s", u->stage.path, strerror(-r));
	r = try_program(u);
	if (r != 0)
		return r;
	if (update_agent_look(&u->agent, u->config, u->target, error, sizeof(error)) < 0)
		return REFUSE("%s", error);
	if (stop != 0)
		return REFUSE("interrupted");
	update_agent_note(&u->agent, note, sizeof(note));
	/* From here to the verdict a signal does not end us. */
	r = stage_swap(&u->stage, note);
	if (r < 0 && !u->stage.is_swapped)
		return REFUSE("%s cannot be replaced: %s", u->target, strerror(-r));
	return settle(u, u->available.text, u->installed.text);
}

static int
update(struct update *u)
{
	bool is_done = false;
	int r = configure(u);

	if (r != 0)
		return r;
	if (u->only_checks)
		return fetch(u, &is_done);
	r = find_target(u);
	if (r == 0 && u->stage.is_swapped)
		r = finish_former(u);
	if (r == 0)
		r = fetch(u, &is_done);
	return r != 0 || is_done ? r : install(u);
}

static void
print_result(const struct update *u, int status)
{
	json_t *root;

	clear_line(u);
	if (!u->as_json) {
		spell_line(status == EXIT_DONE || u->only_checks ? stdout : stderr, "sluice update: %s\n", u->message);
		return;
	}
	root = json_pack("{ss ss ss so ss}", "result", u->result, "message", u->message, "installed", SLUICE_VERSION,
	    "available", u->has_available ? json_string(u->available.text) : json_null(), "program", u->target);
	print_json(stdout, root);
	json_decref(root);
}

int
cli_update(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal }, ignore = { .sa_handler = SIG_IGN };
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct update u = { .watch_ms = WATCH_MS, .stage = { .dir = -1, .lock_fd = -1 }, .result = "" };
	int status = parse(argc, argv, &u);

	if (status != 0)
		return status < 0 ? EXIT_DONE : status;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	u.is_live = !u.as_json && isatty(STDERR_FILENO);
	status = update(&u);
	stage_close(&u.stage);
	update_agent_done(&u.agent);
	print_result(&u, status);
	bytes_done(&u.program);
	config_free(u.config);
	return status;
}
